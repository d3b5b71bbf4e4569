// Generation allocates nothing per token: neither by the caching allocator nor by operator new, which this file counts
// for the whole test program.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "linnet/models/causal_lm.h"
#include "linnet/models/encoder_decoder.h"
#include "linnet/ops/compare.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/modules.h"

namespace {

std::atomic<int64_t> news = 0;

}  // namespace

#ifndef LINNET_SANITIZED  // a sanitizer has its own, and wants pairs of them
namespace {

void* counted(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  ++news;
  const std::size_t blocks = std::max<std::size_t>(1, bytes / alignment + (bytes % alignment != 0));
  void* memory = bytes <= PTRDIFF_MAX ? std::aligned_alloc(alignment, blocks * alignment) : nullptr;
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

using namespace linnet;
using models::CausalLM;
using nn::AttentionKind;

namespace {

constexpr int64_t kVocab = 40;

struct Asked {
  int64_t news, bytes;
};
Asked asked() { return {news, memory_stats(default_device()).requested}; }

/// Calls f with models of each attention, pre- and post-norm, with both kinds of positions.
template <class F>
void for_each_model(const F& f) {
  for (const AttentionKind kind : test::kCausalKinds) {
    for (const bool pre_norm : {true, false}) {
      CAPTURE(nn::name(kind));
      CAPTURE(pre_norm);
      CausalLM net({.vocab = kVocab,
                    .dim = 24,
                    .layers = 3,
                    .heads = 2,
                    .max_time = 200,
                    .kind = kind,
                    .window = test::kWindow,
                    .pre_norm = pre_norm,
                    .positions = pre_norm ? models::Positions::learned : models::Positions::sinusoidal});
      test::randomise(net);
      f(net);
    }
  }
}

}  // namespace

#ifndef LINNET_SANITIZED
TEST_CASE("generation memory: the counter counts") {
  const int64_t before = news;
  int* volatile kept = new int;  // volatile: a compiler may leave a new-expression out
  delete kept;
  CHECK(news == before + 1);
}
#endif

TEST_CASE("generation memory: steps 10 to 50 allocate nothing, batch 1 to 256") {
  for_each_model([](const CausalLM& net) {
    for (const int64_t batch : {1, 7, 64, 256}) {
      CAPTURE(batch);
      const Tensor tokens = test::tokens({batch}, kVocab);
      models::LMState state = net.make_state(batch, 60);
      Tensor logits;
      for (int64_t t = 0; t < 10; ++t) logits = net.step(tokens, state);
      const Asked before = asked();
      for (int64_t t = 10; t < 50; ++t) logits = net.step(tokens, state);
      CHECK(asked().news == before.news);
      CHECK(asked().bytes == before.bytes);
    }
  });
}

TEST_CASE("generation memory: a token more costs its place in the result, however it is drawn") {
  for_each_model([](const CausalLM& net) {
    const int64_t batch = 3, more = 40;
    const Tensor prompt = test::tokens({batch, 4}, kVocab);
    // A token's place: in the result, and in the caches of three layers, keys and values of 24 numbers.
    const bool grows = net.make_state(1).stack.layers[0].kind == AttentionKind::softmax;
    const int64_t bytes = batch * 4 * (1 + (grows ? 3 * 2 * 24 : 0));
    for (const models::GenerateOptions options : {models::GenerateOptions{.tokens = 10, .temperature = 0},
                                                  {.tokens = 10},
                                                  {.tokens = 10, .top_k = 5},
                                                  {.tokens = 10, .top_p = 0.7},
                                                  {.tokens = 10, .top_k = 9, .top_p = 0.7}}) {
      CAPTURE(options.top_k);
      CAPTURE(options.top_p);
      const auto run = [&](int64_t tokens) {
        models::GenerateOptions asked_for = options;
        asked_for.tokens = tokens;
        const Asked before = asked();
        (void)net.generate(prompt, asked_for);
        const Asked after = asked();
        return Asked{after.news - before.news, after.bytes - before.bytes};
      };
      run(10), run(10 + more);  // the caching allocator's own lists
      const Asked few = run(10), many = run(10 + more);
      CHECK(many.news == few.news);
      CHECK(many.bytes == few.bytes + more * bytes);
    }
  });
}

TEST_CASE("generation memory: steps of an encoder-decoder allocate nothing") {
  for (const AttentionKind kind : {AttentionKind::linear, AttentionKind::softmax}) {
    for (const bool pre_norm : {true, false}) {
      CAPTURE(nn::name(kind));
      CAPTURE(pre_norm);
      const models::EncoderDecoder net({.vocab = kVocab,
                                        .dim = 24,
                                        .heads = 2,
                                        .encoder_layers = 1,
                                        .decoder_layers = 3,
                                        .kind = kind,
                                        .cross_kind = kind,
                                        .pre_norm = pre_norm});
      for (const int64_t batch : {1, 64}) {
        const Tensor tokens = test::tokens({batch}, kVocab), source = test::tokens({batch, 9}, kVocab);
        const KeyMask keys = KeyMask::array(Tensor::full({batch, 9}, 1, Dtype::u8));
        models::EncoderDecoderState state = net.make_state(source, &keys, 60);
        Tensor logits;
        for (int64_t t = 0; t < 10; ++t) logits = net.step(tokens, state);
        const Asked before = asked();
        for (int64_t t = 10; t < 50; ++t) logits = net.step(tokens, state);
        CHECK(asked().news == before.news);
        CHECK(asked().bytes == before.bytes);
      }
    }
  }
}

TEST_CASE("generation memory: logits that someone keeps are not written to again") {
  for_each_model([](const CausalLM& net) {
    const Tensor tokens = test::tokens({2}, kVocab);
    models::LMState state = net.make_state(2), copy;
    std::vector<Tensor> kept, copies;
    for (int64_t t = 0; t < 100; ++t) {
      kept.push_back(net.step(tokens, state));
      copies.push_back(kept.back().clone());
      if (t == 50) copy = state;
    }
    const Tensor other = net.step(test::tokens({2}, kVocab, 9), copy);
    for (size_t t = 0; t < kept.size(); ++t) CHECK(kept[t].to_vector<float>() == copies[t].to_vector<float>());
    CHECK_FALSE(other.shares_storage(kept[50]));
  });
}
