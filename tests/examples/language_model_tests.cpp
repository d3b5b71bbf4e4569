// The parts of the language model example from within.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "language_model/evaluation.h"
#include "language_model/timing.h"
#include "language_model/trainer.h"
#include "language_model/writer.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/data/utf8.h"
#include "support/quiet.h"
#include "support/real_data.h"
#include "support/temp_dir.h"

using namespace language_model;
using linnet::Tensor;
using linnet::data::kEnd, linnet::data::kUnknown;
using linnet::models::CausalLM;

namespace {

const char* const kVerse = "Der Käse,\nder böse Hase\n\nund die Vase lasen.\nDas Gras war naß.\n";

/// n characters.
std::string verses(size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += "abcde \n"[(i * i + i / 3) % 7];
  return text;
}

std::string write_text(const test_support::TempDir& folder, const std::string& text) {
  const std::string path = folder / "text.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Settings small_settings(const char* attention) {
  Settings settings;
  settings.attention = attention;
  settings.layers = 2, settings.heads = 2, settings.dim = 8, settings.hidden = 16;
  linnet::manual_seed(3);
  return settings;
}

/// Always the same, with embeddings that matter.
struct SmallNet : CausalLM {
  explicit SmallNet(int64_t vocabulary, const char* attention = "linear")
      : CausalLM(small_settings(attention).model(vocabulary)) {
    Tensor embeddings = embed.weight.value();
    linnet::compute::scale_inplace(embeddings, 50);
  }
};

/// -log2 of what the net gives the token after these.
double bits_of(const CausalLM& net, const Tokens& before, int32_t token) {
  const Tensor logits = net(Tensor::from(before, {1, static_cast<int64_t>(before.size())})).value();
  const std::vector<float> all = logits.to_vector<float>();
  const std::vector<double> last(all.end() - logits.size(2), all.end());
  double sum = 0;
  for (double x : last) sum += std::exp(x);
  return (std::log(sum) - last[static_cast<size_t>(token)]) / std::log(2.0);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const linnet::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a text becomes tokens and back, by characters and by pieces of words, line ends included") {
  const std::string text = kVerse;
  const Vocabulary characters = Vocabulary::of(text, 0), pieces = Vocabulary::of(text, 40);
  for (const Vocabulary* vocabulary : {&characters, &pieces}) {
    for (const std::string& part : {text, text + "\n\n", std::string("\n"), std::string("Hase"), text.substr(4, 30)}) {
      const Tokens tokens = vocabulary->encode(part);
      CHECK(vocabulary->decode(tokens) == part);
      for (int32_t token : tokens) CHECK(vocabulary->is_text(token));
    }
    CHECK(vocabulary->encode("").empty());
    for (int32_t special : {0, 1, 2}) CHECK_FALSE(vocabulary->is_text(special));
    CHECK(vocabulary->encode("Q")[vocabulary->encode("Q").size() - 1] == kUnknown);
    CHECK_THROWS_AS(vocabulary->encode("a\xff"), linnet::Error);
  }
  CHECK_FALSE(characters.is_text(kEnd));
  CHECK(pieces.is_text(kEnd));
  CHECK(pieces.encode(text).size() < characters.encode(text).size());
}

TEST_CASE("a text is cut after nine tenths of its characters; line ends become the same") {
  const test_support::TempDir folder;
  std::string text;
  for (int i = 0; i < 30; ++i) text += i % 3 == 2 ? "ä\r\n" : "ßo";
  const Text read = read_text(write_text(folder, text));
  const auto points = [](const std::string& part) { return linnet::data::code_points("test", part).size(); };
  CHECK(read.train_characters == 54);
  CHECK(read.held_out_characters == 6);
  CHECK(points(read.train) == 54);
  CHECK(points(read.held_out) == 6);
  CHECK((read.train + read.held_out).find('\r') == std::string::npos);
  const std::string empty = write_text(folder, "");
  CHECK(message_of([&] { read_text(empty); }) == empty + ": holds no text");
  const std::string long_line = write_text(folder, std::string(3 << 20, 'a'));
  CHECK(read_text(long_line).held_out_characters > 300000);
}

TEST_CASE("sequences: targets come after their inputs, a function of seed and step, none from the held-out text") {
  const std::string text = verses(60);
  const Vocabulary vocabulary = Vocabulary::of(text, 0);
  Corpus corpus = make_corpus({text, "abQ", 60, 3}, vocabulary, 50);
  CHECK(corpus.train == 60);
  CHECK(corpus.held_out() == 3);
  CHECK(corpus.unknown == 1);
  for (size_t i = 0; i < corpus.tokens.size(); ++i) corpus.tokens[i] = static_cast<int32_t>(i);
  int32_t first = 100, last = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const Batch batch = make_batch(corpus, 50, 3, 7, step);
    const Tokens inputs = batch.inputs.to_vector<int32_t>(), targets = batch.targets.to_vector<int32_t>();
    CHECK(batch.inputs.shape() == linnet::Shape{3, 50});
    for (size_t i = 0; i < inputs.size(); ++i) {
      CHECK(targets[i] == inputs[i] + 1);
      if (i % 50 > 0) CHECK(inputs[i] == targets[i - 1]);
      first = std::min(first, inputs[i]), last = std::max(last, targets[i]);
    }
    CHECK(make_batch(corpus, 50, 3, 7, step).inputs.to_vector<int32_t>() == inputs);
    CHECK(make_batch(corpus, 50, 3, 7, step + 1).inputs.to_vector<int32_t>() != inputs);
    CHECK(make_batch(corpus, 50, 3, 8, step).inputs.to_vector<int32_t>() != inputs);
  }
  CHECK(first == 0);
  CHECK(last == 59);
  CHECK(message_of([&] {
          make_corpus({text, "ab", 60, 2}, vocabulary, 60);
        }) ==
        "the text is too short: of its first nine tenths 60 tokens, but a sequence takes --context 60 and one more");
  CHECK(message_of([&] {
          make_corpus({text, "", 60, 0}, vocabulary, 50);
        }) == "the text is too short: nothing is held out");
}

