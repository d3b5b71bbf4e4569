// LSH attention on a GPU: a pass over the sorted steps of each round, the rounds one after the other. A row belongs to
// one block of a round, so that what the rounds add to it has one order.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/ops/lsh_attention_cuda.h"
#include "linnet/ops/lsh_attention_problem_cuda.h"
#include "linnet/ops/lsh_order_cuda.h"

namespace linnet::cuda {
namespace {

using lsh_attention_run::Call;
using lsh_attention_run::Inputs;

template <class T>
using LargeTile = Tile<T, 16, 2, sizeof(T) == 4 ? 4 : 2>;
template <class T>
using SmallTile = Tile<T, 2, 1, 2>;

/// What the passes of one call share.
template <class T>
struct Passes {
  const Call& call;
  const Inputs& x;
  const LshOrder order;
  CallRows<const T> k, g = {};
  const T* lse = nullptr;
  T *lse_to = nullptr, *delta = nullptr;

  template <Pass pass>
  LshProblem<T, pass> problem(int64_t round) const {
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
            .keys = mask_of(x.keys),
            .queries = mask_of(x.queries),
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
  void run(LshProblem<T, pass> problem, int64_t width) const {
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
  const uint8_t* const keys = mask_of(x.keys);
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
  CallRows<const T> at;

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
    LshProblem<T, Pass::out> problem = passes.template problem<Pass::out>(round);
    problem.to = {out.mutable_data<T>(), rows_of(call.out_shape())};
    if (call.joint && call.rounds > 1) {
      T *const now = sums.data() + round % 2 * 2 * rows, *const before = sums.data() + (round + 1) % 2 * 2 * rows;
      problem.max_now = now, problem.total_now = now + rows;
      if (round > 0) problem.max_before = before, problem.total_before = before + rows;
    }
    passes.run(problem, n.value_dim);
  }
}

/// dv += g for the queries that were alone in a set: o = v.
template <class T>
void add_alone(const Call& call, const Inputs& x, const T* g, const T* lse, Tensor& dv) {
  const AttentionSizes n = call.sizes;
  const int64_t sets = call.joint ? 1 : call.rounds;
  const T share = 1 / static_cast<T>(sets);
  const RowLayout at = call.v;
  const uint8_t *const keys = mask_of(x.keys), *const queries = mask_of(x.queries);
  T* const to = dv.mutable_data<T>();
  each(n.batch * n.queries * n.heads * n.value_dim, [=] __device__(int64_t i) {
    const int64_t m = i % n.value_dim, row = i / n.value_dim;
    const int64_t h = row % n.heads, t = row / n.heads % n.queries, b = row / n.heads / n.queries;
    if ((keys && !keys[b * n.keys + t]) || (queries && !queries[b * n.queries + t])) return;
    int count = 0;
    for (int64_t set = 0; set < sets; ++set)
      count += lse[((b * n.heads + h) * sets + set) * n.queries + t] == kNoKey<T>;
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
  if (call.joint) {  // lse and delta are (batch, heads, time)
    const int64_t heads = n.heads, time = n.queries;
    make_deltas(n.batch * time * heads, n.value_dim, dy.data<T>(), out.data<T>(), lse.data<T>(),
                deltas.mutable_data<T>(), [=] __device__(int64_t row) {
                  const int64_t h = row % heads, t = row / heads % time, b = row / heads / time;
                  return (b * heads + h) * time + t;
                });
  }
  for (int64_t round = 0; round < call.rounds; ++round) {
    if (!call.joint) passes.run(passes.template problem<Pass::delta>(round), 1);
    const auto pass = [&]<Pass which>(std::integral_constant<Pass, which>, int64_t width, const RowLayout& layout,
                                      Tensor& to) {
      if (width == 0) return;
      LshProblem<T, which> problem = passes.template problem<which>(round);
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
