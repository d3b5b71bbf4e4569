#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "linnet/core/dispatch.h"

// Exits with 77, which means skipped, where the tests are asked to run on a GPU and there is none.
int main(int argc, char** argv) {
  const char* device = std::getenv("LINNET_DEVICE");
  if (device && std::string_view(device) == "cuda" && !linnet::cuda_available()) {
    std::cerr << "skipped: there is no GPU here\n";
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
