#include "linnet/ops/linear_attention_segments.h"

#include "linnet/ops/linear_attention_heads.h"

namespace linnet::linear_attention_run {
namespace {

constexpr int64_t kShortest = 256;  // rows: a shorter segment is not worth a thread

/// The pieces of a causal call: every head in `cuts` segments, numbered head by head.
struct Cutting {
  int64_t heads, rows, cuts;
  Piece operator()(int64_t i, int64_t part = 0, int64_t parts = 1) const {
    const int64_t head = i / cuts, first = i % cuts * parts + part;
    return {head / heads, head % heads, rows * first / (cuts * parts), rows * (first + 1) / (cuts * parts)};
  }
};

/// States, s and z of each behind one another.
template <class T>
class States {
 public:
  States(int64_t count, const AttentionSizes& n, Device device)
      : sums_(n.dim * n.value_dim),
        dim_(n.dim),
        size_(aligned(sums_) + aligned(dim_)),
        all_(Tensor::zeros({count, size_}, dtype_of<T>, device)),
        data_(all_.mutable_data<T>()) {}
  T* s(int64_t i) const { return data_ + i * size_; }
  T* z(int64_t i) const { return s(i) + aligned(sums_); }
  void add(int64_t to, const States& from, int64_t i) const {
    for (int64_t j = 0; j < size_; ++j) s(to)[j] += from.s(i)[j];
  }
  /// State i from, or to, row `head` of the caller's tensors; nothing where these are undefined.
  void read(int64_t i, int64_t head, const Tensor& s_all, const Tensor& z_all) const {
    if (!s_all.defined()) return;
    std::copy_n(s_all.data<T>() + head * sums_, sums_, s(i));
    std::copy_n(z_all.data<T>() + head * dim_, dim_, z(i));
  }
  void write(int64_t i, int64_t head, Tensor& s_all, Tensor& z_all) const {
    if (!s_all.defined()) return;
    std::copy_n(s(i), sums_, s_all.mutable_data<T>() + head * sums_);
    std::copy_n(z(i), dim_, z_all.mutable_data<T>() + head * dim_);
  }

 private:
  int64_t sums_, dim_, size_;
  Tensor all_;
  T* data_;
};

/// S and z of one piece's keys.
template <class T>
void sum_keys(const Call& call, const Inputs& x, const Piece& piece, T* s, T* z, T* scratch) {
  LinearAttentionForward<T> head{};
  fill_inputs(head, call, x, piece);
  head.queries = 0;
  head.causal = false;
  head.s = s;
  head.z = z;
  head.scratch = scratch;
  kernels.of<T>(x.q.device()).forward(head);
}

}  // namespace

int64_t segments(const Call& call) {
  const int64_t heads = call.sizes.batch * call.sizes.heads, threads = num_threads();
  if (!call.causal || heads == 0 || heads >= threads) return 1;
  return std::clamp<int64_t>(call.sizes.queries / kShortest, 1, threads / heads);
}

template <class T>
void forward_in_segments(int64_t cuts, const Call& call, const Inputs& x, Tensor& out, Tensor& d, Tensor s, Tensor z) {
  const AttentionSizes n = call.sizes;
  const int64_t heads = n.batch * n.heads, parts = cuts <= 4 ? cuts : 1;  // few segments are summed in smaller parts
  const auto& kernel = kernels.of<T>(out.device());
  const Cutting cutting{n.heads, n.queries, cuts};
  const double cost = call.nanoseconds(1) / static_cast<double>(cuts);
  T *const o_all = out.mutable_data<T>(), *const d_all = d.mutable_data<T>();
  const States<T> states(heads * cuts, n, out.device()), sums(heads * cuts * parts, n, out.device());
  const int64_t room = kernel.forward_scratch(n.queries, n.dim, n.value_dim, true);

  Scratch<T> for_sums(room, heads * cuts * parts, out.device());
  parallel_for(heads * (cuts - 1) * parts, cost / static_cast<double>(2 * parts), [&](int64_t begin, int64_t end) {
    T* const memory = for_sums.claim();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t segment = i / parts / (cuts - 1) * cuts + i / parts % (cuts - 1), part = i % parts;
      const int64_t to = segment * parts + part;
      sum_keys<T>(call, x, cutting(segment, part, parts), sums.s(to), sums.z(to), memory);
    }
  });
  for (int64_t i = 0; i < heads * cuts; ++i) {
    if (i % cuts == 0) {
      states.read(i, i / cuts, s, z);
    } else {
      states.add(i, states, i - 1);
      for (int64_t part = 0; part < parts; ++part) states.add(i, sums, (i - 1) * parts + part);
    }
  }
  Scratch<T> scratch(room, heads * cuts, out.device());
  parallel_for(heads * cuts, cost, [&](int64_t begin, int64_t end) {
    T* const memory = scratch.claim();
    for (int64_t i = begin; i < end; ++i) {
      auto head = forward_piece<T>(call, x, o_all, d_all, cutting(i));
      head.s = states.s(i);
      head.z = states.z(i);
      head.scratch = memory;
      kernel.forward(head);
    }
  });
  for (int64_t head = 0; head < heads; ++head) states.write((head + 1) * cuts - 1, head, s, z);
}

