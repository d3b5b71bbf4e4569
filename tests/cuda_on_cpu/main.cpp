// The tests of the emulation; with --defect NAME, one planted defect instead, for the test that looks what reports it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <string>

#include "cuda_on_cpu/defects.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--defect") return run_defect(argv[2]);
  doctest::Context context(argc, argv);
  return context.run();
}
