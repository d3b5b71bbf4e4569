// RAdam against the numbers of another implementation's tests.
#include <doctest/doctest.h>

#include <cmath>

#include "linnet/optim/radam.h"
#include "support/vectors.h"

using namespace linnet;

TEST_CASE("RAdam reproduces 100 steps of each case in radam_tfa.json") {
  auto dir = test_support::vectors_dir_or_say("RAdam vectors");
  if (!dir) return;
  auto cases = test_support::read_json(*dir / "optim/radam_tfa.json")["cases"];
  REQUIRE(cases.size() == 4);
  for (const auto& c : cases) {
    auto start = c["x0"].get<std::vector<double>>(), gradient = c["grad"].get<std::vector<double>>();
    Variable x = Variable::leaf(Tensor::from(start, {std::ssize(start)}));
    // Its decay, added to the update before lr, is the decoupled one.
    optim::RAdam optimizer({x}, {.lr = c["lr"],
                                 .beta1 = c["betas"][0],
                                 .beta2 = c["betas"][1],
                                 .eps = c["eps"],
                                 .weight_decay = c["weight_decay"],
                                 .threshold = c["sma_threshold"]});
    for (int i = 0; i < c["iterations"].get<int>(); ++i) {
      x.mutable_grad() = Tensor::from(gradient, {std::ssize(gradient)});
      optimizer.step();
    }
    auto expected = c["expected"].get<std::vector<double>>(), got = x.value().to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= c["atol"].get<double>());
  }
}
