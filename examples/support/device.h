// --device: where a program computes. What it makes afterwards lies there; batches of linnet/data are made on the CPU,
// and moved where they enter a model.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "linnet/core/dtype.h"

namespace example {

inline constexpr const char* kDeviceHelp = "where to compute: cpu (default) or cuda, a GPU of NVIDIA";

/// The flag, for programs without settings; not given, it leaves the default device as it is.
inline void add_device(CLI::App& app, std::string& device) { app.add_option("--device", device, kDeviceHelp); }

void check_device(const std::string& device);  ///< throws Error where it is neither

/// Makes it the default device. Throws Error where it is neither cpu nor cuda, and, with what to do, where there is no
/// CUDA: so it comes before anything else.
void use_device(const std::string& device);

}  // namespace example
