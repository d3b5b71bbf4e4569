// An encoder-decoder with the weights of torch.nn.Transformer, pre- and post-norm, its sources padded: logits, loss and
// the gradient of every parameter agree to 1e-5 (data/encoder_decoder_*.safetensors, made by make_encoder_decoder.py).
#include "linnet/models/encoder_decoder.h"

#include "linnet/core/compute.h"
#include "linnet/ops/cross_entropy.h"
#include "parity/reference.h"

using namespace linnet;
using namespace test_support;

namespace {

/// What PyTorch calls a part, and what it is called here: one after the other.
const std::vector<std::pair<std::string, std::string>> kNames = {{"transformer.encoder.layers.", "encoder.blocks."},
                                                                 {"transformer.decoder.layers.", "decoder.blocks."},
                                                                 {"transformer.", ""},  // the last normalisations
                                                                 {"target_embed.", "embed."},
                                                                 {"target_positions.", "positions."},
                                                                 {".self_attn.in_proj_", ".attention.qkv."},
                                                                 {".self_attn.out_proj.", ".attention.out."},
                                                                 {".multihead_attn.out_proj.", ".cross.out."},
                                                                 {".linear1.", ".feed_forward.up."},
                                                                 {".linear2.", ".feed_forward.down."}};

/// PyTorch's weights, or their gradients, under linnet's names. Cross attention's projection of q, k and v, one in
/// PyTorch, is q and kv here.
StateDict renamed(const StateDict& torch) {
  const std::string cross = ".multihead_attn.in_proj_";
  StateDict out;
  for (auto [name, tensor] : torch.tensors()) {
    for (const auto& [theirs, ours] : kNames)
      if (const size_t at = name.find(theirs); at != name.npos) name.replace(at, theirs.size(), ours);
    const size_t at = name.find(cross);
    if (at == name.npos) {
      out.set(name, tensor);
      continue;
    }
    const std::string layer = name.substr(0, at), part = name.substr(at + cross.size());
    const int64_t dim = tensor.size(0) / 3;
    out.set(layer + ".cross.q." + part, tensor.slice(0, dim));
    out.set(layer + ".cross.kv." + part, tensor.slice(dim, 3 * dim));
  }
  return out;
}

void check_model(const std::string& file) {
  INFO(file);
  const StateDict reference = load_reference(file);
  auto count = [&](const char* name) { return static_cast<int64_t>(reference.number(name)); };
  models::EncoderDecoder net({.vocab = count("vocab"),
                              .dim = count("dim"),
                              .heads = count("heads"),
                              .source_vocab = count("source_vocab"),
                              .encoder_layers = count("layers"),
                              .decoder_layers = count("layers"),
                              .hidden = count("hidden"),
                              .max_time = count("max_time"),
                              .max_source_time = count("max_source_time"),
                              .kind = nn::AttentionKind::softmax,
                              .cross_kind = nn::AttentionKind::softmax,
                              .pre_norm = count("pre_norm") != 0,
                              .positions = models::Positions::learned});
  net.load_state_dict(renamed(reference.part("weights")));

  const KeyMask keys = KeyMask::lengths(reference.get("lengths"));
  Tape tape;
  const Variable logits =
      net(reference.get("source").to(default_device()), &keys, reference.get("target").to(default_device()));
  check_agree("logits", logits.value(), reference.get("logits"));
  const Variable loss = cross_entropy(logits, reference.get("labels").to(default_device()), {.ignore_index = -1});
  check_agree("loss", loss.value(), reference.get("loss"));
  tape.backward(loss);

  const StateDict gradients = renamed(reference.part("gradients"));
  const auto parameters = net.named_parameters();
  CHECK(parameters.size() == gradients.tensors().size());
  for (const auto& [name, parameter] : parameters) check_agree(name, parameter.grad(), gradients.get(name), 0);
}

}  // namespace

TEST_CASE("an encoder-decoder agrees with torch.nn.Transformer") {
  check_model("encoder_decoder_pre_norm.safetensors");
  check_model("encoder_decoder_post_norm.safetensors");
}
