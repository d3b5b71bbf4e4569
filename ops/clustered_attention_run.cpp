#include "linnet/ops/clustered_attention_run.h"

#include <utility>

#include "linnet/core/threads.h"
#include "linnet/ops/clustered_attention_cuda.h"
#include "linnet/ops/clustered_attention_head.h"

namespace linnet::clustered_attention_run {
namespace {

template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Found& found) {
  const AttentionSizes n = call.sizes;
  const RowLayout o = rows_of(call.out_shape());
  T *const o_all = out.mutable_data<T>(), *const cluster_lse =
                                              call.causal ? nullptr : found.cluster_lse.mutable_data<T>();
  T* const query_lse = call.topk > 0 ? found.query_lse.mutable_data<T>() : nullptr;
  int32_t* const top_all = found.top.mutable_data<int32_t>();
  parallel_for(n.batch * n.heads, call.nanoseconds(1), [&](int64_t from, int64_t to) {
    Head<T> head(call, out.device());
    PackedRows<T> shared(n.value_dim), own(n.value_dim);
    std::vector<int32_t> places;
    for (int64_t item = from; item < to; ++item) {
      const int64_t b = item / n.heads, h = item % n.heads;
      const Members members(call, x, b, h);
      head.begin(x, members, b, h);
      const int64_t keys = head.key_count(), tops = head.top_count();
      if (keys == 0) continue;
      T* const o_rows = o_all + o.at(b, h);
      for_each_block(0, std::ssize(members.nonempty), [&](int64_t first_cluster, int64_t rows) {
        const int64_t* const clusters = members.nonempty.data() + first_cluster;
        head.score_clusters(members, clusters, rows);
        std::vector<T> mass(static_cast<size_t>(rows), T(1));
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t c = item * call.clusters + clusters[r];
          T* const a = head.weights.data() + r * keys;
          int32_t* const top = top_all + c * call.topk;
          find_top(head.weights, r, keys, tops, places, top);
          if (call.causal) continue;
          cluster_lse[c] = softmax_row(keys, a);
          mass[size_t(r)] = 0;
          for (int64_t j = 0; j < tops; ++j) mass[size_t(r)] += std::exchange(a[top[j]], T(0));
        }
        shared.clear(rows);
        if (!call.causal) head.times(rows, keys, head.weights, head.v, 1, 0, shared.row(0));
        for (int64_t r = 0; r < rows; ++r) {
          const int32_t* const top = top_all + (item * call.clusters + clusters[r]) * call.topk;
          head.gather_top(top);
          for_each_block(members.begin[size_t(clusters[r])], members.begin[size_t(clusters[r] + 1)],
                         [&](int64_t first, int64_t count) {
                           own.clear(count);
                           if (call.topk > 0) {
                             head.score_members(members, first, count, top);
                             for (int64_t i = 0; i < count; ++i)
                               query_lse[item * n.queries + members.steps[size_t(first + i)]] =
                                   softmax_row(tops, head.member_weights.data() + i * tops);
                             head.times(count, tops, head.member_weights, head.top_v, mass[size_t(r)], 0, own.row(0));
                           }
                           for (int64_t i = 0; i < count; ++i) {
                             T* const row = o_rows + members.steps[size_t(first + i)] * o.row;
                             add_scaled(n.value_dim, T(1), own.row(i), row);
                             add_scaled(n.value_dim, T(1), shared.row(r), row);
                           }
                         });
        }
      });
    }
  });
}

