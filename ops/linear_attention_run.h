// One call of linear attention on its tensors: the kernels, run over every head of every sample. Shared by the op's
// forms in linear_attention.cpp and linear_attention_state.cpp.
// Private to ops/.
#pragma once
#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/linear_attention.h"

namespace linnet::linear_attention_run {

/// All of one call but its tensors: plain values, so that the way back may capture it.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  FeatureMap map;
  bool causal, normalise;
  double eps;
  Precision precision = Precision::full;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  Shape sums_shape() const { return {sizes.batch, sizes.heads, sizes.dim, sizes.value_dim}; }
  Shape normaliser_shape() const { return {sizes.batch, sizes.heads, sizes.dim}; }
  /// A rough cost of one head, `sweeps` times over all steps.
  double nanoseconds(double sweeps) const {
    const double steps = static_cast<double>(sizes.queries + sizes.keys) / 2;
    return sweeps * steps * (20 + 0.05 * static_cast<double>(sizes.dim * sizes.value_dim));
  }
};

/// The tensors of one call; in the fused form q, k and v are the same one.
struct Inputs {
  Tensor q, k, v;
  Tensor keys, queries;  // masks, u8 (batch, time), or undefined
  Tensor s, z;           // the initial state, or undefined
};

/// A call with these options; the layouts of q, k and v are left to the caller.
Call make_call(const AttentionSizes& sizes, const LinearAttentionOptions& options, bool causal);
/// Sets x.keys and x.queries.
void read_masks(const char* op, const LinearAttentionOptions& options, const AttentionSizes& sizes, Inputs& x);

/// out; the denominators d (batch, queries, heads); and of a long causal call the checkpoints, the states S and z after
/// each piece of its rows but the last (batch, heads, pieces - 1, D M + D): the way back goes from piece to piece.
struct Result {
  Tensor out, d, checkpoints;
};
/// s and z go from the initial state to the final one, or are undefined where nobody wants them.
Result forward(const Call& call, const Inputs& x, Tensor s = {}, Tensor z = {});
/// Writes the gradients of q, k, v (in the fused form one tensor, thrice) for g, the gradient of out. ds and dz: in,
/// the gradient of the final state; out, of the initial one; undefined where there is none.
void backward(const Call& call, const Inputs& x, const Result& made, const Tensor& g, Tensor dq, Tensor dk, Tensor dv,
              Tensor ds = {}, Tensor dz = {});

}  // namespace linnet::linear_attention_run
