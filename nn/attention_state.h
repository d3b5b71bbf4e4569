// The kinds of attention, and what the recurrent form of each knows of the past.
#pragma once
#include <optional>
#include <string_view>

#include "linnet/core/state_dict.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/local_attention.h"
#include "linnet/ops/softmax_attention.h"

namespace linnet::nn {

enum class AttentionKind {
  linear,    ///< Katharopoulos et al. 2020: time O(N), a state of fixed size
  softmax,   ///< Vaswani et al. 2017: time O(N^2), the state is all keys and values so far
  local,     ///< softmax over a band: time O(N window), the state is the last window + 1 keys and values
  efficient  ///< Shen et al. 2018: time O(N); never causal, and so without steps
};
const char* name(AttentionKind kind);
/// The kind of this name. Throws, listing all, for another; `what` begins the message.
AttentionKind attention_kind(std::string_view word, const char* what = "attention kind");

/// What the recurrent form knows of the past, for a whole batch. A copy goes its own way.
struct AttentionState {
  AttentionKind kind = AttentionKind::linear;
  LinearState linear;     ///< of kind linear
  KeyValueCache softmax;  ///< of kind softmax
  LocalCache local;       ///< of kind local

  /// The keys and values, of kinds softmax and local.
  KeyValueCache& cache() { return kind == AttentionKind::local ? local.ring : softmax; }
  const KeyValueCache& cache() const { return kind == AttentionKind::local ? local.ring : softmax; }

  StateDict state_dict() const;
  /// Throws, changing nothing, where names, shapes or dtype do not fit.
  void load_state_dict(const StateDict& state);
  /// The state of a batch made of these samples, i32 (n), in this order; one may come twice (for beam search).
  AttentionState select(const Tensor& samples) const;
  std::optional<int64_t> batch() const;  ///< how many samples; empty as long as nothing was allocated
};

}  // namespace linnet::nn
