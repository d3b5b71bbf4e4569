// What the passes of LSH attention share: the blocks of scores, the rows of one head in sorted order and the products
// between them. Private to ops/.
#pragma once
#include <cmath>
#include <limits>

#include "linnet/core/kernels.h"
#include "linnet/ops/lsh_attention_run.h"
#include "linnet/ops/packed_rows.h"

namespace linnet::lsh_attention_run {

constexpr int64_t kRows = 64;  // queries of one block of scores

template <class T>
inline constexpr T kNone = -std::numeric_limits<T>::infinity();

/// Queries first .. last-1 of the sorted steps, of one chunk, and the keys begin .. end-1 that it looks at.
struct Block {
  int64_t first, last, begin, end;
  int64_t rows() const { return last - first; }
  int64_t columns() const { return end - begin; }
};

template <class F>
void for_each_block(const Call& call, int64_t visible, const F& f) {
  const int64_t time = call.sizes.queries;
  for (int64_t chunk = 0; chunk < time; chunk += call.chunk) {
    const int64_t chunk_end = std::min(chunk + call.chunk, time);
    const int64_t begin = std::max<int64_t>(chunk - call.chunk, 0), end = std::min(chunk_end, visible);
    if (begin >= end) return;
    for (int64_t first = chunk; first < chunk_end; first += kRows)
      f(Block{first, std::min(first + kRows, chunk_end), begin, end});
  }
}

/// What one thread works with on one head in one round: its rows in sorted order, and the products of a block.
template <class T>
struct Head {
  const Call& call;
  const GeneralKernels<T>& general;
  PackedRows<T> q, k, v;
  std::vector<T> scores, unit;  // 1 / |q_i| of each step, in the shared form

  Head(const Call& c, Device device)
      : call(c), general(general_kernels<T>(device)), q(c.sizes.dim), k(c.sizes.dim), v(c.sizes.value_dim) {}

  void begin(const Inputs& x, const Order& order, int64_t b, int64_t h) {
    q_from = x.q.data<T>() + call.q.at(b, h);
    k_from = x.k.data<T>() + call.k.at(b, h);
    v_from = x.v.data<T>() + call.v.at(b, h);
    if (!call.shared) return;
    unit.resize(static_cast<size_t>(call.sizes.keys));
    for (int64_t t = 0; t < call.sizes.keys; ++t) {
      double squares = 0;
      for (int64_t d = 0; d < call.sizes.dim; ++d) squares += std::pow(double{k_from[t * call.k.row + d]}, 2);
      unit[static_cast<size_t>(t)] = order.key(t) && squares > 0 ? static_cast<T>(1 / std::sqrt(squares)) : T(0);
    }
  }

  void gather(const Order& order, int64_t round) {
    q.gather(q_from, call.q.row, order.steps(round), static_cast<T>(call.scale));
    hide(q, order, round);
    const std::span<const int32_t> keys = order.visible_steps(round);
    k.gather(k_from, call.k.row, keys);
    v.gather(v_from, call.v.row, keys);
    if (!call.shared) return;
    for (int64_t r = 0; r < std::ssize(keys); ++r)
      for (int64_t d = 0; d < k.width; ++d) k.row(r)[d] *= unit[static_cast<size_t>(keys[static_cast<size_t>(r)])];
  }

  /// Zeros for the queries that are masked: nothing of them reaches a product.
  static void hide(PackedRows<T>& rows, const Order& order, int64_t round) {
    const std::span<const int32_t> steps = order.steps(round);
    for (int64_t r = 0; r < std::ssize(steps); ++r)
      if (!order.query(steps[static_cast<size_t>(r)])) std::fill_n(rows.row(r), rows.width, T(0));
  }

  /// s = a b^T over the rows of a block.
  void score(const Block& block, PackedRows<T>& a, PackedRows<T>& b, std::vector<T>& s) {
    s.resize(static_cast<size_t>(block.rows() * block.columns()));
    general.gemm(false, true, block.rows(), block.columns(), a.width, 1, a.row(block.first), a.width,
                 b.row(block.begin), b.width, 0, s.data(), block.columns());
  }
  /// to = beta to + p x for the queries of a block.
  void to_queries(const Block& block, const std::vector<T>& p, PackedRows<T>& x, T alpha, T* to) {
    general.gemm(false, false, block.rows(), x.width, block.columns(), alpha, p.data(), block.columns(),
                 x.row(block.begin), x.width, 0, to, x.width);
  }
  /// to += p^T x for the keys of a block.
  void to_keys(const Block& block, const std::vector<T>& p, PackedRows<T>& x, PackedRows<T>& to) {
    general.gemm(true, false, block.columns(), x.width, block.rows(), 1, p.data(), block.columns(), x.row(block.first),
                 x.width, 1, to.row(block.begin), x.width);
  }

  const T *q_from = nullptr, *k_from = nullptr, *v_from = nullptr;
};

}  // namespace linnet::lsh_attention_run
