// The steps of LSH attention, hashed and sorted on a GPU. Private to .cu files.
#pragma once
#include "linnet/ops/lsh_attention_run.h"

namespace linnet::cuda {

void hash_rows(const Tensor& x, const RowLayout& rows, const AttentionSizes& n, const Tensor& rotations,
               Tensor& hashes);

/// What lsh_attention_run::Order says, of all heads: i32 (batch, heads, rounds, time) each, but for `visible`.
struct LshOrder {
  Tensor hashes, steps, chunks;
  Tensor visible;  // (batch, heads, rounds): how many steps are allowed as keys; they come first
};
LshOrder make_order(const lsh_attention_run::Call& call, const lsh_attention_run::Inputs& x);

}  // namespace linnet::cuda
