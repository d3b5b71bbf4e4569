// Block: one layer of a transformer: attention, then a feed-forward net, each added to what came in.
#pragma once
#include "linnet/nn/attention.h"
#include "linnet/nn/feed_forward.h"
#include "linnet/nn/layer_norm.h"

namespace linnet::models {

struct BlockOptions {
  nn::Required<int64_t> dim;
  nn::Required<int64_t> heads;
  int64_t hidden = 0;  ///< of the feed-forward net; 0 means 4 dim
  bool causal = false;
  nn::AttentionKind kind = nn::AttentionKind::linear;
  int64_t window = -1;  ///< of local attention, as in nn::AttentionOptions
  bool pre_norm = true;
  double dropout = 0;  ///< of both branches and of the hidden units
  nn::Activation activation = nn::Activation::gelu;
  double eps = 0;                 ///< of linear attention's denominator
  nn::Features feature_map = {};  ///< of linear attention
  double norm_eps = 1e-5;
};

/// The options of a block's attention to itself.
nn::AttentionOptions attention_options(const BlockOptions& options);

/// x (batch, time, dim) -> (batch, time, dim):
///
///     pre-norm (Xiong et al. 2020)        h = x + attention(norm1(x))     y = h + feed_forward(norm2(h))
///     post-norm (Vaswani et al. 2017)     h = norm1(x + attention(x))     y = norm2(h + feed_forward(h))
class Block : public nn::Module {
 public:
  using Options = BlockOptions;
  Block(nn::Module& parent, std::string name, const Options& options);

  /// `keys` leaves padding out.
  Variable operator()(const Variable& x, const KeyMask* keys = nullptr) const;

  nn::AttentionState make_state(int64_t batch, int64_t capacity = 16) const;
  /// The next step, x (batch, dim) -> (batch, dim); nn::Attention::step says when it can be taken.
  Variable step(const Variable& x, nn::AttentionState& state) const;
  /// The same in place, without memory but the workspace's. A step drops nothing out.
  void step_inplace(Tensor& h, nn::AttentionState& state, Workspace& workspace) const;
  /// What a step checks of the state.
  void check_state(const nn::AttentionState& state, int64_t batch) const { attention.check_state(state, batch); }

  nn::LayerNorm norm1;
  nn::Attention attention;
  nn::LayerNorm norm2;
  nn::FeedForward feed_forward;
  nn::Dropout dropout;

 private:
  template <class Attend>
  Variable run(const Variable& x, const Attend& attend) const;

  bool pre_norm_;
};

}  // namespace linnet::models
