// Softmax attention one step at a time, over a cache of keys and values.
#include <algorithm>

#include "linnet/autograd/record.h"
#include "linnet/core/cuda_device.h"
#include "linnet/core/threads.h"
#include "linnet/ops/attention_step_kernels.h"
#include "linnet/ops/softmax_attention.h"
#include "linnet/ops/softmax_attention_cuda.h"

namespace linnet {

using namespace softmax_attention_run;

namespace {

constexpr FloatInstances<AttentionStepKernels> step_kernels = LINNET_CPU_FLOAT_INSTANCES(attention_step);

/// Copies rows of `bytes` bytes that lie a step apart.
void copy_rows(Device device, void* to, int64_t to_step, const void* from, int64_t from_step, int64_t rows,
               int64_t bytes) {
  if (device == Device::cuda) return cuda_device().copy_rows(to, to_step, from, from_step, rows, bytes);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(static_cast<const char*>(from) + i * from_step, bytes, static_cast<char*>(to) + i * to_step);
}

/// Room for one more step in one side of the cache, unless it has `most`; its memory belongs to this cache alone
/// afterwards.
void make_room(Tensor& side, const Shape& row, int64_t length, int64_t most, const Tensor& like) {
  const int64_t capacity = side.defined() ? side.size(1) : 0;
  const bool fits = length < capacity || length == most;
  if (fits && side.owners() == 1) return;
  const int64_t wanted = fits ? capacity : std::min(most, std::max<int64_t>(16, 2 * capacity));
  Tensor larger = Tensor::zeros({row[0], wanted, row[1], row[2]}, like.dtype(), like.device());
  if (length > 0) {
    const int64_t width = row[1] * row[2] * size_of(like.dtype());
    copy_rows(side.device(), larger.mutable_raw(), wanted * width, side.raw(), capacity * width, row[0],
              length * width);
  }
  side = larger;
}

void check_cache(const char* op, const char* name, const Tensor& side, const Shape& row, int64_t length,
                 const Tensor& like) {
  if (!side.defined()) {
    LINNET_CHECK(length == 0, op, ": the cache has length ", length, " but no ", name);
    return;
  }
  LINNET_CHECK(side.rank() == 4 && side.shape().without(1) == row, op, ": cache ", name, " ", side.shape(),
               " is not (batch, capacity, heads, dim) for a step ", row);
  LINNET_CHECK(length >= 0 && length <= side.size(1), op, ": the cache has length ", length, " but room for ",
               side.size(1));
  check_same_dtype(op, like, side);
  check_same_device(op, like, side);
}

/// Writes a step's rows, x (batch, ..) from `layout`, as step `slot` of a side of the cache.
void write_step(Tensor& side, const Tensor& x, const RowLayout& layout, int64_t slot) {
  const RowLayout to = rows_of(side.shape());  // in both, heads run on
  const int64_t size = size_of(x.dtype());
  copy_rows(side.device(), static_cast<char*>(side.mutable_raw()) + slot * to.row * size, to.batch * size,
            static_cast<const char*>(x.raw()) + layout.offset * size, layout.batch * size, side.size(0), to.row * size);
}

template <class T>
void run_step(const Call& call, const Inputs& x, const KeyValueCache& cache, Tensor& out) {
  const AttentionSizes& n = call.sizes;
  if (out.device() == Device::cuda)
    return softmax_attention_calls.of(Device::cuda).step(call, x, cache.k, cache.v, out);
  const auto kernel = step_kernels.of<T>(out.device()).softmax;
  const RowLayout k = rows_of(cache.k.shape()), v = rows_of(cache.v.shape());
  T* const o = out.mutable_data<T>();
  parallel_for(n.batch * n.heads, 20 + call.nanoseconds(2), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      kernel({.keys = n.keys,
              .dim = n.dim,
              .value_dim = n.value_dim,
              .q = x.q.data<T>() + call.q.at(b, h),
              .k = cache.k.data<T>() + k.at(b, h),
              .v = cache.v.data<T>() + v.at(b, h),
              .k_row = k.row,
              .v_row = v.row,
              .query = !x.queries.defined() || x.queries.data<uint8_t>()[b],
              .key_mask = x.keys.defined() ? x.keys.data<uint8_t>() + b * n.keys : nullptr,
              .scale = static_cast<T>(call.scale),
              .o = o + i * n.value_dim});
    }
  });
}

