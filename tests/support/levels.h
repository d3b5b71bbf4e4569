// for_each_level: runs a test body with every level of kernels that this machine has.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "linnet/core/dispatch.h"

namespace linnet {

/// Calls f once with each level that this machine has forced, `plain` first; once on a GPU, where levels are none.
template <class F>
void for_each_level(F&& f) {
  if (default_device() == Device::cuda) return f();
  for (const Level l : {Level::plain, Level::portable, Level::avx2, Level::avx512}) {
    if (l > best_level()) continue;
    force_level(l);
    CAPTURE(std::string(name(l)));
    try {
      f();
    } catch (...) {
      unforce_level();
      throw;
    }
    unforce_level();
  }
}

}  // namespace linnet
