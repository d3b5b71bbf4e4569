// Linear attention on a GPU: both ways as sums, scan and walks, as linear_attention_scan.h says.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/warp.h"
#include "linnet/ops/linear_attention_scan.h"

namespace linnet::cuda {
namespace {

template <class T>
Rows<T> key_rows(const LinearAttentionCall<T>& p) {
  return {p.k, p.keys, p.dim, p.map, p.key_mask, nullptr, false};
}
template <class T>
Rows<T> value_rows(const LinearAttentionCall<T>& p) {
  return {p.v, p.keys, p.value_dim, FeatureMap::identity, p.key_mask, nullptr, false};
}
/// (batch, queries, heads, value_dim)
template <class T, class U>
HeadRows<U> output_rows(const LinearAttentionCall<T>& p, U* data) {
  return {data, p.queries * p.heads * p.value_dim, p.heads * p.value_dim, p.value_dim};
}

/// The states of one sum and how they come to be.
template <class T>
struct Summed {
  Sums<T> sums;
  Scan<T> scan;
};

/// Whether anything lies before a segment of these rows, or their sum is asked for.
template <class T>
bool has_states(const LinearAttentionCall<T>& p, const Cut& cut, const T* start) {
  return !p.causal || cut.count > 1 || start;
}

template <class T>
Summed<T> summed(const LinearAttentionCall<T>& p, const Rows<T>& a, const Rows<T>& b, const T* e, const Cut& cut,
                 States<T> states, bool up, const T* start_s, const T* start_z, T* end_s, T* end_z) {
  // Where nobody asks for the sum of all, the last segment has no part in any.
  const int64_t skipped = !p.causal || end_s ? -1 : up ? cut.count - 1 : 0;
  return {{a, b, e, cut, states, skipped}, {states, cut.count, p.causal, up, start_s, start_z, end_s, end_z}};
}

template <class T>
void make_states(const LinearAttentionCall<T>& p, const Summed<T>* made, int count) {
  TwoSums<T> all{count, p.batch, p.heads, p.smallest, {}};
  for (int i = 0; i < count; ++i) all.sums[i] = made[i].sums;
  sum_segments(all);
  for (int i = 0; i < count; ++i) scan(p.batch * p.heads, made[i].scan);
}

template <class T>
void walk_as_asked(const LinearAttentionCall<T>& p, const Walks<T>& all) {
  if constexpr (sizeof(T) == sizeof(float))
    if (p.precision == Precision::bf16) return walk(walk_tiles(all));
  walk(all);
}

template <class T>
void forward(const LinearAttentionCallForward<T>& p) {
  const int64_t heads = p.batch * p.heads;
  const Cut queries = cut_rows(p.queries, heads, p.dim, p.value_dim),
            keys = cut_rows(p.keys, heads, p.dim, p.value_dim);
  States<T> states{nullptr, p.dim, p.value_dim, keys.count > 0 ? keys.count : 1};
  const bool is_summed = has_states<T>(p, keys, p.s);
  Scratch<T> memory(is_summed ? heads * states.slots * states.size() : 0);
  if (is_summed) {
    states.data = memory.data();
    const Summed<T> made = summed<T>(p, key_rows(p), value_rows(p), nullptr, keys, states, true, p.s, p.z, p.s, p.z);
    make_states(p, &made, 1);
  }
  Walk<T> w{};
  w.a = key_rows(p);
  w.b = value_rows(p);
  w.c = {p.q, p.queries, p.dim, p.map, p.query_mask, nullptr, false};
  w.causal = p.causal;
  w.up = true;
  w.beside = p.normalise ? Beside::denominator : Beside::nothing;
  w.cut = queries;
  w.states = states;
  w.each = p.causal;
  w.y = output_rows(p, p.o);
  w.d = p.d;
  w.eps = p.eps;
  walk_as_asked(p, Walks<T>{1, p.batch, p.heads, p.smallest, {w}});
}

/// c_i = -(g_i . o_i), the gradient that reaches the denominator; 0 where it is none. A warp a query.
template <class T>
void find_c(const LinearAttentionCallBackward<T>& p, T* c) {
  const T *const o = p.o, *const g = p.g, *const d = p.d, smallest = p.smallest;
  const int64_t width = p.value_dim;
  const bool normalise = p.normalise, rounded = p.precision == Precision::bf16 && fits_tiles(width);
  each(p.batch * p.queries * p.heads * kWarp, [=] __device__(int64_t i) {
    const int64_t row = i / kWarp, lane = i % kWarp;
    const bool counts = normalise && !(abs(d[row]) < smallest);
    T sum = 0;
    if (counts)
      for (int64_t m = lane; m < width; m += kWarp) {
        T value = g[row * width + m];
        // As the walks have g: what they add to c, g . v, cancels most of it.
        if (sizeof(T) == sizeof(float) && rounded)
          value = __bfloat162float(__float2bfloat16(static_cast<float>(value)));
        sum += value * o[row * width + m];
      }
    sum = over_warp(sum, Sum());
    if (lane == 0) c[row] = counts ? -sum : T(0);
  });
}

template <class T>
void backward(const LinearAttentionCallBackward<T>& p) {
  const int64_t heads = p.batch * p.heads;
  const Cut queries = cut_rows(p.queries, heads, p.dim, p.value_dim),
            keys = cut_rows(p.keys, heads, p.dim, p.value_dim);
  Scratch<T> c(heads * p.queries);
  find_c(p, c.data());
  const Rows<T> k = key_rows(p), v = value_rows(p);
  const Rows<T> q{p.q, p.queries, p.dim, p.map, nullptr, p.d, true};  // phi(q) / d
  const Rows<T> g{output_rows(p, p.g), p.queries, p.value_dim, FeatureMap::identity, nullptr, p.d, false};

  States<T> before{nullptr, p.dim, p.value_dim, keys.count > 0 ? keys.count : 1};        // S, z
  States<T> behind{nullptr, p.dim, p.value_dim, queries.count > 0 ? queries.count : 1};  // R, r
  const bool has_before = has_states(p, keys, p.s), has_behind = has_states<T>(p, queries, p.ds);
  Scratch<T> memory_before(has_before ? heads * before.slots * before.size() : 0);
  Scratch<T> memory_behind(has_behind ? heads * behind.slots * behind.size() : 0);
  Summed<T> made[2];
  int count = 0;
  if (has_before) {
    before.data = memory_before.data();
    made[count++] = summed<T>(p, k, v, nullptr, keys, before, true, p.s, p.z, nullptr, nullptr);
  }
  if (has_behind) {
    behind.data = memory_behind.data();
    made[count++] = summed<T>(p, q, g, c.data(), queries, behind, false, p.ds, p.dz, p.ds, p.dz);
  }
  if (count > 0) make_states(p, made, count);

  Walk<T> dq{}, dk{}, dv{};
  dq.causal = dk.causal = dv.causal = p.causal;
  dq.each = dk.each = dv.each = p.causal;
  dq.a = v;
  dq.b = k;
  dq.c = g;
  dq.up = true;
  dq.beside = Beside::row;
  dq.e_c = c.data();
  dq.cut = queries;
  dq.states = before;
  dq.turned = true;
  dq.y = p.dq;
  dq.slope_of = p.q;
  dq.slope_map = p.map;
  dq.over = p.d;

  dk.a = g;
  dk.b = q;
  dk.c = v;
  dk.beside = Beside::row;
  dk.e_a = c.data();
  dk.cut = keys;
  dk.states = behind;
  dk.turned = true;
  dk.y = p.dk;
  dk.slope_of = p.k;
  dk.slope_map = p.map;

  dv.a = q;
  dv.b = g;
  dv.c = k;
  dv.cut = keys;
  dv.states = behind;
  dv.y = p.dv;
  walk_as_asked(p, Walks<T>{3, p.batch, p.heads, p.smallest, {dq, dk, dv}});
}

}  // namespace

template <class T>
void step(const LinearAttentionCallForward<T>& p);

extern const LinearAttentionCallsF32 linear_attention_f32 = {forward<float>, backward<float>, step<float>};
extern const LinearAttentionCallsF64 linear_attention_f64 = {forward<double>, backward<double>, step<double>};
}  // namespace linnet::cuda
