// A block of CUDA threads: who they are, what each waits for, and the places where they meet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "cuda_on_cpu/fiber.h"
#include "cuda_on_cpu/settings.h"

namespace cuda_on_cpu {

using Place = std::source_location;
struct Block;

enum class State : uint8_t { ready, at_barrier, at_warp, done };
enum class WarpOp : uint8_t { sync, shuffle, ballot, exchange };

/// One CUDA thread.
struct Thread {
  uint3 index{};
  unsigned linear = 0, lane = 0;
  State state = State::ready;
  Block* block = nullptr;
  Fiber fiber;
  Place place;        ///< where it waits
  int predicate = 0;  ///< of the barrier
  WarpOp op{};
  unsigned mask = 0, source = 0;
  uint64_t given = 0, taken = 0;
  bool fenced = false;  ///< has passed a __threadfence
};

struct Warp {
  unsigned live = 0, meetings = 0;
  uint64_t given[32];  ///< what each lane brought to the last meeting
};

/// An array of __shared__ memory; `key` tells the declarations of a kernel apart.
struct SharedArray {
  const void* key;
  char* data;
  size_t bytes;
};

// Plain arrays: a container's functions would be visible to the race detector.
struct Block {
  uint3 index{};
  dim3 size, grid;
  Thread* threads = nullptr;
  unsigned count = 0, live = 0, arrived = 0, barriers = 0;
  int counted[3] = {};  ///< threads whose predicate held, at the last barriers
  Warp warps[32];
  char* tokens = nullptr;  ///< two for the block and two for each warp: every block's own, or they would order blocks
  char* dynamic_shared = nullptr;
  size_t dynamic_bytes = 0;
  SharedArray shared[64];
  unsigned shared_count = 0;
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  bool failed = false;
};

/// The CUDA thread now running; null while the host runs.
extern Thread* self;

CUDA_ON_CPU_RAW inline uint3 thread_index() { return self->index; }
CUDA_ON_CPU_RAW inline uint3 block_index() { return self->block->index; }
CUDA_ON_CPU_RAW inline dim3 block_size() { return self->block->size; }
CUDA_ON_CPU_RAW inline dim3 grid_size() { return self->block->grid; }
CUDA_ON_CPU_RAW inline unsigned lane() { return self->lane; }

/// __syncthreads: all threads of the block that have not ended meet, at one place. Returns how many predicates held.
int meet_block(int predicate, Place place);

/// What a lane gets at a meeting of its warp: the ballot, or what the source lane brought. A source outside the mask
/// gives a NaN pattern. Only a sync orders memory.
uint64_t meet_warp(WarpOp op, unsigned mask, uint64_t given, unsigned source, Place place);

/// A meeting of a whole warp after which each lane has what all others gave, until the next meeting. Orders nothing.
const uint64_t* exchange(uint64_t given, Place place);

constexpr unsigned kTokens = 2 + 2 * 32;

void thread_ended(Thread& thread);

/// Shared memory of the block now running, the same for all its threads; new memory holds NaN patterns.
void* shared_memory(const void* key, size_t bytes);
void* dynamic_shared_memory();
void begin_shared(Block& block);
void end_shared(Block& block);  ///< frees it, and reports what was written behind it
size_t declared_bytes(const Block& block);

}  // namespace cuda_on_cpu
