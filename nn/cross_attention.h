// CrossAttention: multi-head attention of one sequence to another, the memory, in the parallel form and the recurrent
// form of one query, with the same weights.
#pragma once
#include "linnet/nn/attention.h"

namespace linnet::nn {

struct CrossAttentionOptions {
  Required<int64_t> dim;
  Required<int64_t> heads;
  int64_t memory_dim = 0;                      ///< 0 means dim
  AttentionKind kind = AttentionKind::linear;  ///< any but local: a memory's steps are not near a query's
  double eps = 0;                              ///< linear: added to the denominator
  Features feature_map = {};                   ///< linear: of queries and keys
  bool bias = true;                            ///< of all projections
};

/// What the recurrent form knows of the memory: of kinds linear and efficient the sums over it, whose size does not
/// depend on its length, of kind softmax its keys and values. A step does not change it; of softmax a copy shares the
/// memory.
struct CrossState {
  AttentionState memory;
  Tensor keys;  ///< of kind softmax: u8 (batch, memory time), 0 where a key is left out; undefined: all take part

  StateDict state_dict() const;
  /// Throws, changing nothing, where names, shapes or dtype do not fit. The memory's length may be another.
  void load_state_dict(const StateDict& state);
  CrossState select(const Tensor& samples) const;  ///< as AttentionState::select
};

/// x (batch, Tq, dim), memory (batch, Tk, memory_dim) -> (batch, Tq, dim): out(attention(q(x), kv(memory))), not
/// causal, each of `heads` heads over dim / heads channels (Vaswani et al. 2017, section 3.2.3). Where no key takes
/// part, the heads give 0. Parameters: q (dim, dim); kv (2 dim, memory_dim), its rows the keys' and values'
/// projections, head by head; out (dim, dim). With random features a buffer features.projections.
class CrossAttention : public Module {
 public:
  using Options = CrossAttentionOptions;
  CrossAttention(Module& parent, std::string name, const Options& options);

  /// `keys` leaves the memory's padding out.
  Variable operator()(const Variable& x, const Variable& memory, const KeyMask* keys = nullptr) const;

  /// How much each query looks at each key, (batch, Tq, heads, Tk), to look at: rows sum to 1. An error while a tape
  /// records.
  Tensor weights(const Variable& x, const Variable& memory, const KeyMask* keys = nullptr) const;

  /// What steps look at, made once a memory. An error while a tape records.
  CrossState encode(const Variable& memory, const KeyMask* keys = nullptr) const;
  /// One query a sample, x (batch, dim) -> (batch, dim). An error while a tape records.
  Variable step(const Variable& x, const CrossState& state) const;
  /// The same, added to y (batch, dim), without memory but the workspace's and that of features that are not fused, as
  /// efficient attention's.
  void add_step(Tensor& y, const Tensor& x, const CrossState& state, Workspace& workspace) const;
  /// What step checks of the state: throws where it is not one of this layer's for this batch.
  void check_state(const CrossState& state, int64_t batch) const;

  Linear q, kv, out;
  std::optional<FeatureLayer> features;  ///< of kind linear, where the feature map is not fused

 private:
  struct Parts {
    Variable k, v;  // (batch, Tk, heads, dim / heads)
  };
  Parts project(const Variable& memory) const;
  Variable attend(const Variable& queries, const Parts& memory, const KeyMask* keys) const;
  Variable project_queries(const Variable& x, const Variable& memory) const;

  int64_t dim_, heads_, memory_dim_;
  AttentionKind kind_;
  double eps_;
  FeatureMap fused_map_;
};

}  // namespace linnet::nn
