#include "linnet/ops/mse.h"

#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("mse: gradients of both sides with every reduction") {
  for (const Shape& shape : shapes_to_try())
    for (Reduce reduce : {Reduce::none, Reduce::sum, Reduce::mean}) {
      INFO(shape.str(), " reduce ", static_cast<int>(reduce));
      check_gradients("mse", [reduce](const std::vector<Variable>& in) { return mse(in[0], in[1], reduce); },
                      {grid(shape, 0.013), positive_grid(shape, 0.005)}, {.full_below = 1024});
    }
}

TEST_CASE("mse: values at every level") {
  const Tensor p = Tensor::from<float>({1, 2, 3, 4}, {2, 2}), t = Tensor::from<float>({1, 0, 0, 5}, {2, 2});
  for_each_level([&](const char* level) {
    INFO(level);
    CHECK(mse(p, t).item() == 3.5);
    CHECK(mse(p, t, Reduce::sum).item() == 14);
    CHECK(mse(p, t, Reduce::none).value().to_vector<float>() == std::vector<float>{0, 4, 9, 1});
    CHECK(mse(Tensor::zeros({0}), Tensor::zeros({0})).item() == 0);
  });
}

TEST_CASE("mse: errors") {
  CHECK(message_of([] {
          mse(Tensor::zeros({3, 1}), Tensor::zeros({3}));
        }) == "mse: prediction (3, 1) and target (3) differ in shape");
  CHECK(message_of([] { mse(Tensor::zeros({3}, Dtype::i32), Tensor::zeros({3}, Dtype::i32)); }) ==
        "mse: prediction is i32, f32 or f64 wanted");
  CHECK_THROWS_AS(mse(Tensor::zeros({3}), Tensor::zeros({3}, Dtype::f64)), Error);
}
