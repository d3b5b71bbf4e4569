// Kernels of every kind give the numbers of a plain loop, in every order of threads and blocks.
#include <doctest/doctest.h>

#include <random>

#include "cuda_on_cpu/device_array.h"
#include "cuda_on_cpu/kernels/kernels.h"

using cuda_on_cpu::Order;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

namespace {

Floats random_floats(size_t n, float low, float high) {
  static std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(low, high);
  Floats all(n);
  for (float& x : all) x = draw(random);
  return all;
}

// Runs f in each order and compares what it returns.
template <class F>
void check_orders(const Doubles& wanted, double tolerance, F f) {
  for (Order order : {Order::forward, Order::reverse, Order::random}) {
    cuda_on_cpu::set_order(order);
    const auto got = f();
    CHECK(cudaGetLastError() == cudaSuccess);
    REQUIRE(got.size() == wanted.size());
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(got[i] - wanted[i]) / (1 + std::abs(wanted[i]));
      if (!(error <= worst)) worst = error;  // NaN stays
    }
    INFO("order ", static_cast<int>(order));
    CHECK(worst <= tolerance);
  }
  cuda_on_cpu::set_order(Order::forward);
}

}  // namespace

TEST_CASE("softmax: sums and maxima by shuffles and shared memory") {
  const int rows = 3, columns = 300;
  const Floats x = random_floats(rows * columns, -4, 4);
  Doubles wanted(x.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += wanted[r * columns + c] = std::exp(double{x[r * columns + c]});
    for (int c = 0; c < columns; ++c) wanted[r * columns + c] /= sum;
  }
  check_orders(wanted, 1e-6, [&] {
    const DeviceArray<float> dx(x), dy(x.size());
    kernels::softmax(dx.data(), dy.data(), rows, columns, nullptr);
    return dy.values();
  });
}

TEST_CASE("layer norm: shared memory is used twice") {
  const int rows = 3, columns = 131;
  const Floats x = random_floats(rows * columns, -2, 3), weight = random_floats(columns, -1, 1),
               bias = random_floats(columns, -1, 1);
  Doubles wanted(x.size());
  for (int r = 0; r < rows; ++r) {
    double mean = 0, squares = 0;
    for (int c = 0; c < columns; ++c) mean += double{x[r * columns + c]} / columns;
    for (int c = 0; c < columns; ++c) squares += (x[r * columns + c] - mean) * (x[r * columns + c] - mean);
    const double scale = 1 / std::sqrt(squares / columns + 1e-5);
    for (int c = 0; c < columns; ++c) {
      const int i = r * columns + c;
      wanted[i] = (x[i] - mean) * scale * weight[c] + bias[c];
    }
  }
  check_orders(wanted, 1e-5, [&] {
    const DeviceArray<float> dx(x), dw(weight), db(bias), dy(x.size());
    kernels::layer_norm(dx.data(), dw.data(), db.data(), dy.data(), rows, columns, 1e-5f, nullptr);
    return dy.values();
  });
}

TEST_CASE("a sum over blocks: the last one is found by an atomic behind a fence") {
  Doubles x;
  double sum = 0;
  for (float each : random_floats(1000, -1, 1)) x.push_back(each), sum += each;
  check_orders({sum}, 1e-12, [&] {
    const DeviceArray<double> dx(x), partial(5), total(1);
    const DeviceArray<unsigned> counter(std::vector<unsigned>{0});
    kernels::sum(dx.data(), partial.data(), counter.data(), total.data(), 1000, 5, nullptr);
    return total.values();
  });
}

TEST_CASE("cumulative sums: shuffles upwards, warps, a carry") {
  const int rows = 2, columns = 300;
  const Floats x = random_floats(rows * columns, -1, 1);
  Doubles wanted(x.size());
  for (int i = 0; i < rows * columns; ++i) wanted[i] = x[i] + (i % columns ? wanted[i - 1] : 0);
  check_orders(wanted, 1e-5, [&] {
    const DeviceArray<float> dx(x), dy(x.size());
    kernels::cumulative_sum(dx.data(), dy.data(), rows, columns, nullptr);
    return dy.values();
  });
}

TEST_CASE("transpose through a tile") {
  const int rows = 37, columns = 70;
  const Floats x = random_floats(rows * columns, -1, 1);
  Doubles wanted(x.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) wanted[c * rows + r] = x[r * columns + c];
  check_orders(wanted, 0, [&] {
    const DeviceArray<float> dx(x), dy(x.size());
    kernels::transpose(dx.data(), dy.data(), rows, columns, nullptr);
    return dy.values();
  });
}

