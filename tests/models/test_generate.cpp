#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "linnet/autograd/tape.h"
#include "linnet/models/causal_lm.h"
#include "linnet/ops/compare.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using models::CausalLM;
using nn::AttentionKind;
using test::message_of;
using test::same_bits;

namespace {

struct Net : CausalLM {
  explicit Net(AttentionKind kind = AttentionKind::linear, bool pre_norm = true)
      : CausalLM({.vocab = 11,
                  .dim = 8,
                  .layers = 2,
                  .heads = 2,
                  .hidden = 12,
                  .max_time = 32,
                  .kind = kind,
                  .window = test::kWindow,
                  .lsh = test::kLsh,
                  .clustered = test::kClustered,
                  .pre_norm = pre_norm}) {
    test::randomise(*this, 0.5);
  }
};

/// The most likely continuation by the parallel form: the whole sequence again for every token.
Tensor greedy(const CausalLM& net, const Tensor& prompt, int64_t count) {
  Tensor all = prompt;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor logits = net(all).value();
    const Tensor next = argmax(test::time_step(logits, all.size(1) - 1));
    const Tensor parts[] = {all, next.reshape({prompt.size(0), 1})};
    all = compute::concat(parts, 1);
  }
  return compute::slice(all, 1, prompt.size(1), prompt.size(1) + count);
}

}  // namespace

TEST_CASE("generate: greedy equals the argmax of the parallel logits, step by step") {
  const Tensor prompt = test::tokens({3, 4}, 11);
  for (const AttentionKind kind : {AttentionKind::linear, AttentionKind::softmax, AttentionKind::local,
                                   AttentionKind::lsh, AttentionKind::improved_clustered}) {
    for (const bool pre_norm : {true, false}) {
      CAPTURE(nn::name(kind));
      CAPTURE(pre_norm);
      Net net(kind, pre_norm);
      const Tensor expected = greedy(net, prompt, 20);
      CHECK(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 0}), expected));
      CHECK(same_bits(net.generate(prompt, {.tokens = 20, .top_k = 1}), expected));
      CHECK(same_bits(net.generate(prompt, {.tokens = 20, .top_p = 1e-9}), expected));
      CHECK(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 1e-9}), expected));
    }
  }
}

TEST_CASE("generate: the same generator gives the same tokens, and moves on") {
  Net net;
  const Tensor prompt = test::tokens({2, 4}, 11);
  Generator a{9, 0, 0}, b{9, 0, 0}, c{10, 0, 0};
  const Tensor first = net.generate(prompt, {.tokens = 20, .temperature = 2, .generator = &a});
  CHECK(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 2, .generator = &b}), first));
  CHECK_FALSE(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 2, .generator = &b}), first));
  CHECK_FALSE(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 2, .generator = &c}), first));
  const Generator before = default_generator();
  manual_seed(3);
  const Tensor drawn = net.generate(prompt, {.tokens = 20, .temperature = 2});
  CHECK_FALSE(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 2}), drawn));
  manual_seed(3);
  CHECK(same_bits(net.generate(prompt, {.tokens = 20, .temperature = 2}), drawn));
  default_generator() = before;
}

TEST_CASE("generate: a row depends on its own prompt and place, not on the other rows") {
  Net net;
  const Tensor prompts = test::tokens({3, 4}, 11);
  for (const double temperature : {0.0, 2.0}) {
    CAPTURE(temperature);
    const auto run = [&](const Tensor& prompt) {
      Generator generator{9, 0, 0};
      return net.generate(prompt, {.tokens = 20, .temperature = temperature, .generator = &generator});
    };
    const Tensor all = run(prompts);
    CHECK(same_bits(run(prompts.slice(0, 1)), all.slice(0, 1).clone()));
    CHECK(same_bits(run(prompts.slice(0, 2)), all.slice(0, 2).clone()));
    Tensor other = prompts.clone();
    other.slice(2, 3).fill(7);
    CHECK(same_bits(run(other).slice(0, 2).clone(), all.slice(0, 2).clone()));
  }
  // The same prompt in every row does not give the same sample in every row.
  Tensor same = prompts.clone();
  same.fill(4);
  const Tensor drawn = net.generate(same, {.tokens = 20, .temperature = 2});
  CHECK_FALSE(same_bits(drawn.slice(0, 1).clone(), drawn.slice(1, 2).clone()));
}

