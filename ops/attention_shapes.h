// What the attentions share: their sizes, where the rows of q, k and v lie, and the checks of both. Private to ops/.
#pragma once
#include "linnet/core/tensor.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/softmax_attention.h"

namespace linnet {

struct AttentionSizes {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0;
  int64_t dim = 0;        // D, of queries and keys
  int64_t value_dim = 0;  // M, of values and outputs
};

/// Step t of head h of sample b begins `offset + b batch + t row + h head` elements into a tensor.
struct RowLayout {
  int64_t offset = 0, batch = 0, row = 0, head = 0;
  int64_t at(int64_t b, int64_t h) const { return offset + b * batch + h * head; }
};

/// The rows of (batch, time, heads, dim).
RowLayout rows_of(const Shape& shape);
/// The rows of part 0 (q), 1 (k) or 2 (v) of (batch, time, 3, heads, dim).
RowLayout rows_of_part(const Shape& shape, int part);

/// Checks q (batch, queries, heads, D), k (batch, keys, heads, D) and v (batch, keys, heads, M): shapes, one floating
/// dtype, one device; causal wants as many queries as keys.
AttentionSizes check_attention(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, bool causal);
/// Checks qkv (batch, time, 3, heads, dim).
AttentionSizes check_fused_attention(const char* op, const Tensor& qkv);
/// Checks q, k (batch, heads, D) and v (batch, heads, M): one step.
AttentionSizes check_attention_step(const char* op, const Tensor& q, const Tensor& k, const Tensor& v);

/// Allocates a step's out (batch, heads, M) where it is undefined, and checks it.
void make_step_out(const char* op, const AttentionSizes& sizes, Tensor& out, const Tensor& like);
/// Where a step writes its rows: the memory of out, or new memory where an input lies in that.
Tensor room_for_rows(const Tensor& out, const Shape& shape, std::initializer_list<const Tensor*> inputs);

/// The options as they are, once their numbers are checked: eps finite and not negative, a feature map that exists, a
/// finite scale.
const LinearAttentionOptions& checked(const char* op, const LinearAttentionOptions& options);
const SoftmaxAttentionOptions& checked(const char* op, const SoftmaxAttentionOptions& options);

}  // namespace linnet
