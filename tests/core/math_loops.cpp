#include "core/math_loops.h"

#include "linnet/core/functors.h"

#define LINNET_TEXT(name) LINNET_TEXT_OF(name)
#define LINNET_TEXT_OF(name) #name
#define LINNET_ROW(name, value)                                    \
  [](int64_t n, const float* __restrict in, float* __restrict y) { \
    for (int64_t i = 0; i < n; ++i) {                              \
      const float x = in[i];                                       \
      y[i] = value;                                                \
    }                                                              \
  },

namespace linnet::LINNET_LEVEL {
extern const MathLoops math_loops = {LINNET_TEXT(LINNET_LEVEL), LINNET_MATH_LOOPS(LINNET_ROW)};
}  // namespace linnet::LINNET_LEVEL
