// What only nvcc understands, and CUDA's headers, stand in one file, so that every kernel runs on the emulation, too.
#include <doctest/doctest.h>

#include "repo/sources.h"

namespace {

const std::string kTheFile = "core/cuda.h";

// What a file says that only kTheFile may say.
std::vector<std::string> words_of_cuda(const std::string& text) {
  return repo::matches(repo::without_comments(text),
                       R"((<<<|\b__shared__\b|\b__CUDACC__\b|#\s*include\s*<(cuda|cublas|mma\.h)[^>]*>))");
}

}  // namespace

TEST_CASE("launches, shared memory and CUDA's headers are spelled in one file") {
  std::vector<std::string> folders = repo::kLibraryFolders;
  for (const char* folder : {"tests/cuda_on_cpu", "examples", "bench"}) folders.push_back(folder);
  int files = 0;
  for (const std::string& path : repo::sources(folders)) {
    if (path == kTheFile) continue;
    ++files;
    const std::vector<std::string> found = words_of_cuda(repo::read(repo::kRoot / path));
    INFO(path, " says ", found.empty() ? "" : found[0]);
    CHECK(found.empty());
  }
  CHECK(files > 100);
  CHECK(words_of_cuda(repo::read(repo::kRoot / kTheFile)).size() >= 7);
}

TEST_CASE("the scan knows the words") {
  for (const char* text : {"kernel<<<1, 2>>>()", "__shared__ float x[2];", "#include <cuda_runtime.h>",
                           "# include <cublas_v2.h>", "#include <mma.h>", "#ifdef __CUDACC__"})
    CHECK(words_of_cuda(text).size() == 1);
  CHECK(words_of_cuda("// kernel<<<1, 2>>>()\nCUDA_SHARED(float, x, [2]); x <<= 2; #include \"cuda.h\"").empty());
}
