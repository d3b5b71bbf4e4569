// The best model of a run: model.safetensors, kept whenever validation.csv got a better row.
#pragma once
#include "linnet/nn/module.h"
#include "support/run_directory.h"

namespace example {

/// Throws Error, naming the file, where it is not one of this module; where there is none yet, `first` ends the
/// message.
void load_best(linnet::nn::Module& net, const RunDirectory& run, const char* first);
/// Both files, where they exist, for a run that goes on in another folder.
void copy_best(const RunDirectory& from, const RunDirectory& to);

}  // namespace example
