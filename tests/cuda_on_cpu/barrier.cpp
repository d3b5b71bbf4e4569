// Where the threads of a block, or the lanes of a warp, meet.
#include "cuda_on_cpu/block.h"

namespace cuda_on_cpu {
namespace {

CUDA_ON_CPU_RAW bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.file_name() == b.file_name();
}

CUDA_ON_CPU_RAW void release_block(Block& block) {
  const Thread* first = nullptr;
  const Thread* other = nullptr;
  int held = 0;
  for (unsigned i = 0; i < block.count; ++i) {
    Thread& thread = block.threads[i];
    if (thread.state != State::at_barrier) continue;
    if (!first) first = &thread;
    if (!same(thread.place, first->place)) other = &thread;
    held += thread.predicate != 0;
    thread.state = State::ready;
  }
  block.counted[block.barriers % 3] = held;
  block.arrived = 0;
  ++block.barriers;
  if (!other) return;
  block.failed = true;
  report(cudaErrorLaunchFailure, text("threads of block ", triple(block.index), " meet at different __syncthreads: ",
                                      text_of(first->place), " and ", text_of(other->place)));
}

CUDA_ON_CPU_RAW bool is_complete(const Thread* warp, unsigned wanted, WarpOp op, unsigned mask) {
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((wanted >> lane & 1) && (warp[lane].state != State::at_warp || warp[lane].mask != mask || warp[lane].op != op))
      return false;
  return true;
}

// The last lane to come works out what each one gets.
CUDA_ON_CPU_RAW void hand_out(Thread* threads, Warp& warp, unsigned present, WarpOp op) {
  uint64_t ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (present >> lane & 1) ballot |= (threads[lane].given & 1) << lane;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(present >> lane & 1)) continue;
    const unsigned source = threads[lane].source;
    const bool there = source < 32 && (present >> source & 1);
    threads[lane].taken = op == WarpOp::ballot ? ballot : there ? threads[source].given : ~uint64_t{0};
    threads[lane].state = State::ready;
    warp.given[lane] = threads[lane].given;
  }
  ++warp.meetings;
}

}  // namespace

Thread* self = nullptr;

CUDA_ON_CPU_RAW void thread_ended(Thread& thread) {
  Block& block = *thread.block;
  thread.state = State::done;
  block.warps[thread.linear / 32].live &= ~(1u << thread.lane);
  if (--block.live && block.arrived == block.live) release_block(block);
}

CUDA_ON_CPU_RAW int meet_block(int predicate, Place place) {
  Thread& thread = *self;
  Block& block = *thread.block;
  const unsigned which = block.barriers;
  publish(&block.tokens[which % 2]);
  thread.predicate = predicate;
  thread.place = place;
  thread.state = State::at_barrier;
  if (++block.arrived == block.live) release_block(block);
  leave(thread.fiber, false);
  see(&block.tokens[which % 2]);
  return block.counted[which % 3];
}

CUDA_ON_CPU_RAW uint64_t meet_warp(WarpOp op, unsigned mask, uint64_t given, unsigned source, Place place) {
  Thread& thread = *self;
  Block& block = *thread.block;
  Thread* lanes = block.threads + (thread.linear & ~31u);
  Warp& warp = block.warps[thread.linear / 32];
  if (!(mask >> thread.lane & 1)) {
    block.failed = true;
    report(cudaErrorLaunchFailure, text(text_of(place), ": the mask of a warp function, ", std::hex, mask, std::dec,
                                        ", does not name lane ", thread.lane, ", which calls it"));
    leave(thread.fiber, false);  // for good
  }
  char* token = &block.tokens[2 + thread.linear / 32 * 2 + warp.meetings % 2];
  if (op == WarpOp::sync) publish(token);
  thread.op = op;
  thread.mask = mask;
  thread.given = given;
  thread.source = source;
  thread.place = place;
  thread.state = State::at_warp;
  const unsigned wanted = mask & warp.live;
  if (is_complete(lanes, wanted, op, mask)) hand_out(lanes, warp, wanted, op);
  leave(thread.fiber, false);
  if (op == WarpOp::sync) see(token);
  return thread.taken;
}

CUDA_ON_CPU_RAW const uint64_t* exchange(uint64_t given, Place place) {
  meet_warp(WarpOp::exchange, 0xffffffffu, given, 32, place);
  return self->block->warps[self->linear / 32].given;
}

}  // namespace cuda_on_cpu
