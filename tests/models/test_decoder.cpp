#include "linnet/models/decoder.h"

#include <doctest/doctest.h>

#include "linnet/autograd/gradcheck.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/elementwise.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::deviation;
using test::for_each_decoder;
using test::time_step;

namespace {

struct Net : nn::Model {
  models::Decoder decoder;
  Net(AttentionKind kind, AttentionKind cross, bool pre_norm, int64_t layers = 2)
      : decoder(
            *this, "decoder",
            {.layers = layers,
             .block = {
                 .block =
                     {.dim = 8, .heads = 2, .hidden = 12, .kind = kind, .window = test::kWindow, .pre_norm = pre_norm},
                 .memory_dim = 6,
                 .cross_kind = cross}}) {
    test::randomise(*this, 0.4);
  }
};

}  // namespace

TEST_CASE("decoder block: pre-norm and post-norm are what they say") {
  for_each_decoder([](AttentionKind kind, AttentionKind cross, bool pre_norm) {
    Net net(kind, cross, pre_norm, 1);
    const models::DecoderBlock& b = net.decoder.blocks[0];
    const Variable x = test::normal({2, 5, 8}), memory = test::normal({2, 4, 6}, 4);
    const KeyMask keys = KeyMask::lengths({4, 2});
    Variable y;
    if (pre_norm) {
      const Variable g = x + b.attention(b.norm1(x));
      const Variable h = g + b.cross(b.norm2(g), memory, &keys);
      y = h + b.feed_forward(b.norm3(h));
    } else {
      const Variable g = b.norm1(x + b.attention(x));
      const Variable h = b.norm2(g + b.cross(g, memory, &keys));
      y = b.norm3(h + b.feed_forward(h));
    }
    CHECK(test::same_bits(b(x, memory, &keys).value(), y.value()));
    CHECK(net.decoder.norm.has_value() == pre_norm);
  });
}

TEST_CASE("decoder block: gradients of both inputs and of every parameter, in f64") {
  for_each_decoder([](AttentionKind kind, AttentionKind cross, bool pre_norm) {
    nn::Model root;
    models::DecoderBlock block(
        root, "block",
        {.block = {.dim = 4, .heads = 2, .hidden = 3, .kind = kind, .window = test::kWindow, .pre_norm = pre_norm},
         .memory_dim = 3,
         .cross_kind = cross});
    test::randomise(root, 0.5);
    root.to(Dtype::f64);
    auto& b = block;
    const std::vector<Variable*> used{&b.norm1.weight,
                                      &b.norm1.bias,
                                      &b.attention.qkv.weight,
                                      &b.attention.qkv.bias,
                                      &b.attention.out.weight,
                                      &b.attention.out.bias,
                                      &b.norm2.weight,
                                      &b.norm2.bias,
                                      &b.cross.q.weight,
                                      &b.cross.q.bias,
                                      &b.cross.kv.weight,
                                      &b.cross.kv.bias,
                                      &b.cross.out.weight,
                                      &b.cross.out.bias,
                                      &b.norm3.weight,
                                      &b.norm3.bias,
                                      &b.feed_forward.up.weight,
                                      &b.feed_forward.up.bias,
                                      &b.feed_forward.down.weight,
                                      &b.feed_forward.down.bias};
    REQUIRE(used.size() == root.parameters().size());
    std::vector<Tensor> inputs{test::normal({2, 3, 4}, 3, Dtype::f64), test::normal({2, 2, 3}, 4, Dtype::f64)};
    for (const Variable* p : used) inputs.push_back(p->value());
    const KeyMask keys = KeyMask::lengths({2, 1});
    CHECK_NOTHROW(gradcheck(
        [&](const std::vector<Variable>& leaves) {
          for (size_t i = 0; i < used.size(); ++i) *used[i] = leaves[i + 2];
          return block(leaves[0], leaves[1], &keys);
        },
        inputs, {.full_below = 0}));
  });
}

