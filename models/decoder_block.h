// DecoderBlock: one layer of a decoder: causal attention to itself, attention to the encoder's memory, then a
// feed-forward net, each added to what came in.
#pragma once
#include "linnet/models/block.h"
#include "linnet/nn/cross_attention.h"

namespace linnet::models {

struct DecoderBlockOptions {
  BlockOptions block;      ///< `kind` is that of the attention to itself, which is causal whatever stands there
  int64_t memory_dim = 0;  ///< 0 means block.dim
  /// Of the attention to the memory: linear, softmax or efficient; the clustered ones see later queries.
  nn::AttentionKind cross_kind = nn::AttentionKind::linear;
};

/// What a layer's recurrent form knows of the past and of the memory. A copy goes its own way.
struct DecoderBlockState {
  nn::AttentionState self;
  nn::CrossState cross;

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);  ///< throws, changing nothing, where a name or a part does not fit
};

/// x (batch, time, dim), memory (batch, memory time, memory_dim) -> (batch, time, dim) (Vaswani et al. 2017, section
/// 3):
///
///     pre-norm    g = x + attention(norm1(x))    h = g + cross(norm2(g), memory)    y = h + feed_forward(norm3(h))
///     post-norm   g = norm1(x + attention(x))    h = norm2(g + cross(g, memory))    y = norm3(h + feed_forward(h))
class DecoderBlock : public nn::Module {
 public:
  using Options = DecoderBlockOptions;
  DecoderBlock(nn::Module& parent, std::string name, const Options& options);

  /// `memory_keys` leaves the memory's padding out.
  Variable operator()(const Variable& x, const Variable& memory, const KeyMask* memory_keys = nullptr) const;

  /// How much each step looks at each step of the memory, (batch, time, heads, memory time). An error while a tape
  /// records.
  Tensor cross_weights(const Variable& x, const Variable& memory, const KeyMask* memory_keys = nullptr) const;

  /// An empty past of a memory's batch; `capacity` as in nn::Attention::make_state.
  DecoderBlockState make_state(const Variable& memory, const KeyMask* memory_keys = nullptr,
                               int64_t capacity = 16) const;
  /// The next step in place, h (batch, dim), without memory but the workspace's. A step drops nothing out.
  void step_inplace(Tensor& h, DecoderBlockState& state, Workspace& workspace) const;
  /// What a step checks of the state.
  void check_state(const DecoderBlockState& state, int64_t batch) const;

  nn::LayerNorm norm1;
  nn::Attention attention;
  nn::LayerNorm norm2;
  nn::CrossAttention cross;
  nn::LayerNorm norm3;
  nn::FeedForward feed_forward;
  nn::Dropout dropout;

 private:
  bool pre_norm_;
};

}  // namespace linnet::models