TEST_CASE("bits a character: as token by token, each once, from at least half a context") {
  const test_support::Quiet quiet;
  for (int64_t context : {2, 7, 10}) {
    for (size_t held_out : {size_t{1}, size_t{5}, size_t{23}}) {
      const std::string train = verses(40), rest = verses(60).substr(60 - held_out);
      const Vocabulary vocabulary = Vocabulary::of(train, 0);
      // Three bytes of characters a token: only the ratio counts.
      const Corpus corpus = make_corpus({train, rest, 40, static_cast<int64_t>(3 * held_out)}, vocabulary, context);
      const SmallNet net(vocabulary.size());
      const int64_t half = context / 2, n = static_cast<int64_t>(corpus.tokens.size());
      double bits = 0;
      for (int64_t target = 40; target < n; ++target) {
        const int64_t last = std::min(40 + ((target - 40) / half + 1) * half, n);
        const Tokens before(corpus.tokens.begin() + last - 1 - context, corpus.tokens.begin() + target);
        CHECK(static_cast<int64_t>(before.size()) >= half);
        bits += bits_of(net, before, corpus.tokens[static_cast<size_t>(target)]);
      }
      CHECK(bits_per_character(net, corpus, context) ==
            doctest::Approx(bits / static_cast<double>(3 * held_out)).epsilon(1e-5));
      // As many parts as there are: all of them.
      CHECK(bits_per_character(net, corpus, context, 1000) == bits_per_character(net, corpus, context));
      CHECK(bits_per_character(net, corpus, context, 0, [] { return true; }) == 0);
    }
  }
}

TEST_CASE("a net that knows nothing needs the logarithm of the vocabulary, on all of the text and on a part") {
  const test_support::Quiet quiet;
  const std::string text = verses(200);
  const Vocabulary vocabulary = Vocabulary::of(text, 0);
  const Corpus corpus = make_corpus({text, verses(90), 200, 90}, vocabulary, 16);
  const SmallNet net(vocabulary.size());
  Tensor weight = net.head.weight.value(), bias = net.head.bias.value();
  linnet::compute::scale_inplace(weight, 0), linnet::compute::scale_inplace(bias, 0);
  const double bits = std::log2(static_cast<double>(vocabulary.size()));
  CHECK(bits_per_character(net, corpus, 16) == doctest::Approx(bits));
  for (int64_t most : {1, 2, 5}) CHECK(bits_per_character(net, corpus, 16, most) == doctest::Approx(bits));
}

