// The parts of the translation example, and of the support that came with it, from within.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "linnet/core/random.h"
#include "linnet/data/loader.h"
#include "linnet/nn/linear.h"
#include "support/feed.h"
#include "support/heat_map.h"
#include "support/predictions.h"
#include "support/quiet.h"
#include "support/real_data.h"
#include "support/temp_dir.h"
#include "support/weight_average.h"
#include "translate/trainer.h"
#include "translate/translator.h"

using namespace translate;
using linnet::Tensor;
using linnet::data::kBegin, linnet::data::kEnd, linnet::data::kPadding;
using linnet::data::SubwordTokenizer;

namespace {

struct Net : linnet::nn::Model {
  linnet::nn::Linear layer{*this, "layer", {.in = 2, .out = 1, .bias = false}};

  void set(float a, float b) { layer.weight.mutable_value().copy_from(Tensor::from({a, b}, {1, 2})); }
  std::vector<float> get() const { return layer.weight.value().to_vector<float>(); }
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a batch of pairs: inputs are the target without its end, targets the one without its begin") {
  const Batch batch = make_batch({{{7, 8, kEnd}, {kBegin, 5, kEnd}}, {{9, kEnd}, {kBegin, 5, 6, 4, kEnd}}});
  CHECK(batch.source.to_vector<int32_t>() == Tokens{7, 8, kEnd, 9, kEnd, kPadding});
  CHECK(batch.source_lengths == std::vector<int32_t>{3, 2});
  CHECK(batch.inputs.to_vector<int32_t>() == Tokens{kBegin, 5, kPadding, kPadding, kBegin, 5, 6, 4});
  const int32_t none = example::kIgnored;
  CHECK(batch.targets.to_vector<int32_t>() == Tokens{5, kEnd, none, none, 5, 6, 4, kEnd});
  CHECK(batch.tokens == 6);
}

TEST_CASE("pairs with an empty side and long ones are left out, and counted") {
  const SubwordTokenizer tokenizer = SubwordTokenizer::train({"aa bb cc", "bb cc aa", "cc aa bb"}, {.vocab = 30});
  Left left;
  const Lines lines{{"aa", "", "bb", "aa bb cc aa bb cc aa bb cc", "cc"}, {"bb", "aa", " ", "aa", "aa"}};
  const std::vector<Pair> pairs = encode_pairs(lines, tokenizer, 8, left);
  CHECK(pairs.size() == 2);
  CHECK(left.empty == 2);
  CHECK(left.too_long == 1);
  CHECK(pairs[0].source.back() == kEnd);
  CHECK(pairs[0].target.front() == kBegin);
  Left none;
  CHECK(encode_pairs(lines, tokenizer, 0, none).size() == 3);
}

TEST_CASE("a feed goes over the epochs, and knows where one ends") {
  linnet::data::DataLoader<int64_t> loader(linnet::data::plan(5, {.batch = 2}), [](int64_t i) { return i; });
  example::Feed feed(loader);
  CHECK(feed.epochs() == 0);
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    int64_t sum = 0;
    for (int step = 1; step <= 3; ++step) {
      for (int64_t item : feed.next()) sum += item;
      CHECK(feed.ends_epoch() == (step == 3));
      CHECK(feed.epochs() == (step == 3 ? epoch : epoch - 1));
    }
    CHECK(sum == 10);
  }
  // From an epoch's end that was saved, the next begins.
  linnet::data::DataLoader<int64_t> again(linnet::data::plan(5, {.batch = 2}), [](int64_t i) { return i; });
  again.load_state_dict(loader.state_dict());
  example::Feed rest(again);
  CHECK(rest.epochs() == 3);
  CHECK(rest.next() == feed.next());
}

