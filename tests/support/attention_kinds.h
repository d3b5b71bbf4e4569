// What tests of layers and models go through: every kind of attention, to themselves and to a memory, linear attention
// with every feature map, pre- and post-norm.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "linnet/nn/attention.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/shape_ops.h"

namespace linnet::test {

// Of local, lsh and clustered attention; the other kinds do not look at them.
constexpr int64_t kWindow = 3;
constexpr nn::LshOptions kLsh{.rounds = 2, .buckets = 4, .chunk = 3};
constexpr nn::ClusteredOptions kClustered{.clusters = 3, .topk = 4};
// Those that go step by step.
constexpr nn::AttentionKind kCausalKinds[] = {nn::AttentionKind::linear, nn::AttentionKind::softmax,
                                              nn::AttentionKind::local};
constexpr nn::AttentionKind kCrossKinds[] = {nn::AttentionKind::linear, nn::AttentionKind::softmax,
                                             nn::AttentionKind::efficient};

struct AttentionCase {
  std::string name;
  nn::AttentionKind kind;
  nn::Features features = {};
  double eps = 0, weights = 0.5;  // the weights' standard deviation
  nn::LshOptions lsh = kLsh;
};

/// Linear attention with each feature map that is not fused. Where features may be negative, their options keep the
/// denominators away from 0, so that no rounding is made large.
inline std::vector<AttentionCase> feature_cases() {
  const auto own = [](const Variable& x) { return concat({exp(x), exp(-x)}, -1); };  // 2 D features
  constexpr auto kLinear = nn::AttentionKind::linear;
  return {{"squared_relu", kLinear, nn::Features::squared_relu()},
          {"polynomial", kLinear, nn::Features::polynomial(), 1, 0.3},
          {"fourier", kLinear, nn::Features::fourier(256), 0, 0.15},
          {"favor", kLinear, nn::Features::favor(10)},
          {"own", kLinear, nn::Features::own(own)}};
}

/// These kinds, and linear attention with each feature map.
template <size_t n>
std::vector<AttentionCase> with_features(const nn::AttentionKind (&kinds)[n]) {
  std::vector<AttentionCase> cases = feature_cases();
  for (const nn::AttentionKind kind : kinds) cases.push_back({nn::name(kind), kind});
  return cases;
}

/// The kinds that hash and can be causal, but have no steps.
inline std::vector<AttentionCase> hash_cases() {
  AttentionCase with_keys{"lsh with keys of its own", nn::AttentionKind::lsh};
  with_keys.lsh.shared_qk = false;
  return {{"lsh", nn::AttentionKind::lsh}, with_keys, {"improved_clustered", nn::AttentionKind::improved_clustered}};
}

/// Calls f(case) for all that can be causal and go step by step.
template <class F>
void for_each_causal(const F& f) {
  for (const AttentionCase& each : with_features(kCausalKinds)) {
    CAPTURE(each.name);
    f(each);
  }
}

/// Calls f(case, causal) for all.
template <class F>
void for_each_attention(const F& f) {
  for (const bool causal : {true, false}) {
    CAPTURE(causal);
    for_each_causal([&](const AttentionCase& each) { f(each, causal); });
    for (const AttentionCase& each : hash_cases()) {
      CAPTURE(each.name);
      f(each, causal);
    }
  }
  f(AttentionCase{"efficient", nn::AttentionKind::efficient}, false);
  f(AttentionCase{"clustered", nn::AttentionKind::clustered}, false);
}

/// Calls f(case) for all that can look at a memory query by query.
template <class F>
void for_each_cross(const F& f) {
  for (const AttentionCase& each : with_features(kCrossKinds)) {
    CAPTURE(each.name);
    f(each);
  }
}

/// Calls f(kind, kind of the cross attention, pre_norm).
template <class F>
void for_each_decoder(const F& f) {
  using nn::AttentionKind;
  for (const AttentionKind kind : kCausalKinds) {
    for (const AttentionKind cross : kCrossKinds) {
      for (const bool pre_norm : {true, false}) {
        CAPTURE(nn::name(kind));
        CAPTURE(nn::name(cross));
        CAPTURE(pre_norm);
        f(kind, cross, pre_norm);
      }
    }
  }
}

}  // namespace linnet::test
