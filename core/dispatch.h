// Dispatch: which filled instance of a family of kernels serves a device on this machine.
#pragma once
#include <string>
#include <type_traits>

#include "linnet/core/dtype.h"
#include "linnet/core/error.h"

namespace linnet {

/// The levels of the CPU kernels. `plain` is the readable loops: the reference for every other level.
enum class Level { plain, portable, avx2, avx512 };
const char* name(Level level);

Level best_level();             ///< the highest level that this machine and this build have
Level level();                  ///< the level in use: the best, unless one was forced
void force_level(Level level);  ///< throws where this machine or this build lacks it
void unforce_level();           ///< back to the best; also settable by LINNET_LEVEL=plain|portable|avx2|avx512

[[noreturn]] void throw_no_cuda();  ///< Error: built without CUDA, or no GPU here; and what to do
bool cuda_available();              ///< whether this build has CUDA and this machine a GPU
/// Waits until the device has done all that it was asked for; a CPU has at any time.
void synchronize(Device device);
struct CudaInfo {
  std::string name;
  int64_t memory, free;  ///< bytes
};
CudaInfo cuda_info();  ///< throws where CUDA is not available

/// The instances of one family of kernels, nullptr where there is none: the next lower level serves then.
template <class Table>
struct Instances {
  const Table* plain;
  const Table* portable;
  const Table* avx2 = nullptr;
  const Table* avx512 = nullptr;
  const Table* cuda = nullptr;

  const Table& of(Device device) const {
    if (device == Device::cuda) {
      if (!cuda) throw_no_cuda();
      return *cuda;
    }
    switch (level()) {
      case Level::avx512:
        if (avx512) return *avx512;
        [[fallthrough]];
      case Level::avx2:
        if (avx2) return *avx2;
        [[fallthrough]];
      case Level::portable:
        if (portable) return *portable;
        [[fallthrough]];
      case Level::plain:
        break;
    }
    return *plain;
  }
};

/// A family for both floating dtypes: `kernels.of<T>(device)` is a Kernels<T>.
template <template <class> class Kernels>
struct FloatInstances {
  Instances<Kernels<float>> f32;
  Instances<Kernels<double>> f64;

  template <class T>
  const Kernels<T>& of(Device device) const {
    if constexpr (std::is_same_v<T, float>)
      return f32.of(device);
    else
      return f64.of(device);
  }
};

}  // namespace linnet

// LINNET_DECLARE_LEVELS(Table, name): all levels' `name`, each defined as
// `namespace linnet::<level> { extern const Table name; }`.
#define LINNET_DECLARE_PLAIN_AND_PORTABLE(Table, name) \
  namespace linnet::plain {                            \
  extern const Table name;                             \
  }                                                    \
  namespace linnet::portable {                         \
  extern const Table name;                             \
  }
// LINNET_DECLARE_CUDA(Table, name): the instance for a GPU, which name's .cu file defines. A build without CUDA leaves
// it undefined, and its address null.
#if defined(LINNET_HAS_CUDA)
#define LINNET_IF_BUILT
#else
#define LINNET_IF_BUILT [[gnu::weak]]
#endif
#define LINNET_DECLARE_CUDA(Table, name)   \
  namespace linnet::cuda {                 \
  LINNET_IF_BUILT extern const Table name; \
  }
#ifdef LINNET_HAS_X86_LEVELS
#define LINNET_DECLARE_LEVELS(Table, name)       \
  LINNET_DECLARE_PLAIN_AND_PORTABLE(Table, name) \
  namespace linnet::avx2 {                       \
  extern const Table name;                       \
  }                                              \
  namespace linnet::avx512 {                     \
  extern const Table name;                       \
  }
#define LINNET_LEVELS(name) \
  &::linnet::plain::name, &::linnet::portable::name, &::linnet::avx2::name, &::linnet::avx512::name
#else
#define LINNET_DECLARE_LEVELS(Table, name) LINNET_DECLARE_PLAIN_AND_PORTABLE(Table, name)
#define LINNET_LEVELS(name) &::linnet::plain::name, &::linnet::portable::name, nullptr, nullptr
#endif
// Instances of the family: of the CPU alone, or of a GPU, too.
#define LINNET_CPU_INSTANCES(name) \
  { LINNET_LEVELS(name) }
#define LINNET_INSTANCES(name) \
  { LINNET_LEVELS(name), &::linnet::cuda::name }
// FloatInstances of the families name_f32 and name_f64.
#define LINNET_CPU_FLOAT_INSTANCES(name) \
  { LINNET_CPU_INSTANCES(name##_f32), LINNET_CPU_INSTANCES(name##_f64) }
#define LINNET_FLOAT_INSTANCES(name) \
  { LINNET_INSTANCES(name##_f32), LINNET_INSTANCES(name##_f64) }
