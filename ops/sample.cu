// A class a row of logits on a GPU, a block each: weights as the CPU has them, those that top_k and top_p leave out set
// to 0, and the first class whose cumulative sum is above u times all of it.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/math.h"
#include "linnet/ops/row_teams.h"
#include "linnet/ops/sample_kernels.h"

namespace linnet::cuda {
namespace {

constexpr int64_t kMostThreads = 1024;

/// A number as an integer that rises with it; 0 and -0 are the same, and 0 is none of them.
__device__ uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(x == 0 ? 0.0f : x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ uint64_t key_of(double x) {
  const uint64_t bits = static_cast<uint64_t>(__double_as_longlong(x == 0 ? 0.0 : x)), sign = uint64_t{1} << 63;
  return bits & sign ? ~bits : bits | sign;
}

/// The block's part: a row. Thread t has the classes t, t + blockDim.x, ... in every loop, so that no other thread sees
/// its weights and they need no barriers.
template <class T>
struct SampledRow {
  using Key = decltype(key_of(T()));

  /// What is kept of a row: the logits of larger keys, and the first `equals` of those of this key.
  struct Cut {
    Key key;
    double equals;
  };

  int64_t classes;
  const T* logits;
  double* weights;

  template <class F>
  __device__ double sum(F f) const {
    return sum_of<double>(BlockTeam(), classes, f);
  }

  /// As few of the largest logits as have `want` together, of which class i has amount(i). Bit by bit, the largest key
  /// down to which there is enough.
  template <class F>
  __device__ Cut largest(double want, F amount) const {
    Key key = 0;
    for (int bit = 8 * sizeof(T) - 1; bit >= 0; --bit) {
      const Key next = key | Key{1} << bit;
      if (sum([&](int64_t i) { return key_of(logits[i]) >= next ? amount(i) : 0.0; }) >= want) key = next;
    }
    const double above = sum([&](int64_t i) { return key_of(logits[i]) > key ? amount(i) : 0.0; });
    const double each = fold(
        BlockTeam(), classes, 0.0, [&](int64_t i) { return key_of(logits[i]) == key ? amount(i) : 0.0; }, Larger());
    return {key, ceil((want - above) / each)};
  }

  /// Sets the weights of the others to 0.
  __device__ void keep(Cut cut) const {
    int32_t before = 0;
    for (int64_t first = 0; first < classes; first += blockDim.x) {
      const int64_t i = first + threadIdx.x;
      const Key key = i < classes ? key_of(logits[i]) : Key{0};
      int32_t here;
      const int32_t rank = before + sum_before<int32_t>(key == cut.key, &here);
      before += here;
      if (i < classes && (key < cut.key || (key == cut.key && rank >= cut.equals))) weights[i] = 0;
    }
  }

  /// The first class whose cumulative sum is above u times all, else the last with a weight above 0.
  __device__ int64_t draw(double u) const {
    const double bound = u * sum([this](int64_t i) { return weights[i]; });
    double before = 0;
    int64_t last = -1;
    for (int64_t first = 0; first < classes; first += blockDim.x) {
      const int64_t i = first + threadIdx.x;
      const double weight = i < classes ? weights[i] : 0.0;
      double here;
      const double upto = before + sum_before(weight, &here) + weight;
      before += here;
      const bool is_above = weight > 0 && upto > bound;
      if (__syncthreads_or(is_above)) return over_block(is_above ? i : classes, Smaller());
      if (weight > 0) last = i;
    }
    return over_block(last, Larger());
  }

  __device__ int64_t sample(double u, const SampleOptions& options) const {
    const double best = fold(
        BlockTeam(), classes, -kInfinity<double>, [this](int64_t i) { return static_cast<double>(logits[i]); },
        Larger());
    if (!(best > -kInfinity<double> && best < kInfinity<double>)) return -1;
    for (int64_t i = threadIdx.x; i < classes; i += blockDim.x)
      weights[i] = exp_nonpositive((static_cast<double>(logits[i]) - best) / options.temperature);
    if (options.top_k > 0 && options.top_k < classes)
      keep(largest(static_cast<double>(options.top_k), [](int64_t) { return 1.0; }));
    if (options.top_p < 1) {
      const auto weight = [this](int64_t i) { return weights[i]; };
      // Rounded as on the CPU, not fused with the subtraction that follows: equal logits often come to just so much.
      keep(largest(__dmul_rn(options.top_p, sum(weight)), weight));
    }
    return draw(u);
  }
};

/// room (blocks, classes).
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    sample_kernel(int64_t rows, int64_t classes, const T* logits, const double* u, SampleOptions options, double* room,
                  int32_t* tokens) {
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const SampledRow<T> row{classes, logits + r * classes, room + blockIdx.x * classes};
    const int64_t token = row.sample(u[r], options);
    if (threadIdx.x == 0) tokens[r] = static_cast<int32_t>(token);
  }
}

template <class T>
void sample(int64_t rows, int64_t classes, const T* logits, const double* u, const SampleOptions& options,
            int32_t* tokens) {
  const unsigned blocks = blocks_for(rows, 1);
  const int64_t threads = classes < kMostThreads ? (classes + kWarp - 1) / kWarp * kWarp : kMostThreads;
  Scratch<double> room(blocks * classes);
  run(sample_kernel<T>, blocks, static_cast<unsigned>(threads), 0, rows, classes, logits, u, options, room.data(),
      tokens);
}

}  // namespace

extern const SampleF32 sample_f32 = {sample<float>};
extern const SampleF64 sample_f64 = {sample<double>};

}  // namespace linnet::cuda
