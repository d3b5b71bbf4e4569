#include "linnet/ops/softmax_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linnet/autograd/record.h"
#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"
#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/softmax_attention_kernels.h"

namespace linnet {
namespace {

constexpr Instances<SoftmaxAttentionF32> kernels_f32 = LINNET_INSTANCES(softmax_attention_f32);
constexpr Instances<SoftmaxAttentionF64> kernels_f64 = LINNET_INSTANCES(softmax_attention_f64);

template <class T>
const SoftmaxAttentionKernels<T>& kernels(Device device) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels_f32.of(device);
  } else {
    return kernels_f64.of(device);
  }
}

constexpr int64_t kTile = 64;  // queries and keys of one tile of scores

/// All of one call but its tensors.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  bool causal;
  double scale;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  double nanoseconds(double products) const {
    const double scores = static_cast<double>(sizes.queries) * static_cast<double>(sizes.keys) * (causal ? 0.5 : 1);
    return scores * (1 + products * static_cast<double>(sizes.dim + sizes.value_dim) / 40);
  }
};

/// The tensors of one call; in the fused form q, k and v are the same one. Masks are undefined where there is none.
struct Inputs {
  Tensor q, k, v;
  Tensor keys, queries, pairs;
};

using Steps = std::vector<int32_t>;

/// The steps of sample b that a mask (batch, time) lets through.
Steps allowed_steps(const Tensor& mask, int64_t b, int64_t time) {
  const uint8_t* row = mask.defined() ? mask.data<uint8_t>() + b * time : nullptr;
  Steps steps;
  steps.reserve(static_cast<size_t>(time));
  for (int64_t t = 0; t < time; ++t) {
    if (!row || row[t]) steps.push_back(static_cast<int32_t>(t));
  }
  return steps;
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

  explicit Work(Device device)
      : kernel(kernels<T>(device)),
        general(general_kernels<T>(device)),
        scores(kTile * kTile),
        gradients(kTile * kTile) {}

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

template <class T>
ScoreTile score_tile(const Call& call, const Inputs& x, const Tile<T>& q, const Tile<T>& k) {
  return {q.rows,         k.rows, q.at, k.at, call.causal, x.pairs.defined() ? x.pairs.data<uint8_t>() : nullptr,
          call.sizes.keys};
}

/// Writes out and lse (batch, queries, heads), the log of each row's sum of exponentials; -infinity where no key is
/// allowed.
template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Tensor& lse) {
  const AttentionSizes n = call.sizes;
  const RowLayout o = rows_of(call.out_shape());
  const T *q_all = x.q.data<T>(), *k_all = x.k.data<T>(), *v_all = x.v.data<T>();
  T* const o_all = out.mutable_data<T>();
  T* const lse_all = lse.mutable_data<T>();
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  std::fill_n(lse_all, lse.numel(), kNone);
  std::fill_n(o_all, out.numel(), T(0));
  parallel_for(n.batch * n.heads, call.nanoseconds(1), [&](int64_t begin, int64_t end) {
    Work<T> work(out.device());
    Tile<T> q(n.dim), k(n.dim), v(n.value_dim), sum(n.value_dim);
    Steps queries, keys;
    T max[kTile], total[kTile];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      if (i == begin || h == 0) {
        queries = allowed_steps(x.queries, b, n.queries);
        keys = allowed_steps(x.keys, b, n.keys);
      }
      for (int64_t row = 0; row < std::ssize(queries); row += kTile) {
        q.gather(q_all + call.q.at(b, h), call.q.row, queries, row, static_cast<T>(call.scale));
        sum.clear(queries, row);
        std::fill_n(max, kTile, kNone);
        std::fill_n(total, kTile, T(0));
        for (int64_t column = 0; column < std::ssize(keys); column += kTile) {
          if (call.causal && keys[static_cast<size_t>(column)] > q.at[q.rows - 1]) break;
          k.gather(k_all + call.k.at(b, h), call.k.row, keys, column);
          v.gather(v_all + call.v.at(b, h), call.v.row, keys, column);
          work.score(q, k, work.scores);
          work.kernel.forward(score_tile(call, x, q, k), work.scores.data(), max, total, sum.data(), n.value_dim);
          work.add_product(false, work.scores, k.rows, v, sum);
        }
        for (int64_t r = 0; r < q.rows; ++r) {
          if (total[r] == 0) continue;  // no key: out stays 0
          T* to = o_all + o.at(b, h) + q.at[r] * o.row;
          for (int64_t m = 0; m < n.value_dim; ++m) to[m] = sum.row(r)[m] / total[r];
          lse_all[(b * n.queries + q.at[r]) * n.heads + h] = max[r] + std::log(total[r]);
        }
      }
    }
  });
}

