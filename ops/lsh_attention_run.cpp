#include "linnet/ops/lsh_attention_run.h"

#include "linnet/core/threads.h"
#include "linnet/ops/lsh_attention_cuda.h"
#include "linnet/ops/lsh_attention_head.h"

namespace linnet::lsh_attention_run {
namespace {

template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Tensor& lse) {
  const AttentionSizes n = call.sizes;
  const RowLayout o = rows_of(call.out_shape());
  T* const o_all = out.mutable_data<T>();
  T* const lse_all = lse.mutable_data<T>();
  std::fill_n(lse_all, lse.numel(), kNone<T>);
  const int64_t sets = call.joint ? 1 : call.rounds;  // softmaxes a query
  parallel_for(n.batch * n.heads, call.nanoseconds(1), [&](int64_t from, int64_t to) {
    Head<T> head(call, out.device());
    PackedRows<T> sum(n.value_dim);
    std::vector<T> max, total;
    for (int64_t item = from; item < to; ++item) {
      const int64_t b = item / n.heads, h = item % n.heads;
      const Order order(call, x, b, h);
      T* const o_rows = o_all + o.at(b, h);
      T* const lse_rows = lse_all + item * sets * n.queries;
      head.begin(x, order, b, h);
      for (int64_t round = 0; round < call.rounds; ++round) {
        head.gather(order, round);
        const std::span<const int32_t> steps = order.steps(round);
        if (!call.joint || round == 0) {
          max.assign(steps.size(), kNone<T>);
          total.assign(steps.size(), T(0));
        }
        for_each_block(call, order.visible(), [&](const Block& block) {
          head.score(block, head.q, head.k, head.scores);
          sum.clear(block.rows());
          for (int64_t r = 0; r < block.rows(); ++r) {
            const int64_t i = steps[static_cast<size_t>(block.first + r)];
            T* const s = head.scores.data() + r * block.columns();
            order.mask(round, i, block.begin, block.end, s);
            const T before = max[static_cast<size_t>(i)],
                    top = std::max(before, *std::max_element(s, s + block.columns()));
            if (!order.query(i) || top == kNone<T>) {
              std::fill_n(s, block.columns(), T(0));
              continue;
            }
            const T shrink = std::exp(before - top);  // 0 at the first keys, where `before` is -infinity
            T& whole = total[static_cast<size_t>(i)];
            whole *= shrink;
            for (int64_t c = 0; c < block.columns(); ++c) whole += s[c] = std::exp(s[c] - top);
            max[static_cast<size_t>(i)] = top;
            if (call.joint)
              for (int64_t m = 0; m < n.value_dim; ++m) o_rows[i * o.row + m] *= shrink;
          }
          head.to_queries(block, head.scores, head.v, 1, sum.row(0));
          for (int64_t r = 0; r < block.rows(); ++r) {
            const int64_t i = steps[static_cast<size_t>(block.first + r)];
            const T whole = total[static_cast<size_t>(i)];
            const T weight = call.joint ? T(1) : whole > 0 ? 1 / (whole * static_cast<T>(call.rounds)) : T(0);
            add_scaled(n.value_dim, weight, sum.row(r), o_rows + i * o.row);
          }
        });
        if (call.joint && round + 1 < call.rounds) continue;
        for (int64_t i = 0; i < n.queries; ++i) {
          const T whole = total[static_cast<size_t>(i)];
          T* const row = o_rows + i * o.row;
          if (whole > 0) {
            lse_rows[(call.joint ? 0 : round) * n.queries + i] = max[static_cast<size_t>(i)] + std::log(whole);
            if (call.joint)
              for (int64_t m = 0; m < n.value_dim; ++m) row[m] /= whole;
          } else if (order.query(i) && order.key(i)) {  // alone: its own value
            add_scaled(n.value_dim, 1 / static_cast<T>(sets), head.v_from + i * call.v.row, row);
          }
        }
      }
    }
  });
}

/// With s = scale q k^T - log N, p = exp(s - lse), dp = g v^T and delta = sum_j p dp (joint: g . o, over all rounds):
/// ds = p (dp - delta),   dq = scale ds k,   dk = scale ds^T q,   dv = p^T g;   g is dy / rounds for the mean.
/// Shared, k = q / |q|: dq += (dk - k (k . dk)) / |q|.
template <class T>
void run_backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
                  Tensor dk, Tensor dv) {
  const AttentionSizes n = call.sizes;
  const RowLayout o = rows_of(call.out_shape());
  const T *o_all = call.joint ? out.data<T>() : nullptr, *g_all = dy.data<T>(), *lse_all = lse.data<T>();
  T *dq_all = dq.mutable_data<T>(), *dk_all = dk.mutable_data<T>(), *dv_all = dv.mutable_data<T>();
  const int64_t sets = call.joint ? 1 : call.rounds;
  const T share = 1 / static_cast<T>(sets);
  parallel_for(n.batch * n.heads, call.nanoseconds(2.5), [&](int64_t from, int64_t to) {
    Head<T> head(call, dy.device());
    PackedRows<T> g(n.value_dim), gq(n.dim), gk(n.dim), gv(n.value_dim), unit_rows(n.dim);
    std::vector<T> gradients;
    for (int64_t item = from; item < to; ++item) {
      const int64_t b = item / n.heads, h = item % n.heads;
      const Order order(call, x, b, h);
      const T *g_rows = g_all + o.at(b, h), *lse_rows = lse_all + item * sets * n.queries;
      T* const dv_rows = dv_all + call.v.at(b, h);
      head.begin(x, order, b, h);
      if (call.shared) unit_rows.clear(n.keys);
      for (int64_t round = 0; round < call.rounds; ++round) {
        head.gather(order, round);
        const std::span<const int32_t> steps = order.steps(round), keys = order.visible_steps(round);
        const T* const top = lse_rows + (call.joint ? 0 : round) * n.queries;
        g.gather(g_rows, o.row, steps, share);
        Head<T>::hide(g, order, round);
        gq.clear(n.queries);
        gk.clear(std::ssize(keys));
        gv.clear(std::ssize(keys));
        for_each_block(call, order.visible(), [&](const Block& block) {
          head.score(block, head.q, head.k, head.scores);
          head.score(block, g, head.v, gradients);
          for (int64_t r = 0; r < block.rows(); ++r) {
            const int64_t i = steps[static_cast<size_t>(block.first + r)];
            T *const p = head.scores.data() + r * block.columns(), *const dp = gradients.data() + r * block.columns();
            if (!order.query(i) || top[i] == kNone<T>) {
              std::fill_n(p, block.columns(), T(0));
              std::fill_n(dp, block.columns(), T(0));
              continue;
            }
            order.mask(round, i, block.begin, block.end, p);
            for (int64_t c = 0; c < block.columns(); ++c) p[c] = std::exp(p[c] - top[i]);
            const T delta = call.joint ? dot(n.value_dim, g.row(block.first + r), o_all + o.at(b, h) + i * o.row)
                                       : dot(block.columns(), p, dp);
            for (int64_t c = 0; c < block.columns(); ++c) dp[c] = p[c] * (dp[c] - delta);
          }
          head.to_keys(block, head.scores, g, gv);
          head.to_keys(block, gradients, head.q, gk);  // q holds the scale already
          head.to_queries(block, gradients, head.k, static_cast<T>(call.scale), gq.row(block.first));
        });
        gq.add_to(dq_all + call.q.at(b, h), call.q.row, steps);
        gv.add_to(dv_rows, call.v.row, keys);
        if (call.shared)
          gk.add_to(unit_rows.row(0), n.dim, keys);
        else
          gk.add_to(dk_all + call.k.at(b, h), call.k.row, keys);
        if (call.joint && round > 0) continue;
        for (int64_t i = 0; i < n.queries; ++i)  // alone: o_i = v_i
          if (top[i] == kNone<T> && order.query(i) && order.key(i))
            add_scaled(n.value_dim, share, g_rows + i * o.row, dv_rows + i * call.v.row);
      }
      for (int64_t i = 0; call.shared && i < n.keys; ++i) {
        if (!order.key(i)) continue;
        const T unit = head.unit[static_cast<size_t>(i)];
        const T *const q = head.q_from + i * call.q.row, *const gradient = unit_rows.row(i);
        T* const row = dq_all + call.q.at(b, h) + i * call.q.row;
        const T along = dot(n.dim, q, gradient) * unit * unit * unit;
        for (int64_t d = 0; d < n.dim; ++d) row[d] += unit * gradient[d] - along * q[d];
      }
    }
  });
}

}  // namespace

std::pair<Tensor, Tensor> forward(const Call& call, const Inputs& x) {
  Tensor out = Tensor::zeros(call.out_shape(), x.q.dtype(), x.q.device());
  Tensor lse = Tensor::empty(call.lse_shape(), x.q.dtype(), x.q.device());
  if (out.device() == Device::cuda)
    lsh_attention_calls.of(Device::cuda).forward(call, x, out, lse);
  else
    with_float("lsh_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, lse); });
  return {out, lse};
}

void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
              Tensor dk, Tensor dv) {
  if (dy.device() == Device::cuda)
    return lsh_attention_calls.of(Device::cuda).backward(call, x, out, lse, dy, dq, dk, dv);
  with_float("lsh_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, out, lse, dy, dq, dk, dv); });
}

}  // namespace linnet::lsh_attention_run
