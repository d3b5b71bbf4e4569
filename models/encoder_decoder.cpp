#include "linnet/models/encoder_decoder.h"

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/models/block_options.h"
#include "linnet/models/layer_states.h"
#include "linnet/ops/elementwise.h"

namespace linnet::models {
namespace {

int64_t source_vocab(const EncoderDecoderOptions& options) {
  return options.source_vocab ? options.source_vocab : options.vocab.get();
}

int64_t max_source_time(const EncoderDecoderOptions& options) {
  return options.max_source_time ? options.max_source_time : options.max_time;
}

DecoderBlockOptions decoder_options(const EncoderDecoderOptions& options) {
  DecoderBlockOptions decoder{.block = block_options(options, false), .cross_kind = options.cross_kind};
  decoder.block.kind = options.decoder_kind.value_or(options.kind);
  return decoder;
}

nn::EmbeddingOptions source_options(const EncoderDecoderOptions& options, const nn::Embedding& embed) {
  nn::EmbeddingOptions source{.rows = source_vocab(options), .dim = options.dim};
  if (options.tie_source) source.tied = embed.weight;
  return source;
}

nn::LinearOptions head_options(const EncoderDecoderOptions& options, const nn::Embedding& embed) {
  return {.in = options.dim, .out = options.vocab, .tied = options.tie_head ? embed.weight : Variable()};
}

}  // namespace

StateDict EncoderDecoderState::state_dict() const { return state_dict_at(decoder, position); }

void EncoderDecoderState::load_state_dict(const StateDict& state) { load_at(decoder, position, state); }

EncoderDecoderState EncoderDecoderState::select(const Tensor& samples) const {
  return {decoder.select(samples), position};
}

EncoderDecoder::EncoderDecoder(const Options& options) : EncoderDecoder(nullptr, {}, options) {}
EncoderDecoder::EncoderDecoder(nn::Module& parent, std::string name, const Options& options)
    : EncoderDecoder(&parent, std::move(name), options) {}

EncoderDecoder::EncoderDecoder(nn::Module* parent, std::string name, const Options& options)
    : Model(parent, std::move(name)),
      embed(*this, "embed", {.rows = options.vocab, .dim = options.dim}),
      positions(make_positions(*this, "positions", options.positions, options.max_time, options.dim)),
      source_embed(*this, "source_embed", source_options(options, embed)),
      source_positions(
          make_positions(*this, "source_positions", options.positions, max_source_time(options), options.dim)),
      dropout(*this, "dropout", {.p = options.dropout}),
      encoder(*this, "encoder", {.layers = options.encoder_layers, .block = block_options(options, false)}),
      decoder(*this, "decoder", {.layers = options.decoder_layers, .block = decoder_options(options)}),
      head(*this, "head", head_options(options, embed)),
      vocab_(options.vocab),
      max_time_(options.max_time),
      max_source_time_(max_source_time(options)),
      scale_(options.scale_embeddings ? std::sqrt(static_cast<double>(options.dim)) : 1) {}

void EncoderDecoder::check_tokens(const char* what, const Tensor& tokens, int64_t most) const {
  LINNET_CHECK(tokens.defined() && tokens.rank() == 2 && tokens.dtype() == Dtype::i32, label(), ": ", what, " ",
               tokens.shape(), " ", tokens.dtype(), " is not i32 (batch, time)");
  LINNET_CHECK(most == 0 || tokens.size(1) <= most, label(), ": ", tokens.size(1), " tokens of the ", what,
               " given, but at most ", most, " fit");
}

Variable EncoderDecoder::embedded(const nn::Embedding& embedding, const AnyPositions& place,
                                  const Tensor& tokens) const {
  const Variable x = scale_ == 1 ? embedding(tokens) : embedding(tokens) * scale_;
  return dropout(std::visit([&](const auto& p) { return p(x); }, place));
}

Variable EncoderDecoder::encode(const Tensor& source, const KeyMask* keys) const {
  check_tokens("source", source, max_source_time_);
  return encoder(embedded(source_embed, source_positions, source), keys);
}

Variable EncoderDecoder::decode(const Variable& memory, const KeyMask* keys, const Tensor& target) const {
  check_tokens("target", target, max_time_);
  return head(decoder(embedded(embed, positions, target), memory, keys));
}

Variable EncoderDecoder::operator()(const Tensor& source, const KeyMask* keys, const Tensor& target) const {
  check_tokens("source", source, max_source_time_);
  check_tokens("target", target, max_time_);
  LINNET_CHECK(source.size(0) == target.size(0), label(), ": source ", source.shape(), " and target ", target.shape(),
               " differ in batch");
  return decode(encode(source, keys), keys, target);
}

std::vector<Tensor> EncoderDecoder::cross_weights(const Tensor& source, const KeyMask* keys,
                                                  const Tensor& target) const {
  nn::detail::check_not_recording(*this, "cross_weights");
  check_tokens("target", target, max_time_);
  return decoder.cross_weights(embedded(embed, positions, target), encode(source, keys), keys);
}

EncoderDecoderState EncoderDecoder::make_state(const Tensor& source, const KeyMask* keys, int64_t capacity) const {
  nn::detail::check_not_recording(*this, "make_state");
  return {decoder.make_state(encode(source, keys), keys, capacity), 0};
}

Tensor EncoderDecoder::step(const Tensor& tokens, EncoderDecoderState& state) const {
  nn::detail::check_not_recording(*this, "step");
  LINNET_CHECK(tokens.defined() && tokens.rank() == 1 && tokens.dtype() == Dtype::i32, label(), ": tokens ",
               tokens.shape(), " ", tokens.dtype(), " are not i32 (batch), one step");
  LINNET_CHECK(max_time_ == 0 || state.position < max_time_, label(), ": step ", state.position,
               " wanted, but max_time is ", max_time_);
  Workspace& workspace = state.decoder.workspace;
  const auto take = [&](int64_t width) {
    return workspace.take({tokens.size(0), width}, embed.weight.dtype(), embed.weight.device());
  };
  Tensor h = take(embed.weight.size(1)), logits = take(vocab_);
  embed.into(tokens, h);
  if (scale_ != 1) compute::scale_inplace(h, scale_);
  std::visit([&](const auto& p) { p.step_inplace(h, state.position, workspace); }, positions);
  decoder.step_inplace(h, state.decoder);
  head.into(h, logits);
  ++state.position;
  return logits;
}

void EncoderDecoder::check_decoding(int32_t start, int32_t end, int64_t tokens) const {
  for (const auto& [name, token] : {std::pair("start", start), std::pair("end", end)})
    LINNET_CHECK(token >= 0 && token < vocab_, label(), ": ", name, " token ", token, " is not one of ", vocab_);
  LINNET_CHECK(tokens >= 0, label(), ": ", tokens, " tokens to make, want 0 or more");
  LINNET_CHECK(max_time_ == 0 || tokens <= max_time_, label(), ": ", tokens, " tokens to make exceed max_time ",
               max_time_);
}

Tensor EncoderDecoder::generate(const Tensor& source, const KeyMask* keys, const DecodeOptions& options) const {
  nn::detail::check_not_recording(*this, "generate");
  check_decoding(options.start, options.end, options.tokens);
  const SamplingOptions sampling{options.temperature, options.top_k, options.top_p};
  check_sampling("generate", sampling);
  EncoderDecoderState state = make_state(source, keys);
  const int64_t batch = source.size(0);
  Generator& generator = options.generator ? *options.generator : default_generator();
  RowSampler sample(sampling, generator, batch, vocab_);
  Tensor next = Tensor::full({batch}, options.start, Dtype::i32, Device::cpu);
  std::vector<std::vector<int32_t>> made(static_cast<size_t>(batch));
  std::vector<bool> ended(static_cast<size_t>(batch), false);
  int64_t length = 0;
  for (size_t running = made.size(); running > 0 && length < options.tokens; ++length) {
    sample(step(next.to(source.device()), state), next);
    int32_t* token = next.mutable_data<int32_t>();
    for (size_t b = 0; b < made.size(); ++b) {
      if (ended[b]) token[b] = options.end;
      made[b].push_back(token[b]);
      running -= !ended[b] && token[b] == options.end;
      ended[b] = token[b] == options.end;
    }
  }
  Tensor targets = Tensor::empty({batch, length}, Dtype::i32, Device::cpu);
  int32_t* to = targets.mutable_data<int32_t>();
  for (const auto& row : made) to = std::copy(row.begin(), row.end(), to);
  if (options.temperature > 0) generator.take(options.tokens);  // last: a call that fails takes none
  return targets.to(source.device());
}

std::vector<std::vector<Hypothesis>> EncoderDecoder::search(const Tensor& source, const KeyMask* keys,
                                                            const BeamOptions& options) const {
  nn::detail::check_not_recording(*this, "search");
  check_decoding(options.start, options.end, options.tokens);
  check_beams("search", options);
  EncoderDecoderState state = make_state(source, keys);
  std::vector<int32_t> sample_of =
      Tensor::arange(source.size(0), Dtype::i32, Device::cpu).to_vector<int32_t>();  // of each row of the state
  return beam_search(source.size(0), options, [&](const Tensor& parents, const Tensor& tokens) {
    std::vector<int32_t> rows = parents.to_vector<int32_t>(), samples;
    const Tensor beams = parents.to(source.device());
    bool same = rows.size() == sample_of.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      samples.push_back(sample_of[static_cast<size_t>(rows[i])]);
      same = same && rows[i] == static_cast<int32_t>(i);
    }
    // Beams of one sample look at the same source: as long as no row changes its sample, only the past moves.
    if (!same && samples == sample_of) state.decoder.select_past(beams);
    if (!same && samples != sample_of) state = state.select(beams);
    sample_of = samples;
    return step(tokens.to(source.device()), state);
  });
}

}  // namespace linnet::models
