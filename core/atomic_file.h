// AtomicFile: a file that appears whole or not at all.
#pragma once
#include <cstddef>
#include <string>

namespace linnet {

/// Writes to "target.tmp-<pid>-<n>" beside the target; commit() flushes it to the disk and renames it over the target.
/// Until then, and whatever ends the process, the old file stays as it was. The destructor removes an uncommitted
/// temporary file; the constructor removes those that killed writers of the same target left behind (the living hold a
/// lock on theirs). A symbolic link is followed: the file it points to is replaced. An existing file's permissions are
/// kept. Every fault (no such directory, full disk, ...) is an Error that begins with `op: path: `.
class AtomicFile {
 public:
  AtomicFile(std::string op, const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* bytes, size_t count);
  void commit();

 private:
  void remove_left_behind() const;
  void open_temporary();
  [[noreturn]] void fail_errno(const char* what) const;

  std::string op_, path_;  // as given, for messages
  std::string directory_, target_, temporary_;
  int file_ = -1;
};

/// write_file(path, text): a whole small file at once, as atomic.
void write_file(const std::string& path, const std::string& text);

}  // namespace linnet
