// cross_entropy on a GPU: a team of threads a row; targets are counted and checked in one pass, read back once.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/math.h"
#include "linnet/ops/cross_entropy_kernels.h"
#include "linnet/ops/row_teams.h"

namespace linnet::cuda {
namespace {

template <class T>
void forward(int64_t rows, int64_t classes, const T* x0, const int32_t* targets, int64_t ignore, T smoothing, T* loss,
             T* stats) {
  each_row(rows, classes, [=] __device__(auto team, int64_t row) {
    const T* const x = x0 + row * classes;
    const auto set = [&](T value, T largest, T inverse) {
      if (team.place == 0) loss[row] = value, stats[2 * row] = largest, stats[2 * row + 1] = inverse;
    };
    if (targets[row] == ignore) return set(T(0), T(0), T(0));
    const T m = largest_of(team, classes, x);
    if (m == -kInfinity<T>)  // an infinite loss, or NaN where one is in the row
      return set(-sum_of<T>(team, classes, [x](int64_t c) { return x[c]; }), T(0), T(0));
    const T sum = sum_of<T>(team, classes, [x, m](int64_t c) { return exp_nonpositive(x[c] - m); });
    T value = log(sum) + (T(1) - smoothing) * (m - x[targets[row]]);
    if (smoothing != T(0)) {
      const T below = sum_of<T>(team, classes, [x, m](int64_t c) { return m - x[c]; });
      value += smoothing * (below / static_cast<T>(classes));
    }
    set(value, m, T(1) / sum);
  });
}

template <class T>
void backward(int64_t rows, int64_t classes, const T* x0, const int32_t* targets, int64_t ignore, T smoothing,
              const T* stats, const T* dloss, int64_t dloss_stride, T factor, T* dx0) {
  const T uniform = smoothing / static_cast<T>(classes);
  each_row(rows, classes, [=] __device__(auto team, int64_t row) {
    const int64_t target = targets[row];
    const T scale = dloss[row * dloss_stride] * factor, m = stats[2 * row], inverse = stats[2 * row + 1];
    for (int64_t c = team.place; c < classes; c += team.size) {
      const T wanted = uniform + (c == target ? T(1) - smoothing : T(0));
      const int64_t at = row * classes + c;
      dx0[at] = target == ignore ? T(0) : scale * (exp_nonpositive(x0[at] - m) * inverse - wanted);
    }
  });
}

TargetCount count_targets(int64_t rows, const int32_t* targets, int64_t classes, int64_t ignore) {
  using Number = unsigned long long;  // what atomicAdd and atomicMin take
  Scratch<Number> memory(2);
  Number* const found = memory.data();  // ignored targets; the first bad one
  each(2, [=] __device__(int64_t i) { found[i] = i == 0 ? 0 : ~Number{0}; });
  each(rows, [=] __device__(int64_t i) {
    if (targets[i] == ignore)
      atomicAdd(found, 1);
    else if (targets[i] < 0 || targets[i] >= classes)
      atomicMin(found + 1, static_cast<Number>(i));
  });
  Number got[2];
  fetch(found, 2, got);
  return {rows - static_cast<int64_t>(got[0]), got[1] == ~Number{0} ? -1 : static_cast<int64_t>(got[1])};
}

}  // namespace

extern const CrossEntropyF32 cross_entropy_f32 = {forward<float>, backward<float>, count_targets};
extern const CrossEntropyF64 cross_entropy_f64 = {forward<double>, backward<double>, count_targets};

}  // namespace linnet::cuda
