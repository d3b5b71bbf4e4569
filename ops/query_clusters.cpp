#include <bit>
#include <limits>

#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"
#include "linnet/ops/clustered_attention_cuda.h"
#include "linnet/ops/packed_rows.h"
#include "linnet/ops/softmax_attention_tile.h"

namespace linnet {
namespace clustered_attention_run {
namespace {

using softmax_attention_run::allowed_steps;
using softmax_attention_run::Steps;

/// k-means with the Hamming distance: the cluster of each hash.
std::vector<int32_t> cluster_hashes(const std::vector<uint64_t>& hashes, const QueryClusterOptions& options) {
  const size_t n = hashes.size(), clusters = static_cast<size_t>(options.clusters);
  std::vector<int32_t> groups(n);
  if (n == 0) return groups;
  std::vector<uint64_t> centres(clusters);
  for (size_t c = 0; c < clusters; ++c) centres[c] = hashes[c * n / clusters];
  const auto assign = [&] {  // whether any hash changed its cluster
    bool moved = false;
    for (size_t i = 0; i < n; ++i) {
      const int32_t before = groups[i];
      int nearest = std::numeric_limits<int>::max();
      for (size_t c = 0; c < clusters; ++c) {
        const int distance = std::popcount(hashes[i] ^ centres[c]);
        if (distance >= nearest) continue;
        nearest = distance;
        groups[i] = static_cast<int32_t>(c);
      }
      moved |= groups[i] != before;
    }
    return moved;
  };
  const size_t bits = static_cast<size_t>(options.bits);
  std::vector<int64_t> members(clusters), votes(clusters * bits);
  bool moved = true;
  assign();
  for (int64_t iteration = 1; iteration < options.iterations && moved; ++iteration) {
    std::fill(members.begin(), members.end(), 0);
    std::fill(votes.begin(), votes.end(), 0);
    for (size_t i = 0; i < n; ++i) {
      const size_t c = static_cast<size_t>(groups[i]);
      ++members[c];
      for (size_t b = 0; b < bits; ++b) votes[c * bits + b] += hashes[i] >> b & 1;
    }
    for (size_t c = 0; c < clusters; ++c) {
      if (members[c] == 0) continue;
      centres[c] = 0;
      for (size_t b = 0; b < bits; ++b) centres[c] |= uint64_t{2 * votes[c * bits + b] > members[c]} << b;
    }
    moved = assign();
  }
  return groups;
}

template <class T>
void run_clusters(const T* q, const RowLayout& rows, const AttentionSizes& n, const QueryClusterOptions& options,
                  const Tensor& planes, const Tensor& queries, int32_t* groups) {
  const T *r_all = planes.data<T>(), *thresholds = r_all + n.dim * options.bits;
  const GeneralKernels<T>& general = general_kernels<T>(planes.device());
  const double cost = static_cast<double>(n.queries) * (static_cast<double>(options.bits * n.dim) / 20 +
                                                        static_cast<double>(options.iterations * options.clusters));
  parallel_for(n.batch * n.heads, cost, [&](int64_t begin, int64_t end) {
    PackedRows<T> packed(n.dim);
    std::vector<T> projected;
    std::vector<uint64_t> hashes;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / n.heads, h = item % n.heads;
      const Steps steps = allowed_steps(queries, b, n.queries);
      packed.gather(q + rows.at(b, h), rows.row, steps);
      projected.resize(steps.size() * static_cast<size_t>(options.bits));
      general.gemm(false, false, std::ssize(steps), options.bits, n.dim, 1, packed.row(0), std::max<int64_t>(n.dim, 1),
                   r_all, options.bits, 0, projected.data(), options.bits);
      hashes.assign(steps.size(), 0);
      for (size_t i = 0; i < steps.size(); ++i)
        for (int64_t bit = 0; bit < options.bits; ++bit) {
          const T x = projected[i * static_cast<size_t>(options.bits) + static_cast<size_t>(bit)];
          hashes[i] |= uint64_t{x > thresholds[bit]} << bit;
        }
      const std::vector<int32_t> found = cluster_hashes(hashes, options);
      for (size_t i = 0; i < steps.size(); ++i) groups[(b * n.queries + steps[i]) * n.heads + h] = found[i];
    }
  });
}

}  // namespace

void check_sizes(const char* op, const QueryClusterOptions& options) {
  LINNET_CHECK(options.clusters >= 1 && options.clusters <= std::numeric_limits<int32_t>::max(), op, ": ",
               options.clusters, " clusters given, 1 or more wanted");
  LINNET_CHECK(options.bits >= 1 && options.bits <= 63, op, ": ", options.bits, " bits given, 1 to 63 wanted");
  LINNET_CHECK(options.iterations >= 1, op, ": ", options.iterations, " iterations given, 1 or more wanted");
}

Tensor draw_planes(int64_t bits, const Tensor& q, Generator& generator) {
  return generator.normal({q.size(-1) + 1, bits}, 0, 1, q.dtype(), q.device());
}

Tensor find_clusters(const Tensor& q, const RowLayout& rows, const AttentionSizes& n,
                     const QueryClusterOptions& options, const Tensor& planes, const Tensor& queries) {
  Tensor groups = Tensor::zeros({n.batch, n.queries, n.heads}, Dtype::i32, q.device());
  if (q.device() == Device::cuda) {
    clustered_attention_calls.of(Device::cuda).find_clusters(q, rows, n, options, planes, queries, groups);
    return groups;
  }
  with_float("clustered_attention", q.dtype(), [&]<class T>() {
    run_clusters<T>(q.data<T>(), rows, n, options, planes, queries, groups.mutable_data<int32_t>());
  });
  return groups;
}

Members::Members(const Call& call, const Inputs& x, int64_t b, int64_t h)
    : begin(static_cast<size_t>(call.clusters + 1)) {
  const AttentionSizes& n = call.sizes;
  const int32_t* const groups = x.groups.data<int32_t>();
  const auto cluster = [&](int32_t t) { return static_cast<size_t>(groups[(b * n.queries + t) * n.heads + h]); };
  steps = allowed_steps(x.queries, b, n.queries);
  std::stable_sort(steps.begin(), steps.end(), [&](int32_t s, int32_t t) { return cluster(s) < cluster(t); });
  for (const int32_t t : steps) ++begin[cluster(t) + 1];
  for (int64_t c = 0; c < call.clusters; ++c) {
    if (begin[size_t(c + 1)] > 0) nonempty.push_back(c);
    begin[size_t(c + 1)] += begin[size_t(c)];
  }
}

}  // namespace clustered_attention_run

Tensor query_clusters(const Tensor& q, const QueryClusterOptions& options, Generator& generator,
                      const QueryMask* queries) {
  const char* op = "query_clusters";
  check_defined(op, q);
  LINNET_CHECK(q.rank() == 4, op, ": q ", q.shape(), " is not (batch, time, heads, dim)");
  if (!is_float(q.dtype())) fail_not_float(op, q.dtype());
  clustered_attention_run::check_sizes(op, options);
  const AttentionSizes n{q.size(0), q.size(1), q.size(1), q.size(2), q.size(3), q.size(3)};
  const Tensor mask = queries ? queries->steps(op, "query", n.batch, n.queries, q.device()) : Tensor();
  return clustered_attention_run::find_clusters(q, rows_of(q.shape()), n, options,
                                                clustered_attention_run::draw_planes(options.bits, q, generator), mask);
}

}  // namespace linnet
