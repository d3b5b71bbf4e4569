// Threads inside a head: where there are fewer heads than threads, a long head is cut into segments. First the sums of
// each segment, all at once; then a scan over them, which is small; then the segments themselves, each from the state
// that the scan found for it.
// Private to ops/.
#pragma once
#include "linnet/ops/linear_attention_run.h"

namespace linnet::linear_attention_run {

/// How many segments a head is cut into: 1 where the heads keep the threads busy, or are too short.
int64_t segments(const Call& call);

template <class T>
void forward_in_segments(int64_t cuts, const Call& call, const Inputs& x, Tensor& out, Tensor& d, Tensor s, Tensor z);
template <class T>
void backward_in_segments(int64_t cuts, const Call& call, const Inputs& x, const Tensor& out, const Tensor& d,
                          const Tensor& g, Tensor dq, Tensor dk, Tensor dv, Tensor ds, Tensor dz);

}  // namespace linnet::linear_attention_run
