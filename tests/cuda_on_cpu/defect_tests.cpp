// Each planted defect is reported: by the emulation itself, by the address sanitizer, or by the thread sanitizer. Where
// one of them cannot see it, that is stated, too. $CUDA_ON_CPU_PROGRAM is the program with the defects, built as
// $CUDA_ON_CPU_FLAVOUR says: plain, address or thread.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

const char* const kWrong = "wrong values";
const char* const kUnseen = "right values";
const char* const kRace = "ThreadSanitizer: data race[^]*?LINE";
const char* const kAddress = "AddressSanitizer: heap-buffer-overflow[^]*?LINE";
const char* const kHostAddress = "a kernel's argument of [0-9]+ bytes holds the address of host memory, 0x";
// Where the array's size is in its type, the undefined-behaviour sanitizer is the first to see it.
const char* const kAddressOrBounds =
    "LINE:[0-9]+: runtime error: index 64 out of bounds|AddressSanitizer: heap-buffer-overflow[^]*?LINE";

// Regular expressions over what the program says. LINE stands for any line marked `bad: NAME`.
struct Defect {
  std::string name;
  const char* plain;
  const char* address;
  const char* thread;
};
// The same words in every flavour.
Defect always(const char* name, const char* report) { return {name, report, report, report}; }

const std::vector<Defect> kDefects = {
    {"no_sync_after_write", kWrong, kWrong, kRace},
    {"no_sync_before_reuse", kUnseen, kUnseen, kRace},
    {"no_sync_in_matmul", kWrong, kWrong, kRace},
    {"no_atomic", kUnseen, kUnseen, kRace},
    {"no_fence", kUnseen, kUnseen, kRace},
    {"no_order_of_blocks", kUnseen, kUnseen, kRace},
    {"shared_past_end", "wrote behind 256 bytes of shared memory", kAddressOrBounds,
     "wrote behind 256 bytes of shared memory"},
    {"dynamic_shared_past_end", "wrote behind 256 bytes of shared memory", kAddress,
     "wrote behind 256 bytes of shared memory"},
    {"global_past_end", "bytes behind a device allocation of 256 bytes were overwritten", kAddress,
     "bytes behind a device allocation of 256 bytes were overwritten"},
    {"global_read_past_end", kWrong, kAddress, kWrong},
    always("divergent_barrier", "threads of block \\(0, 0, 0\\) meet at different __syncthreads: LINE and LINE"),
    always("barrier_and_shuffle",
           "deadlock in block \\(0, 0, 0\\): 64 of 64 threads have not ended, 2 of them wait at __syncthreads\n"
           "  thread \\(0, 0, 0\\) waits at LINE in __syncthreads\n"
           "  thread \\(1, 0, 0\\) waits at block_sum.h:[0-9]+ in a warp function"),
    always("absent_lanes", "deadlock in block[^]*waits at LINE in a warp function"),
    always("mask_without_caller", "LINE: the mask of a warp function, ffff, does not name lane 16, which calls it"),
    {"lock_step", kWrong, kWrong, kRace},
    {"wmma_lock_step", kWrong, kWrong, kRace},
    always("unwritten_shared", kWrong),
    always("declares_much",
           "a kernel declares 49408 bytes of shared memory and is launched with 0; 49152 may be declared"),
    {"host_reads_device", "ended by a signal", "AddressSanitizer: use-after-poison", "ThreadSanitizer: SEGV"},
    always("host_pointer", "a kernel's argument, 0x[0-9a-f]+, is not in device memory"),
    {"host_pointer_in_struct", kHostAddress, kUnseen, kHostAddress},
    {"host_reference_in_lambda", kHostAddress, kUnseen, kHostAddress},
    always("freed_memory", "a kernel's argument, 0x[0-9a-f]+, is not in device memory"),
    always("no_stream_sync", kWrong),
    always("no_event", kWrong),
    always("new_memory", kWrong),
    always("copy_too_long", "cudaMemcpy of 256 bytes: bad destination"),
    always("copy_wrong_way", "cudaMemcpy of 256 bytes: bad destination"),
    always("freed_twice", "cudaFree of 0x[0-9a-f]+, which is no device allocation"),
    always("gemm_past_end", "cublas gemm: operand B takes 256 bytes of device memory, and has 224"),
    always("empty_grid", "launch of grid \\(0, 1, 1\\) with block \\(32, 1, 1\\)"),
    always("high_grid", "launch of grid \\(1, 65536, 1\\) with block \\(32, 1, 1\\)"),
    always("large_block", "launch of grid \\(1, 1, 1\\) with block \\(1024, 2, 1\\)"),
    always("much_shared", "launch with 49153 bytes of dynamic shared memory, the limit is 49152"),
    always("asked_too_much", "262144 bytes of dynamic shared memory are asked for, the device has 232448"),
};

// What this program says with a defect planted.
std::string output_of(const std::string& name, const std::string& settings = "") {
  const std::string sanitizers =
      "ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0 ";
  const std::string program = from_environment("CUDA_ON_CPU_PROGRAM");
  FILE* pipe = popen((sanitizers + settings + " '" + program + "' --defect " + name + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  std::array<char, 4096> part;
  while (const size_t read = fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), read);
  const int status = pclose(pipe);
  if (WIFSIGNALED(status) || WEXITSTATUS(status) > 128) output += "ended by a signal\n";
  return output;
}

// bad_kernels.cu:(12|13)
std::string marked_lines(const std::string& name) {
  const std::string file = "bad_kernels.cu";
  std::ifstream source(LINNET_SOURCE_DIR "/tests/cuda_on_cpu/kernels/" + file);
  std::string line, numbers = "none";
  for (int number = 1; std::getline(source, line); ++number)
    if (line.ends_with("// bad: " + name)) numbers += "|" + std::to_string(number);
  return file + ":(" + numbers + ")\\b";
}

bool says(const std::string& output, const Defect& defect, std::string pattern) {
  const std::string lines = marked_lines(defect.name);
  for (size_t at; (at = pattern.find("LINE")) != std::string::npos;) pattern.replace(at, 4, lines);
  return std::regex_search(output, std::regex(pattern));
}

}  // namespace

TEST_CASE("each planted defect is reported, with its line where there is one") {
  const std::string flavour = from_environment("CUDA_ON_CPU_FLAVOUR");
  REQUIRE((flavour == "plain" || flavour == "address" || flavour == "thread"));
  for (const Defect& defect : kDefects) {
    const char* wanted = flavour == "plain" ? defect.plain : flavour == "address" ? defect.address : defect.thread;
    const std::string output = output_of(defect.name);
    INFO(defect.name, " said: ", output);
    CHECK(says(output, defect, wanted));
  }
}

TEST_CASE("a random order lets a warp get ahead, and shows memory that is used again too early") {
  if (from_environment("CUDA_ON_CPU_FLAVOUR") != "plain") return;
  int wrong = 0;
  for (int seed = 1; seed <= 20; ++seed)
    wrong += output_of("no_sync_before_reuse", "CUDA_ON_CPU_ORDER=random CUDA_ON_CPU_SEED=" + std::to_string(seed)) ==
             "wrong values\n";
  CHECK(wrong >= 5);
}

TEST_CASE("a name that is none is no defect") { CHECK(output_of("no_such_defect") == ""); }
