// linear_regression: the smallest training loop. From noisy points it finds the weights of y = 2 x0 - 3 x1 + 0.5.
#include <cstdio>
#include <string>

#include "linnet/linnet.h"
#include "support/device.h"
#include "support/minibatch.h"
#include "support/program.h"

using namespace linnet;

struct Regression : nn::Model {
  nn::Linear layer{*this, "layer", {.in = 2, .out = 1}};
  Variable operator()(const Tensor& x) const { return layer(x); }
};

int train(const std::string& device) {
  example::use_device(device);
  manual_seed(1);
  const Tensor x = Tensor::normal({1000, 2});
  const Tensor true_weight = Tensor::from<float>({2, -3}, {1, 2}), true_bias = Tensor::from<float>({0.5}, {1});
  const Tensor y = (linear(x, true_weight, true_bias) + Tensor::normal({1000, 1}, 0, 0.1)).value();

  Regression net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  for (int epoch = 1; epoch <= 5; ++epoch) {
    double sum = 0;
    const auto batches = example::minibatches(1000, 20, default_generator());
    for (const Tensor& rows : batches) {
      Tape tape;
      Variable loss = mse(net(example::take_rows(x, rows)), example::take_rows(y, rows));
      tape.backward(loss);
      optimizer.step();
      optimizer.clear_grads();
      sum += loss.item();
    }
    std::printf("epoch %d  mean loss %.4f\n", epoch, sum / static_cast<double>(batches.size()));
  }

  const auto w = net.layer.weight.value().to_vector<float>(), b = net.layer.bias.value().to_vector<float>();
  std::printf("learned  y = %.3f x0 %+.3f x1 %+.3f\ntrue     y = 2.000 x0 -3.000 x1 +0.500\n", w[0], w[1], b[0]);
  return 0;
}

int main(int argc, char** argv) {
  CLI::App app("Fits a line to noisy points.", "linear_regression");
  std::string device;
  example::add_device(app, device);
  return example::run_program(app, argc, argv, [&] { return train(device); });
}
