// safetensors: reading and writing of StateDicts in the format that other frameworks share. Tensors are f32, f64, i32,
// u8 (F32, F64, I32, U8); texts stand in the header's __metadata__.
#pragma once
#include <string>

#include "linnet/core/state_dict.h"

namespace linnet {

/// Writes to a temporary file beside path, flushes it to the disk and renames it: a crash, a full disk or a kill leaves
/// the old file or the new one, never a part, and no temporary file of an earlier kill stays. Throws Error, naming the
/// file.
void save_safetensors(const std::string& path, const StateDict& state);

/// Checks everything before it allocates: header length (at most 100 MB) and syntax, dtypes, shapes against offsets,
/// overlaps and gaps, the file's length. I64 is read as i32 where every value fits. Throws Error, naming file and
/// fault.
StateDict load_safetensors(const std::string& path);

}  // namespace linnet
