// dropout as one writes it: the reference for the other levels.
#include "linnet/core/random.h"
#include "linnet/ops/dropout_kernels.h"

namespace linnet::plain {
namespace {

template <class T>
void apply(int64_t begin, int64_t end, const DropoutWords& words, uint32_t threshold, T scale, const T* x, T* y) {
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t word = random_word(words.seed, words.stream, words.first + static_cast<uint64_t>(i));
    y[i] = word >= threshold ? x[i] * scale : 0;
  }
}

}  // namespace

extern const DropoutF32 dropout_f32 = {apply<float>};
extern const DropoutF64 dropout_f64 = {apply<double>};
}  // namespace linnet::plain
