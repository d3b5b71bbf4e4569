// AttentionSettings: which attention a program's model has, as settings and flags that all programs share.
#pragma once
#include <cstdint>
#include <string>

#include "linnet/nn/attention.h"

namespace example {

/// docs/attention.md says which suits what. A program's Settings derive from it.
struct AttentionSettings {
  std::string attention = "linear", feature_map = "elu1";
  int64_t window = -1;                         ///< of local attention, which has none of its own
  int64_t rounds = 0, buckets = 0, chunk = 0;  ///< of lsh attention; rounds 0: 1
  int64_t clusters = 0, topk = 0;              ///< of the clustered ones; topk 0: 32

  linnet::nn::AttentionKind kind() const { return linnet::nn::attention_kind(attention, "--attention"); }
  void check_attention() const;  ///< throws Error: which flag, what was given, what is wanted

  /// Into the options of a model.
  template <class Options>
  void apply(Options& options) const {
    options.kind = kind();
    options.window = window;
    options.lsh = {.rounds = rounds > 0 ? rounds : 1, .buckets = buckets, .chunk = chunk};
    options.clustered = {.clusters = clusters, .topk = topk > 0 ? topk : 32};
    options.feature_map = linnet::nn::feature_map(feature_map);
  }
};

/// Part of a program's each_setting; `kinds` is the help of --attention.
template <class S, class F>
void each_attention_setting(S& settings, const char* kinds, F&& f) {
  f("attention", settings.attention, kinds);
  f("window", settings.window, "how many steps back local attention looks");
  f("rounds", settings.rounds, "of hashing, in lsh attention (default 1)");
  f("buckets", settings.buckets, "of lsh attention, an even number");
  f("chunk", settings.chunk, "how many steps lsh attention compares at once");
  f("clusters", settings.clusters, "of queries, in clustered and improved_clustered attention");
  f("topk", settings.topk, "how many keys a query of improved_clustered attention weighs by itself (default 32)");
  f("feature_map", settings.feature_map,
    "of linear attention: elu1 (default), relu, squared_relu, polynomial, fourier or favor");
}

}  // namespace example
