#include "linnet/core/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "linnet/core/error.h"

namespace linnet {

namespace fs = std::filesystem;

namespace {

/// The file that a chain of symbolic links ends at, which need not exist.
fs::path follow(const std::string& op, fs::path path) {
  std::error_code fault;
  for (int hops = 0; fs::is_symlink(fs::symlink_status(path, fault)); ++hops) {
    LINNET_CHECK(hops < 40, op, ": ", path.native(), ": too many symbolic links");
    fs::path next = fs::read_symlink(path, fault);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

/// Whether name is start, digits, "-", digits.
bool is_temporary_of(const std::string& name, const std::string& start) {
  if (name.compare(0, start.size(), start) != 0) return false;
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  auto dash = std::find_if_not(name.begin() + static_cast<std::ptrdiff_t>(start.size()), name.end(), digit);
  return dash != name.end() && *dash == '-' && dash + 1 != name.end() && std::all_of(dash + 1, name.end(), digit);
}

}  // namespace

AtomicFile::AtomicFile(std::string op, const std::string& path) : op_(std::move(op)), path_(path) {
  fs::path target = follow(op_, path);
  directory_ = target.parent_path().empty() ? "." : target.parent_path().native();
  target_ = target.native();
  LINNET_CHECK(!target.filename().empty(), op_, ": \"", path_, "\" names no file");
  struct stat old = {};
  bool exists = ::stat(target_.c_str(), &old) == 0;
  LINNET_CHECK(!exists || !S_ISDIR(old.st_mode), op_, ": ", path_, ": is a directory");
  LINNET_CHECK(!exists || S_ISREG(old.st_mode), op_, ": ", path_, ": is not a regular file");
  remove_left_behind();
  open_temporary();
  if (exists) (void)::fchmod(file_, old.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(file_);
}

void AtomicFile::fail_errno(const char* what) const { fail(op_, ": ", path_, ": ", what, ": ", std::strerror(errno)); }

void AtomicFile::remove_left_behind() const {
  const std::string start = fs::path(target_).filename().native() + ".tmp-";
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(directory_, fs::directory_options::skip_permission_denied, fault)) {
    if (!is_temporary_of(entry.path().filename().native(), start)) continue;
    int file = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    struct stat info = {};
    if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && ::flock(file, LOCK_EX | LOCK_NB) == 0)
      ::unlink(entry.path().c_str());
    ::close(file);
  }
}

void AtomicFile::open_temporary() {
  static std::atomic<uint64_t> count = 0;
  for (;;) {
    temporary_ = target_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno == EEXIST) continue;  // of another machine that shares the directory
    if (file_ < 0) fail_errno("cannot write");
    (void)::flock(file_, LOCK_EX);
    struct stat info = {};
    if (::fstat(file_, &info) == 0 && info.st_nlink > 0) return;
    ::close(file_);  // somebody took it for left behind before the lock was on it
  }
}

void AtomicFile::write(const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    ssize_t written = ::write(file_, at, std::min<size_t>(count, size_t(1) << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno("cannot write");
    at += written;
    count -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(file_) != 0) fail_errno("cannot flush to the disk");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_errno("cannot rename the temporary file");
  ::close(std::exchange(file_, -1));
  int directory = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // no right to read it: the rename is done all the same
  bool flushed = ::fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP;
  int fault = errno;
  ::close(directory);
  errno = fault;
  if (!flushed) fail_errno("written, but the directory cannot be flushed to the disk");
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file("write_file", path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace linnet
