#include "linnet/nn/hashes.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/safetensors.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::AttentionCase;
using test::message_of;

namespace {

struct Net : nn::Model {
  nn::Attention attention;
  Net(const AttentionCase& each, bool causal)
      : attention(*this, "attention",
                  {.dim = 12,
                   .heads = 3,
                   .causal = causal,
                   .kind = each.kind,
                   .lsh = each.lsh,
                   .clustered = test::kClustered}) {
    test::randomise(*this, each.weights);
  }
};

}  // namespace

TEST_CASE("attention: kinds that hash weigh later steps by exactly 0 where causal") {
  for (const AttentionCase& each : test::hash_cases()) {
    CAPTURE(each.name);
    Net net(each, true);
    double earlier = 0;
    for (int64_t t = 0; t < 9; ++t) {
      Tape tape;
      const Variable x = Variable::leaf(test::normal({1, 9, 12}));
      Tensor dy = Tensor::zeros({1, 9, 12});
      dy.reshape({9, 12}).slice(t, t + 1).fill(1);
      tape.backward(net.attention(x), dy);
      const Tensor dx = x.grad().reshape({9, 12});
      CHECK(compute::sum_of_squares(dx.slice(t + 1, 9)) == 0);
      earlier += compute::sum_of_squares(dx.slice(0, t));
    }
    CHECK(earlier > 0);
  }
}

TEST_CASE("attention: what a kind hashes with is drawn once, saved, and drawn anew when asked") {
  test::TemporaryFile file("hashes.safetensors");
  const Tensor x = test::normal({2, 30, 12});
  for (const AttentionCase& each : test::hash_cases()) {
    CAPTURE(each.name);
    Net net(each, false);
    const bool is_lsh = each.kind == AttentionKind::lsh;
    REQUIRE(net.named_buffers().size() == 1);
    CHECK(net.named_buffers()[0].first == (is_lsh ? "attention.hashes.rotations" : "attention.hashes.planes"));
    CHECK(net.named_buffers()[0].second.shape() == (is_lsh ? Shape{4, 2, 2} : Shape{5, 32}));
    const Tensor y = net.attention(x).value();
    CHECK(test::same_bits(net.attention(x).value(), y));
    save_safetensors(file.path(), net.state_dict());
    Generator generator{7, 0, 0};
    nn::redraw_hashes(net, generator);
    CHECK_FALSE(test::same_bits(net.attention(x).value(), y));
    const Generator before = default_generator();
    manual_seed(99);
    Net other(each, false);
    default_generator() = before;
    for (Net* loaded : {&net, &other}) {
      loaded->load_state_dict(load_safetensors(file.path()));
      CHECK(test::same_bits(loaded->attention(x).value(), y));
    }
  }
}

TEST_CASE("attention: a size that hashing cannot take is refused when the layer is made") {
  nn::Model root;
  const auto lsh = [&](const nn::LshOptions& sizes) {
    return message_of(
        [&] { nn::Attention(root, "a", {.dim = 4, .heads = 2, .kind = AttentionKind::lsh, .lsh = sizes}); });
  };
  const auto clustered = [&](const nn::ClusteredOptions& sizes) {
    return message_of([&] {
      nn::Attention(root, "a", {.dim = 4, .heads = 2, .kind = AttentionKind::improved_clustered, .clustered = sizes});
    });
  };
  CHECK(lsh({.buckets = 5, .chunk = 3}) ==
        "Attention a: lsh attention with buckets 5 given, an even number of 2 or more wanted; set .lsh.buckets");
  CHECK(lsh({.buckets = 4}) == "Attention a: lsh attention with chunk 0 given, 1 or more wanted; set .lsh.chunk");
  CHECK(lsh({.rounds = 0, .buckets = 4, .chunk = 3}) ==
        "Attention a: lsh attention with rounds 0 given, 1 or more wanted; set .lsh.rounds");
  const std::string kind = "Attention a: improved_clustered attention with ";
  CHECK(clustered({}) == kind + "clusters 0 given, 1 or more wanted; set .clustered.clusters");
  CHECK(clustered({.clusters = 3, .bits = 64}) == kind + "bits 64 given, 1 to 63 wanted; set .clustered.bits");
  CHECK(clustered({.clusters = 3, .iterations = 0}) ==
        kind + "iterations 0 given, 1 or more wanted; set .clustered.iterations");
  CHECK(clustered({.clusters = 3, .topk = 0}) == kind + "topk 0 given, 1 or more wanted; set .clustered.topk");
  CHECK(root.children().empty());
}

TEST_CASE("attention: every kind and feature map of docs/attention.md can be made and run") {
  nn::Model net;
  nn::Attention elu(net, "elu", {.dim = 16, .heads = 2, .causal = true});
  nn::Attention relu(net, "relu", {.dim = 16, .heads = 2, .causal = true, .feature_map = FeatureMap::relu});
  nn::Attention square(net, "square", {.dim = 16, .heads = 2, .feature_map = nn::Features::squared_relu()});
  nn::Attention sharp(net, "sharp", {.dim = 16, .heads = 2, .feature_map = nn::Features::polynomial()});
  nn::Attention favor(net, "favor", {.dim = 16, .heads = 2, .feature_map = nn::Features::favor(64)});
  nn::Attention waves(net, "waves", {.dim = 16, .heads = 2, .feature_map = nn::Features::fourier(64)});
  nn::Attention exact(net, "exact", {.dim = 16, .heads = 2, .causal = true, .kind = AttentionKind::softmax});
  nn::Attention near(net, "near", {.dim = 16, .heads = 2, .kind = AttentionKind::local, .window = 32});
  nn::Attention open(net, "open", {.dim = 16, .heads = 2, .kind = AttentionKind::efficient});
  const nn::LshOptions sizes{.rounds = 4, .buckets = 8, .chunk = 8};
  nn::Attention hashed(net, "hashed", {.dim = 16, .heads = 2, .kind = AttentionKind::lsh, .lsh = sizes});
  const nn::ClusteredOptions groups{.clusters = 8, .topk = 16};
  nn::Attention rough(net, "rough", {.dim = 16, .heads = 2, .kind = AttentionKind::clustered, .clustered = groups});
  nn::Attention better(net, "better",
                       {.dim = 16, .heads = 2, .kind = AttentionKind::improved_clustered, .clustered = groups});
  for (const nn::Attention* each :
       {&elu, &relu, &square, &sharp, &favor, &waves, &exact, &near, &open, &hashed, &rough, &better}) {
    CAPTURE(each->name());
    CHECK(compute::all_finite((*each)(test::normal({2, 40, 16})).value()));
  }
}
