#include "linnet/models/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/models/sampling.h"

namespace linnet::models {
namespace {

struct Beam {
  std::vector<int32_t> tokens;
  double log_probability = 0;
};

/// Beams of one sample, and what has finished, best first.
struct Sample {
  std::vector<Beam> beams{Beam{}};
  std::vector<Hypothesis> finished;
};

struct Candidate {
  double log_probability;
  int64_t beam;
  int32_t token;

  bool operator<(const Candidate& other) const {  // comes before
    if (log_probability != other.log_probability) return log_probability > other.log_probability;
    return std::pair(beam, token) < std::pair(other.beam, other.token);
  }
};

Hypothesis hypothesis(const Beam& beam, bool finished, double alpha) {
  const double penalty = length_penalty(static_cast<int64_t>(beam.tokens.size()), alpha);
  return {beam.tokens, beam.log_probability, beam.log_probability / penalty, finished};
}

void sort_best_first(std::vector<Hypothesis>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

/// Adds what may follow beam `index`: ln p of the beam and ln softmax(logits).
void add_candidates(const Beam& beam, int64_t index, const std::vector<double>& logits, std::vector<Candidate>& all) {
  const double largest = logits[largest_logit("beam_search", logits)];
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  const double before = beam.log_probability - largest - std::log(sum);
  for (size_t token = 0; token < logits.size(); ++token) {
    if (logits[token] == -std::numeric_limits<double>::infinity()) continue;
    all.push_back({before + logits[token], index, static_cast<int32_t>(token)});
  }
}

/// Goes on with the best of `all`; parents gets, for each new beam, the beam that it continues.
void advance(Sample& sample, std::vector<Candidate>& all, const BeamOptions& options, std::vector<int64_t>& parents) {
  const auto wide = static_cast<size_t>(options.beams);
  // At most one end a beam: among twice as many are as many others.
  const size_t count = wide > all.size() / 2 ? all.size() : 2 * wide;
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  std::vector<Beam> next;
  for (size_t rank = 0; rank < count; ++rank) {
    const Candidate& c = all[rank];
    const bool ends = c.token == options.end;
    if (ends ? rank >= wide : next.size() == wide) continue;
    Beam beam{sample.beams[static_cast<size_t>(c.beam)].tokens, c.log_probability};
    beam.tokens.push_back(c.token);
    if (ends) {
      sample.finished.push_back(hypothesis(beam, true, options.alpha));
    } else {
      next.push_back(std::move(beam));
      parents.push_back(c.beam);
    }
  }
  sample.beams = std::move(next);
  sort_best_first(sample.finished);
  if (sample.finished.size() < wide) return;
  sample.finished.resize(wide);
  // ln p only falls from here, and the penalty is largest at the end.
  const double most = sample.beams.empty() ? 0 : sample.beams[0].log_probability;
  if (sample.finished.back().score >= most / length_penalty(options.tokens, options.alpha)) {
    sample.beams.clear();
    parents.clear();
  }
}

}  // namespace

double length_penalty(int64_t length, double alpha) { return std::pow((5 + static_cast<double>(length)) / 6, alpha); }

void check_beams(const char* op, const BeamOptions& options) {
  LINNET_CHECK(options.beams >= 1, op, ": ", options.beams, " beams, want at least 1");
  LINNET_CHECK(options.tokens >= 0, op, ": ", options.tokens, " tokens, want 0 or more");
  LINNET_CHECK(options.alpha >= 0 && std::isfinite(options.alpha), op, ": alpha ", options.alpha,
               ", want finite and not negative");
}

std::vector<std::vector<Hypothesis>> beam_search(int64_t batch, const BeamOptions& options, const NextLogits& next) {
  check_beams("beam_search", options);
  LINNET_CHECK(batch >= 0, "beam_search: batch ", batch, " is negative");
  std::vector<Sample> samples(static_cast<size_t>(batch));
  std::vector<int32_t> parents, tokens(samples.size(), options.start);
  for (int64_t b = 0; b < batch; ++b) parents.push_back(static_cast<int32_t>(b));
  std::vector<double> row;
  for (int64_t length = 0; length < options.tokens && !tokens.empty(); ++length) {
    const Shape rows{static_cast<int64_t>(tokens.size())};
    const Tensor logits = next(Tensor::from(parents, rows, Device::cpu), Tensor::from(tokens, rows, Device::cpu));
    LINNET_CHECK(logits.defined() && logits.rank() == 2 && logits.size(0) == rows[0] && options.end >= 0 &&
                     options.end < logits.size(1),
                 "beam_search: logits ", logits.shape(), " given, (", rows[0], ", vocab) wanted, with end token ",
                 options.end, " in vocab");
    const std::vector<double> values = logits.to(Device::cpu).to(Dtype::f64).to_vector<double>();
    parents.clear(), tokens.clear();
    int64_t first = 0;  // row of the sample's first beam
    for (Sample& sample : samples) {
      std::vector<Candidate> all;
      std::vector<int64_t> chosen;
      const int64_t beams = static_cast<int64_t>(sample.beams.size());
      if (beams == 0) continue;
      for (int64_t i = 0; i < beams; ++i) {
        const auto begin = values.begin() + (first + i) * logits.size(1);
        row.assign(begin, begin + logits.size(1));
        add_candidates(sample.beams[static_cast<size_t>(i)], i, row, all);
      }
      advance(sample, all, options, chosen);
      for (const int64_t beam : chosen) parents.push_back(static_cast<int32_t>(first + beam));
      for (const Beam& beam : sample.beams) tokens.push_back(beam.tokens.back());
      first += beams;
    }
  }
  std::vector<std::vector<Hypothesis>> best;
  for (Sample& sample : samples) {
    std::vector<Hypothesis> cut;
    for (const Beam& beam : sample.beams) cut.push_back(hypothesis(beam, false, options.alpha));
    sort_best_first(cut);
    cut.resize(std::min(cut.size(), static_cast<size_t>(options.beams) - sample.finished.size()));
    best.push_back(std::move(sample.finished));
    best.back().insert(best.back().end(), cut.begin(), cut.end());
  }
  return best;
}

}  // namespace linnet::models
