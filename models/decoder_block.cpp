#include "linnet/models/decoder_block.h"

#include "linnet/ops/elementwise.h"

namespace linnet::models {

StateDict DecoderBlockState::state_dict() const {
  StateDict state;
  state.add("self", self.state_dict());
  state.add("cross", cross.state_dict());
  return state;
}

void DecoderBlockState::load_state_dict(const StateDict& state) {
  DecoderBlockState loaded = *this;
  const StateDict own = state.part("self"), memory = state.part("cross");
  const size_t all = state.tensors().size() + state.texts().size();
  const size_t known = own.tensors().size() + own.texts().size() + memory.tensors().size() + memory.texts().size();
  LINNET_CHECK(all == known, "decoder state: ", all - known, " entries given that belong to neither self nor cross");
  loaded.self.load_state_dict(own);
  loaded.cross.load_state_dict(memory);
  *this = std::move(loaded);
}

namespace {

nn::AttentionOptions causal(const BlockOptions& options) {
  nn::AttentionOptions attention = attention_options(options);
  attention.causal = true;
  return attention;
}

}  // namespace

DecoderBlock::DecoderBlock(nn::Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      norm1(*this, "norm1", {.dim = options.block.dim, .eps = options.block.norm_eps}),
      attention(*this, "attention", causal(options.block)),
      norm2(*this, "norm2", {.dim = options.block.dim, .eps = options.block.norm_eps}),
      cross(*this, "cross",
            {.dim = options.block.dim,
             .heads = options.block.heads,
             .memory_dim = options.memory_dim,
             .kind = options.cross_kind,
             .eps = options.block.eps,
             .feature_map = options.block.feature_map}),
      norm3(*this, "norm3", {.dim = options.block.dim, .eps = options.block.norm_eps}),
      feed_forward(*this, "feed_forward",
                   {.dim = options.block.dim,
                    .hidden = options.block.hidden ? options.block.hidden : 4 * options.block.dim,
                    .activation = options.block.activation,
                    .dropout = options.block.dropout}),
      dropout(*this, "dropout", {.p = options.block.dropout}),
      pre_norm_(options.block.pre_norm) {}

Variable DecoderBlock::operator()(const Variable& x, const Variable& memory, const KeyMask* memory_keys) const {
  if (pre_norm_) {
    const Variable g = x + dropout(attention(norm1(x)));
    const Variable h = g + dropout(cross(norm2(g), memory, memory_keys));
    return h + dropout(feed_forward(norm3(h)));
  }
  const Variable g = norm1(x + dropout(attention(x)));
  const Variable h = norm2(g + dropout(cross(g, memory, memory_keys)));
  return norm3(h + dropout(feed_forward(h)));
}

Tensor DecoderBlock::cross_weights(const Variable& x, const Variable& memory, const KeyMask* memory_keys) const {
  const Variable asks = pre_norm_ ? norm2(x + attention(norm1(x))) : norm1(x + attention(x));
  return cross.weights(asks, memory, memory_keys);
}

DecoderBlockState DecoderBlock::make_state(const Variable& memory, const KeyMask* memory_keys, int64_t capacity) const {
  nn::CrossState seen = cross.encode(memory, memory_keys);
  return {attention.make_state(memory.size(0), capacity), std::move(seen)};
}

void DecoderBlock::check_state(const DecoderBlockState& state, int64_t batch) const {
  attention.check_state(state.self, batch);
  cross.check_state(state.cross, batch);
}

void DecoderBlock::step_inplace(Tensor& h, DecoderBlockState& state, Workspace& workspace) const {
  Tensor normal = workspace.take(h.shape(), h.dtype(), h.device());
  if (pre_norm_) {
    norm1.into(h, normal);
    attention.add_step(h, normal, state.self, workspace);
    norm2.into(h, normal);
    cross.add_step(h, normal, state.cross, workspace);
    norm3.into(h, normal);
    feed_forward.add_to(h, normal, workspace);
  } else {
    attention.add_step(h, h, state.self, workspace);
    norm1.into(h, normal);
    cross.add_step(normal, normal, state.cross, workspace);
    norm2.into(normal, h);
    feed_forward.add_to(h, h, workspace);
    norm3.into(h, normal);
    h.copy_from(normal);
  }
}

}  // namespace linnet::models
