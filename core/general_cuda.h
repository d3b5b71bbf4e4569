// The general kernels of a GPU, as core/general.cu puts them in a table; core/kernels.h says what each does. Private to
// core/.
#pragma once
#include "linnet/core/kernels.h"

namespace linnet::cuda {

template <class T>
void permute(const PermuteLoop& loop, const T* x, T* y);

template <class T>
void sum(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);
template <class T>
void max(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);
template <class T>
void min(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);
template <class T>
void argmax(int64_t outer, int64_t n, int64_t inner, const T* x, int32_t* y);
template <class T>
void cumsum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x, T* y);
template <class T>
double sum_of_squares(int64_t n, const T* x);
template <class T>
bool all_finite(int64_t n, const T* x);

template <class T>
void gather_rows(int64_t n, int64_t width, const int32_t* index, const T* table, T* y);
template <class T>
void scatter_add_rows(int64_t n, int64_t width, const int32_t* index, const T* y, T* table, int64_t row_begin,
                      int64_t row_end);

template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          T beta, T* c, int64_t ldc);
template <class T>
void gemm_batched(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, int64_t a_step,
                  const T* b, int64_t ldb, int64_t b_step, T* c, int64_t batch);

}  // namespace linnet::cuda
