// Dropout: elements set to 0 at random while a tape trains.
#pragma once
#include "linnet/nn/module.h"

namespace linnet::nn {

struct DropoutOptions {
  Required<double> p;  ///< the probability of 0; what stays is divided by 1 - p
};

/// The identity unless training(), which a Tape in scope decides.
class Dropout : public Module {
 public:
  using Options = DropoutOptions;
  Dropout(Module& parent, std::string name, const Options& options);

  Variable operator()(const Variable& x) const;

 private:
  double p_;
};

}  // namespace linnet::nn
