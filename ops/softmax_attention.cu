// Softmax attention on a GPU: passes over tiles of scores, each made anew and never kept; no sum depends on an order.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/ops/attention_pass_cuda.h"
#include "linnet/ops/softmax_attention_cuda.h"

namespace linnet::cuda {
namespace {

using softmax_attention_run::Call;
using softmax_attention_run::Inputs;

template <class T>
CallRows<const T> rows(const Tensor& x, const RowLayout& layout) {
  return {x.data<T>(), layout};
}

/// One side of the pairs: which of its steps count, by a mask (batch, steps) or by a query's lse.
template <class T>
struct Side {
  CallRows<const T> rows, slopes;
  int64_t steps;
  const uint8_t* mask;
  const T* lse;
};

template <class T, Pass pass>
struct Problem {
  int64_t heads, dim, value_dim, own_tiles, own_rows;
  Side<T> own, other;
  CallRows<T> to;
  T* lse_to;        // Pass::out
  const T* deltas;  // (batch, queries, heads), like lse
  T scale, g_scale = 1;
  int64_t before, after;  // how far from its own step another one may lie
  const uint8_t* pairs;
  int64_t own_pairs, other_pairs;  // how far apart its entries lie
  bool last_launch = true;         // of those for one result

  struct Block {
    const Problem& problem;
    int64_t b, h, own_first, own_last, other_first, other_last;
    HeadRows<const T> own, own_slope, other, other_slope;
    HeadRows<T> to;

    __device__ int64_t query(int64_t t) const {
      return (b * (owns_queries(pass) ? problem.own : problem.other).steps + t) * problem.heads + h;
    }
    __device__ int32_t step(const Side<T>& side, int64_t t) const {
      const int32_t at = static_cast<int32_t>(t);
      if (side.mask && !side.mask[b * side.steps + t]) return ~at;
      return side.lse && side.lse[query(t)] == kNoKey<T> ? ~at : at;
    }
    __device__ int32_t own_step(int64_t t) const { return step(problem.own, t); }
    __device__ int32_t other_step(int64_t t) const { return step(problem.other, t); }
    __device__ bool allows(int64_t i, int64_t j, T&) const {
      if (j < i - problem.before || j > i + problem.after) return false;
      return !problem.pairs || problem.pairs[i * problem.own_pairs + j * problem.other_pairs];
    }
    __device__ T lse(int64_t t) const { return (owns_queries(pass) ? problem.own : problem.other).lse[query(t)]; }
    __device__ T delta(int64_t t) const { return problem.deltas[query(t)]; }

    __device__ void begin_max(int64_t, T&) const {}
    __device__ void begin_total(int64_t, T&) const {}
    __device__ T begin_sum(int64_t, int64_t) const { return 0; }
    __device__ void put(int32_t at, int64_t column, T sum, T total) const {
      T* const row = to.at(at < 0 ? ~at : at);
      if (pass == Pass::out)
        row[column] = total == T(0) ? T(0) : sum / total;  // 0: no key
      else
        row[column] = sum;
    }
    __device__ void end(int32_t at, T max, T total) const {
      if (problem.last_launch) problem.lse_to[query(at < 0 ? ~at : at)] = total == T(0) ? kNoKey<T> : max + log(total);
    }
  };

