// Elementwise arithmetic: shapes broadcast to one loop of as few axes as possible, split over threads.
#include <algorithm>

#include "linnet/core/compute.h"
#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"

namespace linnet {

namespace compute {
namespace {

#define LINNET_NAME(Functor, name, ...) #name,
constexpr const char* kUnaryNames[] = {LINNET_UNARY_OPS(LINNET_NAME)};
constexpr const char* kBinaryNames[] = {LINNET_BINARY_OPS(LINNET_NAME)};
constexpr const char* kCompareNames[] = {LINNET_COMPARE_OPS(LINNET_NAME)};
#undef LINNET_NAME

constexpr double kCheap =
    0.5;  // nanoseconds an element; transcendental functions cost more, and are split later than they could be

/// The loop over `shape` for up to three inputs that broadcast to it; neighbouring axes that run on are merged.
BroadcastLoop make_loop(const Shape& shape, std::initializer_list<const Tensor*> inputs) {
  BroadcastLoop loop;
  int64_t stride[3][kMaxRank] = {};
  int k = 0;
  for (const Tensor* x : inputs) {
    int64_t step = 1;
    for (int i = 1; i <= x->rank(); ++i) {
      int64_t size = x->shape()[x->rank() - i];
      stride[k][shape.rank() - i] = size == 1 ? 0 : step;
      step *= size;
    }
    ++k;
  }
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    bool merges = loop.rank > 0;
    for (int i = 0; i < k && merges; ++i) merges = loop.stride[i][loop.rank - 1] == stride[i][d] * shape[d];
    int at = merges ? loop.rank - 1 : loop.rank++;
    loop.size[at] = merges ? loop.size[at] * shape[d] : shape[d];
    for (int i = 0; i < k; ++i) loop.stride[i][at] = stride[i][d];
  }
  return loop;
}

/// Runs body(loop, output offset, input offsets) over parts of the loop's first axis.
template <class Body>
void split_loop(Device device, const BroadcastLoop& loop, const Body& body) {
  if (loop.rank == 0) {
    int64_t in[3] = {};
    return body(loop, int64_t{0}, in);
  }
  int64_t row = 1;
  for (int d = 1; d < loop.rank; ++d) row *= loop.size[d];
  parallel_for(device, loop.size[0], kCheap * static_cast<double>(row), [&](int64_t begin, int64_t end) {
    BroadcastLoop part = loop;
    part.size[0] = end - begin;
    int64_t in[3] = {begin * loop.stride[0][0], begin * loop.stride[1][0], begin * loop.stride[2][0]};
    body(part, begin * row, in);
  });
}

void check_pair(const char* op, const Tensor& a, const Tensor& b) {
  check_same_device(op, a, b);
  check_same_dtype(op, a, b);
}

enum class Slope { a, b };

Tensor binary_slope(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& dy, Slope which) {
  const char* op_name = kBinaryNames[static_cast<int>(op)];
  const Tensor& target = which == Slope::a ? a : b;
  if (op == BinaryOp::Add || (op == BinaryOp::Sub && which == Slope::a)) return sum_to(dy, target.shape());
  check_pair(op_name, a, b);
  check_same_dtype(op_name, a, dy);
  Tensor full = empty_like(dy);
  with_float(op_name, a.dtype(), [&]<class T>() {
    const auto& table = general_kernels<T>(a.device());
    auto kernel = (which == Slope::a ? table.binary_slope_a : table.binary_slope_b)[static_cast<int>(op)];
    T* out = full.mutable_data<T>();
    split_loop(dy.device(), make_loop(dy.shape(), {&a, &b}),
               [&](const BroadcastLoop& loop, int64_t at, const int64_t* in) {
                 kernel(loop, a.data<T>() + in[0], b.data<T>() + in[1], dy.data<T>() + at, out + at);
               });
  });
  return sum_to(full, target.shape());
}

}  // namespace

Tensor unary(UnaryOp op, const Tensor& x, double p, double q) {
  Tensor y = empty_like(x);
  unary_into(op, x, y, p, q);
  return y;
}

void unary_into(UnaryOp op, const Tensor& x, Tensor& y, double p, double q) {
  LINNET_CHECK(y.shape() == x.shape(), kUnaryNames[static_cast<int>(op)], ": output ", y.shape(), " given, ", x.shape(),
               " wanted");
  with_float(kUnaryNames[static_cast<int>(op)], x.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(x.device()).unary[static_cast<int>(op)];
    T* out = y.mutable_data<T>();
    parallel_for(x.device(), x.numel(), kCheap, [&](int64_t begin, int64_t end) {
      kernel(end - begin, x.data<T>() + begin, out + begin, static_cast<T>(p), static_cast<T>(q));
    });
  });
}

