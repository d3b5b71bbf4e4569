#include "linnet/ops/softmax_attention_run.h"

#include <cmath>
#include <limits>

#include "linnet/core/threads.h"
#include "linnet/ops/softmax_attention_cuda.h"
#include "linnet/ops/softmax_attention_tile.h"

namespace linnet::softmax_attention_run {
namespace {

constexpr FloatInstances<SoftmaxAttentionKernels> kernels = LINNET_CPU_FLOAT_INSTANCES(softmax_attention);

template <class T>
ScoreTile score_tile(const Call& call, const Inputs& x, const Tile<T>& q, const Tile<T>& k) {
  return {q.rows,         k.rows, q.at, k.at, call.band, x.pairs.defined() ? x.pairs.data<uint8_t>() : nullptr,
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
    Work<T> work(kernels.of<T>(out.device()), out.device());
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
        const int64_t near = first_from(keys, q.at[0] - call.band.before);
        for (int64_t column = near; column < std::ssize(keys); column += kTile) {
          if (keys[static_cast<size_t>(column)] > q.at[q.rows - 1] + call.band.after) break;
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

/// With s = scale q k^T, p = exp(s - lse),
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
    Work<T> work(kernels.of<T>(out.device()), out.device());
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
        const int64_t near = first_from(queries, k.at[0] - call.band.after);
        for (int64_t row = near; row < std::ssize(queries); row += kTile) {
          if (queries[static_cast<size_t>(row)] > k.at[k.rows - 1] + call.band.before) break;
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

}  // namespace

Call make_call(const AttentionSizes& sizes, const SoftmaxAttentionOptions& options, Band band) {
  const double usual = sizes.dim > 0 ? 1 / std::sqrt(static_cast<double>(sizes.dim)) : 1;
  return {.sizes = sizes, .q = {}, .k = {}, .v = {}, .band = band, .scale = options.scale.value_or(usual)};
}

void read_masks(const char* op, const SoftmaxAttentionOptions& options, const AttentionSizes& n, Inputs& x) {
  const Device device = x.q.device();
  if (options.keys) x.keys = options.keys->steps(op, "key", n.batch, n.keys, device);
  if (options.queries) x.queries = options.queries->steps(op, "query", n.batch, n.queries, device);
  if (options.pairs) x.pairs = options.pairs->pairs(op, n.queries, n.keys, device);
}

void forward_into(const Call& call, const Inputs& x, Tensor out, Tensor lse) {
  if (out.device() == Device::cuda) return softmax_attention_calls.of(Device::cuda).forward(call, x, out, lse);
  with_float("softmax_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, lse); });
}

std::pair<Tensor, Tensor> forward(const Call& call, const Inputs& x) {
  Tensor out = Tensor::empty(call.out_shape(), x.q.dtype(), x.q.device());
  Tensor lse = Tensor::empty({call.sizes.batch, call.sizes.queries, call.sizes.heads}, x.q.dtype(), x.q.device());
  forward_into(call, x, out, lse);
  return {out, lse};
}

void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
              Tensor dk, Tensor dv) {
  if (out.device() == Device::cuda)
    return softmax_attention_calls.of(Device::cuda).backward(call, x, out, lse, dy, dq, dk, dv);
  with_float("softmax_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, out, lse, dy, dq, dk, dv); });
}

}  // namespace linnet::softmax_attention_run