TEST_CASE("an average of weights follows them, and changes places with them") {
  Net net;
  net.set(1, 2);
  example::WeightAverage average(net, 0.5);
  net.set(3, 4);
  average.update();  // decay 0.1, the first time
  net.set(5, 6);
  average.update();  // 2/11
  const double a = 2.0 / 11 * (0.1 * 1 + 0.9 * 3) + 9.0 / 11 * 5;
  average.swap();
  CHECK(net.get()[0] == doctest::Approx(a));
  CHECK(net.get()[1] == doctest::Approx(a + 1));
  average.swap();
  CHECK(net.get() == std::vector<float>{5, 6});

  example::WeightAverage loaded(net, 0.5);
  loaded.load_state_dict(average.state_dict());
  net.set(7, 7);
  average.update(), loaded.update();
  loaded.swap();
  const std::vector<float> one = net.get();
  loaded.swap(), average.swap();
  CHECK(net.get() == one);
  average.swap();

  example::WeightAverage none(net, 0);
  none.update(), none.swap();
  CHECK(net.get() == std::vector<float>{7, 7});
  linnet::StateDict wrong;
  wrong.set_integer("updates", 1);
  wrong.set("layer.weight", Tensor::zeros({2, 2}));
  CHECK_THROWS_WITH_AS(loaded.load_state_dict(wrong), "average of layer.weight: (2, 2) f32 given, (1, 2) f32 wanted",
                       linnet::Error);
}

TEST_CASE("a heat map has a cell a share, and escapes names") {
  const example::HeatMap map{"a < b", "", {"<r>", "s"}, {"x", "y & z", "w"}, {0, 0.25, 0.75, 1, 0, 0}};
  const std::string svg = example::heat_map_svg(map);
  CHECK(count(svg, "fill-opacity") == 6);
  CHECK(count(svg, "fill-opacity='0.750'") == 1);
  CHECK(svg.find("&lt;r&gt; looks at y &amp; z: 0.25") != std::string::npos);
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
  CHECK_THROWS_WITH_AS(example::heat_map_svg({"t", "", {"r"}, {"x", "y"}, {1}}),
                       "heat_map: 1 shares for 1 rows and 2 columns", linnet::Error);
  CHECK_THROWS_AS(example::heat_map_svg({"t", "", {"r"}, {"x"}, {NAN}}), linnet::Error);
  CHECK_THROWS_AS(example::heat_map_svg({"t", "", std::vector<std::string>(201), std::vector<std::string>(200),
                                         std::vector<double>(40200)}),
                  linnet::Error);
}

TEST_CASE("real pairs: they are read, cut into subwords and back, and learned from") {
  const auto en = test_support::real_data_or_say("translation/val.en.gz");
  const auto de = test_support::real_data_or_say("translation/val.de.gz");
  if (!en || !de) return;
  const Lines lines = read_pairs(*en, *de);
  REQUIRE(lines.source.size() == 1014);
  std::vector<std::string> both = lines.source;
  both.insert(both.end(), lines.target.begin(), lines.target.end());
  const SubwordTokenizer tokenizer = SubwordTokenizer::train(both, {.vocab = 500});
  int64_t same = 0;
  for (const std::string& line : both) same += tokenizer.decode(tokenizer.encode(line)) == line;
  CHECK(same > 1900);  // the others have blanks at an end, or characters that NFKC replaces

  Settings settings;
  settings.dim = 32, settings.hidden = 32, settings.layers = 1, settings.epochs = 1, settings.threads = 1;
  settings.warmup = 20, settings.lr = 0.01, settings.batch_tokens = 500, settings.average = 0.9;
  Left left;
  Data data{encode_pairs(lines, tokenizer, settings.max_length, left), {}, {}};
  CHECK(data.train.size() == 1014);
  data.val.assign(data.train.begin(), data.train.begin() + 50);
  data.val_lines = {{lines.source.begin(), lines.source.begin() + 5}, {lines.target.begin(), lines.target.begin() + 5}};
  linnet::manual_seed(1);
  const test_support::Quiet quiet;
  linnet::models::EncoderDecoder net(settings.model(tokenizer.vocab()));
  const double before = mean_loss(net, data.val, settings.batch_tokens, {});
  CHECK(before > 5);
  Trainer trainer(net, tokenizer, data, settings);
  const test_support::TempDir folder;
  const auto run = example::RunDirectory::create(folder / "run", {{"dim", 32}});
  CHECK(trainer.train(run, example::InterruptGuard()));
  CHECK(trainer.epochs() == 1);
  const auto validation = example::read_metrics(run.file("validation.csv"));
  CHECK(validation.column("loss")[0] < before - 0.7);
  CHECK(mean_loss(net, data.val, settings.batch_tokens, {}) < before - 0.7);
}
