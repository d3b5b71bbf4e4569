// Trainer: the training of a translation model; after each epoch its loss and BLEU on the validation pairs, the best
// model kept.
#pragma once
#include <memory>

#include "linnet/data/loader.h"
#include "linnet/models/encoder_decoder.h"
#include "support/feed.h"
#include "support/training.h"
#include "support/weight_average.h"
#include "translate/corpus.h"
#include "translate/settings.h"

namespace translate {

struct Data {
  std::vector<Pair> train, val;
  Lines val_lines;
};

class Trainer : public example::Training {
 public:
  Trainer(linnet::models::EncoderDecoder& net, const linnet::data::SubwordTokenizer& tokenizer, const Data& data,
          const Settings& settings);

  int64_t epochs() const { return feed_.epochs(); }  ///< whole ones
  int64_t best_epoch() const { return best_epoch_; }
  double best_bleu() const { return best_bleu_; }  ///< below 0: nothing is measured yet

  /// The steps of settings.epochs epochs.
  static int64_t steps_of(const linnet::data::Plan& plan, int64_t epochs);

 private:
  using Loader = linnet::data::DataLoader<Pair, Batch>;
  Trainer(linnet::models::EncoderDecoder& net, const linnet::data::SubwordTokenizer& tokenizer, const Data& data,
          const Settings& settings, const linnet::data::Plan& plan);

  example::Pass pass() override;
  void moved() override;
  linnet::data::Position* position() override { return &loader_; }
  bool evaluation_due() const override;
  void evaluate(const example::RunDirectory& run, const example::InterruptGuard& guard) override;
  void draw_curve(const example::RunDirectory& run, const std::string& subtitle) const override;
  void save_more(linnet::StateDict& training) const override;
  void restore_more(const linnet::StateDict& training) override;

  linnet::models::EncoderDecoder& net_;
  const linnet::data::SubwordTokenizer& tokenizer_;
  const Data& data_;
  Settings settings_;
  Loader loader_;
  example::Feed<Loader> feed_;
  example::WeightAverage average_;
  std::unique_ptr<example::MetricsWriter> validation_;
  int64_t evaluated_at_ = 0, best_epoch_ = 0;  // a step, an epoch
  double best_bleu_ = -1;
};

}  // namespace translate
