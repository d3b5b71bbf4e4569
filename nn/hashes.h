// Hashes: LSH and clustered attention as layers use them: their settings, and the random numbers that they hash with.
#pragma once
#include "linnet/nn/attention_state.h"
#include "linnet/nn/module.h"
#include "linnet/ops/clustered_attention.h"
#include "linnet/ops/lsh_attention.h"

namespace linnet::nn {

/// Of kind lsh; ops/lsh_attention.h tells more.
struct LshOptions {
  int64_t rounds = 1;     ///< how often the steps are hashed anew; time grows with it
  int64_t buckets = 0;    ///< even, and there is no default: about the usual time / chunk
  int64_t chunk = 0;      ///< how many steps are compared at once; there is no default
  bool shared_qk = true;  ///< as published, one projection makes queries and keys
};

/// Of kinds clustered and improved_clustered; ops/clustered_attention.h tells more.
struct ClusteredOptions {
  int64_t clusters = 0;                ///< of queries; there is no default
  int64_t bits = 32, iterations = 10;  ///< of a query's hash, and of k-means over the hashes
  int64_t topk = 32;                   ///< improved_clustered: how many keys of its cluster a query weighs by itself
};

struct HashLayerOptions {
  Required<AttentionKind> kind;  ///< lsh, clustered or improved_clustered
  Required<int64_t> width;       ///< D, of a head
  LshOptions lsh;
  ClusteredOptions clustered;
};

/// The attention of a kind that hashes. Buffer: rotations (D, rounds, buckets / 2) of kind lsh, planes (D + 1, bits) of
/// the others; drawn in the constructor as initial weights are, the same for all heads, saved with the model. So what
/// comes out is a function of weights and input. A step that `keys` leaves out is no query either, and gives 0: it
/// would move the chunks and clusters of others.
class HashLayer : public Module {
 public:
  using Options = HashLayerOptions;
  /// Throws, naming the parent, where a size is out of range.
  HashLayer(Module& parent, std::string name, const Options& options);

  /// qkv (batch, time, 3, heads, D), with shared_qk (batch, time, 2, heads, D) -> (batch, time, heads, D).
  Variable attend(const Variable& qkv, bool causal, const KeyMask* keys) const;
  /// To another sequence, of the clustered kinds.
  Variable attend(const Variable& q, const Variable& k, const Variable& v, const KeyMask* keys) const;
  /// Draws the buffer anew.
  void redraw(Generator& generator);

 private:
  ClusteredAttentionOptions clustered(bool causal, const KeyMask* keys) const;

  AttentionKind kind_;
  LshOptions lsh_;
  ClusteredOptions clustered_;
  Tensor* drawn_ = nullptr;
};

/// HashLayer::redraw of every attention in `module`, always in the same order.
void redraw_hashes(Module& module, Generator& generator);

}  // namespace linnet::nn
