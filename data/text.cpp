#include "linnet/data/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "linnet/core/error.h"
#include "linnet/data/utf8.h"

namespace linnet::data {

namespace {

/// A file's bytes, unpacked where it is a gzip file.
class Unpacked {
 public:
  Unpacked(std::string where, const std::string& path) : where_(std::move(where)), packed_(path.ends_with(".gz")) {
    // O_NONBLOCK: a pipe must not wait for its writer.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    LINNET_CHECK(file >= 0, where_, "cannot open: ", std::strerror(errno));
    struct stat info = {};
    const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    if (regular && !packed_) file_ = file;
    if (regular && packed_) stream_ = ::gzdopen(file, "rb");  // which owns the file from now on
    if (file_ >= 0 || stream_) return;
    ::close(file);
    fail(where_, S_ISDIR(info.st_mode) ? "is a directory"
                 : regular             ? "no memory to unpack it"
                                       : "is not a regular file");
  }
  ~Unpacked() {
    if (stream_) ::gzclose(stream_);
    if (file_ >= 0) ::close(file_);
  }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  /// At most `count` bytes; 0 at the end.
  size_t read(char* bytes, unsigned count) { return packed_ ? unpack(bytes, count) : read_plain(bytes, count); }

 private:
  size_t read_plain(char* bytes, unsigned count) const {
    ssize_t got;
    do got = ::read(file_, bytes, count);
    while (got < 0 && errno == EINTR);
    LINNET_CHECK(got >= 0, where_, "cannot read: ", std::strerror(errno));
    return static_cast<size_t>(got);
  }

  size_t unpack(char* bytes, unsigned count) {
    const int got = ::gzread(stream_, bytes, count);
    LINNET_CHECK(!::gzdirect(stream_), where_, "is not a gzip file, though its name ends with .gz");
    int fault = Z_OK;
    const char* message = ::gzerror(stream_, &fault);
    LINNET_CHECK(got >= 0 && (fault == Z_OK || fault == Z_STREAM_END), where_, "cannot unpack: ",
                 fault == Z_BUF_ERROR ? "the file is cut off"
                 : fault == Z_ERRNO   ? std::strerror(errno)
                                      : message);
    return static_cast<size_t>(got);
  }

  std::string where_;
  bool packed_;
  int file_ = -1;
  gzFile stream_ = nullptr;
};

class Lines {
 public:
  Lines(std::string where, const TextLimits& limits) : where_(std::move(where)), limits_(limits) {}

  void add(std::string_view bytes) {
    for (size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
      extend(bytes.substr(0, end));
      finish();
    }
    extend(bytes);
  }
  std::vector<std::string> take() {
    if (!line_.empty()) finish();
    return std::move(lines_);
  }

 private:
  void extend(std::string_view bytes) {
    LINNET_CHECK(line_.size() + bytes.size() <= static_cast<uint64_t>(limits_.line_bytes), where_, "line ",
                 lines_.size() + 1, " has more than ", limits_.line_bytes, " bytes, the limit");
    line_ += bytes;
  }
  void finish() {
    if (lines_.empty() && line_.starts_with("\xEF\xBB\xBF")) line_.erase(0, 3);
    if (line_.ends_with('\r')) line_.pop_back();
    const int64_t fault = invalid_utf8_at(line_);
    LINNET_CHECK(fault < 0, where_, "line ", lines_.size() + 1, " is not UTF-8 at byte ", fault + 1);
    lines_.push_back(line_);  // a copy, of just its size
    line_.clear();
  }

  std::string where_;
  TextLimits limits_;
  std::string line_;  // as far as it was read
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> read_lines(const std::string& path, const TextLimits& limits) {
  const std::string where = "read_lines: " + path + ": ";
  LINNET_CHECK(limits.file_bytes >= 0 && limits.line_bytes >= 0, where, "limits of ", limits.file_bytes, " and ",
               limits.line_bytes, " bytes given, 0 or more wanted");
  Unpacked file(where, path);
  Lines lines(where, limits);
  std::vector<char> bytes(1 << 16);
  uint64_t total = 0;
  while (const size_t got = file.read(bytes.data(), static_cast<unsigned>(bytes.size()))) {
    total += got;
    LINNET_CHECK(total <= static_cast<uint64_t>(limits.file_bytes), where, "has more than ", limits.file_bytes,
                 " bytes, the limit");
    lines.add({bytes.data(), got});
  }
  return lines.take();
}

std::vector<std::vector<std::string>> read_parallel(const std::vector<std::string>& paths, const TextLimits& limits) {
  std::vector<std::vector<std::string>> texts;
  for (const std::string& path : paths) {
    texts.push_back(read_lines(path, limits));
    LINNET_CHECK(texts.back().size() == texts[0].size(), "read_parallel: ", paths[0], " has ", texts[0].size(),
                 " lines but ", path, " has ", texts.back().size());
  }
  return texts;
}

}  // namespace linnet::data
