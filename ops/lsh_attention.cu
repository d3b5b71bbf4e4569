// LSH attention on a GPU: a pass over the sorted steps of each round, the rounds one after the other. A row belongs to
// one block of a round, so that what the rounds add to it has one order.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/ops/attention_pass_cuda.h"
#include "linnet/ops/lsh_attention_cuda.h"
#include "linnet/ops/lsh_order_cuda.h"

namespace linnet::cuda {
namespace {

using lsh_attention_run::Call;
using lsh_attention_run::Inputs;

template <class T>
constexpr T kNone = -static_cast<T>(__builtin_inf());

template <class T>
struct Rows {
  T* all = nullptr;
  RowLayout layout;
  LINNET_FN HeadRows<T> of(int64_t b, int64_t h) const {
    return {all + layout.offset + b * layout.batch + h * layout.head, layout.row};
  }
};

template <class T, Pass pass>
struct Problem {
  int64_t heads, time, dim, value_dim, rounds, round, sets, chunk;
  int64_t own_rows, tiles_per_chunk, chunks;
  bool causal, self, own_bucket, joint, last_launch;
  T scale, g_scale;
  const int32_t *hash, *steps, *its_chunk, *visible;  // LshOrder
  const uint8_t *keys, *queries;
  Rows<const T> q, k, v, g;
  Rows<T> to;
  // (batch, heads, sets, time); max and total so far are (batch, heads, time), those of the round before and of this.
  const T *lse, *delta;
  T *lse_to, *delta_to;
  const T *max_before, *total_before;
  T *max_now, *total_now;

  struct Block {
    const Problem& problem;
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
      return query(t) && (pass == Pass::out || problem.lse[place(t)] != kNone<T>) ? t : ~t;
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
        problem.lse_to[place(t)] = total == T(0) ? kNone<T> : max + log(total);
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

template <class T>
using LargeTile = Tile<T, 16, 2, sizeof(T) == 4 ? 4 : 2>;
template <class T>
using SmallTile = Tile<T, 2, 1, 2>;

const uint8_t* mask(const Tensor& steps) { return steps.defined() ? steps.data<uint8_t>() : nullptr; }

/// What the passes of one call share.
template <class T>
struct Passes {
  const Call& call;
  const Inputs& x;
  const LshOrder order;
  Rows<const T> k, g = {};
  const T* lse = nullptr;
  T *lse_to = nullptr, *delta = nullptr;

  template <Pass pass>
  Problem<T, pass> problem(int64_t round) const {
    const AttentionSizes& n = call.sizes;
    return {.heads = n.heads,
            .time = n.queries,
            .dim = n.dim,
            .value_dim = n.value_dim,
            .rounds = call.rounds,
            .round = round,
            .sets = call.joint ? 1 : call.rounds,
            .chunk = call.chunk,
            .own_rows = 0,
            .tiles_per_chunk = 0,
            .chunks = (n.queries + call.chunk - 1) / call.chunk,
            .causal = call.causal,
            .self = call.self,
            .own_bucket = call.own_bucket,
            .joint = call.joint,
            .last_launch = true,
            .scale = static_cast<T>(call.scale),
            .g_scale = call.joint ? T(1) : 1 / static_cast<T>(call.rounds),
            .hash = order.hashes.template data<int32_t>(),
            .steps = order.steps.template data<int32_t>(),
            .its_chunk = order.chunks.template data<int32_t>(),
            .visible = order.visible.template data<int32_t>(),
            .keys = mask(x.keys),
            .queries = mask(x.queries),
            .q = {x.q.template data<T>(), call.q},
            .k = k,
            .v = {x.v.template data<T>(), call.v},
            .g = g,
            .to = {},
            .lse = lse,
            .delta = delta,
            .lse_to = lse_to,
            .delta_to = delta,
            .max_before = nullptr,
            .total_before = nullptr,
            .max_now = nullptr,
            .total_now = nullptr};
  }
  template <Pass pass>
  void run(Problem<T, pass> problem, int64_t width) const {
    const auto start = [&]<class Tile>(Tile) {
      problem.own_rows = Tile::kRows;
      problem.tiles_per_chunk = (call.chunk + Tile::kRows - 1) / Tile::kRows;
      run_pass<Tile, pass>(call.sizes.batch * call.sizes.heads * problem.chunks * problem.tiles_per_chunk, width,
                           problem);
    };
    if (call.chunk > 16)  // of few rows, a block does not make more than it needs
      start(LargeTile<T>());
    else
      start(SmallTile<T>());
  }
};

/// 1 / |k|, 0 where k is 0 or masked, and k times it, as (batch, time, heads, ..): the keys of the shared form.
template <class T>
void make_units(const Call& call, const Inputs& x, T* unit, T* rows) {
  const AttentionSizes n = call.sizes;
  const RowLayout at = call.k;
  const T* const from = x.k.data<T>();
  const uint8_t* const keys = mask(x.keys);
  each(n.batch * n.keys * n.heads, [=] __device__(int64_t i) {
    const int64_t h = i % n.heads, t = i / n.heads % n.keys, b = i / n.heads / n.keys;
    const T* const row = from + at.offset + b * at.batch + t * at.row + h * at.head;
    double squares = 0;
    const bool counts = !keys || keys[b * n.keys + t];
    for (int64_t d = 0; counts && d < n.dim; ++d) squares += static_cast<double>(row[d]) * static_cast<double>(row[d]);
    const T by = squares > 0 ? static_cast<T>(1 / ::sqrt(squares)) : T(0);
    unit[i] = by;
    for (int64_t d = 0; d < n.dim; ++d) rows[i * n.dim + d] = counts ? by * row[d] : T(0);
  });
}

/// Where the keys of a call lie: in their tensor, or in new memory.
template <class T>
struct Keys {
  Tensor unit, rows;
  Rows<const T> at;