TEST_CASE("a writer: as generate within the context; beyond it, as after the last half") {
  const test_support::Quiet quiet;
  const std::string text = verses(200);
  const Vocabulary vocabulary = Vocabulary::of(text, 0);
  const int64_t context = 9, half = 5;
  for (const char* attention : {"linear", "softmax"}) {
    const SmallNet net(vocabulary.size(), attention);
    const Writer writer(net, vocabulary, context);
    for (size_t length : {size_t{1}, size_t{4}, size_t{8}, size_t{9}, size_t{30}}) {
      const Tokens prompt = writer.encode(text.substr(0, length));
      std::string shown;
      const auto show = [&](const std::string& added) {
        shown += added;
        return true;
      };
      const Tokens made = writer(prompt, 25, {.temperature = 0}, show);
      CHECK(made.size() == 25);
      CHECK(shown == vocabulary.decode(made));
      // The same with the parallel form, on what the state has seen.
      Tokens all = prompt;
      size_t begin = length < static_cast<size_t>(context) ? 0 : length - static_cast<size_t>(half);
      for (int32_t token : made) {
        const Tokens seen(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
        double best = 1e9;
        int32_t likeliest = 0;
        for (int32_t i = 4; i < vocabulary.size(); ++i) {
          const double bits = bits_of(net, seen, i);
          if (bits < best) best = bits, likeliest = i;
        }
        CHECK(bits_of(net, seen, token) == doctest::Approx(bits_of(net, seen, likeliest)).epsilon(1e-4));
        all.push_back(token);
        if (all.size() - 1 - begin >= static_cast<size_t>(context)) begin = all.size() - static_cast<size_t>(half);
      }
    }
    CHECK(writer(writer.encode("a"), 0, {}, [](const std::string&) { return true; }).empty());
    CHECK(writer(writer.encode("a"), 9, {}, [](const std::string&) { return false; }).size() == 1);
  }
}

TEST_CASE("a writer by pieces of words shows what they add, and draws nothing that no text holds") {
  const test_support::Quiet quiet;
  const Vocabulary vocabulary = Vocabulary::of(kVerse, 40);
  const SmallNet net(vocabulary.size());
  const Writer writer(net, vocabulary, 12);
  const Tokens prompt = writer.encode("Der Hase");
  std::string shown;
  const Tokens made = writer(prompt, 300, {.temperature = 5}, [&](const std::string& added) {
    shown += added;
    return true;
  });
  for (int32_t token : made) CHECK(vocabulary.is_text(token));
  CHECK(std::count(made.begin(), made.end(), kEnd) > 0);
  Tokens all = prompt;
  all.insert(all.end(), made.begin(), made.end());
  CHECK("Der Hase" + shown == vocabulary.decode(all));
  CHECK(message_of([&] { writer.encode(""); }) == "--prompt: is empty; give at least a character");
  CHECK(message_of([&] { writer.encode("das Qual"); }) ==
        "--prompt: the text that the model learned from had no \"Q\"");
}

TEST_CASE("times of tokens: stretches over the positions") {
  const test_support::Quiet quiet;
  const Vocabulary vocabulary = Vocabulary::of(kVerse, 0);
  const SmallNet net(vocabulary.size());
  for (int64_t positions : {1, 3, 64, 130}) {
    const Times times = time_tokens(net, vocabulary, positions, 2);
    CHECK(times.position.size() == times.seconds.size());
    CHECK(times.position.size() == static_cast<size_t>(positions == 130 ? 44 : positions));
    CHECK(times.position.back() <= static_cast<double>(positions - 1));
    CHECK(std::is_sorted(times.position.begin(), times.position.end()));
    for (double seconds : times.seconds) CHECK(seconds > 0);
  }
}

TEST_CASE("a trainer learns a text in which each character says which comes next") {
  const test_support::Quiet quiet;
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i % 11);
  const Vocabulary vocabulary = Vocabulary::of(text, 0);
  const Corpus corpus = make_corpus({text.substr(0, 360), text.substr(360), 360, 40}, vocabulary, 12);
  Settings settings;
  settings.context = 12, settings.batch = 4, settings.steps = 80, settings.warmup = 5, settings.lr = 0.02;
  settings.evaluate_every = 30, settings.dropout = 0;
  const test_support::TempDir folder;
  SmallNet net(vocabulary.size());
  CHECK(bits_per_character(net, corpus, 12) > 2);
  Trainer trainer(net, corpus, settings);
  const auto run = example::RunDirectory::create(folder / "run", {{"dim", 8}});
  CHECK(trainer.train(run, example::InterruptGuard()));
  CHECK(bits_per_character(net, corpus, 12) < 0.3);
  const auto validation = example::read_metrics(run.file("validation.csv"));
  CHECK(validation.column("step") == std::vector<double>{30, 60, 80});
  CHECK(validation.column("bits_per_character").back() < 0.3);
}

TEST_CASE("real text: its characters and its parts") {
  const auto path = test_support::real_data_or_say("text/tinyshakespeare.txt");
  if (!path) return;
  const Text text = read_text(*path);
  CHECK(text.train_characters + text.held_out_characters == 1115394);
  const Vocabulary vocabulary = Vocabulary::of(text.train, 0);
  CHECK(vocabulary.size() == 4 + 65);
  const Corpus corpus = make_corpus(text, vocabulary, 256);
  CHECK(corpus.unknown == 0);
  CHECK(corpus.held_out() == text.held_out_characters);
}
