#include "linnet/core/random.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "linnet/core/error.h"
#include "linnet/core/philox.h"
#include "linnet/core/threads.h"

namespace linnet {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  return std::to_array(philox_rounds({c[0], c[1], c[2], c[3]}, key[0], key[1]).word);
}

namespace {

/// Box-Muller on two words; even elements take the cosine, odd ones the sine.
double normal_at(uint64_t seed, uint64_t stream, uint64_t i) {
  const PhiloxWords words = philox_block(seed, stream, i / 4);
  int pair = static_cast<int>(i % 4) / 2 * 2;
  double radius = std::sqrt(-2 * std::log(unit_interval(words.word[pair])));
  double angle = 2 * std::numbers::pi * unit_interval(words.word[pair + 1]);
  return radius * (i % 2 ? std::sin(angle) : std::cos(angle));
}

void check(const char* op, Dtype dtype, std::initializer_list<std::pair<const char*, double>> numbers) {
  if (!is_float(dtype)) fail_not_float(op, dtype);
  const double most = dtype == Dtype::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  for (const auto& [name, number] : numbers)
    LINNET_CHECK(std::abs(number) <= most, op, ": ", name, " ", number, " given, a finite ", dtype, " wanted");
}

template <class F>
void fill(Tensor& y, double nanoseconds, F&& value) {
  with_float("random", y.dtype(), [&]<class T>() {
    T* out = y.mutable_data<T>();
    parallel_for(y.numel(), nanoseconds, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(value(static_cast<uint64_t>(i)));
    });
  });
}

}  // namespace

uint32_t random_word(uint64_t seed, uint64_t stream, uint64_t i) {
  return philox_block(seed, stream, i / 4).word[i % 4];
}

uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

uint64_t Generator::take(int64_t words) {
  LINNET_CHECK(words >= 0, "random: ", words, " words to take, 0 or more wanted");
  uint64_t first = offset;
  offset += static_cast<uint64_t>(words);
  return first;
}

double Generator::uniform() { return unit_interval(random_word(seed, stream, take(1))); }

int64_t Generator::below(int64_t n) {
  LINNET_CHECK(n >= 1, "random: a number below ", n, " asked for, at least 1 wanted");
  uint64_t bound = static_cast<uint64_t>(n);
  uint64_t limit = UINT64_MAX - UINT64_MAX % bound;  // words from here on would favour small numbers
  while (true) {
    uint64_t high = random_word(seed, stream, take(1));
    uint64_t word = high << 32 | random_word(seed, stream, take(1));
    if (word < limit) return static_cast<int64_t>(word % bound);
  }
}

Tensor Generator::uniform(const Shape& shape, double low, double high, Dtype dtype, Device device) {
  check("uniform", dtype, {{"low", low}, {"high", high}});
  LINNET_CHECK(low <= high, "uniform: low ", low, " is above high ", high);
  LINNET_CHECK(std::isfinite(high - low), "uniform: from low ", low, " to high ", high, " is too far");
  Tensor y = Tensor::empty(shape, dtype, Device::cpu);  // words are taken after it: a call that fails takes none
  uint64_t first = take(y.numel());
  fill(y, 20, [&](uint64_t i) { return low + (high - low) * unit_interval(random_word(seed, stream, first + i)); });
  return y.to(device);
}

Tensor Generator::normal(const Shape& shape, double mean, double std, Dtype dtype, Device device) {
  check("normal", dtype, {{"mean", mean}, {"standard deviation", std}});
  LINNET_CHECK(std >= 0, "normal: standard deviation ", std, " is negative");
  Tensor y = Tensor::empty(shape, dtype, Device::cpu);
  offset += offset % 2;  // pairs begin at even offsets
  uint64_t first = take(y.numel());
  fill(y, 60, [&](uint64_t i) { return mean + std * normal_at(seed, stream, first + i); });
  return y.to(device);
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator() = {seed, 0, 0}; }

}  // namespace linnet
