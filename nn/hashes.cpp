#include "linnet/nn/hashes.h"

#include <optional>

#include "linnet/ops/shape_ops.h"

namespace linnet::nn {
namespace {

void check_sizes(const Module& layer, const HashLayerOptions& options) {
  const char* kind = name(options.kind);
  const auto check = [&](bool fits, const char* what, int64_t given, const char* wanted, const char* member) {
    LINNET_CHECK(fits, layer.label(), ": ", kind, " attention with ", what, " ", given, " given, ", wanted,
                 " wanted; set ", member);
  };
  if (options.kind == AttentionKind::lsh) {
    const auto& [rounds, buckets, chunk, shared] = options.lsh;
    check(rounds >= 1, "rounds", rounds, "1 or more", ".lsh.rounds");
    check(buckets >= 2 && buckets % 2 == 0, "buckets", buckets, "an even number of 2 or more", ".lsh.buckets");
    check(chunk >= 1, "chunk", chunk, "1 or more", ".lsh.chunk");
    return;
  }
  const auto& [clusters, bits, iterations, topk] = options.clustered;
  check(clusters >= 1, "clusters", clusters, "1 or more", ".clustered.clusters");
  check(bits >= 1 && bits <= 63, "bits", bits, "1 to 63", ".clustered.bits");
  check(iterations >= 1, "iterations", iterations, "1 or more", ".clustered.iterations");
  check(topk >= 1 || options.kind == AttentionKind::clustered, "topk", topk, "1 or more", ".clustered.topk");
}

}  // namespace

HashLayer::HashLayer(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), kind_(options.kind), lsh_(options.lsh), clustered_(options.clustered) {
  check_sizes(parent, options);
  const bool rotates = kind_ == AttentionKind::lsh;
  const char* what = rotates ? "rotations" : "planes";
  Generator generator{default_generator().seed, stream_of(path() + "." + what), 0};
  const Shape shape =
      rotates ? Shape{options.width, lsh_.rounds, lsh_.buckets / 2} : Shape{options.width + 1, clustered_.bits};
  drawn_ = &buffer(what, generator.normal(shape, 0, 1));
}

ClusteredAttentionOptions HashLayer::clustered(bool causal, const KeyMask* keys) const {
  return {.clusters = clustered_.clusters,
          .topk = kind_ == AttentionKind::clustered ? 0 : clustered_.topk,
          .causal = causal,
          .bits = clustered_.bits,
          .iterations = clustered_.iterations,
          .keys = keys,
          .planes = drawn_};
}

Variable HashLayer::attend(const Variable& qkv, bool causal, const KeyMask* keys) const {
  const int64_t batch = qkv.size(0), time = qkv.size(1), heads = qkv.size(3), width = qkv.size(4);
  std::optional<QueryMask> queries;
  if (keys) queries = QueryMask::array(keys->steps(label().c_str(), "key", batch, time, qkv.value().device()));
  const QueryMask* mask = queries ? &*queries : nullptr;
  if (kind_ != AttentionKind::lsh) {
    ClusteredAttentionOptions options = clustered(causal, keys);
    options.queries = mask;
    return clustered_attention_qkv(qkv, options);
  }
  const LshAttentionOptions options{.buckets = lsh_.buckets,
                                    .chunk = lsh_.chunk,
                                    .rounds = lsh_.rounds,
                                    .causal = causal,
                                    .keys = keys,
                                    .queries = mask,
                                    .rotations = drawn_};
  if (!lsh_.shared_qk) return lsh_attention_qkv(qkv, options);
  const std::vector<Variable> parts = split(qkv, 2, 2);
  const Shape shape{batch, time, heads, width};
  return lsh_attention_shared(reshape(parts[0], shape), reshape(parts[1], shape), options);
}

Variable HashLayer::attend(const Variable& q, const Variable& k, const Variable& v, const KeyMask* keys) const {
  return clustered_attention(q, k, v, clustered(false, keys));
}

void HashLayer::redraw(Generator& generator) {
  drawn_->copy_from(generator.normal(drawn_->shape(), 0, 1, drawn_->dtype()));
}

void redraw_hashes(Module& module, Generator& generator) {
  detail::for_each<HashLayer>(module, [&](HashLayer& layer) { layer.redraw(generator); });
}

}  // namespace linnet::nn
