// Tape: records ops while it is in scope and replays them in reverse.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "linnet/autograd/variable.h"

namespace linnet {

struct TapeOptions {
  bool training = true;       ///< dropout and running statistics are on
  bool check_finite = false;  ///< name the op that first produced NaN or infinity, forward or backward
};

/// One recorded op, as tape.report() shows it.
struct TapeRow {
  std::string op;
  Shape shape;  ///< of its first output
  Dtype dtype;
  int64_t bytes_kept;           ///< held for the way back; a storage counts at the first op that keeps it
  double forward_ms;            ///< since the op before it was recorded (or the tape began)
  double backward_ms;           ///< 0 before backward, and where no gradient came
  std::vector<int64_t> inputs;  ///< rows that made its inputs; -1 is a leaf or a constant
};

struct TapeReport {
  std::vector<TapeRow> rows;
  int64_t bytes_kept() const;
  std::string table() const;  ///< for a terminal
  std::string dot() const;    ///< for Graphviz
};

namespace detail {
struct TapeState;
}

/// Every op called on this thread while the tape is the innermost one is recorded, if any of its inputs requires a
/// gradient. Values that an outer tape recorded are leaves to it.
class Tape {
 public:
  Tape(TapeOptions options = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Adds d loss / d leaf to the gradient of every leaf. Frees each op as it goes and ends the tape: afterwards nothing
  /// is recorded, and a second backward is an error. A loss with more than one element wants a seed of its shape.
  /// Throws before any gradient has moved where an op that it needs kept a tensor that was changed since; where an op's
  /// own way back throws, the tape has ended all the same, and the leaves hold what came so far: clear their gradients.
  void backward(const Variable& loss);
  void backward(const Variable& output, const Tensor& seed);
  /// Several outputs at once, each with its own seed.
  void backward(const std::vector<Variable>& outputs, const std::vector<Tensor>& seeds);

  TapeReport report() const;   ///< still there after backward
  int64_t bytes_kept() const;  ///< held now for the way back, each storage once

  /// In its scope nothing is recorded on the tape that was the innermost when it began, and training() is false.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::shared_ptr<detail::TapeState> tape_;
    bool before_;
  };

 private:
  friend struct detail::TapeState;
  std::shared_ptr<detail::TapeState> state_;
};

bool recording();  ///< a tape is in scope on this thread, has not ended, and is not paused
bool training();   ///< recording(), on a tape that trains: what dropout asks

}  // namespace linnet
