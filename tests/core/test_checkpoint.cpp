#include "linnet/core/checkpoint.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "linnet/core/safetensors.h"
#include "support/temp_dir.h"

using namespace linnet;
using test_support::TempDir;

TEST_CASE("a checkpoint gives its parts back") {
  TempDir dir;
  StateDict model, optimizer;
  model.set("w", Tensor::full({2}, 3));
  optimizer.set("w", Tensor::full({2}, 4));
  optimizer.set_integer("step", 12);
  save_checkpoint(dir / "c", {{"model", model}, {"optimizer", optimizer}, {"empty", {}}});
  StateDict back = load_checkpoint(dir / "c");
  CHECK(back.part("model").get("w").to_vector<float>() == std::vector<float>{3, 3});
  CHECK(back.part("optimizer").get("w").to_vector<float>() == std::vector<float>{4, 4});
  CHECK(back.part("optimizer").integer("step") == 12);
  CHECK(back.part("empty").tensors().empty());
}

TEST_CASE("a part that could not come back alone is refused") {
  TempDir dir;
  CHECK_THROWS_WITH_AS(save_checkpoint(dir / "c", {{"a.b", {}}}),
                       "save_checkpoint: \"a.b\" cannot name a part: it is empty or has a dot", Error);
  CHECK_THROWS_WITH_AS(save_checkpoint(dir / "c", {{"", {}}}),
                       "save_checkpoint: \"\" cannot name a part: it is empty or has a dot", Error);
  CHECK_THROWS_WITH_AS(save_checkpoint(dir / "c", {{"a", {}}, {"a", {}}}), "save_checkpoint: part \"a\" is given twice",
                       Error);
  CHECK(dir.names().empty());
}

TEST_CASE("a generator continues where its saved state stood") {
  TempDir dir;
  Generator generator{~uint64_t(0), 3, 0};
  generator.uniform();
  save_checkpoint(dir / "c", {{"random", state_dict(generator)}});
  double next = generator.uniform();
  Generator other;
  load_state_dict(other, load_checkpoint(dir / "c").part("random"));
  CHECK(other.seed == ~uint64_t(0));
  CHECK(other.uniform() == next);
  StateDict broken;
  broken.set_integer("seed", 9);
  CHECK_THROWS_WITH_AS(load_state_dict(other, broken), "state_dict: no text \"stream\" among 1", Error);
  CHECK(other.seed == ~uint64_t(0));
}

TEST_CASE("CK7: killed at any moment of a save, fifty times, the file loads as old or new and nothing piles up") {
  TempDir dir;
  auto save = [&](uint64_t count) {
    StateDict model;
    model.set("a", Tensor::full({20000}, static_cast<double>(count), Dtype::f64));
    model.set("b", Tensor::full({20000}, static_cast<double>(count), Dtype::f64));
    model.set_integer("count", count);
    save_checkpoint(dir / "c", {{"model", model}});
  };
  save(0);
  Generator random{1, 0, 0};
  uint64_t last = 0;
  for (int kill_number = 0; kill_number < 50; ++kill_number) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        for (uint64_t count = last + 1;; ++count) save(count);
      } catch (...) {
      }
      _exit(1);
    }
    usleep(static_cast<useconds_t>(500 + random.below(15000)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));  // it did not end by itself, with an error
    StateDict model = load_checkpoint(dir / "c").part("model");
    uint64_t count = model.integer("count");
    CHECK(count >= last);
    last = count;
    bool whole = true;
    for (const char* name : {"a", "b"})
      for (double value : model.get(name).to_vector<double>()) whole = whole && value == static_cast<double>(count);
    CHECK(whole);
    CHECK(dir.names().size() <= 2);
  }
  CHECK(last > 0);
  save(last + 1);
  CHECK(dir.names() == std::vector<std::string>{"c"});
}
