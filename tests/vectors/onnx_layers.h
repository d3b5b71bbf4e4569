// ONNX's products, normalisations, losses and attentions in linnet's terms.
#pragma once
#include "linnet/autograd/tape.h"
#include "linnet/ops/attention_weights.h"
#include "linnet/ops/batch_norm.h"
#include "linnet/ops/compare.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/layer_norm.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/matmul.h"
#include "linnet/ops/reduce.h"
#include "linnet/ops/shape_ops.h"
#include "linnet/ops/softmax.h"
#include "linnet/ops/softmax_attention.h"
#include "vectors/onnx.h"

namespace test_support {

/// (batch, classes, ...) -> (batch, ..., classes), as linnet has it.
inline Variable classes_last(Variable x) {
  for (int axis = 1; axis + 1 < x.rank(); ++axis) x = linnet::transpose(x, axis, axis + 1);
  return x;
}

/// The way back.
inline Variable classes_second(Variable x) {
  for (int axis = x.rank() - 2; axis >= 1; --axis) x = linnet::transpose(x, axis, axis + 1);
  return x;
}

inline linnet::CrossEntropyOptions loss_options(const OnnxCase& c) {
  c.refuse(c.has(2), "weights of classes");
  linnet::CrossEntropyOptions options;
  const std::string reduce = c.attributes.value("reduction", "mean");
  options.reduce = reduce == "none"  ? linnet::Reduce::none
                   : reduce == "sum" ? linnet::Reduce::sum
                                     : linnet::Reduce::mean;
  if (c.attributes.contains("ignore_index")) options.ignore_index = c.integer("ignore_index", 0);
  return options;
}

inline std::vector<Tensor> run_onnx_attention(const OnnxCase& c) {
  using namespace linnet;
  c.refuse(c.number("softcap", 0) != 0, "softcap");
  c.refuse(c.has(6), "nonpad_kv_seqlen, whose causal rule is ONNX's own");
  c.refuse(c.has(4), "past keys and values together with a mask that is added");
  const int64_t query_heads = c.integer("q_num_heads", 0), key_heads = c.integer("kv_num_heads", query_heads);
  auto heads_inside = [](const Variable& x, int64_t heads) {
    if (x.rank() == 4) return transpose(x, 1, 2);  // from (batch, heads, time, dim)
    return reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads});
  };
  const Variable q = heads_inside(c.x(0), query_heads);
  // Where heads of queries share one of keys, neighbours do: each is repeated for them.
  auto for_queries = [&](const Variable& x) {
    const int64_t times = q.size(2) / x.size(2), dim = x.size(3);
    const Variable apart = reshape(x, {x.size(0), x.size(1), x.size(2), 1, dim});
    return reshape(broadcast_to(apart, {x.size(0), x.size(1), x.size(2), times, dim}), x.shape().with(2, q.size(2)));
  };
  const Variable k = for_queries(heads_inside(c.x(1), key_heads)), v = for_queries(heads_inside(c.x(2), key_heads));
  Tensor pairs;
  if (c.has(3)) {
    c.refuse(c.in(3).dtype() != Dtype::u8, "a mask that is added");
    c.refuse(c.in(3).rank() != 2, "a mask that differs between samples");
    pairs = c.in(3);
  }
  if (c.integer("is_causal", 0)) {  // ONNX: query i sees keys 0 .. i, however many keys there are
    const Tensor i = Tensor::arange(q.size(1)).reshape({-1, 1}), j = Tensor::arange(k.size(1));
    pairs = pairs.defined() ? logical_and(pairs, greater_equal(i, j)) : greater_equal(i, j);
  }
  SoftmaxAttentionOptions options;
  std::optional<PairMask> mask;
  if (pairs.defined()) options.pairs = &mask.emplace(pairs);
  if (c.attributes.contains("scale")) options.scale = c.number("scale", 1);
  const Variable y = softmax_attention(q, k, v, options);
  std::vector<Tensor> out = {
      (c.in(0).rank() == 4 ? transpose(y, 1, 2) : reshape(y, {y.size(0), y.size(1), -1})).value()};
  constexpr int64_t kWeights = 3;  // the other modes ask for scores, which the op never holds
  if (c.integer("qk_matmul_output_mode", 0) == kWeights && c.wanted.size() > 1)
    out.push_back(transpose(attention_weights(q.value(), k.value(), options), 1, 2).value());
  return out;
}