TEST_CASE("decoder: the recurrent form equals the parallel one; a state can be copied, saved and chosen from") {
  test::TemporaryFile file("decoder_state.safetensors");
  const KeyMask keys = KeyMask::lengths({7, 3});
  for_each_decoder([&](AttentionKind kind, AttentionKind cross, bool pre_norm) {
    Net net(kind, cross, pre_norm);
    const Tensor x = test::normal({2, 14, 8}), other = test::normal({2, 14, 8}, 9), memory = test::normal({2, 7, 6}, 4);
    const Tensor y = net.decoder(x, memory, &keys).value();
    auto state = net.decoder.make_state(memory, &keys, 4);
    const auto step = [&](const Tensor& input, int64_t t, models::DecoderState& s) {
      return net.decoder.step(time_step(input, t), s).value();
    };
    for (int64_t t = 0; t < 7; ++t) CHECK(deviation(step(x, t, state), time_step(y, t)) < 1e-5);
    models::DecoderState copy = state, loaded = net.decoder.make_state(test::normal({2, 3, 6}, 5));
    save_safetensors(file.path(), state.state_dict());
    loaded.load_state_dict(load_safetensors(file.path()));
    const Tensor swapped = Tensor::from<int32_t>({1, 0}, {2});
    models::DecoderState second = state.select(Tensor::from<int32_t>({1}, {1})), past = state;
    past.select_past(swapped);
    past.select_past(swapped);
    for (int64_t t = 7; t < 14; ++t) {
      step(other, t, copy);
      const Tensor now = step(x, t, state);
      CHECK(deviation(now, time_step(y, t)) < 1e-5);
      CHECK(test::same_bits(step(x, t, loaded), now));
      CHECK(test::same_bits(step(x, t, past), now));
      CHECK(deviation(net.decoder.step(time_step(x, t).slice(1, 2), second).value(), now.slice(1, 2)) < 1e-5);
    }
  });
}

TEST_CASE("decoder: select_past moves the past and leaves the memory") {
  for_each_decoder([](AttentionKind kind, AttentionKind cross, bool pre_norm) {
    Net net(kind, cross, pre_norm);
    const Tensor memory = test::normal({1, 5, 6}, 4), x = test::normal({1, 2, 8}), z = test::normal({1, 8}, 8);
    // Two rows that look at one memory: the second takes the first one's past over.
    const Tensor twice = compute::gather_rows("test", memory, Tensor::zeros({2}, Dtype::i32));
    auto state = net.decoder.make_state(twice);
    const Tensor parts[] = {time_step(x, 0), z};
    net.decoder.step(compute::concat(parts, 0), state);
    state.select_past(Tensor::zeros({2}, Dtype::i32));
    const Tensor last = time_step(x, 1), ends[] = {last, last};
    const Tensor y = net.decoder.step(compute::concat(ends, 0), state).value();
    const Tensor wanted = time_step(net.decoder(x, memory).value(), 1);
    CHECK(deviation(y.slice(0, 1), wanted) < 1e-5);
    CHECK(deviation(y.slice(1, 2), wanted) < 1e-5);
    CHECK(test::message_of([&] { state.select_past(Tensor::zeros({1}, Dtype::i32)); }) ==
          "state: 1 samples given, one for each of 2 rows wanted");
  });
}

TEST_CASE("decoder: a state that does not fit is an error before any layer has changed") {
  Net net(AttentionKind::softmax, AttentionKind::linear, true);
  const Tensor memory = test::normal({2, 5, 6}, 4), x = test::normal({2, 8});
  auto state = net.decoder.make_state(memory);
  state.layers[1].cross = net.decoder.make_state(test::normal({3, 5, 6})).layers[1].cross;
  CHECK_THROWS_WITH(net.decoder.step(x, state), doctest::Contains("CrossAttention decoder.blocks.1.cross: state s "));
  CHECK(state.layers[0].self.softmax.length == 0);
  state.layers.pop_back();
  CHECK(test::message_of([&] { net.decoder.step(x, state); }) ==
        "Decoder decoder: a state of 1 layers given, there are 2");
  auto fresh = net.decoder.make_state(memory);
  StateDict more = fresh.state_dict();
  more.set("1.odd.s", x);
  CHECK_THROWS_WITH(fresh.load_state_dict(more), doctest::Contains("belong to neither self nor cross"));
}
