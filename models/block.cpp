#include "linnet/models/block.h"

#include "linnet/ops/elementwise.h"

namespace linnet::models {

nn::AttentionOptions attention_options(const BlockOptions& options) {
  return {.dim = options.dim,
          .heads = options.heads,
          .causal = options.causal,
          .kind = options.kind,
          .window = options.window,
          .eps = options.eps,
          .feature_map = options.feature_map};
}

Block::Block(nn::Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      norm1(*this, "norm1", {.dim = options.dim, .eps = options.norm_eps}),
      attention(*this, "attention", attention_options(options)),
      norm2(*this, "norm2", {.dim = options.dim, .eps = options.norm_eps}),
      feed_forward(*this, "feed_forward",
                   {.dim = options.dim,
                    .hidden = options.hidden ? options.hidden : 4 * options.dim,
                    .activation = options.activation,
                    .dropout = options.dropout}),
      dropout(*this, "dropout", {.p = options.dropout}),
      pre_norm_(options.pre_norm) {}

template <class Attend>
Variable Block::run(const Variable& x, const Attend& attend) const {
  if (pre_norm_) {
    const Variable h = x + dropout(attend(norm1(x)));
    return h + dropout(feed_forward(norm2(h)));
  }
  const Variable h = norm1(x + dropout(attend(x)));
  return norm2(h + dropout(feed_forward(h)));
}

Variable Block::operator()(const Variable& x, const KeyMask* keys) const {
  return run(x, [&](const Variable& h) { return attention(h, keys); });
}

nn::AttentionState Block::make_state(int64_t batch, int64_t capacity) const {
  return attention.make_state(batch, capacity);
}

Variable Block::step(const Variable& x, nn::AttentionState& state) const {
  Tensor h = x.value().clone();
  Workspace workspace;
  step_inplace(h, state, workspace);
  return h;
}

void Block::step_inplace(Tensor& h, nn::AttentionState& state, Workspace& workspace) const {
  Tensor normal = workspace.take(h.shape(), h.dtype(), h.device());
  if (pre_norm_) {
    norm1.into(h, normal);
    attention.add_step(h, normal, state, workspace);
    norm2.into(h, normal);
    feed_forward.add_to(h, normal, workspace);
  } else {
    attention.add_step(h, h, state, workspace);
    norm1.into(h, normal);
    feed_forward.add_to(normal, normal, workspace);
    norm2.into(normal, h);
  }
}

}  // namespace linnet::models
