#include "linnet/ops/local_attention.h"

#include "linnet/ops/softmax_attention_run.h"

namespace linnet {

using namespace softmax_attention_run;

namespace {

/// What local attention shares with softmax attention; the band takes the place of `causal`.
SoftmaxAttentionOptions shared(const LocalAttentionOptions& options) {
  return {.causal = options.causal, .scale = options.scale, .keys = options.keys, .queries = options.queries};
}

int64_t checked_window(const char* op, const LocalAttentionOptions& options) {
  LINNET_CHECK(options.window >= 0, op, ": window ", options.window, " given, 0 or more wanted");
  return std::min(options.window, kAnywhere - 1);
}

Band band(const char* op, const LocalAttentionOptions& options) {
  const int64_t window = checked_window(op, options);
  return {window, options.causal ? 0 : window};
}

/// How many steps the cache holds at most.
int64_t checked_cache(const char* op, const LocalCache& cache, const LocalAttentionOptions& options) {
  const int64_t most = checked_window(op, options) + 1, length = cache.ring.length;
  LINNET_CHECK(!options.keys, op, ": takes a query mask, not a key mask");
  LINNET_CHECK(length <= most && (length == most ? cache.oldest >= 0 && cache.oldest < most : cache.oldest == 0), op,
               ": a cache of ", length, " steps that begins at ", cache.oldest, " is not one of window ",
               options.window);
  return most;
}

}  // namespace

Variable local_attention(const Variable& q, const Variable& k, const Variable& v,
                         const LocalAttentionOptions& options) {
  const char* op = "local_attention";
  check_defined(op, q, k, v);
  const bool comparable = q.rank() == 4 && k.rank() == 4;
  LINNET_CHECK(!comparable || q.size(1) == k.size(1), op, ": needs as many queries as keys, but q has ", q.size(1),
               " and k has ", k.size(1));
  return attend(op, q, k, v, shared(options), band(op, options));
}

Variable local_attention_qkv(const Variable& qkv, const LocalAttentionOptions& options) {
  const char* op = "local_attention_qkv";
  return attend_qkv(op, qkv, shared(options), band(op, options));
}

void local_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, LocalCache& cache, Tensor& out,
                          const LocalAttentionOptions& options) {
  const char* op = "local_attention_step";
  const int64_t most = checked_cache(op, cache, options);
  step(op, q, k, v, cache.ring, cache.oldest, most, out, shared(options));
}

void local_attention_step_qkv(const Tensor& qkv, LocalCache& cache, Tensor& out, const LocalAttentionOptions& options) {
  const char* op = "local_attention_step_qkv";
  const int64_t most = checked_cache(op, cache, options);
  step_qkv(op, qkv, cache.ring, cache.oldest, most, out, shared(options));
}

}  // namespace linnet
