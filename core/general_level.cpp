// The general kernels of one level: the loops of general_loops.h, vectorised by the compiler, and products of matrices.
#include "linnet/core/gemm_level.h"
#include "linnet/core/general_loops.h"

namespace linnet::LINNET_LEVEL {
extern const GeneralF32 general_f32 = general_table<float>(gemm);
extern const GeneralF64 general_f64 = general_table<double>(gemm);
}  // namespace linnet::LINNET_LEVEL
