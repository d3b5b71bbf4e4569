// Evaluation: how many bits a model needs for a character of the held-out text.
#pragma once
#include <functional>
#include <string>

#include "language_model/corpus.h"
#include "linnet/models/causal_lm.h"

namespace language_model {

/// Each token is predicted from at least half of `context` tokens before it, the last of the text to learn from
/// included: sequences overlap by a half, whose second half counts. most: of so many such halves, evenly spread; 0: of
/// all. Bits of all tokens over all characters, so that vocabularies compare. Ends early, with 0, where stop() says so.
double bits_per_character(const linnet::models::CausalLM& net, const Corpus& corpus, int64_t context, int64_t most = 0,
                          const std::function<bool()>& stop = {});

std::string bits_text(double bits);  ///< "2.301 bits a character"

}  // namespace language_model
