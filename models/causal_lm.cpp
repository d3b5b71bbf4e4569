#include "linnet/models/causal_lm.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/models/block_options.h"
#include "linnet/models/layer_states.h"
#include "linnet/nn/dropout.h"

namespace linnet::models {
namespace {

StackOptions stack_options(const CausalLMOptions& options) {
  return {.layers = options.layers, .block = block_options(options, true)};
}

nn::LinearOptions head_options(const CausalLMOptions& options, const nn::Embedding& embed) {
  return {.in = options.dim, .out = options.vocab, .tied = options.tie_head ? embed.weight : Variable()};
}

}  // namespace

StateDict LMState::state_dict() const { return state_dict_at(stack, position); }

void LMState::load_state_dict(const StateDict& state) { load_at(stack, position, state); }

LMState LMState::select(const Tensor& samples) const { return {stack.select(samples), position}; }

CausalLM::CausalLM(const Options& options) : CausalLM(nullptr, {}, options) {}
CausalLM::CausalLM(nn::Module& parent, std::string name, const Options& options)
    : CausalLM(&parent, std::move(name), options) {}

CausalLM::CausalLM(nn::Module* parent, std::string name, const Options& options)
    : Model(parent, std::move(name)),
      embed(*this, "embed", {.rows = options.vocab, .dim = options.dim}),
      positions(make_positions(*this, "positions", options.positions, options.max_time, options.dim)),
      stack(*this, "stack", stack_options(options)),
      head(*this, "head", head_options(options, embed)),
      vocab_(options.vocab),
      max_time_(options.max_time),
      has_steps_(nn::has_steps(options.kind)) {}

void CausalLM::check_not_recording(const char* what) const {
  LINNET_CHECK(!recording(), label(), ": ", what, " changes its state in place, which a tape cannot replay; call it ",
               "outside of the Tape's scope or under Tape::Pause");
}

Variable CausalLM::operator()(const Tensor& tokens, const KeyMask* keys) const {
  LINNET_CHECK(tokens.defined() && tokens.rank() == 2 && tokens.dtype() == Dtype::i32, label(), ": tokens ",
               tokens.shape(), " ", tokens.dtype(), " are not i32 (batch, time)");
  LINNET_CHECK(max_time_ == 0 || tokens.size(1) <= max_time_, label(), ": ", tokens.size(1),
               " tokens given, but max_time is ", max_time_);
  const Variable x = std::visit([&](const auto& p) { return p(embed(tokens)); }, positions);
  return head(stack(x, keys));
}

LMState CausalLM::make_state(int64_t batch, int64_t capacity) const { return {stack.make_state(batch, capacity), 0}; }

Tensor CausalLM::step(const Tensor& tokens, LMState& state) const {
  check_not_recording("step");
  LINNET_CHECK(tokens.defined() && tokens.rank() == 1 && tokens.dtype() == Dtype::i32, label(), ": tokens ",
               tokens.shape(), " ", tokens.dtype(), " are not i32 (batch), one step");
  LINNET_CHECK(max_time_ == 0 || state.position < max_time_, label(), ": step ", state.position,
               " wanted, but max_time is ", max_time_);
  Workspace& workspace = state.stack.workspace;
  const auto take = [&](int64_t width) {
    return workspace.take({tokens.size(0), width}, embed.weight.dtype(), embed.weight.device());
  };
  Tensor h = take(embed.weight.size(1)), logits = take(vocab_);
  embed.into(tokens, h);
  std::visit([&](const auto& p) { p.step_inplace(h, state.position, workspace); }, positions);
  stack.step_inplace(h, state.stack);
  head.into(h, logits);
  ++state.position;
  return logits;
}

/// Of the token after prompt and the first `count` of those made, (batch, vocab), by the parallel form.
Tensor CausalLM::next_logits(const Tensor& prompt, const Tensor& made, int64_t count) const {
  const int64_t time = prompt.size(1) + count;
  const Tensor parts[] = {prompt, compute::slice(made, 1, 0, count).to(prompt.device())};
  const Tensor logits = (*this)(compute::concat(parts, 1)).value();
  return compute::slice(logits, 1, time - 1, time).reshape({prompt.size(0), vocab_});
}

Tensor CausalLM::generate(const Tensor& prompt, const GenerateOptions& options) const {
  check_not_recording("generate");
  LINNET_CHECK(prompt.defined() && prompt.rank() == 2 && prompt.dtype() == Dtype::i32, label(), ": prompt ",
               prompt.shape(), " ", prompt.dtype(), " is not i32 (batch, time)");
  const int64_t batch = prompt.size(0), time = prompt.size(1), count = options.tokens;
  LINNET_CHECK(time >= 1, label(), ": prompt ", prompt.shape(), " has no tokens, want at least one");
  LINNET_CHECK(count >= 0, label(), ": ", count, " tokens to generate, want 0 or more");
  LINNET_CHECK(max_time_ == 0 || count <= max_time_ - time, label(), ": a prompt of ", time, " and ", count,
               " tokens to generate exceed max_time ", max_time_);
  const SamplingOptions sampling{options.temperature, options.top_k, options.top_p};
  check_sampling("generate", sampling);
  compute::check_indices("generate", prompt, vocab_);

  Generator& generator = options.generator ? *options.generator : default_generator();
  // From here on, memory is what the first steps took.
  const Device device = prompt.device();
  const Tensor given = prompt.to(Device::cpu);
  Tensor made = Tensor::empty({batch, count}, Dtype::i32, Device::cpu), logits;
  Tensor next = Tensor::empty({batch}, Dtype::i32, Device::cpu);
  LMState state;
  if (has_steps_) state = make_state(batch, time + count);
  RowSampler sample(sampling, generator, batch, vocab_);
  const auto token = [](Tensor& tokens, int64_t at) -> int32_t& { return tokens.mutable_data<int32_t>()[at]; };
  for (int64_t t = 0; has_steps_ && count > 0 && t < time; ++t) {
    for (int64_t b = 0; b < batch; ++b) token(next, b) = given.data<int32_t>()[b * time + t];
    logits = step(next.to(device), state);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!has_steps_) logits = next_logits(prompt, made, i);
    sample(logits, next);
    for (int64_t b = 0; b < batch; ++b) token(made, b * count + i) = token(next, b);
    if (has_steps_ && i + 1 < count) logits = step(next.to(device), state);
  }
  if (options.temperature > 0) generator.take(count);  // last: a call that fails takes none
  return made.to(device);
}

}  // namespace linnet::models
