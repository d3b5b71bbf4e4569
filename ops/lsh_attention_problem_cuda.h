// One round of LSH attention on a GPU, as a problem for attention_pass_cuda.h: which pairs of the sorted steps count,
// and what becomes of the sums. Private to .cu files.
#pragma once
#include "linnet/ops/attention_pass_cuda.h"

namespace linnet::cuda {

template <class T, Pass pass>
struct LshProblem {
  int64_t heads, time, dim, value_dim, rounds, round, sets, chunk;
  int64_t own_rows, tiles_per_chunk, chunks;
  bool causal, self, own_bucket, joint, last_launch;
  T scale, g_scale;
  const int32_t *hash, *steps, *its_chunk, *visible;  // LshOrder
  const uint8_t *keys, *queries;
  CallRows<const T> q, k, v, g;
  CallRows<T> to;
  // (batch, heads, sets, time); max and total so far are (batch, heads, time), those of the round before and of this.
  const T *lse, *delta;
  T *lse_to, *delta_to;
  const T *max_before, *total_before;
  T *max_now, *total_now;

  struct Block {
    const LshProblem& problem;
    int64_t b, h, segment, own_first, own_last, other_first, other_last;  // segment: of the order, this head's round
    HeadRows<const T> own, own_slope, other, other_slope;
    HeadRows<T> to;

    __device__ bool query(int64_t t) const { return !problem.queries || problem.queries[b * problem.time + t]; }
    __device__ bool key(int64_t t) const { return !problem.keys || problem.keys[b * problem.time + t]; }
    __device__ int64_t place(int64_t t) const {  // in lse and delta
      return ((b * problem.heads + h) * problem.sets + (problem.joint ? 0 : problem.round)) * problem.time + t;
    }
    __device__ int64_t sum_place(int64_t t) const { return (b * problem.heads + h) * problem.time + t; }
    __device__ int32_t query_step(int64_t at) const {
      const int32_t t = problem.steps[segment * problem.time + at];
      return query(t) && (pass == Pass::out || problem.lse[place(t)] != kNoKey<T>) ? t : ~t;
    }
    __device__ int32_t key_step(int64_t at) const { return problem.steps[segment * problem.time + at]; }
    __device__ int32_t own_step(int64_t at) const { return owns_queries(pass) ? query_step(at) : key_step(at); }
    __device__ int32_t other_step(int64_t at) const { return owns_queries(pass) ? key_step(at) : query_step(at); }

    /// Whether j is in P_i of a round: near, and in the bucket.
    __device__ bool holds(int64_t round, int64_t i, int64_t j) const {
      const int64_t first = (segment - problem.round + round) * problem.time;
      const int32_t back = problem.its_chunk[first + i] - problem.its_chunk[first + j];
      return (back == 0 || back == 1) && (!problem.own_bucket || problem.hash[first + i] == problem.hash[first + j]);
    }
    __device__ bool allows(int64_t own_at, int64_t other_at, T& s) const {
      const int64_t i = owns_queries(pass) ? own_at : other_at, j = owns_queries(pass) ? other_at : own_at;
      if ((i == j && !problem.self) || (problem.causal && j > i) || !holds(problem.round, i, j)) return false;
      if (problem.joint && problem.rounds > 1) {
        int count = 0;
        for (int64_t r = 0; r < problem.rounds; ++r) count += holds(r, i, j);
        s -= log(static_cast<T>(count));
      }
      return true;
    }
    __device__ T lse(int64_t t) const { return problem.lse[place(t)]; }
    __device__ T delta(int64_t t) const { return problem.delta[place(t)]; }

    __device__ void begin_max(int64_t t, T& max) const {
      if (problem.max_before) max = problem.max_before[sum_place(t)];
    }
    __device__ void begin_total(int64_t t, T& total) const {
      if (problem.total_before) total = problem.total_before[sum_place(t)];
    }
    __device__ T begin_sum(int64_t t, int64_t column) const {
      return problem.max_before && column < problem.value_dim ? to.at(t)[column] : T(0);
    }
    __device__ void put(int32_t at, int64_t column, T sum, T total) const {
      const int64_t t = at < 0 ? ~at : at;
      T& y = to.at(t)[column];
      if constexpr (pass == Pass::out) {
        const bool done = !problem.joint || problem.round + 1 == problem.rounds;
        if (done && total == T(0))  // alone: its own value
          sum = at >= 0 && key(t) ? (problem.v.of(b, h)).at(t)[column] : T(0);
        else if (done)
          sum /= total;
        y = problem.joint ? sum : y + sum / static_cast<T>(problem.rounds);
      } else {
        y += sum;
      }
    }
    __device__ void end(int32_t at, T max, T total) const {
      const int64_t t = at < 0 ? ~at : at;
      if constexpr (pass == Pass::out) {
        if (!problem.last_launch) return;
        if (problem.max_now) problem.max_now[sum_place(t)] = max, problem.total_now[sum_place(t)] = total;
        problem.lse_to[place(t)] = total == T(0) ? kNoKey<T> : max + log(total);
      } else {
        problem.delta_to[place(t)] = total;
      }
    }
  };

  __device__ Block block(int64_t i) const {
    const int64_t tiles = chunks * tiles_per_chunk, head = i / tiles, b = head / heads, h = head % heads;
    const int64_t c = i % tiles / tiles_per_chunk, segment = head * rounds + round, keys_end = visible[segment];
    const int64_t begin = c * chunk, end = begin + chunk < time ? begin + chunk : time;
    const int64_t first = begin + i % tiles_per_chunk * own_rows, far = end + chunk < time ? end + chunk : time;
    const int64_t own_end = owns_queries(pass) || end < keys_end ? end : keys_end;
    const int64_t last = first + own_rows < own_end ? first + own_rows : own_end;
    const HeadRows<const T> qs = q.of(b, h), ks = k.of(b, h), vs = v.of(b, h), gs = g.of(b, h);
    if (owns_queries(pass))
      return {*this, b,  h,  segment, first,      last, c > 0 ? begin - chunk : 0, end < keys_end ? end : keys_end,
              qs,    gs, ks, vs,      to.of(b, h)};
    return {*this, b, h, segment, first, last, begin, far, ks, vs, qs, gs, to.of(b, h)};
  }
};

}  // namespace linnet::cuda
