// One call of softmax attention on its tensors, tile by tile, and the forms that softmax attention and local attention
// share: softmax_attention.cpp and softmax_attention_step.cpp define them.
// Private to ops/.
#pragma once
#include <algorithm>
#include <limits>
#include <utility>

#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/softmax_attention.h"
#include "linnet/ops/softmax_attention_kernels.h"

namespace linnet::softmax_attention_run {

constexpr int64_t kTile = 64;                                       // queries and keys of one tile of scores
constexpr int64_t kAnywhere = std::numeric_limits<int32_t>::max();  // steps are 32-bit

/// All of one call but its tensors.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  Band band;
  double scale;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  double nanoseconds(double products) const {
    const double keys = static_cast<double>(sizes.keys), whole = band.after == 0 ? 0.5 * keys : keys;
    const double near = static_cast<double>(band.before + band.after + kTile);
    return static_cast<double>(sizes.queries) * std::min(whole, near) *
           (1 + products * static_cast<double>(sizes.dim + sizes.value_dim) / 40);
  }
};

/// The tensors of one call; in the fused form q, k and v are the same one. Masks are undefined where there is none.
struct Inputs {
  Tensor q, k, v;
  Tensor keys, queries, pairs;
};

/// A call with these options; the layouts of q, k and v are left to the caller.
Call make_call(const AttentionSizes& sizes, const SoftmaxAttentionOptions& options, Band band);
/// Sets x.keys, x.queries and x.pairs.
void read_masks(const char* op, const SoftmaxAttentionOptions& options, const AttentionSizes& sizes, Inputs& x);

/// Writes out and lse (batch, queries, heads), the log of each row's sum of exponentials; -infinity where no key is
/// allowed.
void forward_into(const Call& call, const Inputs& x, Tensor out, Tensor lse);
/// The same into new memory: out and lse.
std::pair<Tensor, Tensor> forward(const Call& call, const Inputs& x);
/// Adds the gradients for dy to the zeroed dq, dk and dv (in the fused form one tensor, thrice).
void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
              Tensor dk, Tensor dv);

/// The op on the tape, for q, k and v or for one projection of them. Of the options, scale and masks count.
Variable attend(const char* op, const Variable& q, const Variable& k, const Variable& v,
                const SoftmaxAttentionOptions& options, Band band);
Variable attend_qkv(const char* op, const Variable& qkv, const SoftmaxAttentionOptions& options, Band band);

/// One step, q, k and v or one projection of them, over a cache of at most `most` steps: the next one goes to the end,
/// and where the cache is full to `oldest`, which moves on.
void step(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, KeyValueCache& cache, int64_t& oldest,
          int64_t most, Tensor& out, const SoftmaxAttentionOptions& options);
void step_qkv(const char* op, const Tensor& qkv, KeyValueCache& cache, int64_t& oldest, int64_t most, Tensor& out,
              const SoftmaxAttentionOptions& options);

}  // namespace linnet::softmax_attention_run
