// The block that a whole model's options ask for.
// Private to models/.
#pragma once
#include "linnet/models/block.h"

namespace linnet::models {

/// What model and block call by the same names.
template <class Options>
BlockOptions block_options(const Options& options, bool causal) {
  return {.dim = options.dim,
          .heads = options.heads,
          .hidden = options.hidden,
          .causal = causal,
          .kind = options.kind,
          .window = options.window,
          .lsh = options.lsh,
          .clustered = options.clustered,
          .pre_norm = options.pre_norm,
          .dropout = options.dropout,
          .activation = options.activation,
          .eps = options.eps,
          .feature_map = options.feature_map};
}

}  // namespace linnet::models