/// With m_c = sum_{T_c} A_cj, p_i the softmax of query i over T_c, g = dy and e_ij = g_i . v_j:
///   of the queries     r_i = sum_T p e,   ds = m p (e - r_i),   dq = scale ds k,   dk = scale ds^T q,   dv_T = m p^T g
///   of the clusters    G_c = sum_i g_i,   dA_cj = G_c . v_j, but dm_c = sum_i r_i for j in T_c,   dv = A^T G outside
///   T_c
///                      dS = A (dA - sum_j A dA),   dqbar = scale dS k,   dk = scale dS^T qbar,   dq_i = dqbar / n_c
/// Causal, m_c is 1 and nothing comes from the clusters.
template <class T>
void run_backward(const Call& call, const Inputs& x, const Found& found, const Tensor& dy, Tensor dq, Tensor dk,
                  Tensor dv) {
  const AttentionSizes n = call.sizes;
  const RowLayout o = rows_of(call.out_shape());
  const T scale = static_cast<T>(call.scale);
  const T *g_all = dy.data<T>(), *cluster_lse = call.causal ? nullptr : found.cluster_lse.data<T>();
  const T* const query_lse = call.topk > 0 ? found.query_lse.data<T>() : nullptr;
  const int32_t* const top_all = found.top.data<int32_t>();
  T *dq_all = dq.mutable_data<T>(), *dk_all = dk.mutable_data<T>(), *dv_all = dv.mutable_data<T>();
  parallel_for(n.batch * n.heads, call.nanoseconds(2.5), [&](int64_t from, int64_t to) {
    Head<T> head(call, dy.device());
    PackedRows<T> g(n.value_dim), gq(n.dim), gk(n.dim), gv(n.value_dim);
    PackedRows<T> sums(n.value_dim), gmeans(n.dim), gtop_k(n.dim), gtop_v(n.value_dim);
    std::vector<T> gradients, member_gradients;
    for (int64_t item = from; item < to; ++item) {
      const int64_t b = item / n.heads, h = item % n.heads;
      const Members members(call, x, b, h);
      head.begin(x, members, b, h);
      const int64_t keys = head.key_count(), tops = head.top_count();
      if (keys == 0) continue;
      g.gather(g_all + o.at(b, h), o.row, members.steps);
      gq.clear(std::ssize(members.steps));
      gk.clear(keys);
      gv.clear(keys);
      for_each_block(0, std::ssize(members.nonempty), [&](int64_t first_cluster, int64_t rows) {
        const int64_t* const clusters = members.nonempty.data() + first_cluster;
        const auto top_of = [&](int64_t r) { return top_all + (item * call.clusters + clusters[r]) * call.topk; };
        std::vector<T> mass(static_cast<size_t>(rows), T(1)), dmass(static_cast<size_t>(rows));
        if (!call.causal) {
          head.score_clusters(members, clusters, rows);
          for (int64_t r = 0; r < rows; ++r) {
            T* const a = head.weights.data() + r * keys;
            const T lse = cluster_lse[item * call.clusters + clusters[r]];
            for (int64_t j = 0; j < keys; ++j) a[j] = std::exp(a[j] - lse);
            mass[size_t(r)] = 0;
            for (int64_t j = 0; j < tops; ++j) mass[size_t(r)] += a[top_of(r)[j]];
          }
        }
        for (int64_t r = 0; call.topk > 0 && r < rows; ++r) {
          const std::span<const int32_t> top(top_of(r), static_cast<size_t>(tops));
          head.gather_top(top.data());
          gtop_k.clear(tops);
          gtop_v.clear(tops);
          for_each_block(
              members.begin[size_t(clusters[r])], members.begin[size_t(clusters[r] + 1)],
              [&](int64_t first, int64_t count) {
                head.score_members(members, first, count, top.data());
                member_gradients.resize(static_cast<size_t>(count * tops));
                head.times_transposed(count, g.row(first), head.top_v, T(1), member_gradients);
                for (int64_t i = 0; i < count; ++i) {
                  T *const p = head.member_weights.data() + i * tops, *const e = member_gradients.data() + i * tops;
                  const T lse = query_lse[item * n.queries + members.steps[size_t(first + i)]];
                  for (int64_t j = 0; j < tops; ++j) p[j] = lse == kNone<T> ? T(0) : std::exp(p[j] - lse);
                  const T along = dot(tops, p, e);
                  dmass[size_t(r)] += along;
                  for (int64_t j = 0; j < tops; ++j) e[j] = mass[size_t(r)] * p[j] * (e[j] - along);
                }
                head.times(count, tops, member_gradients, head.top_k, scale, 1, gq.row(first));
                head.transposed_times(count, tops, member_gradients, n.dim, head.q.row(first), scale, gtop_k);
                head.transposed_times(count, tops, head.member_weights, n.value_dim, g.row(first), mass[size_t(r)],
                                      gtop_v);
              });
          gtop_k.add_to(gk.row(0), n.dim, top);
          gtop_v.add_to(gv.row(0), n.value_dim, top);
        }
        if (call.causal) return;
        sums.clear(rows);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = members.begin[size_t(clusters[r])]; i < members.begin[size_t(clusters[r] + 1)]; ++i)
            add_scaled(n.value_dim, T(1), g.row(i), sums.row(r));
        gradients.resize(static_cast<size_t>(rows * keys));
        head.times_transposed(rows, sums.row(0), head.v, T(1), gradients);
        for (int64_t r = 0; r < rows; ++r) {
          T *const a = head.weights.data() + r * keys, *const da = gradients.data() + r * keys;
          for (int64_t j = 0; j < tops; ++j) da[top_of(r)[j]] = dmass[size_t(r)];
          const T along = dot(keys, a, da);
          for (int64_t j = 0; j < keys; ++j) da[j] = a[j] * (da[j] - along);
          for (int64_t j = 0; j < tops; ++j) a[top_of(r)[j]] = 0;
        }
        head.transposed_times(rows, keys, head.weights, n.value_dim, sums.row(0), T(1), gv);
        head.transposed_times(rows, keys, gradients, n.dim, head.means.row(0), T(1), gk);  // means hold the scale
        gmeans.clear(rows);
        head.times(rows, keys, gradients, head.k, scale, 0, gmeans.row(0));
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = members.begin[size_t(clusters[r])]; i < members.begin[size_t(clusters[r] + 1)]; ++i)
            add_scaled(n.dim, 1 / static_cast<T>(members.count(clusters[r])), gmeans.row(r), gq.row(i));
      });
      gq.add_to(dq_all + call.q.at(b, h), call.q.row, members.steps);
      gk.add_to(dk_all + call.k.at(b, h), call.k.row, head.keys);
      gv.add_to(dv_all + call.v.at(b, h), call.v.row, head.keys);
    }
  });
}

}  // namespace

