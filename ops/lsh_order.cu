#include "linnet/core/cuda_stream.h"
#include "linnet/core/general_cuda.h"
#include "linnet/core/sort.h"
#include "linnet/ops/lsh_order_cuda.h"

namespace linnet::cuda {
namespace {

constexpr int64_t kRows = int64_t{1} << 16;  // projected at a time
constexpr int64_t kCounted = 512;  // so few steps find their places by counting those before them, in one launch

template <class T>
void run_hashes(const Tensor& x, const RowLayout& rows, const AttentionSizes& n, const Tensor& rotations,
                int32_t* hashes) {
  const int64_t all = n.batch * n.queries * n.heads, rounds = rotations.size(1), half = rotations.size(2);
  const int64_t width = rounds * half, most = all < kRows ? all : kRows, heads = n.heads, time = n.queries, dim = n.dim;
  const T* const from = x.data<T>();
  Scratch<T> packed(most * dim), projected(most * width);
  T *const row = packed.data(), *const product = projected.data();
  for (int64_t first = 0; first < all; first += kRows) {
    const int64_t count = all - first < kRows ? all - first : kRows;
    each(count * dim, [=] __device__(int64_t i) {
      const int64_t at = first + i / dim, h = at % heads, t = at / heads % time, b = at / heads / time;
      row[i] = from[rows.offset + b * rows.batch + t * rows.row + h * rows.head + i % dim];
    });
    gemm<T>(false, false, count, width, dim, 1, row, dim > 0 ? dim : 1, rotations.data<T>(), width, 0, product, width);
    each(count * rounds, [=] __device__(int64_t i) {  // the first of the largest of [xR; -xR]
      const T* const xr = product + i * half;
      int64_t best = 0;
      T top = xr[0];
      for (int64_t c = 1; c < half; ++c)
        if (xr[c] > top) best = c, top = xr[c];
      for (int64_t c = 0; c < half; ++c)
        if (-xr[c] > top) best = half + c, top = -xr[c];
      hashes[first * rounds + i] = static_cast<int32_t>(best);
    });
  }
}

Tensor numbers(const Shape& shape) { return Tensor::empty(shape, Dtype::i32, Device::cuda); }

/// order = the places of `order` sorted by key(place), or of 0 .. n-1 where there is none yet.
template <class Key>
void sort_by(int64_t limit, Tensor& order, int64_t n, Key key) {
  Tensor keys = numbers({n}), sorted = numbers({n}), places = numbers({n});
  int32_t *const k = keys.mutable_data<int32_t>(), *const p = places.mutable_data<int32_t>();
  const int32_t* const before = order.defined() ? order.data<int32_t>() : nullptr;
  each(n, [=] __device__(int64_t i) { k[i] = key(before ? before[i] : static_cast<int32_t>(i)); });
  sort(n, limit, k, sorted.mutable_data<int32_t>(), p);
  if (before) each(n, [=] __device__(int64_t i) { p[i] = before[p[i]]; });
  order = places;
}

}  // namespace

void hash_rows(const Tensor& x, const RowLayout& rows, const AttentionSizes& n, const Tensor& rotations,
               Tensor& hashes) {
  with_float("lsh_attention", x.dtype(),
             [&]<class T>() { run_hashes<T>(x, rows, n, rotations, hashes.mutable_data<int32_t>()); });
}

LshOrder make_order(const lsh_attention_run::Call& call, const lsh_attention_run::Inputs& x) {
  const AttentionSizes& sizes = call.sizes;
  const int64_t heads = sizes.heads, rounds = call.rounds, time = sizes.keys, chunk = call.chunk;
  const Shape shape{sizes.batch, heads, rounds, time};
  const int64_t segments = sizes.batch * heads * rounds, n = segments * time;
  LINNET_CHECK(n < int64_t{1} << 31, "lsh_attention: ", n, " steps to sort are too many on cuda");
  LshOrder all{numbers(shape), numbers(shape), numbers(shape),
               Tensor::zeros({sizes.batch, heads, rounds}, Dtype::i32, Device::cuda)};
  const int32_t* const given = x.hashes.data<int32_t>();
  const uint8_t* const keys = x.keys.defined() ? x.keys.data<uint8_t>() : nullptr;
  int32_t *const hash = all.hashes.mutable_data<int32_t>(), *const step = all.steps.mutable_data<int32_t>(),
                 *const its_chunk = all.chunks.mutable_data<int32_t>(),
                 *const seen = all.visible.mutable_data<int32_t>();
  if (n == 0) return all;
  each(n, [=] __device__(int64_t i) {
    const int64_t t = i % time, r = i / time % rounds, h = i / time / rounds % heads, b = i / time / rounds / heads;
    hash[i] = given[((b * time + t) * heads + h) * rounds + r];
  });
  const int64_t of_sample = heads * rounds * time;
  const auto hidden = [=] __device__(int64_t i) { return keys && !keys[i / of_sample * time + i % time]; };
  Tensor order;
  if (time <= kCounted) {
    order = numbers({n});
    int32_t* const to = order.mutable_data<int32_t>();
    each(n, [=] __device__(int64_t i) {
      const int64_t first = i / time * time;
      const bool behind = hidden(i);
      int64_t place = first;
      for (int64_t j = first; j < first + time; ++j) {
        const bool other = hidden(j), equal = behind || hash[j] == hash[i];
        place += other != behind ? behind : equal ? j < i : hash[j] < hash[i];
      }
      to[place] = static_cast<int32_t>(i);
    });
  } else {
    // By the last key first, as each sort is stable: the halves of a hash, which may be any number, then the segments,
    // in which what is hidden comes last and in the order of time.
    const auto half = [=] __device__(int32_t i, int shift) {
      return hidden(i) ? 0 : ((hash[i] >> shift) + (shift > 0 ? 0x8000 : 0)) & 0xffff;
    };
    sort_by(int64_t{1} << 16, order, n, [=] __device__(int32_t i) { return half(i, 0); });
    sort_by(int64_t{1} << 16, order, n, [=] __device__(int32_t i) { return half(i, 16); });
    sort_by(2 * segments, order, n,
            [=] __device__(int32_t i) { return static_cast<int32_t>(2 * (i / time) + (hidden(i) ? 1 : 0)); });
  }
  const int32_t* const sorted = order.data<int32_t>();
  each(n, [=] __device__(int64_t i) {
    const int64_t segment = i / time, place = i % time, at = sorted[i];
    step[i] = static_cast<int32_t>(at % time);
    its_chunk[at] = static_cast<int32_t>(place / chunk);
    const bool counts = !hidden(at);
    if (counts && (place + 1 == time || hidden(sorted[i + 1]))) seen[segment] = static_cast<int32_t>(place + 1);
  });
  return all;
}

}  // namespace linnet::cuda
