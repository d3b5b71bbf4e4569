// dropout for one level: Philox (core/random.cpp, the same words) on many blocks at once.
#include "linnet/ops/dropout_kernels.h"
#include "linnet/ops/row_loops.h"

namespace linnet::LINNET_LEVEL {
namespace {

using Words = Lanes<uint64_t>::Vector;  // numbers of 32 bits, in the width of their products
constexpr int kLanes = Lanes<uint64_t>::kCount;
constexpr int kBlocks = 32, kChains = kBlocks / kLanes;  // blocks of four words at a time; chains wait for nobody
constexpr int kWords = 4 * kBlocks;
constexpr uint64_t kLow = 0xFFFFFFFF;

/// The words of kBlocks blocks from block `first` on.
void philox_words(uint64_t seed, uint64_t stream, uint64_t first, uint32_t* __restrict words) {
  Words c0[kChains], c1[kChains], c2[kChains], c3[kChains];
  for (int i = 0; i < kChains; ++i) {
    for (int j = 0; j < kLanes; ++j) {
      const uint64_t block = first + static_cast<uint64_t>(i * kLanes + j);
      c0[i][j] = block & kLow, c1[i][j] = block >> 32, c2[i][j] = stream & kLow, c3[i][j] = stream >> 32;
    }
  }
  uint64_t k0 = seed & kLow, k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kChains; ++i) {
      const Words p0 = c0[i] * uint64_t{0xD2511F53}, p1 = c2[i] * uint64_t{0xCD9E8D57};
      c0[i] = (p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = p1 & kLow;
      c2[i] = (p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = p0 & kLow;
    }
    k0 = (k0 + 0x9E3779B9) & kLow, k1 = (k1 + 0xBB67AE85) & kLow;
  }
  uint64_t first_two[kBlocks], last_two[kBlocks], pairs[2 * kBlocks];  // of each block, as they lie in memory
  for (int i = 0; i < kChains; ++i) {
    const Words low = c0[i] | c1[i] << 32, high = c2[i] | c3[i] << 32;
    __builtin_memcpy(first_two + i * kLanes, &low, sizeof(low));
    __builtin_memcpy(last_two + i * kLanes, &high, sizeof(high));
  }
  for (int j = 0; j < kBlocks; ++j) pairs[2 * j] = first_two[j], pairs[2 * j + 1] = last_two[j];
  __builtin_memcpy(words, pairs, sizeof(pairs));
}

template <class T>
void apply(int64_t begin, int64_t end, const DropoutWords& at, uint32_t threshold, T scale, const T* __restrict x,
           T* __restrict y) {
  uint32_t words[kWords];
  for (int64_t i = begin; i < end;) {
    const uint64_t word = at.first + static_cast<uint64_t>(i);
    const int skip = static_cast<int>(word % 4);  // words of the first block that belong to elements before i
    philox_words(at.seed, at.stream, word / 4, words);
    const int64_t n = end - i < kWords - skip ? end - i : kWords - skip;
    for (int64_t j = 0; j < n; ++j) y[i + j] = words[skip + j] >= threshold ? x[i + j] * scale : T(0);
    i += n;
  }
}

}  // namespace

extern const DropoutF32 dropout_f32 = {apply<float>};
extern const DropoutF64 dropout_f64 = {apply<double>};
}  // namespace linnet::LINNET_LEVEL
