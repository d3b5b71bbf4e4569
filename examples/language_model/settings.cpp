#include "language_model/settings.h"

#include <limits>

#include "linnet/core/error.h"

namespace language_model {
namespace {
constexpr double kMost = std::numeric_limits<double>::max(), kLeast = std::numeric_limits<double>::min();
}  // namespace

linnet::models::CausalLMOptions Settings::model(int64_t tokens) const {
  linnet::models::CausalLMOptions options{.vocab = tokens,
                                          .dim = dim,
                                          .layers = layers,
                                          .heads = heads,
                                          .hidden = hidden,
                                          .dropout = dropout,
                                          .positions = linnet::models::Positions::sinusoidal};
  apply(options);
  return options;
}

void Settings::check() const {
  using example::check_between, example::check_number;
  LINNET_CHECK(linnet::nn::has_steps(kind()), "--attention ", attention,
               ": cannot write token by token; linear, softmax and local can");
  check_attention();
  LINNET_CHECK(subwords == 0 || subwords >= 8, "--subwords ", subwords, ": must be at least 8, or 0 for characters");
  check_between("--subwords", subwords, 0, 1 << 20);
  check_between("--layers", layers, 1, 1000);
  check_between("--heads", heads, 1, INT64_MAX);
  check_between("--dim", dim, 1, 1 << 16);
  LINNET_CHECK(dim % heads == 0, "--dim ", dim, ": must be a multiple of --heads ", heads);
  check_between("--hidden", hidden, 1, 1 << 20);
  check_number("--dropout", dropout, 0, 0.99, "0 to 0.99");
  check_between("--context", context, 2, 1 << 20);
  check_between("--batch", batch, 1, 1 << 20);
  check_between("--steps", steps, 1, int64_t{1} << 31);
  check_number("--minutes", minutes, 0, kMost, "above 0, or 0 for any time");
  check_number("--lr", lr, kLeast, kMost, "above 0");
  check_between("--warmup", warmup, 0, steps - 1);
  check_number("--weight-decay", weight_decay, 0, kMost, "0 or more");
  check_number("--clip", clip, 0, kMost, "above 0, or 0 not to clip");
  check_between("--evaluate-every", evaluate_every, 1, int64_t{1} << 31);
  check_between("--seed", seed, 0, INT64_MAX);
  check_between("--threads", threads, 1, 1024);
  example::check_device(device);
}

}  // namespace language_model