TEST_CASE("generate: errors come before any work") {
  Net net;
  Generator generator{9, 0, 0};
  const Tensor prompt = test::tokens({2, 4}, 11);
  const auto fault = [&](const Tensor& given, models::GenerateOptions options) {
    options.generator = &generator;
    return message_of([&] { net.generate(given, options); });
  };
  CHECK(fault(prompt, {.tokens = 29}) == "Net: a prompt of 4 and 29 tokens to generate exceed max_time 32");
  CHECK(fault(test::tokens({2, 40}, 11), {.tokens = 1}) ==
        "Net: a prompt of 40 and 1 tokens to generate exceed max_time 32");
  CHECK(fault(Tensor::zeros({2, 0}, Dtype::i32), {.tokens = 1}) ==
        "Net: prompt (2, 0) has no tokens, want at least one");
  CHECK(fault(Tensor::zeros({2, 3}), {.tokens = 1}) == "Net: prompt (2, 3) f32 is not i32 (batch, time)");
  CHECK(fault(prompt, {.tokens = -1}) == "Net: -1 tokens to generate, want 0 or more");
  CHECK(fault(prompt, {.tokens = 1, .temperature = -1}) ==
        "generate: temperature -1, want 0 (greedy) or a finite number above");
  CHECK(fault(prompt, {.tokens = 1, .top_k = -1}) == "generate: top_k -1, want 0 (all) or a number of classes");
  CHECK(fault(prompt, {.tokens = 1, .top_p = 0}) == "generate: top_p 0, want above 0 and at most 1");
  CHECK(fault(Tensor::from<int32_t>({1, 11}, {1, 2}), {.tokens = 1}).rfind("generate: index 11", 0) == 0);
  {
    Tape tape;
    CHECK(
        fault(prompt, {.tokens = 1}) ==
        "Net: generate changes its state in place, which a tape cannot replay; call it outside of the Tape's scope or "
        "under Tape::Pause");
    Tape::Pause pause;
    CHECK(net.generate(prompt, {.tokens = 1}).shape() == Shape{2, 1});
  }
  CHECK(generator.offset == 0);
  CHECK(net.generate(prompt, {.tokens = 28, .generator = &generator}).shape() == Shape{2, 28});
  CHECK(net.generate(prompt, {.tokens = 0}).shape() == Shape{2, 0});
}

TEST_CASE("generate: NaN weights are an error, not a token") {
  Net net;
  net.head.bias.mutable_value().fill(std::nan(""));
  const Tensor prompt = test::tokens({1, 2}, 11);
  CHECK(message_of([&] { net.generate(prompt, {.tokens = 1}); }) == "sample_logits: logit 0 is nan, want a number");
}

TEST_CASE("generate: under a pause nothing drops out; what fails takes no words") {
  manual_seed(1);
  const CausalLM net({.vocab = 11, .dim = 8, .layers = 1, .heads = 2, .max_time = 32, .dropout = 0.5});
  const Tensor prompt = test::tokens({2, 4}, 11);
  const Tensor wanted = net.generate(prompt, {.tokens = 8, .temperature = 0});
  {
    Tape tape;
    Tape::Pause pause;
    CHECK(same_bits(net.generate(prompt, {.tokens = 8, .temperature = 0}), wanted));
  }
  Generator generator{1, 2, 3};
  CHECK_THROWS_WITH(net.generate(prompt, {.tokens = std::numeric_limits<int64_t>::max(), .generator = &generator}),
                    doctest::Contains("exceed max_time 32"));
  CHECK(generator.offset == 3);
}

TEST_CASE("generate: a state that does not fit is refused when it is loaded, and stays as it was") {
  Net net;
  models::LMState state = net.make_state(1), fresh = net.make_state(1), empty;
  net.step(Tensor::zeros({1}, Dtype::i32), state);
  const StateDict saved = state.state_dict();
  const auto changed = [&](const std::string& position) {
    StateDict result;
    for (const auto& [name, value] : saved.tensors()) result.set(name, value);
    for (const auto& [name, text] : saved.texts()) result.set_text(name, name == "position" ? position : text);
    return result;
  };
  StateDict more = saved;
  more.set("7.s", Tensor::zeros({1}));
  CHECK_THROWS_WITH(fresh.load_state_dict(changed("18446744073709551615")), doctest::Contains("position is"));
  CHECK_THROWS_WITH(fresh.load_state_dict(more), doctest::Contains("1 entries given that belong to none"));
  CHECK_THROWS_WITH(empty.load_state_dict(saved), doctest::Contains("load into what make_state gives"));
  CHECK(fresh.position == 0);
  fresh.load_state_dict(saved);
  CHECK(fresh.position == 1);
}
