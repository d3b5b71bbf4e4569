// GemmCount: how long a piece of a program spends in BLAS's single-precision GEMM, and how much that computes.
//
// A program linked with -Wl,--wrap=cblas_sgemm counts each call where it happens, with the caches and threads of the
// real run: two clock reads a call, against timing the same calls once more by themselves, which would be another run.
// A shared linnet calls BLAS past the wrapper: then nothing is counted.
#pragma once

namespace bench {

struct GemmCount {
  double seconds = 0;  ///< of the clock on the wall; calls from n threads at once count 1/n each
  double flops = 0;
};

GemmCount gemm_count();  ///< since reset_gemm_count
void reset_gemm_count();

}  // namespace bench
