#include "support/resume.h"

#include <filesystem>
#include <iostream>

#include "support/program.h"
#include "support/progress.h"
#include "support/training.h"

namespace example {
namespace fs = std::filesystem;

namespace {

bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

}  // namespace

Earlier::Earlier(const std::string& folder, const std::string& out)
    : from_(RunDirectory::open(folder)), out_(out), in_place_(out.empty() || is_same(out, from_.path())) {
  if (in_place_) from_.lock();
}

void Earlier::load() {
  checkpoint_ = Checkpoints(from_.path()).load();
  // In place, lost metrics are no reason not to go on.
  const std::string file = from_.file("metrics.csv");
  std::error_code ignored;
  if (!in_place_ || fs::exists(file, ignored)) metrics_ = read_text(file);
}

void Earlier::check_steps(int64_t steps) const {
  const uint64_t done = Training::step_of(checkpoint_);
  LINNET_CHECK(done <= static_cast<uint64_t>(steps), "--steps ", steps, ": the run in ", from_.path(), " is at step ",
               done, " already; give at least as many");
}

RunDirectory Earlier::make(const Json& settings) const {
  if (!in_place_) return RunDirectory::create(out_, settings);
  from_.save_settings(settings);
  return from_;
}

int say_how_to_go_on(const RunDirectory& run, int64_t step) {
  std::ostream& out = std::cout ? std::cout : std::cerr;
  out << "Stopped after step " << with_commas(step) << "; " << program_name() << " --resume " << run.path()
      << " goes on" << std::endl;
  return kInterrupted;
}

}  // namespace example
