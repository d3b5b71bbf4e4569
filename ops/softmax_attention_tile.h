// Tiles of softmax attention: packed rows of q, k, v and their gradients, and the products between them.
// Private to ops/.
#pragma once
#include <algorithm>
#include <vector>

#include "linnet/core/kernels.h"
#include "linnet/ops/softmax_attention_run.h"

namespace linnet::softmax_attention_run {

using Steps = std::vector<int32_t>;

/// The steps of sample b that a mask (batch, time) lets through.
inline Steps allowed_steps(const Tensor& mask, int64_t b, int64_t time) {
  const uint8_t* row = mask.defined() ? mask.data<uint8_t>() + b * time : nullptr;
  Steps steps;
  steps.reserve(static_cast<size_t>(time));
  for (int64_t t = 0; t < time; ++t) {
    if (!row || row[t]) steps.push_back(static_cast<int32_t>(t));
  }
  return steps;
}

/// The index of the first step that is not before `time`.
inline int64_t first_from(const Steps& steps, int64_t time) {
  return std::lower_bound(steps.begin(), steps.end(), time) - steps.begin();
}

/// Rows of q, k, v or a gradient, packed: those that masks let through and no others.
template <class T>
struct Tile {
  int64_t rows = 0, width = 0;
  const int32_t* at = nullptr;
  bool finite = true;
  std::vector<T> values;

  explicit Tile(int64_t w) : width(w), values(static_cast<size_t>(kTile * w)) {}
  T* data() { return values.data(); }
  T* row(int64_t r) { return values.data() + r * width; }

  void gather(const T* source, int64_t stride, const Steps& steps, int64_t first, T scale = 1) {
    place(steps, first);
    bool ok = true;
    for (int64_t r = 0; r < rows; ++r) {
      const T* from = source + at[r] * stride;
      T* to = row(r);
      for (int64_t d = 0; d < width; ++d) {
        to[d] = scale * from[d];
        ok &= to[d] - to[d] == 0;
      }
    }
    finite = ok;
  }
  void clear(const Steps& steps, int64_t first) {
    place(steps, first);
    std::fill_n(data(), rows * width, T(0));
  }
  void add_to(T* target, int64_t stride) {
    for (int64_t r = 0; r < rows; ++r) {
      T* to = target + at[r] * stride;
      for (int64_t d = 0; d < width; ++d) to[d] += row(r)[d];
    }
  }

 private:
  void place(const Steps& steps, int64_t first) {
    rows = std::min<int64_t>(kTile, static_cast<int64_t>(steps.size()) - first);
    at = steps.data() + first;
  }
};

/// What one thread works with: the products of tiles, and a tile of scores and of their gradients.
template <class T>
struct Work {
  const SoftmaxAttentionKernels<T>& kernel;
  const GeneralKernels<T>& general;
  std::vector<T> scores, gradients;

  Work(const SoftmaxAttentionKernels<T>& softmax, Device device)
      : kernel(softmax), general(general_kernels<T>(device)), scores(kTile * kTile), gradients(kTile * kTile) {}

  /// s = a b^T, rows of a against rows of b.
  void score(Tile<T>& a, Tile<T>& b, std::vector<T>& s) {
    general.gemm(false, true, a.rows, b.rows, a.width, 1, a.data(), a.width, b.data(), b.width, 0, s.data(), b.rows);
  }
  /// y += p x, or p^T x; p has `columns` columns. A masked pair has p = 0 exactly: where x holds NaN or infinity it is
  /// skipped, since 0 * NaN would spread.
  void add_product(bool transpose, const std::vector<T>& p, int64_t columns, Tile<T>& x, Tile<T>& y) {
    if (x.finite) {
      general.gemm(transpose, false, y.rows, y.width, x.rows, 1, p.data(), columns, x.data(), x.width, 1, y.data(),
                   y.width);
      return;
    }
    for (int64_t i = 0; i < y.rows; ++i) {
      for (int64_t j = 0; j < x.rows; ++j) {
        const T weight = transpose ? p[static_cast<size_t>(j * columns + i)] : p[static_cast<size_t>(i * columns + j)];
        if (weight == 0) continue;
        for (int64_t d = 0; d < y.width; ++d) y.row(i)[d] += weight * x.row(j)[d];
      }
    }
  }
};

}  // namespace linnet::softmax_attention_run
