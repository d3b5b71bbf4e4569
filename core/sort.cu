// A radix sort, eight bits at a time from the lowest on. Each pass: how often each digit stands in each tile; where
// each tile's begin; and every key to its place, after those of its digit that came before.
#include "linnet/core/sort.h"

#include <utility>

#include "linnet/core/warp.h"

namespace linnet::cuda {
namespace {

constexpr int kDigits = 256;  // as many as threads: each has one
static_assert(kDigits == kThreads);
constexpr int kWarps = kThreads / kWarp, kTurns = 8, kTile = kThreads * kTurns;

/// What a thread of a tile sorts at a turn: warps own runs of a tile, in order.
__device__ int64_t place_of(int64_t tile, int turn) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  return tile * kTile + (warp * kTurns + turn) * kWarp + lane;
}
__device__ int digit_of(int32_t key, int shift) { return key >> shift & (kDigits - 1); }

/// counts (digit, tile). A block a tile, as below.
__global__ void __launch_bounds__(kThreads)
    count_kernel(int64_t n, int64_t tiles, int shift, const int32_t* keys, int32_t* counts) {
  CUDA_SHARED(int, count, [kDigits]);
  const int digit = threadIdx.x;
  count[digit] = 0;
  __syncthreads();
  for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t i = place_of(blockIdx.x, turn);
    if (i < n) atomicAdd(&count[digit_of(keys[i], shift)], 1);
  }
  __syncthreads();
  counts[digit * tiles + blockIdx.x] = count[digit];
}

/// counts becomes what stands in the tiles before, for each digit; totals (digit) are over all of them. A block a
/// digit.
__global__ void __launch_bounds__(kThreads) tiles_kernel(int64_t tiles, int32_t* counts, int32_t* totals) {
  int32_t* const row = counts + blockIdx.x * tiles;
  int32_t before = 0;
  for (int64_t first = 0; first < tiles; first += blockDim.x) {
    const int64_t tile = first + threadIdx.x;
    const int32_t count = tile < tiles ? row[tile] : 0;
    int32_t all;
    const int32_t begin = before + sum_before(count, &all);
    if (tile < tiles) row[tile] = begin;
    before += all;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = before;
}

/// places_in is null before the first pass: then keys stand where they came in.
__global__ void __launch_bounds__(kThreads)
    scatter_kernel(int64_t n, int64_t tiles, int shift, const int32_t* counts, const int32_t* totals,
                   const int32_t* keys_in, const int32_t* places_in, int32_t* keys_out, int32_t* places_out) {
  CUDA_SHARED(int, count, [kWarps][kDigits]);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, digit = threadIdx.x;
  int32_t unused;
  const int32_t begin = sum_before(totals[digit], &unused);
  for (int w = 0; w < kWarps; ++w) count[w][digit] = 0;
  __syncthreads();
  int32_t key[kTurns], rank[kTurns];  // rank: how many of its digit come before it in its warp's run
  UNROLL for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t i = place_of(blockIdx.x, turn);
    key[turn] = i < n ? keys_in[i] : 0;
    unsigned same = __ballot_sync(kWholeWarp, i < n);
    const int d = digit_of(key[turn], shift);
    for (int bits = kDigits - 1, bit = 0; bits > 0; bits >>= 1, ++bit) {
      const unsigned set = __ballot_sync(kWholeWarp, d >> bit & 1);
      same &= d >> bit & 1 ? set : ~set;
    }
    const unsigned before = same & ((1u << lane) - 1);
    rank[turn] = count[warp][d] + __popc(before);
    __syncwarp();
    if (i < n && before == 0) count[warp][d] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  int32_t at = begin + counts[digit * tiles + blockIdx.x];
  for (int w = 0; w < kWarps; ++w) {
    const int32_t here = count[w][digit];
    count[w][digit] = at;
    at += here;
  }
  __syncthreads();
  UNROLL for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t i = place_of(blockIdx.x, turn);
    if (i >= n) continue;
    const int32_t to = count[warp][digit_of(key[turn], shift)] + rank[turn];
    keys_out[to] = key[turn];
    places_out[to] = places_in ? places_in[i] : static_cast<int32_t>(i);
  }
}

}  // namespace

void sort(int64_t n, int64_t limit, const int32_t* keys, int32_t* sorted, int32_t* places) {
  LINNET_CHECK(n < int64_t{1} << 31, "sort: ", n, " keys given, fewer than 2^31 wanted");
  if (n == 0) return;
  int passes = 1;
  for (int64_t rest = (limit - 1) / kDigits; rest > 0; rest /= kDigits) ++passes;
  const int64_t tiles = (n + kTile - 1) / kTile;
  Scratch<int32_t> counts(kDigits * tiles), totals(kDigits), others(2 * n);
  // The last pass ends in sorted and places; those before go there and back.
  int32_t *to_keys = sorted, *to_places = places, *other_keys = others.data(), *other_places = other_keys + n;
  if (passes % 2 == 0) std::swap(to_keys, other_keys), std::swap(to_places, other_places);
  const int32_t *from = keys, *from_places = nullptr;
  for (int pass = 0; pass < passes; ++pass) {
    run(count_kernel, static_cast<unsigned>(tiles), kThreads, 0, n, tiles, 8 * pass, from, counts.data());
    run(tiles_kernel, kDigits, threads_for(tiles), 0, tiles, counts.data(), totals.data());
    run(scatter_kernel, static_cast<unsigned>(tiles), kThreads, 0, n, tiles, 8 * pass, counts.data(), totals.data(),
        from, from_places, to_keys, to_places);
    from = to_keys, from_places = to_places;
    std::swap(to_keys, other_keys), std::swap(to_places, other_places);
  }
}

}  // namespace linnet::cuda