Tensor unary_slope(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& dy, double p, double q) {
  Tensor dx = empty_like(dy);
  with_float(kUnaryNames[static_cast<int>(op)], dy.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(dy.device()).unary_slope[static_cast<int>(op)];
    const T* xs = x.defined() ? x.data<T>() : nullptr;
    const T* ys = y.defined() ? y.data<T>() : nullptr;
    T* out = dx.mutable_data<T>();
    parallel_for(dy.device(), dy.numel(), kCheap, [&](int64_t begin, int64_t end) {
      kernel(end - begin, xs ? xs + begin : nullptr, ys ? ys + begin : nullptr, dy.data<T>() + begin, out + begin,
             static_cast<T>(p), static_cast<T>(q));
    });
  });
  return dx;
}

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  const char* op_name = kBinaryNames[static_cast<int>(op)];
  check_pair(op_name, a, b);
  Tensor y = Tensor::empty(broadcast_shapes(op_name, a.shape(), b.shape()), a.dtype(), a.device());
  with_float(op_name, a.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(a.device()).binary[static_cast<int>(op)];
    T* out = y.mutable_data<T>();
    split_loop(y.device(), make_loop(y.shape(), {&a, &b}),
               [&](const BroadcastLoop& loop, int64_t at, const int64_t* in) {
                 kernel(loop, a.data<T>() + in[0], b.data<T>() + in[1], out + at);
               });
  });
  return y;
}

Tensor binary_slope_a(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& dy) {
  return binary_slope(op, a, b, dy, Slope::a);
}
Tensor binary_slope_b(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& dy) {
  return binary_slope(op, a, b, dy, Slope::b);
}

Tensor compare(CompareOp op, const Tensor& a, const Tensor& b) {
  const char* op_name = kCompareNames[static_cast<int>(op)];
  check_pair(op_name, a, b);
  if (!is_float(a.dtype())) return compare(op, a.to(Dtype::f64), b.to(Dtype::f64));
  Tensor y = Tensor::empty(broadcast_shapes(op_name, a.shape(), b.shape()), Dtype::u8, a.device());
  with_float(op_name, a.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(a.device()).compare[static_cast<int>(op)];
    uint8_t* out = y.mutable_data<uint8_t>();
    split_loop(y.device(), make_loop(y.shape(), {&a, &b}),
               [&](const BroadcastLoop& loop, int64_t at, const int64_t* in) {
                 kernel(loop, a.data<T>() + in[0], b.data<T>() + in[1], out + at);
               });
  });
  return y;
}

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  check_pair("where", a, b);
  check_same_device("where", mask, a);
  LINNET_CHECK(mask.dtype() == Dtype::u8, "where: the mask is ", mask.dtype(), ", u8 wanted");
  Tensor y = Tensor::empty(broadcast_shapes("where", mask.shape(), broadcast_shapes("where", a.shape(), b.shape())),
                           a.dtype(), a.device());
  with_float("where", a.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(a.device()).where;
    T* out = y.mutable_data<T>();
    split_loop(y.device(), make_loop(y.shape(), {&mask, &a, &b}),
               [&](const BroadcastLoop& loop, int64_t at, const int64_t* in) {
                 kernel(loop, mask.data<uint8_t>() + in[0], a.data<T>() + in[1], b.data<T>() + in[2], out + at);
               });
  });
  return y;
}

void accumulate_inplace(Tensor& y, const Tensor& x) {
  check_pair("accumulate", y, x);
  LINNET_CHECK(y.shape() == x.shape(), "accumulate: ", x.shape(), " added to ", y.shape());
  with_float("accumulate", y.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(y.device()).accumulate;
    T* out = y.mutable_data<T>();
    parallel_for(y.device(), y.numel(), kCheap,
                 [&](int64_t begin, int64_t end) { kernel(end - begin, x.data<T>() + begin, out + begin); });
  });
}

void add_row_inplace(Tensor& y, const Tensor& row) {
  check_pair("add_row", y, row);
  const int64_t width = row.numel(), rows = y.shape().first(y.rank() - 1).numel();
  LINNET_CHECK(y.size(-1) == width, "add_row: a row ", row.shape(), " added to ", y.shape());
  with_float("add_row", y.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(y.device()).accumulate_rows;
    T* out = y.mutable_data<T>();
    parallel_for(y.device(), rows, kCheap * static_cast<double>(width), [&](int64_t begin, int64_t end) {
      kernel(end - begin, width, row.data<T>(), 0, out + begin * width, width);
    });
  });
}

void scale_inplace(Tensor& y, double factor) {
  with_float("scale", y.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(y.device()).scale;
    T* out = y.mutable_data<T>();
    parallel_for(y.device(), y.numel(), kCheap,
                 [&](int64_t begin, int64_t end) { kernel(end - begin, static_cast<T>(factor), out + begin); });
  });
}

}  // namespace compute
}  // namespace linnet
