// Staging for linear attention's primitive: rows of a head, feature map applied and padded with zeros, as a chunk in
// scratch memory; and the way back from there. Included once per level; everything lies in the level's own namespace.
// Private to ops/.
#pragma once
#include "linnet/core/math.h"
#include "linnet/ops/linear_attention_block.h"
#include "linnet/ops/linear_attention_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

/// Rows first, first + step, ... of a head, n of them, as a chunk takes them: step is 1 or -1.
struct Range {
  int64_t first, step, n;
  int64_t operator()(int64_t r) const { return first + r * step; }
  int64_t groups() const { return (n + kRows - 1) / kRows * kRows; }
};

/// f(range) over the rows 0 .. n-1 in chunks, upwards or downwards.
template <class F>
void chunks(int64_t n, bool up, F f) {
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t size = n - i < kChunk ? n - i : kChunk;
    f(up ? Range{i, 1, size} : Range{n - 1 - i, -1, size});
  }
}

/// Which rows of a chunk there are: not those behind its end, nor those that a mask leaves out.
struct Present {
  const Range& range;
  const uint8_t* mask;
  bool operator()(int64_t r) const { return r < range.n && (!mask || mask[range(r)]); }
  bool all() const { return !mask && range.n == range.groups(); }
};

template <class T>
void clear(int64_t n, T* x) {
  for (int64_t i = 0; i < n; ++i) x[i] = 0;
}

/// The larger and the smaller of two numbers; b where one is NaN.
template <class T>
Plain<T> larger(Plain<T> a, Plain<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_maxps512_mask(a, b, a, 0xffff, 4);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_maxps256(a, b);
#endif
  return a > b ? a : b;
}
template <class T>
Plain<T> smaller(Plain<T> a, Plain<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_minps512_mask(a, b, a, 0xffff, 4);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_minps256(a, b);
#endif
  return a < b ? a : b;
}