/// Adds to the zeroed dq, dk and dv (in the fused form one tensor, thrice). With s = scale q k^T, p = exp(s - lse),
/// dp = g v^T and delta = g . o:   ds = p (dp - delta),   dq = scale ds k,   dk = scale ds^T q,   dv = p^T g.
template <class T>
void run_backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
                  Tensor dk, Tensor dv) {
  const AttentionSizes n = call.sizes;
  const RowLayout o = rows_of(call.out_shape());
  const T *q_all = x.q.data<T>(), *k_all = x.k.data<T>(), *v_all = x.v.data<T>();
  const T *o_all = out.data<T>(), *g_all = dy.data<T>(), *lse_all = lse.data<T>();
  T *dq_all = dq.mutable_data<T>(), *dk_all = dk.mutable_data<T>(), *dv_all = dv.mutable_data<T>();
  const T scale = static_cast<T>(call.scale);
  parallel_for(n.batch * n.heads, call.nanoseconds(2.5), [&](int64_t begin, int64_t end) {
    Work<T> work(out.device());
    Tile<T> q(n.dim), k(n.dim), v(n.value_dim), g(n.value_dim), gq(n.dim), gk(n.dim), gv(n.value_dim);
    std::vector<T> top(static_cast<size_t>(n.queries)), delta(static_cast<size_t>(n.queries));
    Steps queries, keys;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      const T *o_rows = o_all + o.at(b, h), *g_rows = g_all + o.at(b, h);
      queries.clear();
      for (int32_t t : allowed_steps(x.queries, b, n.queries)) {
        const T row_lse = lse_all[(b * n.queries + t) * n.heads + h];
        if (row_lse == -std::numeric_limits<T>::infinity()) continue;  // no allowed key, no gradient
        T dot = 0;
        for (int64_t m = 0; m < n.value_dim; ++m) dot += g_rows[t * o.row + m] * o_rows[t * o.row + m];
        top[queries.size()] = row_lse;
        delta[queries.size()] = dot;
        queries.push_back(t);
      }
      if (i == begin || h == 0) keys = allowed_steps(x.keys, b, n.keys);
      for (int64_t column = 0; column < std::ssize(keys); column += kTile) {
        k.gather(k_all + call.k.at(b, h), call.k.row, keys, column);
        v.gather(v_all + call.v.at(b, h), call.v.row, keys, column);
        gk.clear(keys, column);
        gv.clear(keys, column);
        for (int64_t row = 0; row < std::ssize(queries); row += kTile) {
          const int64_t last = std::min<int64_t>(row + kTile, std::ssize(queries)) - 1;
          if (call.causal && queries[static_cast<size_t>(last)] < k.at[0]) continue;
          q.gather(q_all + call.q.at(b, h), call.q.row, queries, row, scale);
          g.gather(g_rows, o.row, queries, row);
          gq.clear(queries, row);
          work.score(q, k, work.scores);
          work.score(g, v, work.gradients);
          work.kernel.backward(score_tile(call, x, q, k), work.scores.data(), work.gradients.data(), top.data() + row,
                               delta.data() + row);
          work.add_product(true, work.scores, k.rows, g, gv);
          work.add_product(true, work.gradients, k.rows, q, gk);  // q holds the scale already
          work.add_product(false, work.gradients, k.rows, k, gq);
          for (T& value : gq.values) value *= scale;
          gq.add_to(dq_all + call.q.at(b, h), call.q.row);
        }
        gk.add_to(dk_all + call.k.at(b, h), call.k.row);
        gv.add_to(dv_all + call.v.at(b, h), call.v.row);
      }
    }
  });
}

