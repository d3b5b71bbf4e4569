#include "language_model/writer.h"

#include <algorithm>
#include <limits>

#include "linnet/data/utf8.h"
#include "support/files.h"

namespace language_model {

using linnet::Tensor;
using linnet::models::LMState;

namespace {

bool has_unknown(const Tokens& tokens) {
  return std::find(tokens.begin(), tokens.end(), linnet::data::kUnknown) != tokens.end();
}

/// The text of tokens that come one by one: what each adds.
class Text {
 public:
  explicit Text(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  std::string add(int32_t token) {
    if (vocabulary_.stands_alone(token)) {
      line_.clear(), shown_ = 0;
      return vocabulary_.decode({token});
    }
    line_.push_back(token);
    const std::string text = vocabulary_.decode(line_);
    const std::string added = text.substr(std::min(shown_, text.size()));
    shown_ = text.size();
    return added;
  }

 private:
  const Vocabulary& vocabulary_;
  Tokens line_;
  size_t shown_ = 0;  // bytes of this line
};

}  // namespace

int32_t Draw::operator()(const Tensor& logits) {
  const std::vector<float> x = logits.to_vector<float>();
  row_.assign(x.begin(), x.end());
  for (size_t i = 0; i < row_.size(); ++i) {
    if (!vocabulary_.is_text(static_cast<int32_t>(i))) row_[i] = -std::numeric_limits<double>::infinity();
  }
  return static_cast<int32_t>(sample_(row_, linnet::default_generator()));
}

Tensor step(const linnet::models::CausalLM& net, int32_t token, LMState& state) {
  return net.step(Tensor::from({token}, {1}), state);
}

Tokens Writer::encode(const std::string& prompt) const {
  return example::naming("--prompt", [&] {
    const Tokens tokens = vocabulary_.encode(prompt);
    LINNET_CHECK(!tokens.empty(), "is empty; give at least a character");
    if (has_unknown(tokens)) {
      std::string which;
      for (char32_t point : linnet::data::code_points("prompt", prompt)) {
        std::string character;
        linnet::data::append_utf8(character, point);
        if (which.empty() && has_unknown(vocabulary_.encode(character))) which = character;
      }
      linnet::fail("the text that the model learned from had no \"", which, "\"");
    }
    return tokens;
  });
}

Tokens Writer::operator()(const Tokens& prompt, int64_t tokens, const linnet::models::SamplingOptions& options,
                          const std::function<bool(const std::string&)>& show) const {
  Draw draw(vocabulary_, options);
  Text text(vocabulary_);
  for (int32_t token : prompt) text.add(token);
  Tokens all = prompt;
  LMState state = net_.make_state(1, context_);
  Tensor logits;
  const auto read = [&](size_t count) {
    for (size_t i = all.size() - std::min(count, all.size()); i < all.size(); ++i) logits = step(net_, all[i], state);
  };
  const size_t half = static_cast<size_t>((context_ + 1) / 2);
  read(prompt.size() < static_cast<size_t>(context_) ? prompt.size() : half);
  for (int64_t made = 0; made < tokens; ++made) {
    all.push_back(draw(logits));
    if (!show(text.add(all.back()))) break;
    if (made + 1 == tokens) break;
    if (state.position < context_) {
      read(1);
    } else {
      state = net_.make_state(1, context_);
      read(half);
    }
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}

}  // namespace language_model