TEST_CASE("a matrix product in tiles, and the same by cuBLAS") {
  const int m = 20, n = 37, k = 41;
  const Floats a = random_floats(m * k, -1, 1), b = random_floats(k * n, -1, 1);
  Doubles wanted(m * n);
  for (int i = 0; i < m * n; ++i)
    for (int l = 0; l < k; ++l) wanted[i] += double{a[i / n * k + l]} * b[l * n + i % n];
  const DeviceArray<float> da(a), db(b);
  check_orders(wanted, 1e-6, [&] {
    const DeviceArray<float> dc(m * n);
    kernels::matmul(da.data(), db.data(), dc.data(), m, n, k, nullptr);
    return dc.values();
  });
  check_orders(wanted, 1e-6, [&] {
    const DeviceArray<float> dc(m * n);
    cublasHandle_t handle;
    cublasCreate(&handle);
    const float one = 1,
                zero = 0;  // by rows c = a b is by columns c^T = b^T a^T; zero overwrites the NaN of new memory
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, db.data(), n, da.data(), k, &zero, dc.data(), n);
    cublasDestroy(handle);
    return dc.values();
  });
}

TEST_CASE("scatter-add by atomics") {
  const int rows = 24, columns = 70, table_rows = 7;
  std::vector<int> ids;
  for (int i = 0; i < rows; ++i) ids.push_back(i * i % table_rows);
  const Floats dy = random_floats(rows * columns, -1, 1);
  Doubles wanted(table_rows * columns);
  for (int i = 0; i < rows * columns; ++i) wanted[ids[i / columns] * columns + i % columns] += dy[i];
  check_orders(wanted, 1e-6, [&] {
    const DeviceArray<int> d_ids(ids);
    const DeviceArray<float> d_dy(dy), table(Floats(wanted.size(), 0));
    kernels::scatter_add(d_ids.data(), d_dy.data(), table.data(), rows, columns, nullptr);
    return table.values();
  });
}

TEST_CASE("linear attention in chunks: dynamic shared memory, a ragged end") {
  const int heads = 2, time = 70, dim = 64;
  const Floats q = random_floats(heads * time * dim, 0.05f, 1), k = random_floats(q.size(), 0.05f, 1),
               v = random_floats(q.size(), -1, 1);
  Doubles wanted(q.size());
  for (int i = 0; i < heads * time; ++i) {
    double sum = 0;
    for (int j = i / time * time; j <= i; ++j) {
      double score = 0;
      for (int d = 0; d < dim; ++d) score += double{q[i * dim + d]} * k[j * dim + d];
      for (int d = 0; d < dim; ++d) wanted[i * dim + d] += score * v[j * dim + d];
      sum += score;
    }
    for (int d = 0; d < dim; ++d) wanted[i * dim + d] /= sum;
  }
  const DeviceArray<float> dq(q), dk(k), dv(v);
  check_orders(wanted, 1e-5, [&] {
    const DeviceArray<float> states(kernels::linear_attention_states(heads, time)), o(q.size());
    kernels::linear_attention(dq.data(), dk.data(), dv.data(), states.data(), o.data(), heads, time, nullptr);
    return o.values();
  });
}

TEST_CASE("a causal product on the tensor cores") {
  const int heads = 2, rows = 32, dim = 16;
  std::vector<__nv_bfloat16> q, k, v;
  for (auto* each : {&q, &k, &v})
    for (float x : random_floats(heads * rows * dim, -1, 1)) each->push_back(__float2bfloat16(x));
  const auto at = [](const auto& x, int i) { return double{__bfloat162float(x[i])}; };
  Doubles wanted(q.size());
  for (int i = 0; i < heads * rows; ++i)
    for (int j = i / rows * rows; j <= i; ++j) {
      double score = 0;
      for (int d = 0; d < dim; ++d) score += at(q, i * dim + d) * at(k, j * dim + d);
      const double rounded = __bfloat162float(__float2bfloat16(float(score)));
      for (int d = 0; d < dim; ++d) wanted[i * dim + d] += rounded * at(v, j * dim + d);
    }
  const DeviceArray<__nv_bfloat16> dq(q), dk(k), dv(v);
  check_orders(wanted, 1e-2, [&] {  // a score between two of bfloat16's numbers may go either way
    const DeviceArray<float> o(q.size());
    kernels::causal_product(dq.data(), dk.data(), dv.data(), o.data(), heads, nullptr);
    return o.values();
  });
}
