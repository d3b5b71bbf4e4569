#include "linnet/ops/attention_shapes.h"

#include <cmath>

namespace linnet {
namespace {

void check_kinds(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!is_float(q.dtype())) fail_not_float(op, q.dtype());
  check_same_dtype(op, q, k);
  check_same_dtype(op, q, v);
  check_same_device(op, q, k);
  check_same_device(op, q, v);
}

}  // namespace

RowLayout rows_of(const Shape& s) { return {.batch = s[1] * s[2] * s[3], .row = s[2] * s[3], .head = s[3]}; }

RowLayout rows_of_part(const Shape& s, int part) {
  const int64_t width = s[3] * s[4];
  return {.offset = part * width, .batch = s[1] * 3 * width, .row = 3 * width, .head = s[4]};
}

AttentionSizes check_attention(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  for (const auto& [name, x] : {std::pair("q", &q), std::pair("k", &k), std::pair("v", &v)}) {
    LINNET_CHECK(x->rank() == 4, op, ": ", name, " ", x->shape(), " is not (batch, time, heads, dim)");
  }
  LINNET_CHECK(q.size(0) == k.size(0) && q.size(2) == k.size(2) && q.size(3) == k.size(3), op, ": q ", q.shape(),
               " and k ", k.shape(), " differ in batch, heads or dim");
  LINNET_CHECK(k.shape().first(3) == v.shape().first(3), op, ": k ", k.shape(), " and v ", v.shape(),
               " differ in batch, time or heads");
  LINNET_CHECK(!causal || q.size(1) == k.size(1), op, ": causal attention needs as many queries as keys, but q has ",
               q.size(1), " and k has ", k.size(1));
  check_kinds(op, q, k, v);
  return {q.size(0), q.size(1), k.size(1), q.size(2), q.size(3), v.size(3)};
}

AttentionSizes check_fused_attention(const char* op, const Tensor& qkv) {
  LINNET_CHECK(qkv.rank() == 5 && qkv.size(2) == 3, op, ": qkv ", qkv.shape(), " is not (batch, time, 3, heads, dim)");
  if (!is_float(qkv.dtype())) fail_not_float(op, qkv.dtype());
  return {qkv.size(0), qkv.size(1), qkv.size(1), qkv.size(3), qkv.size(4), qkv.size(4)};
}

AttentionSizes check_attention_step(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const auto& [name, x] : {std::pair("q", &q), std::pair("k", &k), std::pair("v", &v)}) {
    LINNET_CHECK(x->rank() == 3, op, ": ", name, " ", x->shape(), " is not (batch, heads, dim)");
  }
  LINNET_CHECK(q.shape() == k.shape(), op, ": q ", q.shape(), " and k ", k.shape(), " differ");
  LINNET_CHECK(k.shape().first(2) == v.shape().first(2), op, ": k ", k.shape(), " and v ", v.shape(),
               " differ in batch or heads");
  check_kinds(op, q, k, v);
  return {q.size(0), 1, 1, q.size(1), q.size(2), v.size(2)};
}

void make_step_out(const char* op, const AttentionSizes& n, Tensor& out, const Tensor& like) {
  const Shape shape{n.batch, n.heads, n.value_dim};
  if (!out.defined()) out = Tensor::empty(shape, like.dtype(), like.device());
  LINNET_CHECK(out.shape() == shape, op, ": out ", out.shape(), " is not (batch, heads, M) = ", shape);
  check_same_dtype(op, like, out);
  check_same_device(op, like, out);
}

Tensor room_for_rows(const Tensor& out, const Shape& shape, std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* x : inputs)
    if (x->shares_storage(out)) return Tensor::empty(shape, out.dtype(), out.device());
  return out.reshape(shape);
}

const LinearAttentionOptions& checked(const char* op, const LinearAttentionOptions& options) {
  LINNET_CHECK(options.eps >= 0 && std::isfinite(options.eps), op, ": eps ", options.eps,
               " given, wanted: finite and not negative");
  LINNET_CHECK(options.feature_map <= FeatureMap::identity, op, ": no feature map ",
               static_cast<int>(options.feature_map));
  return options;
}

const SoftmaxAttentionOptions& checked(const char* op, const SoftmaxAttentionOptions& options) {
  LINNET_CHECK(!options.scale || std::isfinite(*options.scale), op, ": scale ", *options.scale,
               " given, a finite one wanted");
  return options;
}

}  // namespace linnet
