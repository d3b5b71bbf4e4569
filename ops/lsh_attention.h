// LSH attention (Kitaev, Kaiser and Levskaya 2020, "Reformer: The Efficient Transformer", section 2): softmax attention
// over the few keys that a random rotation puts beside the query. Time N log N, memory N: the steps are sorted by their
// hash and cut into chunks, and each chunk attends to itself and to the one before it.
#pragma once
#include <optional>

#include "linnet/autograd/variable.h"
#include "linnet/core/random.h"
#include "linnet/ops/masks.h"

namespace linnet {

/// How the rounds of hashing become one output.
enum class LshRounds {
  joint,  ///< one softmax over the keys of all rounds, the paper's equations 5 and 6: a round weighs what its keys
          ///< weigh
  mean    ///< every round its own softmax, all rounds alike, as in pytorch-fast-transformers
};

struct LshAttentionOptions {
  int64_t buckets = 0;  ///< even, 2 or more; there is no default. Not read where hashes are given
  int64_t chunk = 0;    ///< steps a chunk, 1 or more; there is no default
  int64_t rounds = 1;   ///< how often the steps are hashed anew, 1 or more
  bool causal = false;
  bool self = false;       ///< whether a query looks at its own step like at any other
  bool own_bucket = true;  ///< as published; false: at whatever its chunks hold, as in pytorch-fast-transformers
  LshRounds combine = LshRounds::joint;
  std::optional<double> scale = {};  ///< 1 / sqrt(D) where not given
  const KeyMask* keys = nullptr;
  const QueryMask* queries = nullptr;
  const Tensor* hashes = nullptr;  ///< i32 (batch, time, heads, rounds), any numbers; drawn where not given
  Generator* generator = nullptr;  ///< draws the rotations; default_generator() where not given
};

/// The bucket of each row of x (batch, time, heads, D), once a round: argmax of [xR; -xR], the first of equals
/// (section 2, "Locality sensitive hashing"). R (D, rounds, buckets / 2) is standard normal, in the dtype of x, and the
/// same for all samples and heads. Returns i32 (batch, time, heads, rounds).
Tensor lsh_hashes(const Tensor& x, int64_t buckets, int64_t rounds, Generator& generator);

/// o_i = sum_r sum_{j in P_i^r} exp(scale q_i . k_j - log N_ij - z_i) v_j,   N_ij = how many r have j in P_i^r
///
/// with z_i the log of the sum of the weights: equations 4 to 6 and appendix A. P_i^r holds the steps j that the mask
/// allows, that are not i, not later than i where causal, in i's bucket of round r, and in i's chunk or the one before
/// it. Each round sorts the steps by (bucket, step), those masked as keys behind all others; so a sample padded behind
/// its length gives what it gives alone, with the same rotations. No chunk lies before the first one, the last one may
/// be shorter. A query that no P_i^r gives a key looks at its own step, o_i = v_i; where that is masked, output and
/// gradient are 0.
///
/// q, k (batch, time, heads, D), v (batch, time, heads, M) -> (batch, time, heads, M). The hashes are those of k. With
/// LshRounds::mean, o_i is the mean over r of sum_j softmax_j(scale q_i . k_j) v_j, with the own step for a P_i^r that
/// is empty. With own_bucket = false, self = true and one chunk over all it is softmax_attention. A step's weight on a
/// later one is exactly 0 where causal, but the sort sees all steps. To the gradient the hashes are constants. Kept for
/// the way back: q, k, v, the hashes, log(sum exp) of each row, and o for LshRounds::joint. Errors: a k of another time
/// than q, sizes out of range, hashes of another shape, and those of softmax_attention.
Variable lsh_attention(const Variable& q, const Variable& k, const Variable& v, const LshAttentionOptions& options);

/// The same for the three parts of one projection, qkv (batch, time, 3, heads, dim), with one gradient of that shape.
Variable lsh_attention_qkv(const Variable& qkv, const LshAttentionOptions& options);

/// The published form, in which queries and keys are one: k_j = q_j / |q_j|, and 0 where q_j is. The hashes are those
/// of q.
Variable lsh_attention_shared(const Variable& q, const Variable& v, const LshAttentionOptions& options);

}  // namespace linnet
