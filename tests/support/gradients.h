// check_gradients: the gradient check that every recorded op has in its tests. A test reads the sources: each name
// given to record("name", ...) must be the first argument of a check_gradients("name", ...) somewhere in tests/.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "linnet/autograd/gradcheck.h"
#include "linnet/autograd/tape.h"

namespace linnet {

/// A failed CHECK, with gradcheck's message, where gradients of f disagree with central differences at these f64
/// inputs, or where f does not put an op of this name on the tape at all.
inline void check_gradients(const char* op, const std::function<Variable(const std::vector<Variable>&)>& f,
                            const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  INFO("gradients of ", op);
  std::string message;
  try {
    Tape tape;
    std::vector<Variable> leaves;
    for (const Tensor& x : inputs) leaves.push_back(Variable::leaf(x.clone()));
    (void)f(leaves);
    const TapeReport report = tape.report();
    if (std::none_of(report.rows.begin(), report.rows.end(), [op](const TapeRow& row) { return row.op == op; })) {
      message = "the checked function records no op of this name";
    }
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK_MESSAGE(message.empty(), message);
  message.clear();
  try {
    gradcheck(f, inputs, options);
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK_MESSAGE(message.empty(), message);
}

}  // namespace linnet
