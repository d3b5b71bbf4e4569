// Text files, line by line: UTF-8, plain or gzip. They come from anywhere, so everything is checked.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace linnet::data {

struct TextLimits {
  int64_t file_bytes = int64_t(4) << 30;  ///< unpacked: a small .gz can hold a very large text
  int64_t line_bytes = int64_t(1) << 20;
};

/// The lines of a file, without their ends ("\n" or "\r\n"; the last may have none), empty ones included. A byte order
/// mark at the beginning is left out. A name that ends with .gz is a gzip file, checksums and all.
/// Throws Error, naming the file, where it is no regular file, cannot be read or unpacked, is cut off, exceeds a limit,
/// or is not UTF-8: then with line and byte, both counted from 1, the byte within the line.
std::vector<std::string> read_lines(const std::string& path, const TextLimits& limits = {});

/// Files whose i-th lines belong together, such as a text and its translation. Throws, too, where their numbers of
/// lines differ.
std::vector<std::vector<std::string>> read_parallel(const std::vector<std::string>& paths,
                                                    const TextLimits& limits = {});

}  // namespace linnet::data
