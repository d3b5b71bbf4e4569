#include "linnet/core/storage.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "linnet/core/error.h"

using namespace linnet;

TEST_CASE("live, peak and requested bytes are counted as requested") {
  MemoryStats before = memory_stats();
  reset_peak();
  {
    Storage a(100, Device::cpu), b(5000, Device::cpu);
    CHECK(reinterpret_cast<uintptr_t>(a.data()) % 64 == 0);
    CHECK(memory_stats().live == before.live + 5100);
  }
  MemoryStats after = memory_stats();
  CHECK(after.live == before.live);
  CHECK(after.peak == before.live + 5100);
  CHECK(after.requested == before.requested + 5100);
}

TEST_CASE("a freed block serves the next request of its class") {
  const void* first;
  {
    Storage a(1'000'000, Device::cpu);
    first = a.data();
  }
  int64_t reserved = memory_stats().reserved;
  Storage b(1'000'000, Device::cpu);
  CHECK(b.data() == first);
  CHECK(memory_stats().reserved == reserved);
}

TEST_CASE("empty_cache gives blocks back") {
  { Storage a(3'000'000, Device::cpu); }
  int64_t before = memory_stats().reserved;
  empty_cache();
  CHECK(memory_stats().reserved <= before - 3'000'000);
}

TEST_CASE("a request beyond the system's memory is an Error and leaves the counts as they were") {
  int64_t live = memory_stats().live;
  CHECK_THROWS_AS(Storage(int64_t{1} << 60, Device::cpu), Error);
  CHECK(memory_stats().live == live);
}

TEST_CASE("zero bytes are a block like any other") {
  Storage a(0, Device::cpu);
  CHECK(a.data() != nullptr);
}
