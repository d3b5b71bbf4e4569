#include "linnet/ops/matmul.h"

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {
namespace {

void check(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  for (const Tensor* x : {&a, &b}) {
    LINNET_CHECK(x->rank() >= 2, "matmul: ", x == &a ? "a " : "b ", x->shape(),
                 " has no rows and columns; reshape a vector to one row or one column");
  }
  check_same_device("matmul", a, b);
  check_same_dtype("matmul", a, b);
  int64_t columns = a.size(transpose_a ? -2 : -1), rows = b.size(transpose_b ? -1 : -2);
  LINNET_CHECK(columns == rows, "matmul: a ", a.shape(), transpose_a ? " transposed" : "", " has ", columns,
               " columns but b ", b.shape(), transpose_b ? " transposed" : "", " has ", rows, " rows");
  broadcast_shapes("matmul", a.shape().first(a.rank() - 2), b.shape().first(b.rank() - 2));
}

}  // namespace

Variable matmul(const Variable& av, const Variable& bv, bool transpose_a, bool transpose_b) {
  check_defined("matmul", av, bv);
  check(av.value(), bv.value(), transpose_a, transpose_b);
  Tensor a = av.value(), b = bv.value();
  Shape shape = a.shape();
  if (b.rank() == 2 && !transpose_a) {  // one b for all of a's batch: a single product of more rows, and no sum over db
    int64_t rows = a.shape().first(a.rank() - 1).numel();
    a = a.reshape(Shape{rows, a.size(-1)});
  }
  Tensor y = compute::matmul(a, b, transpose_a, transpose_b);
  if (a.rank() != shape.rank()) y = y.reshape(shape.with(-1, y.size(-1)));

  const bool want_a = wants_grad(av), want_b = wants_grad(bv);
  const Shape a_shape = a.shape(), b_shape = b.shape();
  return record("matmul", y, {av, bv}, keep(want_b ? a : Tensor(), want_a ? b : Tensor()),
                [=](const Tensor& dy_given, const Tensor& a_kept, const Tensor& b_kept) -> Gradients {
                  const bool folded = a_shape.rank() != shape.rank();
                  Tensor dy = folded ? dy_given.reshape(Shape{a_shape[0], dy_given.size(-1)}) : dy_given;
                  Tensor da, db;
                  if (want_a) {
                    da = transpose_a ? compute::matmul(b_kept, dy, transpose_b, true)
                                     : compute::matmul(dy, b_kept, false, !transpose_b);
                    da = compute::sum_to(da, a_shape).reshape(shape);
                  }
                  if (want_b) {
                    db = transpose_b ? compute::matmul(dy, a_kept, true, transpose_a)
                                     : compute::matmul(a_kept, dy, !transpose_a, false);
                    db = compute::sum_to(db, b_shape);
                  }
                  return {da, db};
                });
}

}  // namespace linnet
