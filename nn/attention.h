// Attention: multi-head self-attention of every kind, in the parallel form over a sequence and the recurrent form of
// one step, with the same weights.
#pragma once
#include "linnet/core/workspace.h"
#include "linnet/nn/linear.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/softmax_attention.h"

namespace linnet::nn {

enum class AttentionKind {
  linear,  ///< Katharopoulos et al. 2020: time O(N), a state of fixed size
  softmax  ///< Vaswani et al. 2017: time O(N^2), the state is all keys and values so far
};
const char* name(AttentionKind kind);

struct AttentionOptions {
  Required<int64_t> dim;
  Required<int64_t> heads;
  bool causal = false;
  AttentionKind kind = AttentionKind::linear;
  double eps = 0;                             ///< linear: added to the denominator
  FeatureMap feature_map = FeatureMap::elu1;  ///< linear: of queries and keys
  bool bias = true;                           ///< of both projections
};

namespace detail {
/// The rows of a projection to `parts` of dim channels: parts dim, for a dim that is not so large that it would
/// overflow.
int64_t fused_rows(const Module& layer, int64_t parts, int64_t dim);
/// Throws, naming the layer, unless heads divide dim and eps is finite and not negative.
void check_heads(const Module& layer, int64_t dim, int64_t heads, double eps);
/// Throws, naming the layer, while a tape records what `what` cannot record.
void check_not_recording(const Module& layer, const char* what);
/// Throws, naming the layer and the part, unless the state's part has this shape and dtype.
void check_state_part(const Module& layer, const char* part, const Tensor& given, const Shape& wanted, Dtype dtype);
}  // namespace detail

/// What the recurrent form knows of the past, for a whole batch. A copy goes its own way.
struct AttentionState {
  AttentionKind kind = AttentionKind::linear;
  LinearState linear;     ///< of kind linear
  KeyValueCache softmax;  ///< of kind softmax

  StateDict state_dict() const;
  /// Throws, changing nothing, where names, shapes or dtype do not fit.
  void load_state_dict(const StateDict& state);
  /// The state of a batch made of these samples, i32 (n), in this order; one may come twice (for beam search).
  AttentionState select(const Tensor& samples) const;
};

/// x (batch, time, dim) -> (batch, time, dim): out(attention(qkv(x))), each of `heads` heads over dim / heads channels.
/// Parameters: qkv (3 dim, dim), its rows the queries', keys' and values' projections, head by head; out (dim, dim).
class Attention : public Module {
 public:
  using Options = AttentionOptions;
  Attention(Module& parent, std::string name, const Options& options);

  /// `keys` leaves padding out.
  Variable operator()(const Variable& x, const KeyMask* keys = nullptr) const;

  /// An empty past for `batch` sequences. `capacity` is a guess of how many steps will come; softmax grows as it needs
  /// to.
  AttentionState make_state(int64_t batch, int64_t capacity = 16) const;
  /// The next step, x (batch, dim) -> (batch, dim); adds it to the state. Only for causal attention; an error while a
  /// tape records.
  Variable step(const Variable& x, AttentionState& state) const;
  /// The same, added to y (batch, dim), without memory but the workspace's.
  void add_step(Tensor& y, const Tensor& x, AttentionState& state, Workspace& workspace) const;
  /// What step checks of the state: throws where it is not one of this layer's for this batch.
  void check_state(const AttentionState& state, int64_t batch) const;

  Linear qkv, out;

 private:
  int64_t dim_, heads_;
  bool causal_;
  AttentionKind kind_;
  double eps_;
  FeatureMap feature_map_;
};

}  // namespace linnet::nn
