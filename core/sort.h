// A stable sort of small numbers on a GPU: the order of rows for sums by row, of places for buckets.
#pragma once
#include <cstdint>

namespace linnet::cuda {

/// sorted[i] = keys[places[i]] in rising order, equal keys in the order they came in; 0 <= key < limit. All of it is
/// the device's memory, `sorted` and `places` apart from `keys`; n < 2^31.
void sort(int64_t n, int64_t limit, const int32_t* keys, int32_t* sorted, int32_t* places);

}  // namespace linnet::cuda
