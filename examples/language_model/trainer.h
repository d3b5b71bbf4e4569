// Trainer: the training of a language model; now and then it is measured on held-out text, the best model kept.
#pragma once
#include <memory>

#include "language_model/corpus.h"
#include "language_model/settings.h"
#include "support/training.h"

namespace language_model {

class Trainer : public example::Training {
 public:
  Trainer(linnet::models::CausalLM& net, const Corpus& corpus, const Settings& settings);

  int64_t best_step() const { return best_step_; }

 private:
  example::Pass pass() override;
  bool evaluation_due() const override;
  void evaluate(const example::RunDirectory& run, const example::InterruptGuard& guard) override;
  void draw_curve(const example::RunDirectory& run, const std::string& subtitle) const override;
  void save_more(linnet::StateDict& training) const override;
  void restore_more(const linnet::StateDict& training) override;

  linnet::models::CausalLM& net_;
  const Corpus& corpus_;
  Settings settings_;
  std::unique_ptr<example::MetricsWriter> validation_;
  int64_t evaluated_at_ = 0, best_step_ = 0;  // 0: nothing is measured yet
  double best_bits_ = 0;
};

}  // namespace language_model