Tensor forward(const Call& call, const Inputs& x, Found& found) {
  const AttentionSizes& n = call.sizes;
  const Dtype dtype = x.q.dtype();
  const Device device = x.q.device();
  Tensor out = Tensor::zeros(call.out_shape(), dtype, device);
  found.top = Tensor::zeros({n.batch, n.heads, call.clusters, call.topk}, Dtype::i32, device);
  if (!call.causal) found.cluster_lse = Tensor::zeros({n.batch, n.heads, call.clusters}, dtype, device);
  if (call.topk > 0) found.query_lse = Tensor::zeros({n.batch, n.heads, n.queries}, dtype, device);
  if (device == Device::cuda)
    clustered_attention_calls.of(device).forward(call, x, out, found);
  else
    with_float("clustered_attention", dtype, [&]<class T>() { run_forward<T>(call, x, out, found); });
  return out;
}

void backward(const Call& call, const Inputs& x, const Found& found, const Tensor& dy, Tensor dq, Tensor dk,
              Tensor dv) {
  if (dy.device() == Device::cuda)
    return clustered_attention_calls.of(Device::cuda).backward(call, x, found, dy, dq, dk, dv);
  with_float("clustered_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, found, dy, dq, dk, dv); });
}

}  // namespace linnet::clustered_attention_run
