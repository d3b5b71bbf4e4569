#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

#include "linnet/core/dispatch.h"

// Exits with 77, which means skipped, where the tests are asked to run on a GPU and there is none.
int main(int argc, char** argv) {
  if (linnet::default_device() == linnet::Device::cuda && !linnet::cuda_available()) {
    std::cerr << "skipped: there is no GPU here\n";
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
