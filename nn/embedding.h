// Embedding: a learned vector for every index.
#pragma once
#include <optional>

#include "linnet/nn/module.h"

namespace linnet::nn {

struct EmbeddingOptions {
  Required<int64_t> rows;
  Required<int64_t> dim;
  std::optional<int64_t> padding_row = std::nullopt;  ///< starts as zeros and gets no gradient
  Init weight_init = {};                              ///< N(0, 0.02) where not given
  Variable tied = {};  ///< another module's (rows, dim) parameter to be used as the weight
};

/// index i32 (...) -> (..., dim). Throws where an index is outside 0 .. rows-1.
class Embedding : public Module {
 public:
  using Options = EmbeddingOptions;
  Embedding(Module& parent, std::string name, const Options& options);

  Variable operator()(const Tensor& index) const;
  /// The same without a tape, into y (..., dim) as it lies.
  void into(const Tensor& index, Tensor& y) const;

  Variable weight;  ///< (rows, dim)

 private:
  std::optional<int64_t> padding_row_;
};

}  // namespace linnet::nn
