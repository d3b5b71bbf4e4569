// The optimizers' kernels on a GPU: one launch over all parameters of a step, from a table of them on the device.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/cuda_device.h"
#include "linnet/core/math.h"
#include "linnet/core/warp.h"
#include "linnet/optim/optim_kernels.h"

namespace linnet::cuda {
namespace {

constexpr int64_t kChunk = 4096;  // elements of a part, for one block

/// A part, and how many chunks come before it.
template <class Part>
struct Row {
  Part part;
  int64_t first;
};

/// f(part, begin, end, chunk) for every chunk of every part, a block each.
template <class Part, class F>
__global__ void __launch_bounds__(kThreads, 2) chunk_kernel(int64_t parts, int64_t chunks, const Row<Part>* rows, F f) {
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    int64_t low = 0, high = parts;  // the last part that begins at this chunk or before
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (rows[middle].first <= chunk ? low : high) = middle;
    }
    const Part part = rows[low].part;
    const int64_t begin = (chunk - rows[low].first) * kChunk;
    f(part, begin, begin + kChunk < part.n ? begin + kChunk : part.n, chunk);
  }
}

/// A list of parts on the device.
template <class Part>
class Table {
 public:
  explicit Table(const std::vector<Part>& parts) : rows_(static_cast<int64_t>(parts.size()) + 1) {
    std::vector<Row<Part>> rows;
    for (const Part& part : parts) {
      rows.push_back({part, chunks_});
      chunks_ += (part.n + kChunk - 1) / kChunk;
      longest_ = part.n > longest_ ? part.n : longest_;
    }
    rows.push_back({Part{}, chunks_});
    parts_ = static_cast<int64_t>(parts.size());
    cuda_device().copy(rows_.data(), Device::cuda, rows.data(), Device::cpu,
                       static_cast<int64_t>(rows.size() * sizeof(Row<Part>)));
  }
  int64_t chunks() const { return chunks_; }
  const Row<Part>* rows() { return rows_.data(); }

  template <class F>
  void run_each(F f) {
    run(chunk_kernel<Part, F>, blocks_for(chunks_, 1), threads_for(longest_), 0, parts_, chunks_, rows(), f);
  }

 private:
  Scratch<Row<Part>> rows_;
  int64_t parts_ = 0, chunks_ = 0, longest_ = 0;
};

template <class T>
void adaptive(const std::vector<AdaptivePart<T>>& parts) {
  Table<AdaptivePart<T>>(parts).run_each([=] __device__(const AdaptivePart<T>& p, int64_t begin, int64_t end, int64_t) {
    const AdaptiveStep<T>& s = p.step;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const T theta = p.theta[i], g = p.gradient[i] + s.decay_gradient * theta;
      const T m = s.beta1 * p.m[i] + s.one_minus_beta1 * g, v = s.beta2 * p.v[i] + s.one_minus_beta2 * g * g;
      const T denominator = s.adaptive ? s.scale * sqrt(v) + s.eps : T(1);
      p.m[i] = m, p.v[i] = v;
      p.theta[i] = s.shrink * theta - (denominator == T(0) ? T(0) : s.rate * m / denominator);
    }
  });
}

template <class T>
void descent(const std::vector<DescentPart<T>>& parts) {
  Table<DescentPart<T>>(parts).run_each([=] __device__(const DescentPart<T>& p, int64_t begin, int64_t end, int64_t) {
    const DescentStep<T>& s = p.step;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const T theta = p.theta[i], g = p.gradient[i] + s.decay_gradient * theta;
      T direction = g;
      if (p.m) {
        const T m = p.m[i] = s.momentum * p.m[i] + g;
        direction = s.nesterov ? g + s.momentum * m : m;
      }
      p.theta[i] = s.shrink * theta - s.rate * direction;
    }
  });
}

struct Size {
  double sum, bad;  // bad: how many values are not finite
};

/// What the chunks of each part give together, in an order that depends on its size alone. A block a part.
template <class Part>
__global__ void __launch_bounds__(kThreads)
    total_kernel(int64_t parts, const Row<Part>* rows, const Size* of_chunk, Size* of_part) {
  for (int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    double sum = 0, bad = 0;
    for (int64_t c = rows[part].first + threadIdx.x; c < rows[part + 1].first; c += blockDim.x)
      sum += of_chunk[c].sum, bad += of_chunk[c].bad;
    sum = over_block(sum, Sum()), bad = over_block(bad, Sum());
    if (threadIdx.x == 0) of_part[part] = {sum, bad};
  }
}

template <class T>
std::vector<GradientSize> sizes(const std::vector<GradientPart<T>>& parts) {
  Table<GradientPart<T>> table(parts);
  const auto count = static_cast<int64_t>(parts.size());
  Scratch<Size> of_chunks(table.chunks()), of_parts(count);
  Size* const of_chunk = of_chunks.data();
  table.run_each([=] __device__(const GradientPart<T>& p, int64_t begin, int64_t end, int64_t chunk) {
    double sum = 0, bad = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const T value = p.values[i];
      sum += static_cast<double>(value) * static_cast<double>(value);
      bad += value - value == T(0) ? 0.0 : 1.0;
    }
    sum = over_block(sum, Sum()), bad = over_block(bad, Sum());
    if (threadIdx.x == 0) of_chunk[chunk] = {sum, bad};
  });
  run(total_kernel<GradientPart<T>>, blocks_for(count, 1), kWarp, 0, count, table.rows(), of_chunk, of_parts.data());
  std::vector<Size> got(parts.size());
  fetch(of_parts.data(), count, got.data());
  std::vector<GradientSize> result;
  for (const Size& size : got) result.push_back({size.sum, size.bad == 0});
  return result;
}

template <class T>
void scale(const std::vector<GradientPart<T>>& parts, double factor) {
  const T by = static_cast<T>(factor);
  Table<GradientPart<T>>(parts).run_each([=] __device__(const GradientPart<T>& p, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) p.values[i] *= by;
  });
}

}  // namespace

extern const OptimListF32 optim_list_f32 = {adaptive<float>, descent<float>, sizes<float>, scale<float>};
extern const OptimListF64 optim_list_f64 = {adaptive<double>, descent<double>, sizes<double>, scale<double>};

}  // namespace linnet::cuda
