#include "linnet/nn/summary.h"

#include <doctest/doctest.h>

#include "linnet/nn/embedding.h"
#include "linnet/nn/linear.h"

using namespace linnet;

namespace {

struct Small : nn::Model {
  nn::Embedding embed{*this, "embed", {.rows = 1200, .dim = 6}};
  nn::Linear hidden{*this, "hidden", {.in = 6, .out = 6}};
  nn::Linear head{*this, "head", {.in = 6, .out = 1200, .bias = false, .tied = embed.weight}};
  Tensor& seen = buffer("seen", Tensor::zeros({2}, Dtype::i32));
};

}  // namespace

TEST_CASE("summary: a table of names, shapes and counts; tied parameters count once") {
  Small net;
  net.hidden.set_requires_grad(false);
  CHECK(nn::summary(net) ==
        "name           layer      shape           parameters  trainable\n"
        "embed.weight   Embedding  (1200, 6)            7,200  yes\n"
        "hidden.weight  Linear     (6, 6)                  36  no\n"
        "hidden.bias    Linear     (6)                      6  no\n"
        "head.weight    Linear     = embed.weight           0\n"
        "seen           Small      (2)                      0  buffer\n"
        "Small: 7,242 parameters, 7,200 of them trainable, 28,976 bytes\n");
}

TEST_CASE("summary: of a part, and of nothing") {
  Small net;
  CHECK(nn::summary(net.hidden) ==
        "name    layer   shape   parameters  trainable\n"
        "weight  Linear  (6, 6)          36  yes\n"
        "bias    Linear  (6)              6  yes\n"
        "Linear: 42 parameters, 42 of them trainable, 168 bytes\n");
  CHECK(nn::summary(nn::Model()) ==
        "name  layer  shape  parameters  trainable\n"
        "Model: 0 parameters, 0 of them trainable, 0 bytes\n");
}
