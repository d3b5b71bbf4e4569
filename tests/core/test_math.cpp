// core/math.h against libm in f64: every f32 with the best level, and a grid with every other, with fused multiply-adds
// and without. A build with sanitizers or without optimisation takes the grid for all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <vector>

#include "core/math_loops.h"
#include "linnet/core/dispatch.h"
#include "linnet/core/threads.h"

namespace linnet {
#define LINNET_LEVEL_LOOPS(level)      \
  namespace level {                    \
  extern const MathLoops math_loops;   \
  }                                    \
  namespace level##_unfused {          \
    extern const MathLoops math_loops; \
  }
LINNET_LEVEL_LOOPS(portable)
#ifdef LINNET_HAS_X86_LEVELS
LINNET_LEVEL_LOOPS(avx2)
LINNET_LEVEL_LOOPS(avx512)
#endif
}  // namespace linnet

using namespace linnet;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
// Below these, the first and the third power of x count for nothing beside 1.
constexpr double kTiny = 0x1p-26, kSmall = 0x1p-15;

#if defined(__OPTIMIZE__) && !defined(LINNET_SANITIZED)
constexpr bool kEvery = true;
#else
constexpr bool kEvery = false;
#endif

/// Within [from, to] the right value is near enough to a + b x + c x^2; where c is 0 and b is 0, 1/2 or 1, it is the
/// f32 nearest to that and no other.
struct Piece {
  double from, to, a, b = 0, c = 0;
  bool exact() const { return c == 0 && (b == 0 || b == 0.5 || b == 1); }
};

struct Function {
  void (*MathLoops::*loop)(int64_t, const float*, float*);
  double (*right)(double);
  double bound;                    // in units of the last place, of x where of_input, else of the right value
  double from = -kInf, to = kInf;  // checked within; NaN always
  std::vector<Piece> pieces = {};  // where `right` need not be asked
  bool of_input = false;
};

// The loops of every level that this machine has, the best last.
std::vector<const MathLoops*> levels() {
  std::vector<const MathLoops*> all = {&portable_unfused::math_loops, &portable::math_loops};
#ifdef LINNET_HAS_X86_LEVELS
  if (best_level() >= Level::avx2) all.insert(all.end(), {&avx2_unfused::math_loops, &avx2::math_loops});
  if (best_level() >= Level::avx512) all.insert(all.end(), {&avx512_unfused::math_loops, &avx512::math_loops});
#endif
  return all;
}

template <class To, class From>
To as(From x) {
  return __builtin_bit_cast(To, x);
}

/// 1 / the unit in the last place of an f32 of x's size.
double per_unit(double x) {
  const double size = std::abs(x), smallest = 0x1p-126;
  return as<double>((2 * 1023 + 23 - (as<uint64_t>(size > smallest ? size : smallest) >> 52)) << 52);
}

double error(float y, double right, double of) {
  if (std::isnan(right)) return std::isnan(y) ? 0 : kInf;
  if (std::abs(right) > double(std::numeric_limits<float>::max()) || right == 0)
    return as<uint32_t>(y) == as<uint32_t>(static_cast<float>(right)) ? 0 : kInf;
  return std::abs(y - right) * per_unit(of);
}

struct Worst {
  double error = 0;
  float at = 0;
  void take(double e, float x) {
    if (!(e <= error)) error = e, at = x;
  }
};

/// The same over n neighbours in a loop that is vectorised, and so `at` is only the first of them.
Worst worst_error(int64_t n, const float* x, const float* y, const double* right, bool of_input) {
  int32_t largest = 0, odd_sign = 0;  // as bits: NaN is the largest then
  for (int64_t i = 0; i < n; ++i) {
    const double e = std::abs(y[i] - right[i]) * per_unit(of_input ? x[i] : right[i]);
    const int32_t bits = as<int32_t>(static_cast<float>(e)) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
    odd_sign |= as<int32_t>(y[i]) ^ as<int32_t>(static_cast<float>(right[i]));
  }
  Worst worst;
  if (largest < 0x7f800000 && odd_sign >= 0)
    worst.take(as<float>(largest), x[0]);
  else
    for (int64_t i = 0; i < n; ++i) worst.take(error(y[i], right[i], of_input ? x[i] : right[i]), x[i]);
  return worst;
}

/// Whether all y are the f32 nearest to a + b x, for b = 0, 1/2 or 1.
bool all_exact(const Piece& piece, int64_t n, const float* x, const float* y) {
  const float a = static_cast<float>(piece.a), b = static_cast<float>(piece.b);
  uint32_t wrong = 0;
  if (std::isnan(a))
    for (int64_t i = 0; i < n; ++i) wrong |= y[i] == y[i];
  else if (b == 0)
    for (int64_t i = 0; i < n; ++i) wrong |= as<uint32_t>(y[i]) ^ as<uint32_t>(a);
  else
    for (int64_t i = 0; i < n; ++i) wrong |= as<uint32_t>(y[i]) ^ as<uint32_t>(a + b * x[i]);
  return wrong == 0;
}

