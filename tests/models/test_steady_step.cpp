// A training step, once under way, takes all its memory from the allocator's lists: the kernel is not asked for any.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>

#include "linnet/linnet.h"

using namespace linnet;

namespace {

int64_t page_faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace

TEST_CASE("a steady training step takes no page fault and no new memory") {
  for (const auto kind : {nn::AttentionKind::linear, nn::AttentionKind::softmax}) {
    models::CausalLM net({.vocab = 12, .dim = 64, .layers = 2, .heads = 4, .max_time = 128, .kind = kind});
    optim::RAdam optimizer(net.parameters(), {.lr = 1e-3});
    const Tensor tokens = Tensor::full({8, 128}, 3, Dtype::i32);
    const auto step = [&] {
      Tape tape;
      const Variable loss = cross_entropy(net(tokens), tokens);
      optimizer.clear_grads();
      tape.backward(loss);
      optimizer.step();
    };
    for (int i = 0; i < 10; ++i) step();
    const int64_t reserved = memory_stats(default_device()).reserved;
    int64_t least = 1 << 30;  // other things of the process may fault now and then, but not in every step
    for (int i = 0; i < 10; ++i) {
      const int64_t before = page_faults();
      step();
      least = std::min(least, page_faults() - before);
    }
    CHECK(memory_stats(default_device()).reserved == reserved);
#ifndef __SANITIZE_ADDRESS__  // it keeps freed memory back
    CHECK(least == 0);
#endif
  }
}
