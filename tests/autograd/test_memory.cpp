// Memory over many steps: forward passes that no backward follows leave nothing behind, with or without a tape.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/reduce.h"
#include "support/arrays.h"

using namespace linnet;
using linnet::test::on_cuda;

namespace {

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

const int kSteps = on_cuda() ? 1000 : 100'000;  // launches take their time where a GPU is emulated

template <class Step>
void check_flat(int steps, Step step) {
  for (int i = 0; i < 100; ++i) step();  // caches fill
  const int64_t live = memory_stats(default_device()).live, resident = resident_bytes();
  for (int i = 0; i < steps; ++i) step();
  CHECK(memory_stats(default_device()).live == live);
#ifdef __SANITIZE_ADDRESS__  // freed memory stays with the process there
  (void)resident;
#else
  if (!on_cuda()) CHECK(resident_bytes() - resident < (4 << 20));  // one kept loss a step alone would be 6 MB
#endif
}

}  // namespace

TEST_CASE("many forward passes without a backward keep memory flat") {
  Variable w = Variable::leaf(Tensor::full({16}, 0.5));
  double total = 0;
  SUBCASE("without a tape") {
    check_flat(kSteps, [&] { total += mean(tanh(w * 0.5)).item(); });
  }
  SUBCASE("each on a tape that is dropped") {
    check_flat(kSteps, [&] {
      Tape tape;
      total += mean(tanh(w * 0.5)).item();
    });
  }
  SUBCASE("with a running sum of the losses themselves, made outside the tape") {
    Variable sum_of_losses = Tensor::scalar(0);
    check_flat(kSteps, [&] {
      Variable loss;
      {
        Tape tape;
        loss = mean(tanh(w * 0.5));
      }
      sum_of_losses = sum_of_losses + loss;
    });
    total = sum_of_losses.item();
  }
  CHECK(total > 0);
}
