// dropout on a GPU: a thread a block of four words, the words of every other device.
#include "linnet/core/cuda_stream.h"
#include "linnet/core/philox.h"
#include "linnet/ops/dropout_kernels.h"

namespace linnet::cuda {
namespace {

template <class T>
void apply(int64_t begin, int64_t end, const DropoutWords& words, uint32_t threshold, T scale, const T* x, T* y) {
  const DropoutWords at = words;
  const uint64_t first = at.first + static_cast<uint64_t>(begin), block = first / 4;
  const int64_t skip = static_cast<int64_t>(first % 4);  // words of the first block that belong to elements before
  each((skip + end - begin + 3) / 4, [=] __device__(int64_t b) {
    const PhiloxWords drawn = philox_block(at.seed, at.stream, block + static_cast<uint64_t>(b));
    UNROLL for (int j = 0; j < 4; ++j) {
      const int64_t i = begin + 4 * b + j - skip;
      if (i >= begin && i < end) y[i] = drawn.word[j] >= threshold ? x[i] * scale : T(0);
    }
  });
}

}  // namespace

extern const DropoutF32 dropout_f32 = {apply<float>};
extern const DropoutF64 dropout_f64 = {apply<double>};

}  // namespace linnet::cuda
