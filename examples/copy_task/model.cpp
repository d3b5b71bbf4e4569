#include "copy_task/model.h"

namespace copy_task {

using linnet::KeyMask;
using linnet::Tensor;
using linnet::Variable;

MaskedCopier::MaskedCopier(const linnet::models::CausalLMOptions& o)
    : embed(*this, "embed", {.rows = o.vocab, .dim = o.dim}),
      positions(linnet::models::make_positions(*this, "positions", o.positions, o.max_time, o.dim)),
      stack(*this, "stack",
            {.layers = o.layers,
             .block = {.dim = o.dim,
                       .heads = o.heads,
                       .hidden = o.hidden,
                       .kind = o.kind,
                       .window = o.window,
                       .lsh = o.lsh,
                       .clustered = o.clustered,
                       .feature_map = o.feature_map}}),
      head(*this, "head", {.in = o.dim, .out = o.vocab}) {}

Variable MaskedCopier::operator()(const Tensor& tokens, const KeyMask& keys) const {
  const Variable x = std::visit([&](const auto& p) { return p(embed(tokens)); }, positions);
  return head(stack(x, &keys));
}

Learner::Learner(const Settings& s) : size_{s.length, s.symbols}, seed_(static_cast<uint64_t>(s.seed)) {
  if (s.is_masked())
    finder_ = std::make_unique<MaskedCopier>(s.model());
  else
    writer_ = std::make_unique<linnet::models::CausalLM>(s.model());
}

linnet::nn::Module& Learner::net() const {
  if (finder_) return *finder_;
  return *writer_;
}

Batch Learner::batch(int64_t count, Stream stream, uint64_t index) const {
  return (finder_ ? make_masked_batch : make_batch)(size_, count, seed_, stream, index);
}

Variable Learner::logits(const Batch& batch) const {
  return finder_ ? (*finder_)(batch.inputs, KeyMask::lengths(batch.lengths)) : (*writer_)(batch.inputs);
}

}  // namespace copy_task