inline std::vector<Tensor> run_onnx_linear_attention(const OnnxCase& c) {
  using namespace linnet;
  const std::string rule = c.attributes.value("update_rule", "gated_delta");
  c.refuse(rule == "gated" || rule == "gated_delta", "a state that decays (update rule gated or gated_delta)");
  c.refuse(rule == "delta", "the delta rule, which takes from the state what it held for a key");
  const int64_t heads = c.integer("kv_num_heads", 1);
  c.refuse(c.integer("q_num_heads", heads) != heads, "queries that share heads of keys");
  auto split_heads = [heads](const Variable& x) { return reshape(x, {x.size(0), x.size(1), heads, -1}); };
  LinearState state;
  if (c.has(3)) state.s = c.x(3);
  LinearAttentionOptions options;
  options.feature_map = FeatureMap::identity;
  options.causal = true;
  options.normalise = false;
  const Variable q = split_heads(c.x(0));
  const auto [out, after] = linear_attention_with_state(q, split_heads(c.x(1)), split_heads(c.x(2)), state, options);
  const double scale = c.number("scale", 1 / std::sqrt(static_cast<double>(q.size(3))));
  return {reshape(out * scale, c.wanted[0].shape()).value(), after.s.value()};
}

inline void add_onnx_layers(OnnxTable& table) {
  using namespace linnet;
  table["MatMul"] = [](const OnnxCase& c) {
    Variable a = c.x(0), b = c.x(1);
    if (a.rank() == 1) a = reshape(a, {1, -1});
    if (b.rank() == 1) b = reshape(b, {-1, 1});
    return std::vector{reshape(matmul(a, b), c.wanted[0].shape()).value()};
  };
  table["Gemm"] = [](const OnnxCase& c) {
    const bool ta = c.integer("transA", 0), tb = c.integer("transB", 0);
    return std::vector{(matmul(c.x(0), c.x(1), ta, tb) * c.number("alpha", 1) + c.x(2) * c.number("beta", 1)).value()};
  };
  table["Softmax"] = [](const OnnxCase& c) { return std::vector{softmax(c.x(0), c.integer("axis", -1)).value()}; };
  table["LogSoftmax"] = [](const OnnxCase& c) {
    return std::vector{log_softmax(c.x(0), c.integer("axis", -1)).value()};
  };
  table["LayerNormalization"] = [](const OnnxCase& c) {
    return std::vector{layer_norm(c.x(0), c.x(1), c.x(2), c.number("epsilon", 1e-5)).value()};
  };
  table["BatchNormalization"] = [](const OnnxCase& c) {
    const bool trains = c.integer("training_mode", 0) != 0;
    const Variable x = classes_last(c.x(0));
    Tensor running_mean = c.in(3).clone(), running_variance = c.in(4).clone();
    Tape tape({.training = trains});
    const Variable y = batch_norm(reshape(x, {-1, x.size(-1)}), c.x(1), c.x(2), {running_mean, running_variance},
                                  {.momentum = c.number("momentum", 0.9), .eps = c.number("epsilon", 1e-5)});
    std::vector<Tensor> out = {classes_second(reshape(y, x.shape())).value()};
    if (trains) out.insert(out.end(), {running_mean, running_variance});
    return out;
  };
  table["RMSNormalization"] = [](const OnnxCase& c) {
    Variable x = c.x(0), power = square(x);
    for (int axis = x.rank() - c.in(1).rank(); axis < x.rank(); ++axis) power = mean(power, {axis}, true);
    return std::vector{(x / sqrt(power + c.number("epsilon", 1e-5)) * c.x(1)).value()};
  };
  table["SoftmaxCrossEntropyLoss"] = [](const OnnxCase& c) {
    const Variable logits = classes_last(c.x(0));
    std::vector<Tensor> out = {cross_entropy(logits, c.in(1), loss_options(c)).value()};
    if (c.wanted.size() > 1) out.push_back(log_softmax(c.x(0), 1).value());
    return out;
  };
  // From any scores x rather than logarithms of probabilities: -x_t = cross_entropy(x, t) - logsumexp(x).
  table["NegativeLogLikelihoodLoss"] = [](const OnnxCase& c) {
    const Variable x = classes_last(c.x(0));
    CrossEntropyOptions options = loss_options(c);
    const Reduce reduce = std::exchange(options.reduce, Reduce::none);
    Variable y = cross_entropy(x, c.in(1), options) - logsumexp(x, {-1});
    const Tensor counts = not_equal(c.in(1), static_cast<double>(options.ignore_index.value_or(-1)));
    y = where(counts, y, 0.0);
    if (reduce != Reduce::none) y = sum(y);
    if (reduce == Reduce::mean) y = y / sum(counts.to(Dtype::f32));
    return std::vector{y.value()};
  };
  table["Attention"] = run_onnx_attention;
  table["LinearAttention"] = run_onnx_linear_attention;
}

}  // namespace test_support
