#include "cuda_on_cpu/grid.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "cuda_on_cpu/block.h"

namespace cuda_on_cpu {
namespace {

CUDA_ON_CPU_RAW void thread_main() {
  Thread& thread = *self;
  entered();
  thread.block->body(thread.block->argument);
  thread_ended(thread);
  leave(thread.fiber, true);
  std::abort();  // nobody enters a fiber that has finished
}

CUDA_ON_CPU_RAW void resume(Thread& thread) {
  if (!thread.fiber.stack) {
    begin(thread.fiber, thread_main);
    name_identity(thread.fiber,
                  [&] { return text("CUDA block ", triple(thread.block->index), " thread ", triple(thread.index)); });
  }
  self = &thread;
  enter(thread.fiber);
  self = nullptr;
  if (thread.state == State::done) end(thread.fiber, true);
}

CUDA_ON_CPU_RAW void set_up(Block& block) {
  block.live = block.count;
  block.arrived = block.barriers = 0;
  block.failed = false;
  block.tokens = new char[kTokens];
  for (Warp& warp : block.warps) warp.live = warp.meetings = 0;
  for (unsigned i = 0; i < block.live; ++i) {
    Thread& thread = block.threads[i] = Thread{};
    thread.linear = i;
    thread.lane = i % 32;
    thread.block = &block;
    thread.index = {i % block.size.x, i / block.size.x % block.size.y, i / (block.size.x * block.size.y)};
    block.warps[i / 32].live |= 1u << thread.lane;
  }
  begin_shared(block);
  show_grid();
}

CUDA_ON_CPU_RAW void report_deadlock(Block& block) {
  block.failed = true;
  std::string message = text("deadlock in block ", triple(block.index), ": ", block.live, " of ", block.count,
                             " threads have not ended, ", block.arrived, " of them wait at __syncthreads");
  int shown = 0;
  for (const Thread& thread : std::span(block.threads, block.count))
    if (thread.state != State::done && shown++ < 4)
      message += text("\n  thread ", triple(thread.index), " waits at ", text_of(thread.place), " in ",
                      thread.state == State::at_warp ? "a warp function" : "__syncthreads");
  report(cudaErrorLaunchFailure, message);
}

CUDA_ON_CPU_RAW void check_limits(Block& block, const Grid& grid) {
  const size_t declared = declared_bytes(block);
  if (block.failed || (declared <= settings().shared_static && declared + grid.dynamic_bytes <= grid.shared_limit))
    return;
  block.failed = true;
  report(cudaErrorInvalidValue,
         text("a kernel declares ", declared, " bytes of shared memory and is launched with ", grid.dynamic_bytes, "; ",
              settings().shared_static, " may be declared, ", grid.shared_limit, " is the limit of the sum"));
}

// Each turn lets every thread run on to where it waits next. In random order half the warps, at random, sit some
// turns out, so that one gets ahead of another as far as the barriers let it.
CUDA_ON_CPU_RAW void run_block(Block& block, std::vector<unsigned>& order) {
  set_up(block);
  uint32_t resting = 0;
  while (block.live && !block.failed) {
    if (settings().order == Order::random) {
      std::shuffle(order.begin(), order.end(), settings().random);
      if (settings().random() % 8 == 0) resting = static_cast<uint32_t>(settings().random());
    }
    bool ran = false;
    for (unsigned i : order) {
      if (block.threads[i].state != State::ready) continue;
      if (resting >> (i / 32) & 1) {
        ran = true;  // it could have
        continue;
      }
      resume(block.threads[i]);
      ran = true;
      if (block.failed) break;
    }
    if (!ran && block.live) report_deadlock(block);
  }
  for (Thread& thread : std::span(block.threads, block.count))
    if (thread.fiber.stack) end(thread.fiber, false);
  delete[] block.tokens;  // and with them what the race detector knew of them
  counts().threads += block.count;
}

// 0, 1, 2 ... as the settings want it.
std::vector<unsigned> in_order(size_t n) {
  std::vector<unsigned> order(n);
  std::iota(order.begin(), order.end(), 0u);
  if (settings().order == Order::reverse) std::reverse(order.begin(), order.end());
  if (settings().order == Order::random) std::shuffle(order.begin(), order.end(), settings().random);
  return order;
}

}  // namespace

CUDA_ON_CPU_RAW void run(const Grid& grid) {
  Block block;
  block.size = grid.threads;
  block.grid = grid.blocks;
  block.dynamic_bytes = grid.dynamic_bytes;
  block.body = grid.body;
  block.argument = grid.argument;
  std::vector<Thread> threads(size_t{grid.threads.x} * grid.threads.y * grid.threads.z);
  block.threads = threads.data();
  block.count = static_cast<unsigned>(threads.size());
  std::vector<unsigned> order = in_order(threads.size());
  const size_t blocks = size_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  begin_grid();
  prepare_identities(block.count, blocks);
  for (unsigned i : in_order(blocks)) {
    block.index = {i % grid.blocks.x, i / grid.blocks.x % grid.blocks.y, i / (grid.blocks.x * grid.blocks.y)};
    run_block(block, order);
    check_limits(block, grid);
    end_shared(block);
    if (block.failed) break;
  }
  end_grid();
}

}  // namespace cuda_on_cpu