  __device__ Block block(int64_t i) const {
    const int64_t head = i / own_tiles, b = head / heads, h = head % heads;
    // Where the band ends at the own step, the last rows of queries have the most to do, and begin.
    const int64_t tile = owns_queries(pass) ? own_tiles - 1 - i % own_tiles : i % own_tiles;
    const int64_t first = tile * own_rows, end = first + own_rows, last = end < own.steps ? end : own.steps;
    const int64_t near = first - before, far = last + after;
    return {*this,
            b,
            h,
            first,
            last,
            near > 0 ? near : 0,
            far < other.steps ? far : other.steps,
            own.rows.of(b, h),
            own.slopes.of(b, h),
            other.rows.of(b, h),
            other.slopes.of(b, h),
            to.of(b, h)};
  }
};

/// Of few rows, a block does not make more than it needs.
constexpr int64_t kFew = 16;
template <class T>
using LargeTile = std::conditional_t<sizeof(T) == 4, Tile<T, 16, 4, 4>, Tile<T, 16, 2, 2>>;
template <class T>
using SmallTile = Tile<T, 2, 2, 2>;

template <class T, Pass pass>
void run(const Call& call, Problem<T, pass> problem, const RowLayout& layout, Tensor& to) {
  const AttentionSizes& n = call.sizes;
  problem.to = {to.mutable_data<T>(), layout};
  const int64_t width = pass == Pass::out || pass == Pass::dv ? n.value_dim : n.dim;
  if (pass != Pass::out && width == 0) return;
  const auto start = [&]<class Tile>(Tile) {
    problem.own_rows = Tile::kRows;
    problem.own_tiles = (problem.own.steps + Tile::kRows - 1) / Tile::kRows;
    run_pass<Tile, pass>(n.batch * n.heads * problem.own_tiles, width, problem);
  };
  if (problem.own.steps > kFew || problem.other.steps > kFew * kFew)
    start(LargeTile<T>());
  else
    start(SmallTile<T>());
}

template <class T, Pass pass>
Problem<T, pass> make_problem(const Call& call, const Inputs& x) {
  const AttentionSizes& n = call.sizes;
  const Side<T> queries{rows<T>(x.q, call.q), {}, n.queries, mask_of(x.queries), nullptr},
      keys{rows<T>(x.k, call.k), rows<T>(x.v, call.v), n.keys, mask_of(x.keys), nullptr};
  constexpr bool own = owns_queries(pass);
  return {.heads = n.heads,
          .dim = n.dim,
          .value_dim = n.value_dim,
          .own_tiles = 0,
          .own_rows = 0,
          .own = own ? queries : keys,
          .other = own ? keys : queries,
          .to = {},
          .lse_to = nullptr,
          .deltas = nullptr,
          .scale = static_cast<T>(call.scale),
          .before = own ? call.band.before : call.band.after,
          .after = own ? call.band.after : call.band.before,
          .pairs = mask_of(x.pairs),
          .own_pairs = own ? n.keys : 1,
          .other_pairs = own ? 1 : n.keys};
}

template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Tensor& lse) {
  Problem<T, Pass::out> problem = make_problem<T, Pass::out>(call, x);
  problem.lse_to = lse.mutable_data<T>();
  run(call, problem, rows_of(call.out_shape()), out);
}

template <class T>
void run_backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor& dq,
                  Tensor& dk, Tensor& dv) {
  const AttentionSizes& n = call.sizes;
  const CallRows<const T> g = rows<T>(dy, rows_of(call.out_shape()));
  Scratch<T> deltas(lse.numel());
  make_deltas(lse.numel(), n.value_dim, g.all, out.data<T>(), lse.data<T>(), deltas.data(),
              [] __device__(int64_t row) { return row; });
  const auto pass = [&]<Pass which>(std::integral_constant<Pass, which>, const RowLayout& layout, Tensor& to) {
    Problem<T, which> problem = make_problem<T, which>(call, x);
    Side<T>& queries = owns_queries(which) ? problem.own : problem.other;
    queries.slopes = g;
    queries.mask = nullptr;
    queries.lse = lse.data<T>();
    problem.deltas = deltas.data();
    run(call, problem, layout, to);
  };
  pass(std::integral_constant<Pass, Pass::dq>(), call.q, dq);
  pass(std::integral_constant<Pass, Pass::dk>(), call.k, dk);
  pass(std::integral_constant<Pass, Pass::dv>(), call.v, dv);
}

void forward(const Call& call, const Inputs& x, Tensor& out, Tensor& lse) {
  with_float("softmax_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, lse); });
}
void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor& dq,
              Tensor& dk, Tensor& dv) {
  with_float("softmax_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, out, lse, dy, dq, dk, dv); });
}

}  // namespace

extern const SoftmaxAttentionCalls softmax_attention_calls = {forward, backward, softmax_attention_step};

}  // namespace linnet::cuda
