// Philox 4x32-10 (Salmon et al. 2011), for processors of every kind.
#pragma once
#include <cstdint>

#ifndef LINNET_FN  // what a kernel of a GPU may call: core/cuda.h
#define LINNET_FN
#endif

namespace linnet {

struct PhiloxWords {
  uint32_t word[4];
};

/// Ten rounds over a counter of four words with a key of two.
LINNET_FN inline PhiloxWords philox_rounds(PhiloxWords c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c.word[0], p1 = uint64_t{0xCD9E8D57} * c.word[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c.word[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
  return c;
}

/// PhiloxWords 4 block to 4 block + 3 of the sequence (seed, stream).
LINNET_FN inline PhiloxWords philox_block(uint64_t seed, uint64_t stream, uint64_t block) {
  const PhiloxWords counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                               static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  return philox_rounds(counter, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

}  // namespace linnet
