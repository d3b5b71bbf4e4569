// Linear attention on a GPU as a scan in two levels: the sums of each segment of a head's rows, a small scan over them,
// and the segments again, each walked from the state that lies before it. All three ways back are the same walk with
// the roles exchanged, as on the CPU (ops/linear_attention_backward.h). Private to .cu files.
#pragma once
#include "linnet/ops/linear_attention_rows.h"

namespace linnet::cuda {

/// A head's rows as `count` segments of `length`, a multiple of 64.
struct Cut {
  int64_t rows, length, count;
};

/// A state a segment, slots a head: a matrix (dim x value_dim) and, behind it, dim numbers.
template <class T>
struct States {
  T* data;
  int64_t dim, value_dim, slots;
  LINNET_FN int64_t size() const { return dim * value_dim + dim; }
  LINNET_FN T* of(int64_t head, int64_t slot) const { return data + (head * slots + slot) * size(); }
};

/// The sums of each segment but `skipped`: a^T b, and of a's rows by e.
template <class T>
struct Sums {
  Rows<T> a, b;
  const T* e;  // (batch, time, heads), or nullptr: 1
  Cut cut;
  States<T> to;
  int64_t skipped;
};

/// Each state becomes the sum of those before it (behind it, where not up) and `start`; or the first becomes the sum of
/// all. `end` gets the sum of all; start and end are (batch, heads, ...) or nullptr and may be the same.
template <class T>
struct Scan {
  States<T> states;
  int64_t count;
  bool exclusive, up;
  const T *start_s, *start_z;
  T *end_s, *end_z;
};

/// What stands beside the matrix products of a walk.
enum class Beside {
  nothing,
  row,          // one number more a row of a and of c, which meet in one row more of X: c_i and 1, on the ways back
  denominator,  // one column more of X, whose products are the denominators
};

/// The walk over a segment, in chunks: rows y = mask(c a^T) b + c X, then X += a^T b. Where not causal, y = c X.
template <class T>
struct Walk {
  Rows<T> a, b, c;
  bool causal, up;
  Beside beside;
  const T *e_a, *e_c;  // Beside::row: (batch, time, heads), or nullptr: 1
  Cut cut;             // of c's rows
  States<T> states;    // no data: zeros
  bool each;           // a state a segment, or one for all
  bool turned;         // X is the state's matrix with rows and columns exchanged
  HeadRows<T> y;

  HeadRows<const T> slope_of;  // y is multiplied by phi' of these rows, where there are any,
  FeatureMap slope_map;
  const T* over;  // and divided by these numbers, (batch, time, heads)
  T* d;           // forward: the denominators, which y is divided by: those beside the products, with eps, or 1
  T eps;
};

constexpr int kMostWalks = 3;
template <class T>
struct Walks {
  int64_t count, batch, heads;
  T smallest;
  Walk<T> walk[kMostWalks];
};
template <class T>
struct TwoSums {
  int64_t count, batch, heads;
  T smallest;
  Sums<T> sums[2];
};

template <class T>
void sum_segments(const TwoSums<T>& all);
template <class T>
void scan(int64_t heads, const Scan<T>& s);
/// Side by side in one launch: what one reads from memory, the others find in the cache.
template <class T>
void walk(const Walks<T>& all);

/// The same on the tensor cores, of rows of a that fit. Gives the walks that are left, which may be all or none.
Walks<float> walk_tiles(const Walks<float>& all);
bool fits_tiles(int64_t width);

/// How the heads' rows are cut: so that blocks fill any GPU, and no finer. It depends on sizes alone.
Cut cut_rows(int64_t rows, int64_t heads, int64_t dim, int64_t value_dim);

}  // namespace linnet::cuda
