// Positions: what tells a step of time from another: sinusoidal or learned vectors, added to the input.
#pragma once
#include <vector>

#include "linnet/core/workspace.h"
#include "linnet/nn/module.h"

namespace linnet::nn {

struct SinusoidalPositionsOptions {
  Required<int64_t> dim;  ///< odd ones too
};

/// x + P with P(t, 2i) = sin(t / 10000^(2i/dim)), P(t, 2i+1) = cos(t / 10000^(2i/dim)) (Vaswani et al. 2017). Any
/// length; nothing to learn or to save.
class SinusoidalPositions : public Module {
 public:
  using Options = SinusoidalPositionsOptions;
  SinusoidalPositions(Module& parent, std::string name, const Options& options);

  /// x (batch, time, dim), its first step at position `first`.
  Variable operator()(const Variable& x, int64_t first = 0) const;
  /// x (batch, dim), one step.
  Variable step(const Variable& x, int64_t position) const;
  void step_inplace(Tensor& x, int64_t position, Workspace& workspace) const;
  /// P at positions first .. first+time-1, (time, dim).
  Tensor table(int64_t first, int64_t time, Dtype dtype = Dtype::f32) const;

 private:
  template <class T>
  void fill(int64_t first, int64_t time, T* to) const;

  int64_t dim_;
  std::vector<double> rates_;  ///< of the angle, one for each sine and its cosine
};

struct LearnedPositionsOptions {
  Required<int64_t> max_time;
  Required<int64_t> dim;
  Init weight_init = {};  ///< N(0, 0.02) where not given
};

/// x + weight[first .. first+time-1]. Throws where a position is max_time or above, in a step too.
class LearnedPositions : public Module {
 public:
  using Options = LearnedPositionsOptions;
  LearnedPositions(Module& parent, std::string name, const Options& options);

  /// x (batch, time, dim), its first step at position `first`.
  Variable operator()(const Variable& x, int64_t first = 0) const;
  /// x (batch, dim), one step.
  Variable step(const Variable& x, int64_t position) const;
  void step_inplace(Tensor& x, int64_t position, Workspace& workspace) const;

  Variable weight;  ///< (max_time, dim)

 private:
  void check_range(int64_t first, int64_t time) const;
  Variable rows(int64_t first, int64_t time) const;
};

}  // namespace linnet::nn
