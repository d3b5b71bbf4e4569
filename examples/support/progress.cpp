#include "support/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <utility>

namespace example {
namespace {

size_t terminal_width() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/// The same in fewer columns, for a narrow terminal.
std::string narrowed(std::string text) {
  const std::pair<const char*, const char*> shorter[] = {{"accuracy", "acc"}, {"tokens/s", "tok/s"}, {"  ", " "}};
  for (const auto& [from, to] : shorter) {
    const std::string part = from;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
      text.replace(at, part.size(), to);
  }
  return text;
}

}  // namespace

std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n);
  const int first = n < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) digits.insert(static_cast<size_t>(i), 1, ',');
  return digits;
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "-:--";
  const long s = std::lround(seconds);
  char text[32];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  }
  return text;
}

std::string progress_text(const ProgressState& state) {
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "  loss %.4f  accuracy %.2f %%  rate %.3g  ", state.loss, 100 * state.accuracy,
                state.rate);
  return "step " + with_commas(state.step) + "/" + with_commas(state.steps) + numbers +
         with_commas(std::llround(state.tokens_per_second)) + " tokens/s  " + clock_text(state.seconds_left) + " left";
}

Progress::Progress() : Progress(std::cout, isatty(STDOUT_FILENO)) {}

Progress::Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

void Progress::update(const ProgressState& state) {
  state_ = state;
  pending_ = true;
  const auto now = std::chrono::steady_clock::now();
  const auto gap = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(2000);
  if (shown_ && now - last_ < gap) return;
  last_ = now;
  show();
}

void Progress::show() {
  std::string text = progress_text(state_);
  if (terminal_) {
    const size_t width = terminal_width() - 1;
    if (text.size() > width) text = narrowed(text);
    out_ << "\r\x1b[K" << text.substr(0, width) << std::flush;
    open_ = true;
  } else {
    out_ << text << std::endl;
  }
  shown_ = true;
  pending_ = false;
}

void Progress::finish() {
  if (pending_) show();
  if (open_) out_ << std::endl;
  open_ = shown_ = false;
}

}  // namespace example