template <class T>
void backward_in_segments(int64_t cuts, const Call& call, const Inputs& x, const Tensor& out, const Tensor& d,
                          const Tensor& g, Tensor dq, Tensor dk, Tensor dv, Tensor ds, Tensor dz) {
  const AttentionSizes n = call.sizes;
  const int64_t heads = n.batch * n.heads;
  const auto& kernel = kernels.of<T>(out.device());
  const Cutting cutting{n.heads, n.queries, cuts};
  const double cost = call.nanoseconds(3) / static_cast<double>(cuts);
  T *const dq_all = dq.mutable_data<T>(), *const dk_all = dk.mutable_data<T>(), *const dv_all = dv.mutable_data<T>();
  // Of each segment: its own sums, up (S, z) and down (R, r); and what lies before and behind it.
  const States<T> up(heads * cuts, n, out.device()), down(heads * cuts, n, out.device());
  const States<T> before(heads * cuts, n, out.device()), behind(heads * cuts, n, out.device());
  const int64_t room = std::max(kernel.forward_scratch(n.queries, n.dim, n.value_dim, true),
                                kernel.backward_scratch(n.queries / cuts + 1, n.dim, n.value_dim, true));

  Scratch<T> for_sums(room, heads * cuts * 2, out.device());
  parallel_for(heads * (cuts - 1) * 2, cost / 6, [&](int64_t begin, int64_t end) {
    T* const memory = for_sums.claim();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t segment = i / 2 / (cuts - 1) * cuts + i / 2 % (cuts - 1);  // but for the last of each head
      if (i % 2 == 0) {
        sum_keys<T>(call, x, cutting(segment), up.s(segment), up.z(segment), memory);
      } else {
        auto head = backward_piece<T>(call, x, out, d, g, nullptr, nullptr, nullptr, cutting(segment + 1));
        head.keys = 0;
        head.causal = false;
        head.ds = down.s(segment + 1);
        head.dz = down.z(segment + 1);
        head.scratch = memory;
        kernel.backward(head);
      }
    }
  });
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = head * cuts, last = first + cuts - 1;
    before.read(first, head, x.s, x.z);
    behind.read(last, head, ds, dz);
    for (int64_t i = first; i < last; ++i) {
      before.add(i + 1, before, i);
      before.add(i + 1, up, i);
    }
    for (int64_t i = last; i > first; --i) {
      behind.add(i - 1, behind, i);
      behind.add(i - 1, down, i);
    }
  }
  Scratch<T> scratch(room, heads * cuts, out.device());
  parallel_for(heads * cuts, cost, [&](int64_t begin, int64_t end) {
    T* const memory = scratch.claim();
    for (int64_t i = begin; i < end; ++i) {
      auto head = backward_piece<T>(call, x, out, d, g, dq_all, dk_all, dv_all, cutting(i));
      head.s = before.s(i);
      head.z = before.z(i);
      head.ds = behind.s(i);
      head.dz = behind.z(i);
      head.scratch = memory;
      kernel.backward(head);
    }
  });
  for (int64_t head = 0; head < heads; ++head) behind.write(head * cuts, head, ds, dz);
}

template void forward_in_segments<float>(int64_t, const Call&, const Inputs&, Tensor&, Tensor&, Tensor, Tensor);
template void forward_in_segments<double>(int64_t, const Call&, const Inputs&, Tensor&, Tensor&, Tensor, Tensor);
template void backward_in_segments<float>(int64_t, const Call&, const Inputs&, const Tensor&, const Tensor&,
                                          const Tensor&, Tensor, Tensor, Tensor, Tensor, Tensor);
template void backward_in_segments<double>(int64_t, const Call&, const Inputs&, const Tensor&, const Tensor&,
                                           const Tensor&, Tensor, Tensor, Tensor, Tensor, Tensor);

}  // namespace linnet::linear_attention_run
