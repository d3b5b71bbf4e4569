#include "copy_task/data.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>

#include "linnet/core/error.h"

namespace copy_task {

using linnet::Generator;
using linnet::Tensor;

Generator generator_of(uint64_t seed, Stream stream, uint64_t index) {
  const char* const names[] = {"copy_task.training", "copy_task.evaluation", "copy_task.demonstration"};
  return {seed, linnet::stream_of(names[static_cast<int>(stream)]), index << 32};
}

std::vector<int32_t> random_string(const TaskSize& size, Generator& generator) {
  const int64_t n = size.shortest() + generator.below(size.longest() - size.shortest() + 1);
  std::vector<int32_t> w(static_cast<size_t>(n));
  for (int32_t& symbol : w) symbol = static_cast<int32_t>(1 + generator.below(size.symbols));
  return w;
}

Batch make_batch(const TaskSize& size, int64_t batch, uint64_t seed, Stream stream, uint64_t index) {
  Generator generator = generator_of(seed, stream, index);
  const int64_t time = size.length - 1;
  std::vector<int32_t> inputs(static_cast<size_t>(batch * time), size.padding());
  std::vector<int32_t> targets(static_cast<size_t>(batch * time), example::kIgnored);
  int64_t counted = 0;
  for (int64_t row = 0; row < batch; ++row) {
    const std::vector<int32_t> w = random_string(size, generator);
    const int64_t n = static_cast<int64_t>(w.size());
    int32_t* in = inputs.data() + row * time;
    int32_t* target = targets.data() + row * time;
    in[0] = in[n + 1] = kSeparator;
    for (int64_t i = 0; i < n; ++i) {
      in[1 + i] = target[n + 1 + i] = w[static_cast<size_t>(i)];
      if (n + 2 + i < time) in[n + 2 + i] = w[static_cast<size_t>(i)];
    }
    counted += n;
  }
  return {Tensor::from(inputs, {batch, time}), Tensor::from(targets, {batch, time}), counted};
}

Batch make_masked_batch(const TaskSize& size, int64_t batch, uint64_t seed, Stream stream, uint64_t index) {
  Generator generator = generator_of(seed, stream, index);
  const int64_t time = size.length;
  std::vector<int32_t> inputs(static_cast<size_t>(batch * time), size.padding());
  std::vector<int32_t> targets(static_cast<size_t>(batch * time), example::kIgnored), lengths;
  int64_t counted = 0;
  for (int64_t row = 0; row < batch; ++row) {
    const std::vector<int32_t> w = random_string(size, generator);
    const int64_t n = static_cast<int64_t>(w.size()), hidden = size.hidden(n);
    int32_t* in = inputs.data() + row * time;
    int32_t* target = targets.data() + row * time;
    in[0] = in[n + 1] = kSeparator;
    for (const int64_t half : {int64_t{1}, n + 2}) std::copy(w.begin(), w.end(), in + half);
    // The first places of a shuffle: hidden in the first half, then as many in the second.
    std::vector<int64_t> places(w.size());
    std::iota(places.begin(), places.end(), int64_t{0});
    for (int64_t i = 0; i < 2 * hidden; ++i) {
      std::swap(places[static_cast<size_t>(i)], places[static_cast<size_t>(i + generator.below(n - i))]);
      const int64_t at = places[static_cast<size_t>(i)] + (i < hidden ? 1 : n + 2);
      target[at] = in[at];
      in[at] = size.mask();
    }
    counted += 2 * hidden;
    lengths.push_back(static_cast<int32_t>(2 * n + 2));
  }
  return {Tensor::from(inputs, {batch, time}), Tensor::from(targets, {batch, time}), counted, lengths};
}

std::vector<int32_t> parse_string(const std::string& text, const TaskSize& size) {
  std::vector<int32_t> w;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    int32_t symbol = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), symbol);
    LINNET_CHECK(fault == std::errc() && end == word.data() + word.size() && symbol >= 1 && symbol <= size.symbols,
                 "--copy: \"", word, "\" is not a symbol; they are 1 .. ", size.symbols);
    w.push_back(symbol);
  }
  LINNET_CHECK(!w.empty(), "--copy: no symbols were given; write for example \"3 1 4\"");
  LINNET_CHECK(static_cast<int64_t>(w.size()) <= size.longest(), "--copy: ", w.size(),
               " symbols, but the model takes at most ", size.longest(), " (length ", size.length, ")");
  return w;
}

}  // namespace copy_task
