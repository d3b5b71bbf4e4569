#include "linnet/ops/embedding.h"

#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

Tensor index_of(const std::vector<int32_t>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

Tensor gradient(const Tensor& table, const Tensor& index, const Tensor& seed, std::optional<int64_t> padding = {}) {
  const Variable weight = Variable::leaf(table);
  Tape tape;
  tape.backward(embedding(weight, index, padding), seed);
  return weight.grad();
}

}  // namespace

TEST_CASE("embedding: rows in the index's shape") {
  const Tensor weight = Tensor::from<float>({0, 1, 10, 11, 20, 21}, {3, 2});
  const Tensor y = embedding(weight, Tensor::from<int32_t>({2, 0, 0, 1}, {2, 2})).value();
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(y.to_vector<float>() == std::vector<float>{20, 21, 0, 1, 0, 1, 10, 11});
  CHECK(embedding(weight, Tensor::zeros({0}, Dtype::i32)).shape() == Shape{0, 2});
  CHECK(embedding(weight, Tensor::scalar(1, Dtype::i32)).value().to_vector<float>() == std::vector<float>{10, 11});
}

TEST_CASE("embedding: gradients") {
  struct Case {
    Shape weight;
    std::vector<int32_t> index;
  };
  std::vector<int32_t> many;
  for (int i = 0; i < 131; ++i) many.push_back(i * 7 % 37);
  for (const Case& c :
       std::vector<Case>{{{5, 3}, {4, 0, 0, 2}}, {{1, 1}, {0}}, {{5, 3}, {}}, {{3, 0}, {1}}, {{37, 19}, many}})
    check_gradients("embedding", [&](const std::vector<Variable>& in) { return embedding(in[0], index_of(c.index)); },
                    {grid(c.weight)}, {.full_below = 1024});
}

TEST_CASE("embedding: the padding row is read as stored and gets no gradient (AG7)") {
  const Tensor weight = grid({5, 3}, 0.013, Dtype::f32), index = Tensor::zeros({769}, Dtype::i32);
  CHECK(embedding(weight, index, 0).value().to_vector<float>()[0] == weight.to_vector<float>()[0]);
  CHECK(gradient(weight, index, Tensor::full({769, 3}, 1), 0).to_vector<float>() == std::vector<float>(15, 0));
  CHECK(gradient(weight, index, Tensor::full({769, 3}, 1)).to_vector<float>()[0] == 769);
  CHECK(gradient(weight, index_of({0, 4, 4}), Tensor::full({3, 3}, NAN), 4).to_vector<float>()[12] == 0);
}

TEST_CASE("embedding: gradients of rows that are many, rare, or one among all") {
  Generator generator{7, 2, 0};
  const auto check = [&](int64_t rows, int64_t dim, int64_t n, int64_t most, Dtype dtype) {
    INFO(rows, " ", dim, " ", n, " ", most, " ", name(dtype));
    std::vector<int32_t> at;
    for (int64_t i = 0; i < n; ++i) at.push_back(static_cast<int32_t>(i % 3 ? generator.below(most) : rows - 1));
    const Tensor weight = Tensor::zeros({rows, dim}, dtype), index = index_of(at), seed = grid({n, dim}, 0.01, dtype);
    const auto host = [](const Tensor& t) { return t.to(Device::cpu); };
    CHECK(deviation(gradient(weight, index, seed), gradient(host(weight), host(index), host(seed))) <=
          (dtype == Dtype::f32 ? 1e-5 : 1e-12));
  };
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
    for (int64_t n : {1, 31, 32, 33, 64, 65, 2047, 2048, 2049, 5000}) check(300, 5, n, 300, dtype);
    check(1, 3, 3000, 1, dtype);
    check(70000, 1, 9000, 70000, dtype);
    check(257, 33, 3001, 2, dtype);
  }
}

TEST_CASE("embedding: levels and numbers of threads agree, bit for bit") {
  manual_seed(7);
  const Tensor weight = Tensor::normal({61, 40}), seed = Tensor::normal({5000, 40});
  std::vector<int32_t> rows;
  Generator generator{7, 1, 0};
  for (int i = 0; i < 5000; ++i) rows.push_back(static_cast<int32_t>(generator.below(61)));
  const Tensor index = index_of(rows);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor expected = gradient(weight, index, seed);
  for_each_level([&](const char* level) {
    for (int threads : {1, 2, 3}) {
      INFO(level, " ", threads);
      set_num_threads(threads);
      CHECK(same_bits(gradient(weight, index, seed), expected));
    }
  });
  set_num_threads(before);
}

TEST_CASE("embedding: errors, after which it still works (AG8)") {
  const Tensor weight = Tensor::zeros({5, 3});
  CHECK(message_of([&] {
          embedding(weight, index_of({1, 100}));
        }) == "embedding: index 100 at position 1, but there are 5 rows");
  CHECK(message_of([&] { embedding(weight, index_of({-1})); }) ==
        "embedding: index -1 at position 0, but there are 5 rows");
  CHECK(message_of([&] { embedding(weight, index_of({5}), 0); }) ==
        "embedding: index 5 at position 0, but there are 5 rows");
  CHECK(message_of([&] { embedding(weight, index_of({0}), 5); }) == "embedding: padding row 5, but there are 5 rows");
  CHECK(message_of([&] { embedding(weight, Tensor::zeros({2})); }) == "embedding: the index is f32, i32 wanted");
  CHECK(message_of([&] { embedding(Tensor::zeros({5}), index_of({0})); }) ==
        "embedding: weight (5) is not (rows, dim)");
  CHECK(embedding(weight, index_of({4})).shape() == Shape{1, 3});
}
