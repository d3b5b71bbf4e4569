#include "translate/settings.h"

#include <filesystem>
#include <limits>

#include "linnet/core/error.h"

namespace translate {
namespace {
constexpr double kMost = std::numeric_limits<double>::max(), kLeast = std::numeric_limits<double>::min();
}  // namespace

linnet::models::EncoderDecoderOptions Settings::model(int64_t pieces) const {
  using linnet::nn::AttentionKind;
  linnet::models::EncoderDecoderOptions options{.vocab = pieces,
                                                .dim = dim,
                                                .heads = heads,
                                                .encoder_layers = layers,
                                                .decoder_layers = layers,
                                                .hidden = hidden,
                                                .dropout = dropout,
                                                .tie_head = true,
                                                .tie_source = true};
  apply(options);
  const bool crosses = kind() == AttentionKind::linear || kind() == AttentionKind::efficient;
  options.decoder_kind = linnet::nn::has_steps(kind()) ? kind() : AttentionKind::softmax;
  options.cross_kind = crosses ? kind() : AttentionKind::softmax;
  return options;
}

std::string Settings::file(const std::string& part, const std::string& language) const {
  const std::string plain = data + "/" + part + "." + language;
  std::error_code ignored;
  return std::filesystem::exists(plain + ".gz", ignored) ? plain + ".gz" : plain;
}

void Settings::check() const {
  using example::check_between, example::check_number;
  check_attention();
  check_between("--layers", layers, 1, 1000);
  check_between("--heads", heads, 1, INT64_MAX);
  check_between("--dim", dim, 1, 1 << 16);
  LINNET_CHECK(dim % heads == 0, "--dim ", dim, ": must be a multiple of --heads ", heads);
  LINNET_CHECK(dim % 2 == 0, "--dim ", dim, ": must be even, for the positions");
  check_between("--hidden", hidden, 1, 1 << 20);
  check_between("--vocab", vocab, 8, 1 << 20);
  check_number("--dropout", dropout, 0, 0.99, "0 to 0.99");
  check_number("--smoothing", smoothing, 0, 1, "0 to 1");
  check_between("--epochs", epochs, 1, 1 << 20);
  check_number("--minutes", minutes, 0, kMost, "above 0, or 0 for any time");
  check_between("--batch-tokens", batch_tokens, 1, 1 << 24);
  check_between("--max-length", max_length, 1, batch_tokens);
  check_number("--lr", lr, kLeast, kMost, "above 0");
  check_between("--warmup", warmup, 1, int64_t{1} << 31);
  check_number("--clip", clip, 0, kMost, "above 0, or 0 not to clip");
  check_number("--average", average, 0, 0.999999, "0 to 0.999999");
  check_between("--seed", seed, 0, INT64_MAX);
  check_between("--threads", threads, 1, 1024);
  example::check_device(device);
}

}  // namespace translate
