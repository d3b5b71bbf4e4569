// One pass of an attention over pairs of queries and keys, tile by tile: the output, or a gradient. What the pairs are,
// where rows lie and what becomes of a result is the problem's. Private to .cu files.
#pragma once
#include "linnet/core/math.h"
#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/attention_tile_cuda.h"

namespace linnet::cuda {

/// With s = scale q k^T, p = exp(s - lse), dp = g v^T, ds = p (dp - delta):
///   out = p v,   dq = scale ds k,   dk = scale ds^T q,   dv = p^T g,   delta = the sum of p dp over a query's keys.
/// A block owns rows of the result, keys of dk and dv and queries of the others, and looks at the other side.
enum class Pass { out, dq, dk, dv, delta };
constexpr bool owns_queries(Pass pass) { return pass != Pass::dk && pass != Pass::dv; }
constexpr bool needs_deltas(Pass pass) { return pass == Pass::dq || pass == Pass::dk; }
constexpr bool needs_slopes(Pass pass) { return needs_deltas(pass) || pass == Pass::delta; }

/// lse of a row that no key counts for.
template <class T>
constexpr T kNoKey = -static_cast<T>(__builtin_inf());

/// A mask's bytes, or null: all take part.
inline const uint8_t* mask_of(const Tensor& steps) { return steps.defined() ? steps.data<uint8_t>() : nullptr; }

/// Rows of one head.
template <class T>
struct HeadRows {
  T* first;
  int64_t step;
  LINNET_FN T* at(int64_t t) const { return first + t * step; }
};
/// Of every head of a call.
template <class T>
struct CallRows {
  T* all = nullptr;
  RowLayout layout;
  LINNET_FN HeadRows<T> of(int64_t b, int64_t h) const {
    return {all + layout.offset + b * layout.batch + h * layout.head, layout.row};
  }
};
/// Those of a tile, and null for what does not count.
template <class T>
struct StepRows {
  HeadRows<const T> rows;
  const int32_t* steps;
  __device__ const T* operator()(int r) const { return steps[r] >= 0 ? rows.at(steps[r]) : nullptr; }
};

/// A problem gives for each block a Block with
///   own_first, own_last, other_first, other_last   places of its rows and of the rows that it looks at
///   own_step(place), other_step(place)             which steps those are; ~step where it does not count
///   own, own_slope, other, other_slope             HeadRows: q and g of queries, k and v of keys
///   allows(own, other, s)                          whether a pair of steps counts; may change its logit s
///   lse(query), delta(query)                       for gradients
///   begin_max(step, max), begin_total(step, total), begin_sum(step, column)   Pass::out: the sums so far
///   put(step, column, sum, total)                  what becomes of a result; of a row that does not count, ~step and 0
///   end(step, max, total)                          once a row, of Pass::out and Pass::delta
/// and itself has dim, value_dim, and scales: of q, and g_scale of g.
template <class Tile, Pass pass, int kGroups, class Problem>
__global__ void __launch_bounds__(Tile::kThreads, 2 * kThreads / Tile::kThreads)
    pass_kernel(Problem problem, int64_t first) {
  using T = typename Tile::T;
  constexpr int kR = Tile::kRowsEach, kC = Tile::kColumnsEach;
  CUDA_SHARED(Packed<T>, chunk_packs, [chunk_size<Tile, kGroups>()]);
  CUDA_SHARED(Packed<T>, weight_packs, [Tile::kRows * Tile::kWeightStride / Tile::kPack]);
  CUDA_SHARED(int32_t, own_at, [Tile::kRows]);
  CUDA_SHARED(int32_t, other_at, [Tile::kColumns]);
  T *const chunk = reinterpret_cast<T*>(chunk_packs), *const weights = reinterpret_cast<T*>(weight_packs);
  const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
  const auto block = problem.block(blockIdx.x);
  const int64_t dim = problem.dim, value_dim = problem.value_dim;
  const T q_scale = problem.scale, own_scale = owns_queries(pass) ? q_scale : T(1),
          other_scale = owns_queries(pass) ? T(1) : q_scale, g_scale = problem.g_scale;

  bool counts = false;
  for (int r = threadIdx.x; r < Tile::kRows; r += Tile::kThreads) {
    own_at[r] = block.own_first + r < block.own_last ? block.own_step(block.own_first + r) : -1;
    counts = counts || own_at[r] >= 0;
  }
  const bool own_any = __syncthreads_or(counts);

  const int32_t* const own_step = own_at + y;  // of row i: own_step[i * kDown]
  T sum[kR][kGroups] = {}, max[kR], total[kR], lse[kR] = {}, delta[kR] = {};
  UNROLL for (int i = 0; i < kR; ++i) {
    max[i] = kNoKey<T>;
    total[i] = 0;
    if (own_step[i * Tile::kDown] < 0) continue;
    if constexpr (pass == Pass::out) {
      if (x == 0) block.begin_total(own_step[i * Tile::kDown], total[i]);
      block.begin_max(own_step[i * Tile::kDown], max[i]);
      UNROLL for (int j = 0; j < kGroups; ++j) sum[i][j] =
          block.begin_sum(own_step[i * Tile::kDown], first + x + j * kAcross);
    } else if constexpr (owns_queries(pass)) {
      lse[i] = block.lse(own_step[i * Tile::kDown]);
      if constexpr (needs_deltas(pass)) delta[i] = block.delta(own_step[i * Tile::kDown]);
    }
  }

  for (int64_t place = block.other_first; own_any && place < block.other_last; place += Tile::kColumns) {
    const int c = threadIdx.x;
    const int32_t at = c < Tile::kColumns && place + c < block.other_last ? block.other_step(place + c) : -1;
    if (c < Tile::kColumns) other_at[c] = at;
    if (!__syncthreads_or(at >= 0)) continue;
    T s[kR][kC] = {};
    add_scores<Tile>(s, chunk, dim, StepRows<T>{block.own, own_at}, own_scale, StepRows<T>{block.other, other_at},
                     other_scale);
    [[maybe_unused]] T slope[kR][kC] = {};
    if constexpr (needs_slopes(pass))
      add_scores<Tile>(slope, chunk, value_dim, StepRows<T>{block.own_slope, own_at},
                       owns_queries(pass) ? g_scale : T(1), StepRows<T>{block.other_slope, other_at},
                       owns_queries(pass) ? T(1) : g_scale);

    bool allowed[kR][kC];
    UNROLL for (int j = 0; j < kC; ++j) {
      const int32_t step = other_at[x + j * kAcross];
      [[maybe_unused]] T other_lse = 0, other_delta = 0;
      if constexpr (!owns_queries(pass)) {
        if (step >= 0) other_lse = block.lse(step);
        if (step >= 0 && needs_deltas(pass)) other_delta = block.delta(step);
      }
      UNROLL for (int i = 0; i < kR; ++i) {
        allowed[i][j] =
            own_step[i * Tile::kDown] >= 0 && step >= 0 && block.allows(own_step[i * Tile::kDown], step, s[i][j]);
        if constexpr (pass != Pass::out) {
          T p = 0;
          if (allowed[i][j]) p = exp_nonpositive(s[i][j] - (owns_queries(pass) ? lse[i] : other_lse));
          if (allowed[i][j] && needs_slopes(pass)) p *= slope[i][j] - (owns_queries(pass) ? delta[i] : other_delta);
          s[i][j] = p;
        }
      }
    }
    if constexpr (pass == Pass::out) {
      UNROLL for (int i = 0; i < kR; ++i) {
        T top = max[i];
        UNROLL for (int j = 0; j < kC; ++j) {
          if (allowed[i][j] && s[i][j] > top) top = s[i][j];
        }
        top = over_row(top, Larger());
        const T shrink = max[i] == kNoKey<T> ? T(0) : exp_nonpositive(max[i] - top);
        max[i] = top;
        total[i] *= shrink;  // each thread's own columns'
        UNROLL for (int j = 0; j < kC; ++j) {
          s[i][j] = allowed[i][j] ? exp_nonpositive(s[i][j] - top) : T(0);
          total[i] += s[i][j];
        }
        UNROLL for (int j = 0; j < kGroups; ++j) sum[i][j] *= shrink;
      }
    }
    if constexpr (pass == Pass::delta) {
      UNROLL for (int i = 0; i < kR; ++i) { UNROLL for (int j = 0; j < kC; ++j) total[i] += s[i][j]; }
      __syncthreads();  // of other_at
    } else {
      UNROLL for (int i = 0; i < kR; ++i) {
        UNROLL for (int j = 0; j < kC; ++j) weights[(y + i * Tile::kDown) * Tile::kWeightStride + x + j * kAcross] =
            s[i][j];
      }
      const StepRows<T> slopes{block.other_slope, other_at}, rows{block.other, other_at};
      if constexpr (pass == Pass::out || pass == Pass::dv)
        add_values<Tile>(sum, weights, chunk, first, value_dim, pass == Pass::dv ? g_scale : T(1), slopes);
      else
        add_values<Tile>(sum, weights, chunk, first, dim, q_scale, rows);
    }
  }

  const int64_t width = pass == Pass::out || pass == Pass::dv ? value_dim : dim;
  UNROLL for (int i = 0; i < kR; ++i) {
    if constexpr (pass == Pass::out || pass == Pass::delta) total[i] = over_row(total[i], Sum());
    if (block.own_first + y + i * Tile::kDown >= block.own_last) continue;
    if constexpr (pass == Pass::out || pass == Pass::delta) {
      if (x == 0) block.end(own_step[i * Tile::kDown], max[i], total[i]);
    }
    UNROLL for (int j = 0; j < kGroups && pass != Pass::delta; ++j) {
      const int64_t column = first + x + j * kAcross;
      if (column < width) block.put(own_step[i * Tile::kDown], column, sum[i][j], total[i]);
    }
  }
}

/// delta = g . o of rows (batch, time, heads), kAcross threads a row, to delta[place(row)]; 0 where lse[place(row)]
/// says that there is no key.
template <class T, class Place>
void make_deltas(int64_t rows, int64_t width, const T* g, const T* o, const T* lse, T* delta, Place place) {
  each((rows + 1) / 2 * kWarp, [=] __device__(int64_t i) {
    const int64_t row = i / kAcross, begin = i % kAcross;
    const bool counts = row < rows && lse[place(row)] != kNoKey<T>;
    T sum = 0;
    for (int64_t m = begin; counts && m < width; m += kAcross) sum += g[row * width + m] * o[row * width + m];
    sum = over_row(sum, Sum());
    if (row < rows && begin == 0) delta[place(row)] = sum;
  });
}

/// The kernels of a pass for `blocks` blocks and results of `width` columns, kMostColumns a launch at
/// most; problem.last_launch says to the last one that it is.
template <class Tile, Pass pass, class Problem>
void run_pass(int64_t blocks, int64_t width, Problem problem) {
  LINNET_CHECK(blocks < int64_t{1} << 31, "attention: ", blocks, " tiles are too many for one launch on cuda");
  const auto grid = static_cast<unsigned>(blocks);
  constexpr int kMost = kMostColumns<typename Tile::T>;
  for (int64_t first = 0; first == 0 || first < width; first += kMost) {
    problem.last_launch = first + kMost >= width;
    const auto start = [&]<int kGroups>(std::integral_constant<int, kGroups>) {
      run(pass_kernel<Tile, pass, kGroups, Problem>, grid, Tile::kThreads, 0, problem, first);
    };
    if (kMost == 32 || width - first <= 32)
      start(std::integral_constant<int, 2>());
    else if (width - first <= 64)
      start(std::integral_constant < int, kMost == 32 ? 2 : 4 > ());
    else
      start(std::integral_constant<int, kMost / kAcross>());
  }
}

}  // namespace linnet::cuda
