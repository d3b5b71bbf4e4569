// Linear attention for one level. All of it is one primitive (linear_attention_block.h), over rows r in order:
//
//     X += a_r b_r^T,   o_r = X^T c_r
//
// Rows are staged in chunks of kChunk, padded with zeros to whole vectors and to whole groups of kRows; kRows rows by
// two vectors of columns then stay in registers while X streams by once. A masked row is staged as zeros, unread.
#include "linnet/ops/linear_attention_backward.h"
#include "linnet/ops/linear_attention_forward.h"
#include "linnet/ops/linear_attention_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
void forward(const LinearAttentionForward<T>& p) {
  Forward<T>(p).run();
}

template <class T>
void backward(const LinearAttentionBackward<T>& p) {
  Backward<T>(p).run();
}

template <class Kernel, class Problem>
int64_t scratch(int64_t queries, int64_t dim, int64_t value_dim, bool causal) {
  Problem problem{};
  problem.causal = causal;
  problem.queries = queries;
  problem.dim = dim;
  problem.value_dim = value_dim;
  return Kernel(problem).arena.used;
}

template <class T>
constexpr LinearAttentionKernels<T> kernels = {forward<T>, backward<T>, scratch<Forward<T>, LinearAttentionForward<T>>,
                                               scratch<Backward<T>, LinearAttentionBackward<T>>};

}  // namespace

extern const LinearAttentionF32 linear_attention_f32 = kernels<float>;
extern const LinearAttentionF64 linear_attention_f64 = kernels<double>;

}  // namespace linnet::LINNET_LEVEL
