// Shared memory: a block's own, filled with a NaN pattern, with a border behind it that nobody may write.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda_on_cpu/block.h"

namespace cuda_on_cpu {
namespace {

constexpr int kUnwritten = 0xff, kBorder = 0xa5;
#if defined(CUDA_ON_CPU_ADDRESS)
constexpr size_t kBorderBytes = 0;  // the sanitizer has its own
#else
constexpr size_t kBorderBytes = 128;
#endif

struct Request {
  size_t bytes;
  char* data;
};

// Its argument lies on a stack that had other owners.
CUDA_ON_CPU_RAW void allocate(void* argument) {
  Request& request = *static_cast<Request*>(argument);
  const size_t bytes = request.bytes + kBorderBytes;
  void* data = nullptr;
#if defined(CUDA_ON_CPU_THREAD)  // new pages have no history
  data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
#else
  if (posix_memalign(&data, 128, bytes)) throw std::bad_alloc();
#endif
  std::memset(data, kUnwritten, request.bytes);
  std::memset(static_cast<char*>(data) + request.bytes, kBorder, kBorderBytes);
  request.data = static_cast<char*>(data);
}

CUDA_ON_CPU_RAW void release(Block& block, char* data, size_t bytes) {
  bool whole = true;
  for (size_t i = bytes; i < bytes + kBorderBytes; ++i) whole &= static_cast<unsigned char>(data[i]) == kBorder;
  if (!whole && !block.failed) {
    block.failed = true;
    report(cudaErrorIllegalAddress,
           text("block ", triple(block.index), " wrote behind ", bytes, " bytes of shared memory"));
  }
#if defined(CUDA_ON_CPU_THREAD)
  munmap(data, bytes + kBorderBytes);
#else
  std::free(data);
#endif
}

}  // namespace

CUDA_ON_CPU_RAW void begin_shared(Block& block) {
  block.shared_count = 0;
  block.dynamic_shared = nullptr;
  if (!block.dynamic_bytes) return;
  Request request{block.dynamic_bytes, nullptr};
  allocate(&request);
  block.dynamic_shared = request.data;
}

CUDA_ON_CPU_RAW void end_shared(Block& block) {
  for (unsigned i = 0; i < block.shared_count; ++i) release(block, block.shared[i].data, block.shared[i].bytes);
  if (block.dynamic_shared) release(block, block.dynamic_shared, block.dynamic_bytes);
}

CUDA_ON_CPU_RAW size_t declared_bytes(const Block& block) {
  size_t bytes = 0;
  for (unsigned i = 0; i < block.shared_count; ++i) bytes += block.shared[i].bytes;
  return bytes;
}

CUDA_ON_CPU_RAW void* shared_memory(const void* key, size_t bytes) {
  Block& block = *self->block;
  unsigned i = 0;
  while (i < block.shared_count && block.shared[i].key != key) ++i;
  if (i == block.shared_count) {
    if (i == 64) std::abort();  // no kernel has that many arrays
    Request request{bytes, nullptr};
    as_scheduler(allocate, &request);
    block.shared[block.shared_count++] = {key, request.data, bytes};
  }
  see_grid();
  return block.shared[i].data;
}

CUDA_ON_CPU_RAW void* dynamic_shared_memory() { return self->block->dynamic_shared; }

}  // namespace cuda_on_cpu