std::pair<Tensor, Tensor> forward(const char* op, const Call& call, const Inputs& x) {
  Tensor out = Tensor::empty(call.out_shape(), x.q.dtype(), x.q.device());
  Tensor lse = Tensor::empty({call.sizes.batch, call.sizes.queries, call.sizes.heads}, x.q.dtype(), x.q.device());
  with_float(op, x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, lse); });
  return {out, lse};
}

void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy,
              const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  with_float("softmax_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, out, lse, dy, dq, dk, dv); });
}

Call make_call(const AttentionSizes& sizes, const SoftmaxAttentionOptions& options) {
  const double usual = sizes.dim > 0 ? 1 / std::sqrt(static_cast<double>(sizes.dim)) : 1;
  return {.sizes = sizes, .q = {}, .k = {}, .v = {}, .causal = options.causal, .scale = options.scale.value_or(usual)};
}

void read_masks(const char* op, const SoftmaxAttentionOptions& options, const AttentionSizes& n, Inputs& x) {
  const Device device = x.q.device();
  if (options.keys) x.keys = options.keys->steps(op, "key", n.batch, n.keys, device);
  if (options.queries) x.queries = options.queries->steps(op, "query", n.batch, n.queries, device);
  if (options.pairs) x.pairs = options.pairs->pairs(op, n.queries, n.keys, device);
}

/// Room for one more step in one side of the cache; its memory belongs to this cache alone afterwards.
void make_room(Tensor& side, const Shape& row, int64_t length, const Tensor& like) {
  const int64_t capacity = side.defined() ? side.size(1) : 0;
  if (length < capacity && side.owners() == 1) return;
  const int64_t wanted = length < capacity ? capacity : std::max<int64_t>(16, 2 * capacity);
  Tensor larger = Tensor::zeros({row[0], wanted, row[1], row[2]}, like.dtype(), like.device());
  if (length > 0) {
    const int64_t width = row[1] * row[2] * size_of(like.dtype());
    const char* from = static_cast<const char*>(side.raw());
    char* to = static_cast<char*>(larger.mutable_raw());
    for (int64_t b = 0; b < row[0]; ++b)
      std::copy_n(from + b * capacity * width, length * width, to + b * wanted * width);
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

/// Writes a step's rows, x (batch, ..) from `layout`, as step `length` of a side of the cache.
template <class T>
void append(Tensor& side, const Tensor& x, const RowLayout& layout, int64_t length) {
  const int64_t batch = side.size(0), heads = side.size(2), width = side.size(3);
  const RowLayout to = rows_of(side.shape());
  const T* source = x.data<T>();
  T* target = side.mutable_data<T>();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      std::copy_n(source + layout.at(b, h), width, target + to.at(b, h) + length * to.row);
    }
  }
}

/// x holds one step; call's layouts say where.
void step(const char* op, Call call, Inputs x, KeyValueCache& cache, Tensor& out,
          const SoftmaxAttentionOptions& options) {
  LINNET_CHECK(!recording(), op, ": changes its cache in place, which a tape cannot replay; use Tape::Pause");
  LINNET_CHECK(!options.pairs, op, ": takes key and query masks, not a pair mask");
  const AttentionSizes& one = call.sizes;
  const Shape k_row{one.batch, one.heads, one.dim}, v_row{one.batch, one.heads, one.value_dim};
  check_cache(op, "k", cache.k, k_row, cache.length, x.q);
  check_cache(op, "v", cache.v, v_row, cache.length, x.q);
  if (!out.defined()) out = Tensor::empty(v_row, x.q.dtype(), x.q.device());
  LINNET_CHECK(out.shape() == v_row, op, ": out ", out.shape(), " is not (batch, heads, M) = ", v_row);
  check_same_dtype(op, x.q, out);
  check_same_device(op, x.q, out);
  call.sizes.keys = cache.length + 1;
  call.causal = false;  // all that the cache holds is the past
  read_masks(op, options, call.sizes, x);
  make_room(cache.k, k_row, cache.length, x.q);
  make_room(cache.v, v_row, cache.length, x.q);
  Tensor rows = out.reshape(call.out_shape());  // shares out's memory
  Tensor lse = Tensor::empty({one.batch, 1, one.heads}, x.q.dtype(), x.q.device());
  with_float(op, x.q.dtype(), [&]<class T>() {
    append<T>(cache.k, x.k, call.k, cache.length);
    append<T>(cache.v, x.v, call.v, cache.length);
    Call whole = call;
    whole.k = rows_of(cache.k.shape());
    whole.v = rows_of(cache.v.shape());
    run_forward<T>(whole, {x.q, cache.k, cache.v, x.keys, x.queries, {}}, rows, lse);
  });
  ++cache.length;
}

}  // namespace

