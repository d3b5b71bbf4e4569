// Attention: multi-head self-attention of every kind, in the parallel form over a sequence and the recurrent form of
// one step, with the same weights.
#pragma once
#include <optional>

#include "linnet/core/workspace.h"
#include "linnet/nn/attention_state.h"
#include "linnet/nn/features.h"
#include "linnet/nn/linear.h"

namespace linnet::nn {

struct AttentionOptions {
  Required<int64_t> dim;
  Required<int64_t> heads;
  bool causal = false;
  AttentionKind kind = AttentionKind::linear;
  int64_t window = -1;        ///< local, where there is no default: how many steps away a key may lie, 0 or more
  double eps = 0;             ///< linear: added to the denominator
  Features feature_map = {};  ///< linear: of queries and keys
  bool bias = true;           ///< of both projections
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
/// A layer for the feature map of linear attention, unless that is fused.
void make_features(std::optional<FeatureLayer>& features, Module& parent, AttentionKind kind, int64_t heads,
                   int64_t width, const Features& map);
/// The feature map that is left to the op: none, where a layer makes the features.
inline FeatureMap fused_map(const Features& map) {
  return map.kind == Features::Kind::fused ? map.fused : FeatureMap::identity;
}
}  // namespace detail

/// x (batch, time, dim) -> (batch, time, dim): out(attention(qkv(x))), each of `heads` heads over dim / heads channels.
/// Parameters: qkv (3 dim, dim), its rows the queries', keys' and values' projections, head by head; out (dim, dim).
/// With random features a buffer features.projections. Errors: a window below 0 for kind local, causal for efficient.
class Attention : public Module {
 public:
  using Options = AttentionOptions;
  Attention(Module& parent, std::string name, const Options& options);

  /// `keys` leaves padding out.
  Variable operator()(const Variable& x, const KeyMask* keys = nullptr) const;

  /// An empty past for `batch` sequences. `capacity` is a guess of how many steps will come; softmax grows as it needs
  /// to. An error for kind efficient.
  AttentionState make_state(int64_t batch, int64_t capacity = 16) const;
  /// The next step, x (batch, dim) -> (batch, dim); adds it to the state. Only for causal attention; an error while a
  /// tape records.
  Variable step(const Variable& x, AttentionState& state) const;
  /// The same, added to y (batch, dim), without memory but the workspace's and that of features that are not fused.
  void add_step(Tensor& y, const Tensor& x, AttentionState& state, Workspace& workspace) const;
  /// What step checks of the state: throws where it is not one of this layer's for this batch.
  void check_state(const AttentionState& state, int64_t batch) const;

  Linear qkv, out;
  std::optional<FeatureLayer> features;  ///< of kind linear, where the feature map is not fused

 private:
  Variable attend(const Variable& parts, const KeyMask* keys) const;
  Shape sums_shape(int64_t batch) const;

  int64_t dim_, heads_;
  bool causal_;
  AttentionKind kind_;
  int64_t window_;
  double eps_;
  FeatureMap fused_map_;
};

}  // namespace linnet::nn
