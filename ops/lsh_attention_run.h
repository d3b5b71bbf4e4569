// One call of LSH attention on its tensors: the steps sorted by their hashes, then chunk after chunk. Private to ops/.
#pragma once
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/lsh_attention.h"

namespace linnet::lsh_attention_run {

/// All of one call but its tensors.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  int64_t chunk = 1, rounds = 1;
  bool causal = false, self = false, own_bucket = true;
  bool joint = true;    // LshRounds::joint
  bool shared = false;  // k is q, each row divided by its norm
  double scale = 1;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  Shape lse_shape() const { return {sizes.batch, sizes.heads, joint ? 1 : rounds, sizes.queries}; }
  double nanoseconds(double products) const {
    const double near = 2 * static_cast<double>(std::min(chunk, sizes.queries));
    return static_cast<double>(rounds * sizes.queries) * near *
           (2 + products * static_cast<double>(sizes.dim + sizes.value_dim) / 20);
  }
};

/// The tensors of one call; where q, k and v lie in one tensor, they are that one. Masks are undefined where there is
/// none.
struct Inputs {
  Tensor q, k, v;
  Tensor hashes;  // i32 (batch, time, heads, rounds)
  Tensor keys, queries;
};

void check_buckets(const char* op, int64_t buckets, int64_t rounds);
/// (dim, rounds, buckets / 2) for rows like those of x, standard normal.
Tensor draw_rotations(int64_t buckets, int64_t rounds, const Tensor& x, Generator& generator);
/// The hashes of the rows of x; see lsh_hashes.
Tensor hash_rows(const Tensor& x, const RowLayout& rows, const AttentionSizes& sizes, const Tensor& rotations);

/// The steps of one head, sorted in every round, and which of them a query may look at.
class Order {
 public:
  Order(const Call& call, const Inputs& x, int64_t b, int64_t h);

  int64_t visible() const { return visible_; }  ///< how many steps are allowed as keys: the first ones of each round
  std::span<const int32_t> steps(int64_t round) const { return {steps_.data() + round * time_, size_t(time_)}; }
  std::span<const int32_t> visible_steps(int64_t round) const { return steps(round).first(size_t(visible_)); }
  bool key(int64_t step) const { return !keys_ || keys_[step]; }
  bool query(int64_t step) const { return !queries_ || queries_[step]; }

  /// Turns the scores s of query i against the sorted keys begin .. end-1 of a round into logits: -infinity where the
  /// key is not in P_i, log N_ij less elsewhere in the joint form.
  template <class T>
  void mask(int64_t round, int64_t i, int64_t begin, int64_t end, T* s) const;

 private:
  bool bucket_allows(int64_t round, int64_t i, int64_t j) const {
    return !own_bucket_ || hashes_[round * time_ + i] == hashes_[round * time_ + j];
  }
  int64_t rounds_with(int64_t i, int64_t j) const;

  int64_t time_, rounds_, visible_;
  bool causal_, self_, own_bucket_, divide_;
  const uint8_t *keys_, *queries_;
  std::vector<int32_t> hashes_, steps_, chunks_;  // rounds x time: of each step, in sorted order, of each step
  std::vector<double> logs_;                      // of 0 .. rounds
};

/// out, and lse: log(sum exp) of each row, (batch, heads, rounds or 1, time); -infinity where no key is in P_i.
std::pair<Tensor, Tensor> forward(const Call& call, const Inputs& x);
/// Adds the gradients for dy to the zeroed dq, dk and dv, which may be one tensor where the layouts are apart; in the
/// shared form dk is not used.
void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
              Tensor dk, Tensor dv);

}  // namespace linnet::lsh_attention_run
