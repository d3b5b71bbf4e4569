// Quiet: one thread, and nothing on standard output, while it lives.
#pragma once
#include <iostream>
#include <sstream>

#include "linnet/core/threads.h"

namespace test_support {

class Quiet {
 public:
  Quiet() { linnet::set_num_threads(1); }
  ~Quiet() {
    std::cout.rdbuf(before_);
    linnet::set_num_threads(threads_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::ostringstream out_;
  std::streambuf* before_ = std::cout.rdbuf(out_.rdbuf());
  int threads_ = linnet::num_threads();
};

}  // namespace test_support
