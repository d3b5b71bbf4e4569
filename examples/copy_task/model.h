// What a run trains: a language model for the copy task, a transformer that sees both sides for the masked one.
#pragma once
#include <memory>

#include "copy_task/data.h"
#include "copy_task/settings.h"
#include "linnet/models/causal_lm.h"

namespace copy_task {

/// tokens i32 (batch, time) -> logits (batch, time, vocab), not causal: a CausalLM but for that.
class MaskedCopier : public linnet::nn::Model {
 public:
  explicit MaskedCopier(const linnet::models::CausalLMOptions& options);
  linnet::Variable operator()(const linnet::Tensor& tokens, const linnet::KeyMask& keys) const;

  linnet::nn::Embedding embed;
  linnet::models::AnyPositions positions;
  linnet::models::Stack stack;
  linnet::nn::Linear head;
};

/// The model and the data of a task.
class Learner {
 public:
  explicit Learner(const Settings& settings);

  linnet::nn::Module& net() const;
  const linnet::models::CausalLM* writer() const { return writer_.get(); }  ///< null for the masked task
  Batch batch(int64_t count, Stream stream, uint64_t index) const;
  linnet::Variable logits(const Batch& batch) const;
  const TaskSize& size() const { return size_; }
  uint64_t seed() const { return seed_; }

 private:
  TaskSize size_;
  uint64_t seed_;
  std::unique_ptr<linnet::models::CausalLM> writer_;
  std::unique_ptr<MaskedCopier> finder_;
};

}  // namespace copy_task
