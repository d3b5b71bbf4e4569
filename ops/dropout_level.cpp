// dropout for one level: Philox (core/random.cpp, the same words) on sixteen blocks at once.
#include "linnet/ops/dropout_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

constexpr int kBlocks = 16;  // of four words each
constexpr int kWords = 4 * kBlocks;
constexpr uint64_t kLow = 0xFFFFFFFF;

/// The words of blocks first .. first + 15.
void philox_words(uint64_t seed, uint64_t stream, uint64_t first, uint32_t* __restrict words) {
  uint64_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];  // 32 bits each, in the width of their products
  for (int j = 0; j < kBlocks; ++j) {
    const uint64_t block = first + static_cast<uint64_t>(j);
    c0[j] = block & kLow, c1[j] = block >> 32, c2[j] = stream & kLow, c3[j] = stream >> 32;
  }
  uint64_t k0 = seed & kLow, k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    for (int j = 0; j < kBlocks; ++j) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[j], p1 = uint64_t{0xCD9E8D57} * c2[j];
      c0[j] = (p1 >> 32) ^ c1[j] ^ k0;
      c1[j] = p1 & kLow;
      c2[j] = (p0 >> 32) ^ c3[j] ^ k1;
      c3[j] = p0 & kLow;
    }
    k0 = (k0 + 0x9E3779B9) & kLow, k1 = (k1 + 0xBB67AE85) & kLow;
  }
  for (int j = 0; j < kBlocks; ++j) {
    words[4 * j] = static_cast<uint32_t>(c0[j]), words[4 * j + 1] = static_cast<uint32_t>(c1[j]);
    words[4 * j + 2] = static_cast<uint32_t>(c2[j]), words[4 * j + 3] = static_cast<uint32_t>(c3[j]);
  }
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