Variable softmax_attention(const Variable& qv, const Variable& kv, const Variable& vv,
                           const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention";
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, options.causal), options);
  call.q = rows_of(x.q.shape());
  call.k = rows_of(x.k.shape());
  call.v = rows_of(x.v.shape());
  read_masks(op, options, call.sizes, x);
  const auto [out, lse] = forward(op, call, x);
  // A masked query has lse = -infinity: the way back needs no query mask.
  return record("softmax_attention", out, {qv, kv, vv}, keep(x.q, x.k, x.v, out, lse, x.keys, x.pairs),
                [call](const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                       const Tensor& rows, const Tensor& keys, const Tensor& pairs) -> Gradients {
                  Tensor dq = zeros_like(q), dk = zeros_like(k), dv = zeros_like(v);
                  backward(call, {q, k, v, keys, {}, pairs}, o, rows, dy, dq, dk, dv);
                  return {dq, dk, dv};
                });
}

Variable softmax_attention_qkv(const Variable& qkvv, const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention_qkv";
  const Tensor& qkv = qkvv.value();
  Inputs x{qkv, qkv, qkv, {}, {}, {}};
  Call call = make_call(check_fused_attention(op, qkv), options);
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  read_masks(op, options, call.sizes, x);
  const auto [out, lse] = forward(op, call, x);
  return record("softmax_attention_qkv", out, {qkvv}, keep(qkv, out, lse, x.keys, x.pairs),
                [call](const Tensor& dy, const Tensor& all, const Tensor& o, const Tensor& rows, const Tensor& keys,
                       const Tensor& pairs) -> Gradients {
                  Tensor grad = zeros_like(all);
                  backward(call, {all, all, all, keys, {}, pairs}, o, rows, dy, grad, grad, grad);
                  return {grad};
                });
}

void softmax_attention_step(const Variable& q, const Variable& k, const Variable& v, KeyValueCache& cache, Tensor& out,
                            const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention_step";
  Call call = make_call(check_attention_step(op, q.value(), k.value(), v.value()), options);
  const AttentionSizes& n = call.sizes;
  call.q = call.k = rows_of({n.batch, 1, n.heads, n.dim});
  call.v = rows_of({n.batch, 1, n.heads, n.value_dim});
  step(op, call, {q.value(), k.value(), v.value(), {}, {}, {}}, cache, out, options);
}

void softmax_attention_step_qkv(const Variable& qkv, KeyValueCache& cache, Tensor& out,
                                const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention_step_qkv";
  const Shape& shape = qkv.shape();
  LINNET_CHECK(shape.rank() == 4 && shape[1] == 3, op, ": qkv ", shape, " is not (batch, 3, heads, dim)");
  const Tensor all = qkv.value().reshape(Shape{shape[0], 1, 3, shape[2], shape[3]});
  Call call = make_call(check_fused_attention(op, all), options);
  call.q = rows_of_part(all.shape(), 0);
  call.k = rows_of_part(all.shape(), 1);
  call.v = rows_of_part(all.shape(), 2);
  step(op, call, {all, all, all, {}, {}, {}}, cache, out, options);
}

}  // namespace linnet