/// The worst of n neighbours, the smallest first; `right` is scratch memory.
Worst worst_of(const Function& f, int64_t n, const float* x, const float* y, double* right) {
  const double low = std::min(x[0], x[n - 1]), high = std::max(x[0], x[n - 1]);
  const auto holds = [&](const Piece& p) { return p.from <= low && high <= p.to && !std::isnan(x[n - 1]); };
  const auto piece = std::find_if(f.pieces.begin(), f.pieces.end(), holds);
  if (piece == f.pieces.end())
    for (int64_t i = 0; i < n; ++i) right[i] = x[i] < f.from || x[i] > f.to ? y[i] : f.right(x[i]);
  else if (piece->exact())
    return {all_exact(*piece, n, x, y) ? 0 : kInf, x[0]};
  else
    for (int64_t i = 0; i < n; ++i) right[i] = piece->a + x[i] * (piece->b + x[i] * piece->c);
  return worst_error(n, x, y, right, f.of_input);
}

void report(const Function& f, const MathLoops& level, const Worst& worst) {
  CAPTURE(level.level);
  CAPTURE(worst.at);
  CHECK(worst.error <= f.bound);
}

void check_every(const Function& f, const MathLoops& level) {
  constexpr int64_t kBlock = 1 << 13, kBlocks = (int64_t(1) << 32) / kBlock;
  Worst worst;
  std::mutex mutex;
  parallel_for(kBlocks, 1e5, [&](int64_t begin, int64_t end) {
    std::vector<float> x(kBlock), y(kBlock);
    std::vector<double> right(kBlock);
    Worst mine;
    for (int64_t j = begin; j < end; ++j) {
      const int64_t block = (j % 512) * (kBlocks / 512) + j / 512;  // every thread gets all exponents
      for (int64_t i = 0; i < kBlock; ++i) x[i] = as<float>(static_cast<uint32_t>(block * kBlock + i));
      if (x[kBlock - 1] < f.from || x[kBlock - 1] > f.to) continue;
      (level.*f.loop)(kBlock, x.data(), y.data());
      const Worst here = worst_of(f, kBlock, x.data(), y.data(), right.data());
      mine.take(here.error, here.at);
    }
    const std::lock_guard lock(mutex);
    worst.take(mine.error, mine.at);
  });
  report(f, level, worst);
}

/// Every 4001st f32, and all between 1/2 and 1/2 + 1/64, 1 and 1 + 1/64, of both signs.
void check_grid(const Function& f, const std::vector<const MathLoops*>& some) {
  std::vector<uint32_t> bits;
  for (uint64_t b = 0; b < uint64_t(1) << 32; b += 4001) bits.push_back(static_cast<uint32_t>(b));
  for (const uint32_t start : {0x3f000000u, 0x3f800000u, 0xbf000000u, 0xbf800000u})
    for (uint32_t b = start; b < start + (1 << 17); ++b) bits.push_back(b);
  for (const uint32_t b : {0x80000000u, 0x00000001u, 0x80000001u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 0xff7fffffu})
    bits.push_back(b);
  const int64_t n = static_cast<int64_t>(bits.size());
  std::vector<float> x(bits.size()), y(bits.size());
  std::vector<double> right(bits.size());
  for (int64_t i = 0; i < n; ++i) x[i] = as<float>(bits[i]), right[i] = f.right(x[i]);
  for (const MathLoops* level : some) {
    (level->*f.loop)(n, x.data(), y.data());
    Worst worst;
    for (int64_t i = 0; i < n; ++i)
      if (!(x[i] < f.from || x[i] > f.to)) worst.take(error(y[i], right[i], f.of_input ? x[i] : right[i]), x[i]);
    report(f, *level, worst);
  }
}

void check(const Function& f) {
  std::vector<const MathLoops*> all = levels();
  if (kEvery) {
    check_every(f, *all.back());
    all.pop_back();
  }
  check_grid(f, all);
}

constexpr double kLn2 = 0.69314718055994531, kTwoBySqrtPi = 1.1283791670955126, kBySqrtTwoPi = 0.3989422804014327;

/// The logarithm of an f32, from a table of those between 1 and 2: half of all f32 have one.
double right_log(double x) {
  static const std::vector<double> table = [] {
    std::vector<double> logs(1 << 23);
    for (size_t i = 0; i < logs.size(); ++i) logs[i] = std::log(1 + static_cast<double>(i) * 0x1p-23);
    return logs;
  }();
  const uint64_t bits = as<uint64_t>(x), exponent = bits >> 52;
  if (!(x >= 0x1p-126 && x < 0x1p128) || exponent == 1022) return std::log(x);
  return table[(bits >> 29) & 0x7fffff] + (static_cast<double>(exponent) - 1023) * kLn2;
}
double right_log1p(double x) { return x > 0x1p17 ? right_log(x) + 1 / x : std::log1p(x); }
double right_sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double right_softplus(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }
double right_gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double right_gelu_tanh(double x) {
  return x * right_sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}

}  // namespace

