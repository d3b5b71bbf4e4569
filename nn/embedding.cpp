#include "linnet/nn/embedding.h"

#include "linnet/core/compute.h"
#include "linnet/ops/embedding.h"

namespace linnet::nn {

Embedding::Embedding(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), padding_row_(options.padding_row) {
  const int64_t rows = options.rows, dim = options.dim;
  LINNET_CHECK(rows >= 1 && dim >= 1, label(), ": rows ", rows, " and dim ", dim, ", want at least 1");
  LINNET_CHECK(!padding_row_ || (*padding_row_ >= 0 && *padding_row_ < rows), label(), ": padding row ", *padding_row_,
               " is not one of ", rows, " rows");
  if (options.tied.defined()) {
    LINNET_CHECK(options.tied.shape() == (Shape{rows, dim}) && is_float(options.tied.dtype()), label(),
                 ": tied weight ", options.tied.dtype(), " ", options.tied.shape(),
                 " is not f32 or f64 (rows, dim) = ", Shape{rows, dim});
    weight = tie("weight", options.tied);
    return;
  }
  weight = parameter("weight", {rows, dim}, options.weight_init ? options.weight_init : init::normal(0.02));
  if (padding_row_) weight.mutable_value().slice(*padding_row_, *padding_row_ + 1).fill(0);
}

Variable Embedding::operator()(const Tensor& index) const {
  return labelled([&] { return embedding(weight, index, padding_row_); });
}

void Embedding::into(const Tensor& index, Tensor& y) const {
  compute::gather_rows_into("embedding", weight.value(), index, y);
}

}  // namespace linnet::nn
