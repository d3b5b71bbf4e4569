#include "linnet/ops/embedding.h"

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {

Variable embedding(const Variable& weightv, const Tensor& index, std::optional<int64_t> padding_row) {
  check_defined("embedding", weightv, index);
  const Tensor& weight = weightv.value();
  const Shape shape = weight.shape();
  LINNET_CHECK(shape.rank() == 2, "embedding: weight ", shape, " is not (rows, dim)");
  LINNET_CHECK(is_float(weight.dtype()), "embedding: weight is ", weight.dtype(), ", f32 or f64 wanted");
  LINNET_CHECK(index.dtype() == Dtype::i32, "embedding: the index is ", index.dtype(), ", i32 wanted");
  check_same_device("embedding", weight, index);
  const int64_t padding = padding_row.value_or(-1);
  LINNET_CHECK(!padding_row || (padding >= 0 && padding < shape[0]), "embedding: padding row ", padding,
               ", but there are ", shape[0], " rows");

  Tensor y = compute::gather_rows("embedding", weight, index);
  return record("embedding", y, {weightv}, keep(index), [=](const Tensor& dy, const Tensor& index_kept) -> Gradients {
    Tensor dweight = Tensor::zeros(shape, dy.dtype(), dy.device());
    compute::scatter_add_rows_inplace(dweight, index_kept, dy);
    if (padding >= 0) dweight.slice(padding, padding + 1).fill(0);
    return {dweight};
  });
}

}  // namespace linnet
