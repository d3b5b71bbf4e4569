// TapeState: the list of recorded ops behind a Tape. Private to autograd/.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "linnet/autograd/record.h"

namespace linnet::detail {

using Clock = std::chrono::steady_clock;

/// Where a gradient goes: to the output of an earlier node, to a leaf, or nowhere.
struct Edge {
  int64_t node = -1;
  int output = 0;
  Variable leaf;  // defined where the gradient is kept

  bool wanted() const { return node >= 0 || leaf.defined(); }
};

struct Output {
  Shape shape;
  Dtype dtype;
};

struct Node {
  std::string op;
  std::vector<Edge> inputs;
  std::vector<Tensor> kept;
  std::vector<uint64_t> versions;  // of the kept tensors, when they were kept
  Backward backward;
  std::vector<Output> outputs;
  std::vector<Tensor> dys;  // their gradients, once some came
  int64_t bytes_kept;
  Clock::duration forward, back = {};
};

struct TapeState {
  uint64_t id;
  TapeOptions options;
  bool ended = false, paused = false;
  std::atomic<bool> gone = false;    // its Tape was destroyed, perhaps on another thread
  std::shared_ptr<TapeState> outer;  // the tape that records when this one goes out of scope
  std::vector<Node> nodes;
  std::unordered_map<const Storage*, int64_t> kept;  // how many kept tensors lie in a storage
  int64_t bytes_kept = 0;
  Clock::time_point last;  // when the last op was recorded

  bool live() const { return !ended && !paused; }
  Edge edge_of(const Variable& x) const;
  void hold(Node& node, std::span<const Tensor> tensors);
  void release(Node& node);
  void check_kept(const std::vector<Variable>& outputs) const;
  void run(Node& node);
  void send(const Edge& edge, Tensor grad, const Node& from, size_t input);
  void backward(const std::vector<Variable>& outputs, std::vector<Tensor> seeds);
};

/// The tape that records on this thread, or nullptr.
TapeState* innermost_tape();

}  // namespace linnet::detail