TEST_CASE("exp") {
  const std::vector<Piece> pieces = {
      {-kInf, -104, 0}, {-kTiny, kTiny, 1}, {-kSmall, kSmall, 1, 1, 0.5}, {88.8, kInf, kInf}};
  check({&MathLoops::exp, std::exp, 1.2, -kInf, kInf, pieces});
  check({&MathLoops::exp_nonpositive, std::exp, 1.2, -kInf, 64, pieces});
}
TEST_CASE("expm1") {
  const std::vector<Piece> pieces = {
      {-kInf, -18, -1}, {-kTiny, kTiny, -0.0, 1}, {-kSmall, kSmall, 0, 1, 0.5}, {88.8, kInf, kInf}};
  check({&MathLoops::expm1, std::expm1, 1.7, -kInf, kInf, pieces});
}
TEST_CASE("log") { check({&MathLoops::log, right_log, 1.1, -kInf, kInf, {{-kInf, -1e-40, kNaN}}}); }
TEST_CASE("log1p") {
  const std::vector<Piece> pieces = {{-kInf, -1.01, kNaN}, {-kTiny, kTiny, -0.0, 1}, {-kSmall, kSmall, 0, 1, -0.5}};
  check({&MathLoops::log1p, right_log1p, 1.6, -kInf, kInf, pieces});
}
TEST_CASE("tanh") {
  const std::vector<Piece> pieces = {{-kInf, -10, -1}, {-kSmall, kSmall, -0.0, 1}, {10, kInf, 1}};
  check({&MathLoops::tanh, std::tanh, 1.6, -kInf, kInf, pieces});
}
TEST_CASE("sigmoid") {
  const std::vector<Piece> pieces = {
      {-kInf, -104, 0}, {-kTiny, kTiny, 0.5}, {-kSmall, kSmall, 0.5, 0.25}, {18, kInf, 1}};
  check({&MathLoops::sigmoid, right_sigmoid, 2, -kInf, kInf, pieces});
}
TEST_CASE("erf") {
  const std::vector<Piece> pieces = {{-kInf, -4, -1}, {-kSmall, kSmall, -0.0, kTwoBySqrtPi}, {4, kInf, 1}};
  check({&MathLoops::erf, std::erf, 1.7, -kInf, kInf, pieces});
}
TEST_CASE("elu(x) + 1") {
  const auto right = [](double x) { return x >= 0 ? x + 1 : std::exp(x); };
  const std::vector<Piece> pieces = {{-kInf, -104, 0}, {-kTiny, 0, 1}, {-kSmall, 0, 1, 1, 0.5}, {0, kInf, 1, 1}};
  check({&MathLoops::elu1, right, 1.2, -kInf, kInf, pieces});
}
TEST_CASE("elu") {
  const auto right = [](double x) { return x >= 0 ? x : std::expm1(x); };
  const std::vector<Piece> pieces = {
      {-kInf, -18, -1}, {-kTiny, 0, -0.0, 1}, {-kSmall, 0, 0, 1, 0.5}, {0, kInf, -0.0, 1}};
  check({&MathLoops::elu, right, 1.1, -kInf, kInf, pieces});
}
TEST_CASE("softplus") {
  const std::vector<Piece> pieces = {
      {-kInf, -104, 0}, {-kTiny, kTiny, kLn2}, {-kSmall, kSmall, kLn2, 0.5, 0.125}, {20, kInf, 0, 1}};
  check({&MathLoops::softplus, right_softplus, 2, -kInf, kInf, pieces});
}
// Below 0 both lose digits: gelu as 1 + erf does, and gelu_tanh as the exponent of e is a rounded number.
TEST_CASE("gelu") {
  const std::vector<Piece> pieces = {
      {-kInf, -7, -0.0}, {-kTiny, kTiny, -0.0, 0.5}, {-kSmall, kSmall, 0, 0.5, kBySqrtTwoPi}, {7, kInf, 0, 1}};
  check({&MathLoops::gelu, right_gelu, 1.8, 0, kInf, pieces});
  check({&MathLoops::gelu, right_gelu, 0.8, -kInf, 0, pieces, true});
}
TEST_CASE("gelu_tanh") {
  const std::vector<Piece> pieces = {
      {-kInf, -12, -0.0}, {-kTiny, kTiny, -0.0, 0.5}, {-kSmall, kSmall, 0, 0.5, kBySqrtTwoPi}, {7, kInf, 0, 1}};
  check({&MathLoops::gelu_tanh, right_gelu_tanh, 2.7, 0, kInf, pieces});
  check({&MathLoops::gelu_tanh, right_gelu_tanh, 220, -kInf, 0, pieces});
}
