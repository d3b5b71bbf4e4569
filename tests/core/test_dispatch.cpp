#include "linnet/core/dispatch.h"

#include <doctest/doctest.h>

#include <string>

#include "linnet/core/kernels.h"

using namespace linnet;

TEST_CASE("a forced level is in use until it is not") {
  Level before = level();
  force_level(Level::plain);
  CHECK(level() == Level::plain);
  CHECK(&general_kernels<float>(Device::cpu) == &plain::general_f32);
  force_level(Level::portable);
  CHECK(&general_kernels<float>(Device::cpu) == &portable::general_f32);
  unforce_level();
  CHECK(level() == before);
  CHECK(level() <= best_level());
}

TEST_CASE("a level that is missing falls to the next lower one") {
  int plain_table = 0, portable_table = 0;
  Instances<int> instances{&plain_table, nullptr};
  force_level(Level::portable);
  CHECK(&instances.of(Device::cpu) == &plain_table);
  instances.portable = &portable_table;
  CHECK(&instances.of(Device::cpu) == &portable_table);
  unforce_level();
}

TEST_CASE("names") {
  CHECK(std::string(name(Level::plain)) == "plain");
  CHECK(std::string(name(Level::avx512)) == "avx512");
}

TEST_CASE("a number that is no level is refused") {
  CHECK_THROWS_WITH_AS(force_level(static_cast<Level>(7)), "force_level: no level 7", Error);
  CHECK_THROWS_AS(force_level(static_cast<Level>(-1)), Error);
}
