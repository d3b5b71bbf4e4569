// summary: a table of a module's parameters and buffers, for a terminal.
#pragma once
#include <string>

#include "linnet/nn/module.h"

namespace linnet::nn {

/// One row a parameter or buffer: name, the kind of layer that has it, shape, number of parameters, trainable or not;
/// then the totals. A tied parameter's second name says whose it is, and counts nothing.
std::string summary(const Module& module);

}  // namespace linnet::nn