/// e^x for x <= 0, and anything for others, within 1.1 units in the last place.
inline Plain<float> exp_nonpositive(Plain<float> x) {
  const Plain<float> y = larger<float>(Plain<float>{} - 104.0f, x);
#ifdef __AVX512F__
  // y = n ln 2 + r with n in sixteenths: 2^(n - floor(n)) comes from a table that is one register.
  using Bits = int32_t __attribute__((vector_size(kBytes)));
  constexpr Plain<float> kPowers = {1.0f,        1.04427378f, 1.09050773f, 1.13878864f, 1.18920712f, 1.24185781f,
                                    1.29683955f, 1.35425555f, 1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
                                    1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
  constexpr float kRound = 786432.0f;  // 1.5 * 2^19: adding it leaves the nearest sixteenth in the low bits
  const Plain<float> shifted = y * 1.44269504f + kRound, n = shifted - kRound;
  const Plain<float> r = (y - n * 0.693147182f) + n * 1.90465421e-9f;
  const Plain<float> power = __builtin_shuffle(kPowers, reinterpret_cast<Bits>(shifted));
  const Plain<float> e = power * r * ((r * 0.166666667f + 0.5f) * r + 1.0f) + power;
  return __builtin_ia32_scalefps512_mask(e, n, e, 0xffff, 4);
#else
  using Bits = uint32_t __attribute__((vector_size(kBytes)));
  const auto e = reduce_exp<32>(y);  // core/math.h's, a vector at a time
  const Bits large = reinterpret_cast<Bits>(exp_reduced(e.r)) + (reinterpret_cast<Bits>(e.shifted) << 23);
  return reinterpret_cast<Plain<float>>(large) * 2.32830644e-10f + (e.n - e.n);
#endif
}
inline Plain<double> exp_nonpositive(Plain<double> x) {
  for (int l = 0; l < kLanes<double>; ++l) x[l] = exp(x[l]);
  return x;
}

// ---- the feature maps: phi, and phi' as a function of phi

template <class T>
struct Elu1 {
  static Plain<T> phi(Plain<T> x) { return x > Plain<T>{} ? x + 1 : exp_nonpositive(x); }
  static Plain<T> slope(Plain<T> phi) { return smaller<T>(phi, Plain<T>{} + 1); }
};
template <class T>
struct Relu {
  static Plain<T> phi(Plain<T> x) { return x < Plain<T>{} ? Plain<T>{} : x; }
  static Plain<T> slope(Plain<T> phi) { return phi > Plain<T>{} ? Plain<T>{} + 1 : Plain<T>{}; }
};
template <class T>
struct Identity {
  static Plain<T> phi(Plain<T> x) { return x; }
  static Plain<T> slope(Plain<T>) { return Plain<T>{} + 1; }
};

/// f with the map as its argument.
template <class T, class F>
void with_map(FeatureMap map, F f) {
  if (map == FeatureMap::elu1) {
    f(Elu1<T>());
  } else if (map == FeatureMap::relu) {
    f(Relu<T>());
  } else {
    f(Identity<T>());
  }
}

// ---- rows into a chunk. What lies behind the n numbers of a row is zero from the beginning, and stays so.

/// Stages f(x), where f takes a vector.
template <class T, class F>
void stage(const Present& present, int64_t n, const T* x, int64_t row, const Rows<T>& out, F f) {
  const int64_t rows = present.range.groups(), step = present.range.step * row;
  const T* from = x + present.range.first * row;
  T* to = out.data;
  if (present.all() && n % kLanes<T> == 0) {  // the usual case, without a question a row
    for (int64_t r = 0; r < rows; ++r, from += step, to += out.ld) {
      for (int64_t i = 0; i < n; i += kLanes<T>) at(to + i) = f(at(from + i));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, from += step, to += out.ld) {
    if (present(r)) {
      each<T>(n, [&](int64_t i, int64_t count) { store<T>(to + i, count, f(load(from + i, count))); });
    } else {
      clear(n, to);
    }
  }
}

template <class T>
void stage(const Present& present, int64_t n, const T* x, int64_t row, const Rows<T>& out) {
  stage(present, n, x, row, out, [](Plain<T> v) { return v; });
}

/// Stages x followed by a 1.
template <class T>
void stage_with_one(const Present& present, int64_t n, const T* x, int64_t row, const Rows<T>& out) {
  stage(present, n, x, row, out);
  for (int64_t r = 0; r < present.range.groups(); ++r) out[r][n] = present(r) ? T(1) : T(0);
}

/// Stages phi(x).
template <class T>
void stage_features(const Present& present, FeatureMap map, int64_t n, const T* x, int64_t row, const Rows<T>& out) {
  with_map<T>(map, [&](auto m) { stage(present, n, x, row, out, [m](Plain<T> v) { return m.phi(v); }); });
}

/// The sums of the lanes of f(r), a vector, for the n rows of a chunk; at most kChunk.
template <class T, class F>
void sum_rows(int64_t n, T* out, F f) {
  Plain<T> v[kLanes<T>] = {};
  for (int64_t r = 0; r < n; r += kLanes<T>) {
    for (int64_t i = 0; i < kLanes<T> && r + i < n; ++i) v[i] = f(r + i);
    at(out + r) = sums<T, kLanes<T>>(v);
  }
}

/// Rows that the next chunk will read or write, asked for while this one is computed.
template <class T>
class Ahead {
 public:
  /// Rows of `width` numbers, `row` apart, as many as the range is of.
  struct Stream {
    const T* x;
    int64_t row, width;
  };

  explicit Ahead(const Range& range) : range_(range) {}
  void add(const Stream& s) {
    streams_[count_++] = {s.x + (range_.first + kChunk * range_.step) * s.row, range_.step * s.row, s.width};
  }
  // Always inlined: a function that only prefetches counts as one without effect, and its calls are dropped.
  __attribute__((always_inline)) void part(int64_t i, int64_t n) const {
    for (int s = 0; s < count_; ++s)
      for (int64_t r = kChunk * i / n; r < kChunk * (i + 1) / n; ++r)
        for (int64_t at = 0; at < streams_[s].width; at += 64 / static_cast<int64_t>(sizeof(T)))
          __builtin_prefetch(streams_[s].x + r * streams_[s].row + at, 0, 2);
  }

 private:
  const Range& range_;
  Stream streams_[8];  // of the next chunk
  int count_ = 0;
};

/// Hands out parts of the scratch memory.
template <class T>
struct Arena {
  T* base;  // nullptr: only counts
  int64_t used = 0;
  T* take(int64_t n) {
    T* begin = base ? base + used : nullptr;
    used += (n + 15) / 16 * 16;
    return begin;
  }
  /// Rows of n numbers, zeros behind them.
  Rows<T> rows(int64_t n) {
    const int64_t width = padded<T>(n);
    T* begin = take(kChunk * width);
    if (begin && width > n) clear(kChunk * width, begin);
    return {begin, width};
  }
  State<T> state(int64_t depth, int64_t columns) { return {take(depth * columns), depth, columns}; }
};

}  // namespace
}  // namespace linnet::LINNET_LEVEL
