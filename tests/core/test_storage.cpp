#include "linnet/core/storage.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <cstdint>

#include "linnet/core/error.h"

using namespace linnet;

TEST_CASE("live, peak and requested bytes are counted as requested") {
  MemoryStats before = memory_stats(Device::cpu);
  reset_peak(Device::cpu);
  {
    Storage a(100, Device::cpu), b(5000, Device::cpu);
    CHECK(reinterpret_cast<uintptr_t>(a.data()) % 64 == 0);
    CHECK(memory_stats(Device::cpu).live == before.live + 5100);
  }
  MemoryStats after = memory_stats(Device::cpu);
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
  int64_t reserved = memory_stats(Device::cpu).reserved;
  Storage b(1'000'000, Device::cpu);
  CHECK(b.data() == first);
  CHECK(memory_stats(Device::cpu).reserved == reserved);
}

TEST_CASE("empty_cache gives blocks back") {
  { Storage a(3'000'000, Device::cpu); }
  int64_t before = memory_stats(Device::cpu).reserved;
  empty_cache(Device::cpu);
  CHECK(memory_stats(Device::cpu).reserved <= before - 3'000'000);
}

TEST_CASE("a request beyond the system's memory is an Error and leaves the counts as they were") {
  int64_t live = memory_stats(Device::cpu).live;
  CHECK_THROWS_AS(Storage(int64_t{1} << 60, Device::cpu), Error);
  CHECK(memory_stats(Device::cpu).live == live);
}

TEST_CASE("zero bytes are a block like any other") {
  Storage a(0, Device::cpu);
  CHECK(a.data() != nullptr);
}

TEST_CASE("a child that is forked while another thread asks for memory gets some, too") {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) Storage(400, Device::cpu);
  });
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a deadlock would last for ever
      Storage(40, Device::cpu);
      _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
  }
  done = true;
  other.join();
}
