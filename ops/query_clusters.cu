// The clusters of queries on a GPU: hashes by a product of matrices, then k-means, a block a head.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/ops/clustered_attention_slice_cuda.h"

namespace linnet::cuda {
namespace {

/// Of some heads, `first` the number of the first. Those marked * are room for what a block makes.
template <class T>
struct Clustering {
  int64_t first, heads, queries, clusters, bits, iterations;
  const uint8_t* mask;
  const T *projected, *thresholds;  // (heads here, queries, bits), (bits)
  int32_t* steps;                   // * (heads here, queries): those that the mask lets through
  uint64_t* hashes;                 // * of those
  uint64_t* centres;                // * (heads here, clusters)
  int32_t *members, *votes;         // * (heads here, clusters), (heads here, clusters, bits)
  int32_t* groups;                  // (batch, queries, heads)
};

/// The part of a block: a head.
template <class T>
struct ClusteringHead {
  const Clustering<T>& all;
  int64_t b, h, item;
  int32_t* steps;
  uint64_t *hashes, *centres;
  int32_t *members, *votes;

  __device__ ClusteringHead(const Clustering<T>& of, int64_t number)
      : all(of),
        b((of.first + number) / of.heads),
        h((of.first + number) % of.heads),
        item(number),
        steps(of.steps + number * of.queries),
        hashes(of.hashes + number * of.queries),
        centres(of.centres + number * of.clusters),
        members(of.members + number * of.clusters),
        votes(of.votes + number * of.clusters * of.bits) {}

  __device__ int32_t& group(int64_t i) const { return all.groups[(b * all.queries + steps[i]) * all.heads + h]; }

  /// The steps that count and their hashes; returns how many there are.
  __device__ int64_t read() const {
    int32_t count = 0;
    for (int64_t from = 0; from < all.queries; from += kThreads) {
      const int64_t t = from + threadIdx.x;
      const bool counts = t < all.queries && (!all.mask || all.mask[b * all.queries + t]);
      int32_t here;
      const int32_t place = count + sum_before<int32_t>(counts, &here);
      count += here;
      if (!counts) continue;
      const T* const x = all.projected + (item * all.queries + t) * all.bits;
      uint64_t hash = 0;
      for (int64_t bit = 0; bit < all.bits; ++bit) hash |= uint64_t{x[bit] > all.thresholds[bit]} << bit;
      steps[place] = static_cast<int32_t>(t);
      hashes[place] = hash;
    }
    return count;
  }

  /// Each hash to the first of its nearest centres. Whether any went to another than before.
  __device__ bool assign(int64_t n) const {
    bool moved = false;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      int nearest = 65;
      int32_t cluster = 0;
      for (int64_t c = 0; c < all.clusters; ++c) {
        const int distance = __popcll(hashes[i] ^ centres[c]);
        if (distance < nearest) nearest = distance, cluster = static_cast<int32_t>(c);
      }
      moved = moved || cluster != group(i);
      group(i) = cluster;
    }
    return __syncthreads_or(moved);
  }

  /// A bit of a centre is 1 where most of its members' are.
  __device__ void move_centres(int64_t n) const {
    for (int64_t i = threadIdx.x; i < all.clusters; i += kThreads) members[i] = 0;
    for (int64_t i = threadIdx.x; i < all.clusters * all.bits; i += kThreads) votes[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const int64_t c = group(i);
      atomicAdd(&members[c], 1);
      for (int64_t bit = 0; bit < all.bits; ++bit)
        if (hashes[i] >> bit & 1) atomicAdd(&votes[c * all.bits + bit], 1);
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < all.clusters; c += kThreads) {
      if (members[c] == 0) continue;
      uint64_t centre = 0;
      for (int64_t bit = 0; bit < all.bits; ++bit)
        centre |= uint64_t{int64_t{2} * votes[c * all.bits + bit] > members[c]} << bit;
      centres[c] = centre;
    }
    __syncthreads();
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) cluster_kernel(Clustering<T> all) {
  const ClusteringHead<T> head(all, blockIdx.x);
  const int64_t n = head.read();
  __syncthreads();
  if (n == 0) return;
  for (int64_t c = threadIdx.x; c < all.clusters; c += kThreads) head.centres[c] = head.hashes[c * n / all.clusters];
  __syncthreads();
  bool moved = true;
  head.assign(n);
  for (int64_t iteration = 1; iteration < all.iterations && moved; ++iteration) {
    head.move_centres(n);
    moved = head.assign(n);
  }
}

template <class T>
void run_clusters(const Tensor& q, const RowLayout& rows, const AttentionSizes& n, const QueryClusterOptions& options,
                  const Tensor& planes, const Tensor& queries, Tensor& groups) {
  const int64_t all = n.batch * n.heads, bits = options.bits, clusters = options.clusters, dim = n.dim;
  if (all == 0 || n.queries == 0) return;
  const int64_t most = heads_at_once(all, n.queries * (dim + bits) + clusters * (bits + 1)), count = most * n.queries;
  Scratch<T> packed(count * dim), projected(count * bits);
  Scratch<int32_t> steps(count), members(most * clusters), votes(most * clusters * bits);
  Scratch<uint64_t> hashes(count), centres(most * clusters);
  const CallRows<const T> from{q.data<T>(), rows};
  const uint8_t* const mask = mask_of(queries);
  T* const x = packed.data();
  const int64_t heads = n.heads, time = n.queries;
  for (int64_t first = 0; first < all; first += most) {
    const int64_t here = std::min(most, all - first);
    each(here * time * dim, [=] __device__(int64_t i) {
      const int64_t item = first + i / dim / time, t = i / dim % time, b = item / heads;
      x[i] = !mask || mask[b * time + t] ? from.of(b, item % heads).at(t)[i % dim] : T(0);
    });
    gemm<T>(false, false, here * time, bits, dim, 1, x, dim > 0 ? dim : 1, planes.data<T>(), bits, 0, projected.data(),
            bits);
    run(cluster_kernel<T>, static_cast<unsigned>(here), kThreads, 0,
        Clustering<T>{.first = first,
                      .heads = heads,
                      .queries = time,
                      .clusters = clusters,
                      .bits = bits,
                      .iterations = options.iterations,
                      .mask = mask,
                      .projected = projected.data(),
                      .thresholds = planes.data<T>() + dim * bits,
                      .steps = steps.data(),
                      .hashes = hashes.data(),
                      .centres = centres.data(),
                      .members = members.data(),
                      .votes = votes.data(),
                      .groups = groups.mutable_data<int32_t>()});
  }
}

}  // namespace

void find_query_clusters(const Tensor& q, const RowLayout& rows, const AttentionSizes& n,
                         const QueryClusterOptions& options, const Tensor& planes, const Tensor& queries,
                         Tensor& groups) {
  with_float("clustered_attention", q.dtype(),
             [&]<class T>() { run_clusters<T>(q, rows, n, options, planes, queries, groups); });
}

}  // namespace linnet::cuda
