#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"
#include "linnet/ops/lsh_attention_cuda.h"

namespace linnet {
namespace lsh_attention_run {
namespace {

constexpr int64_t kRows = 64;  // rows projected at a time

template <class T>
void run_hashes(const T* x, const RowLayout& rows, const AttentionSizes& n, int64_t half, int64_t rounds,
                const Tensor& rotations, int32_t* hashes) {
  const int64_t width = rounds * half;
  const T* r_all = rotations.data<T>();
  const GeneralKernels<T>& general = general_kernels<T>(rotations.device());
  const double cost = static_cast<double>(n.queries * width) * (1 + static_cast<double>(n.dim) / 20);
  parallel_for(n.batch * n.heads, cost, [&](int64_t begin, int64_t end) {
    std::vector<T> projected(static_cast<size_t>(kRows * width));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      for (int64_t first = 0; first < n.queries; first += kRows) {
        const int64_t count = std::min(kRows, n.queries - first);
        general.gemm(false, false, count, width, n.dim, 1, x + rows.at(b, h) + first * rows.row,
                     std::max<int64_t>(rows.row, 1), r_all, width, 0, projected.data(), width);
        for (int64_t t = 0; t < count; ++t)
          for (int64_t r = 0; r < rounds; ++r) {
            const T* xr = projected.data() + t * width + r * half;
            const auto [low, high] = std::minmax_element(xr, xr + half);
            // minmax_element gives the last of the largest; the first of equals is wanted, of [xR; -xR].
            const T* top = std::find(xr, xr + half, *high);
            const int64_t bucket = *high >= -*low ? top - xr : half + (low - xr);
            hashes[((b * n.queries + first + t) * n.heads + h) * rounds + r] = static_cast<int32_t>(bucket);
          }
      }
    }
  });
}

}  // namespace

Tensor draw_rotations(int64_t buckets, int64_t rounds, const Tensor& x, Generator& generator) {
  return generator.normal({x.size(-1), rounds, buckets / 2}, 0, 1, x.dtype(), x.device());
}

Tensor hash_rows(const Tensor& x, const RowLayout& rows, const AttentionSizes& n, const Tensor& rotations) {
  const int64_t rounds = rotations.size(1), half = rotations.size(2);
  Tensor hashes = Tensor::zeros({n.batch, n.queries, n.heads, rounds}, Dtype::i32, x.device());
  if (x.device() == Device::cuda) {
    lsh_attention_calls.of(Device::cuda).hash_rows(x, rows, n, rotations, hashes);
    return hashes;
  }
  with_float("lsh_attention", x.dtype(), [&]<class T>() {
    run_hashes<T>(x.data<T>(), rows, n, half, rounds, rotations, hashes.mutable_data<int32_t>());
  });
  return hashes;
}

Order::Order(const Call& call, const Inputs& x, int64_t b, int64_t h)
    : time_(call.sizes.queries),
      rounds_(call.rounds),
      causal_(call.causal),
      self_(call.self),
      own_bucket_(call.own_bucket),
      divide_(call.joint && call.rounds > 1),
      keys_(x.keys.defined() ? x.keys.data<uint8_t>() + b * time_ : nullptr),
      queries_(x.queries.defined() ? x.queries.data<uint8_t>() + b * time_ : nullptr),
      hashes_(static_cast<size_t>(rounds_ * time_)),
      steps_(hashes_.size()),
      chunks_(hashes_.size()) {
  for (int64_t count = 0; count <= rounds_; ++count) logs_.push_back(std::log(static_cast<double>(count)));
  const int32_t* given = x.hashes.data<int32_t>();
  for (int64_t r = 0; r < rounds_; ++r) {
    int32_t *hash = hashes_.data() + r * time_, *chunk = chunks_.data() + r * time_, *first = steps_.data() + r * time_;
    for (int64_t t = 0; t < time_; ++t) hash[t] = given[((b * time_ + t) * call.sizes.heads + h) * rounds_ + r];
    std::iota(first, first + time_, 0);
    int32_t* const hidden = std::stable_partition(first, first + time_, [&](int32_t t) { return key(t); });
    std::stable_sort(first, hidden, [&](int32_t s, int32_t t) { return hash[s] < hash[t]; });
    visible_ = hidden - first;
    for (int64_t place = 0; place < time_; ++place) chunk[first[place]] = static_cast<int32_t>(place / call.chunk);
  }
}

/// N_ij, of a visible j that causality allows.
int64_t Order::rounds_with(int64_t i, int64_t j) const {
  int64_t count = 0;
  for (int64_t r = 0; r < rounds_; ++r) {
    const int32_t back = chunks_[static_cast<size_t>(r * time_ + i)] - chunks_[static_cast<size_t>(r * time_ + j)];
    count += (back == 0 || back == 1) && bucket_allows(r, i, j);
  }
  return count;
}

template <class T>
void Order::mask(int64_t round, int64_t i, int64_t begin, int64_t end, T* s) const {
  const std::span<const int32_t> sorted = steps(round);
  for (int64_t place = begin; place < end; ++place, ++s) {
    const int64_t j = sorted[static_cast<size_t>(place)];
    if ((j == i && !self_) || (causal_ && j > i) || !bucket_allows(round, i, j))
      *s = -std::numeric_limits<T>::infinity();
    else if (divide_)
      *s -= static_cast<T>(logs_[static_cast<size_t>(rounds_with(i, j))]);
  }
}

template void Order::mask(int64_t, int64_t, int64_t, int64_t, float*) const;
template void Order::mask(int64_t, int64_t, int64_t, int64_t, double*) const;

}  // namespace lsh_attention_run

Tensor lsh_hashes(const Tensor& x, int64_t buckets, int64_t rounds, Generator& generator) {
  const char* op = "lsh_hashes";
  check_defined(op, x);
  LINNET_CHECK(x.rank() == 4, op, ": x ", x.shape(), " is not (batch, time, heads, dim)");
  if (!is_float(x.dtype())) fail_not_float(op, x.dtype());
  lsh_attention_run::check_buckets(op, buckets, rounds);
  const AttentionSizes n{x.size(0), x.size(1), x.size(1), x.size(2), x.size(3), x.size(3)};
  return lsh_attention_run::hash_rows(x, rows_of(x.shape()), n,
                                      lsh_attention_run::draw_rotations(buckets, rounds, x, generator));
}

}  // namespace linnet
