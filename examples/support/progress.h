// Progress: how training goes, as one line that updates on a terminal and as plain lines in a pipe.
#pragma once
#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace example {

struct ProgressState {
  int64_t step = 0, steps = 0;
  double loss = 0, accuracy = 0, rate = 0;
  double tokens_per_second = 0, seconds_left = 0;
};

/// "step 1,240/4,000  loss 0.4213  accuracy 87.3 %  rate 0.003  58,000 tokens/s  0:41 left"
std::string progress_text(const ProgressState& state);
std::string with_commas(int64_t n);      ///< 1234567 -> "1,234,567"
std::string clock_text(double seconds);  ///< 75 -> "1:15", 3675 -> "1:01:15"

class Progress {
 public:
  Progress();  ///< on standard output; asks whether that is a terminal
  Progress(std::ostream& out, bool terminal);
  ~Progress() { finish(); }

  /// Shows the state: on a terminal at most ten times a second, in a pipe at most once in two seconds and at the first
  /// call.
  void update(const ProgressState& state);
  bool lost() const { return !out_; }  ///< nobody can see it any more: a closed pipe, a full disk
  void finish();                       ///< shows the last state and ends the line

 private:
  void show();

  std::ostream& out_;
  bool terminal_;
  bool pending_ = false, open_ = false, shown_ = false;
  ProgressState state_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace example