/// x holds one step; call's layouts say where.
void run(const char* op, Call call, Inputs x, KeyValueCache& cache, int64_t& oldest, int64_t most, Tensor& out,
         const SoftmaxAttentionOptions& options) {
  LINNET_CHECK(!recording(), op, ": changes its cache in place, which a tape cannot replay; use Tape::Pause");
  LINNET_CHECK(!options.pairs, op, ": takes key and query masks, not a pair mask");
  const AttentionSizes& one = call.sizes;
  const Shape k_row{one.batch, one.heads, one.dim}, v_row{one.batch, one.heads, one.value_dim};
  check_cache(op, "k", cache.k, k_row, cache.length, x.q);
  check_cache(op, "v", cache.v, v_row, cache.length, x.q);
  make_step_out(op, one, out, x.q);
  const bool full = cache.length == most;
  const int64_t slot = full ? oldest : cache.length;
  call.sizes.keys = full ? most : cache.length + 1;
  read_masks(op, options, call.sizes, x);
  make_room(cache.k, k_row, cache.length, most, x.q);
  make_room(cache.v, v_row, cache.length, most, x.q);
  Tensor rows = room_for_rows(out, call.out_shape(), {&x.q, &x.k, &x.v});
  write_step(cache.k, x.k, call.k, slot);
  write_step(cache.v, x.v, call.v, slot);
  with_float(op, x.q.dtype(), [&]<class T>() { run_step<T>(call, x, cache, rows); });
  if (!rows.shares_storage(out)) out.copy_from(rows.reshape(out.shape()));
  cache.length = call.sizes.keys;
  if (full) oldest = (oldest + 1) % most;
}

constexpr Band kPast = {kAnywhere, kAnywhere};  // all that a cache holds

}  // namespace

namespace softmax_attention_run {

void step(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, KeyValueCache& cache, int64_t& oldest,
          int64_t most, Tensor& out, const SoftmaxAttentionOptions& options) {
  check_defined(op, q, k, v);
  Call call = make_call(check_attention_step(op, q, k, v), checked(op, options), kPast);
  const AttentionSizes& n = call.sizes;
  call.q = call.k = rows_of({n.batch, 1, n.heads, n.dim});
  call.v = rows_of({n.batch, 1, n.heads, n.value_dim});
  run(op, call, {q, k, v, {}, {}, {}}, cache, oldest, most, out, options);
}

void step_qkv(const char* op, const Tensor& qkv, KeyValueCache& cache, int64_t& oldest, int64_t most, Tensor& out,
              const SoftmaxAttentionOptions& options) {
  check_defined(op, qkv);
  const Shape& shape = qkv.shape();
  LINNET_CHECK(shape.rank() == 4 && shape[1] == 3, op, ": qkv ", shape, " is not (batch, 3, heads, dim)");
  const Tensor all = qkv.reshape(Shape{shape[0], 1, 3, shape[2], shape[3]});
  Call call = make_call(check_fused_attention(op, all), checked(op, options), kPast);
  call.q = rows_of_part(all.shape(), 0);
  call.k = rows_of_part(all.shape(), 1);
  call.v = rows_of_part(all.shape(), 2);
  run(op, call, {all, all, all, {}, {}, {}}, cache, oldest, most, out, options);
}

}  // namespace softmax_attention_run

void softmax_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, KeyValueCache& cache, Tensor& out,
                            const SoftmaxAttentionOptions& options) {
  int64_t oldest = 0;
  step("softmax_attention_step", q, k, v, cache, oldest, kAnywhere, out, options);
}

void softmax_attention_step_qkv(const Tensor& qkv, KeyValueCache& cache, Tensor& out,
                                const SoftmaxAttentionOptions& options) {
  int64_t oldest = 0;
  step_qkv("softmax_attention_step_qkv", qkv, cache, oldest, kAnywhere, out, options);
}

void softmax_attention_query(const Tensor& q, const KeyValueCache& cache, Tensor& out,
                             const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention_query";
  check_defined(op, q, cache.k, cache.v);
  LINNET_CHECK(!recording(), op, ": is not recorded, and a gradient would be lost; use softmax_attention while a tape ",
               "records, or Tape::Pause");
  LINNET_CHECK(!options.pairs, op, ": takes key and query masks, not a pair mask");
  AttentionSizes sizes = check_attention_step(op, q, q, q);
  LINNET_CHECK(cache.v.rank() == 4, op, ": cache v ", cache.v.shape(), " is not (batch, capacity, heads, M)");
  sizes.keys = cache.length;
  sizes.value_dim = cache.v.size(3);
  check_cache(op, "k", cache.k, {sizes.batch, sizes.heads, sizes.dim}, cache.length, q);
  check_cache(op, "v", cache.v, {sizes.batch, sizes.heads, sizes.value_dim}, cache.length, q);
  Call call = make_call(sizes, checked(op, options), kPast);
  call.q = rows_of({sizes.batch, 1, sizes.heads, sizes.dim});
  make_step_out(op, sizes, out, q);
  Inputs x{q, {}, {}, {}, {}, {}};
  read_masks(op, options, sizes, x);
  Tensor rows = room_for_rows(out, call.out_shape(), {&q, &cache.k, &cache.v});
  with_float(op, q.dtype(), [&]<class T>() { run_step<T>(call, x, cache, rows); });
  if (!rows.shares_storage(out)) out.copy_from(rows.reshape(out.shape()));
}

}  // namespace linnet