  Keys(const Call& call, const Inputs& x) : at{x.k.data<T>(), call.k} {
    if (!call.shared) return;
    const AttentionSizes& n = call.sizes;
    unit = Tensor::empty({n.batch, n.keys, n.heads}, x.k.dtype(), Device::cuda);
    rows = Tensor::empty({n.batch, n.keys, n.heads, n.dim}, x.k.dtype(), Device::cuda);
    make_units(call, x, unit.mutable_data<T>(), rows.mutable_data<T>());
    at = {rows.data<T>(), rows_of(rows.shape())};
  }
};

template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Tensor& lse) {
  const AttentionSizes& n = call.sizes;
  const Keys<T> keys(call, x);
  const Passes<T> passes{call, x, make_order(call, x), keys.at, {}, nullptr, lse.mutable_data<T>()};
  const int64_t rows = n.batch * n.heads * n.queries;
  Scratch<T> sums(call.joint ? 4 * rows : 0);
  for (int64_t round = 0; round < call.rounds; ++round) {
    Problem<T, Pass::out> problem = passes.template problem<Pass::out>(round);
    problem.to = {out.mutable_data<T>(), rows_of(call.out_shape())};
    if (call.joint && call.rounds > 1) {
      T *const now = sums.data() + round % 2 * 2 * rows, *const before = sums.data() + (round + 1) % 2 * 2 * rows;
      problem.max_now = now, problem.total_now = now + rows;
      if (round > 0) problem.max_before = before, problem.total_before = before + rows;
    }
    passes.run(problem, n.value_dim);
  }
}

/// delta = g . o of the rows (batch, time, heads), as (batch, heads, time); where there is a key.
template <class T>
void run_deltas(const AttentionSizes& n, const T* g, const T* o, const T* lse, T* delta) {
  const int64_t rows = n.batch * n.queries * n.heads;
  each((rows + 1) / 2 * kWarp, [=] __device__(int64_t i) {
    const int64_t row = i / kAcross, begin = i % kAcross;
    const int64_t h = row % n.heads, t = row / n.heads % n.queries, b = row / n.heads / n.queries;
    const int64_t to = (b * n.heads + h) * n.queries + t;
    const bool counts = row < rows && lse[to] != kNone<T>;
    T sum = 0;
    for (int64_t m = begin; counts && m < n.value_dim; m += kAcross)
      sum += g[row * n.value_dim + m] * o[row * n.value_dim + m];
    sum = over_row(sum, Sum());
    if (row < rows && begin == 0) delta[to] = sum;
  });
}

/// dv += g for the queries that were alone in a set: o = v.
template <class T>
void add_alone(const Call& call, const Inputs& x, const T* g, const T* lse, Tensor& dv) {
  const AttentionSizes n = call.sizes;
  const int64_t sets = call.joint ? 1 : call.rounds;
  const T share = 1 / static_cast<T>(sets);
  const RowLayout at = call.v;
  const uint8_t *const keys = mask(x.keys), *const queries = mask(x.queries);
  T* const to = dv.mutable_data<T>();
  each(n.batch * n.queries * n.heads * n.value_dim, [=] __device__(int64_t i) {
    const int64_t m = i % n.value_dim, row = i / n.value_dim;
    const int64_t h = row % n.heads, t = row / n.heads % n.queries, b = row / n.heads / n.queries;
    if ((keys && !keys[b * n.keys + t]) || (queries && !queries[b * n.queries + t])) return;
    int count = 0;
    for (int64_t set = 0; set < sets; ++set) count += lse[((b * n.heads + h) * sets + set) * n.queries + t] == kNone<T>;
    if (count > 0) to[at.offset + b * at.batch + t * at.row + h * at.head + m] += static_cast<T>(count) * share * g[i];
  });
}

/// dq += (dk - k (k . dk)) / |q| for k = q / |q|, of rows (batch, time, heads).
template <class T>
void add_unit_gradients(const Call& call, const Inputs& x, const T* unit, const T* gradients, Tensor& dq) {
  const AttentionSizes n = call.sizes;
  const RowLayout at = call.q;
  const T* const q = x.q.data<T>();
  T* const to = dq.mutable_data<T>();
  each(n.batch * n.keys * n.heads, [=] __device__(int64_t i) {
    const int64_t h = i % n.heads, t = i / n.heads % n.keys, b = i / n.heads / n.keys;
    const int64_t row = at.offset + b * at.batch + t * at.row + h * at.head;
    const T by = unit[i];
    if (by == T(0)) return;  // 0, or masked and not to be read
    T along = 0;
    for (int64_t d = 0; d < n.dim; ++d) along += q[row + d] * gradients[i * n.dim + d];
    along *= by * by * by;
    for (int64_t d = 0; d < n.dim; ++d) to[row + d] += by * gradients[i * n.dim + d] - along * q[row + d];
  });
}

template <class T>
void run_backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor& dq,
                  Tensor& dk, Tensor& dv) {
  const AttentionSizes& n = call.sizes;
  const Keys<T> keys(call, x);
  Tensor deltas = empty_like(lse), units = call.shared ? zeros_like(keys.rows) : Tensor();
  const Passes<T> passes{
      call,          x,       make_order(call, x),     keys.at, {dy.data<T>(), rows_of(call.out_shape())},
      lse.data<T>(), nullptr, deltas.mutable_data<T>()};
  if (call.joint) run_deltas(n, dy.data<T>(), out.data<T>(), lse.data<T>(), deltas.mutable_data<T>());
  for (int64_t round = 0; round < call.rounds; ++round) {
    if (!call.joint) passes.run(passes.template problem<Pass::delta>(round), 1);
    const auto pass = [&]<Pass which>(std::integral_constant<Pass, which>, int64_t width, const RowLayout& layout,
                                      Tensor& to) {
      if (width == 0) return;
      Problem<T, which> problem = passes.template problem<which>(round);
      problem.to = {to.mutable_data<T>(), layout};
      passes.run(problem, width);
    };
    pass(std::integral_constant<Pass, Pass::dq>(), n.dim, call.q, dq);
    if (call.shared)
      pass(std::integral_constant<Pass, Pass::dk>(), n.dim, rows_of(units.shape()), units);
    else
      pass(std::integral_constant<Pass, Pass::dk>(), n.dim, call.k, dk);
    pass(std::integral_constant<Pass, Pass::dv>(), n.value_dim, call.v, dv);
  }
  add_alone(call, x, dy.data<T>(), lse.data<T>(), dv);
  if (call.shared) add_unit_gradients(call, x, keys.unit.template data<T>(), units.data<T>(), dq);
}

void forward(const Call& call, const Inputs& x, Tensor& out, Tensor& lse) {
  with_float("lsh_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, lse); });
}
void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor& dq,
              Tensor& dk, Tensor& dv) {
  with_float("lsh_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, out, lse, dy, dq, dk, dv); });
}

}  // namespace

extern const LshAttentionCalls lsh_attention_calls = {hash_rows, forward, backward};

}  // namespace linnet::cuda
