#include "linnet/core/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <numeric>

#include "linnet/core/atomic_file.h"
#include "linnet/core/safetensors_header.h"

namespace linnet {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");
constexpr uint64_t kMaxHeader = 100'000'000;

using detail::SafetensorsEntry;
using detail::SafetensorsHeader;

const char* spelling(Dtype dtype) {
  constexpr const char* names[] = {"F32", "F64", "I32", "U8"};
  return names[static_cast<int>(dtype)];
}

/// The dtype that a tensor of the file is read as, and the bytes of an element in the file.
struct Reading {
  Dtype dtype;
  uint64_t bytes;
};

Reading reading(const std::string& where, const SafetensorsEntry& entry) {
  if (entry.dtype == "F32") return {Dtype::f32, 4};
  if (entry.dtype == "F64") return {Dtype::f64, 8};
  if (entry.dtype == "I32") return {Dtype::i32, 4};
  if (entry.dtype == "I64") return {Dtype::i32, 8};
  if (entry.dtype == "U8" || entry.dtype == "BOOL") return {Dtype::u8, 1};
  fail(where, "\"", entry.name, "\" has dtype ", entry.dtype, "; F32, F64, I32, I64, U8 and BOOL can be read");
}

/// A file open for reading that is known to be a regular file of `size` bytes.
class InputFile {
 public:
  explicit InputFile(std::string where, const std::string& path) : where_(std::move(where)) {
    // O_NONBLOCK: a pipe must not wait for its writer.
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    LINNET_CHECK(file_ >= 0, where_, "cannot open: ", std::strerror(errno));
    struct stat info = {};
    bool regular = ::fstat(file_, &info) == 0 && S_ISREG(info.st_mode);
    if (!regular) {
      ::close(file_);
      fail(where_, S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
    }
    size_ = static_cast<uint64_t>(info.st_size);
  }
  ~InputFile() { ::close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t size() const { return size_; }

  void read(uint64_t offset, void* bytes, uint64_t count) const {
    char* at = static_cast<char*>(bytes);
    while (count > 0) {
      ssize_t got = ::pread(file_, at, std::min<uint64_t>(count, 1u << 30), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      LINNET_CHECK(got >= 0, where_, "cannot read: ", std::strerror(errno));
      LINNET_CHECK(got > 0, where_, "became shorter while it was read");
      at += got;
      offset += static_cast<uint64_t>(got);
      count -= static_cast<uint64_t>(got);
    }
  }

 private:
  std::string where_;
  int file_ = -1;
  uint64_t size_ = 0;
};

/// Every tensor has as many bytes as its shape and dtype say; together they fill data_bytes without overlap or gap.
void check_layout(const std::string& where, const SafetensorsHeader& header, uint64_t data_bytes) {
  for (const SafetensorsEntry& entry : header.tensors) {
    const uint64_t wanted = reading(where, entry).bytes * static_cast<uint64_t>(entry.shape.numel());
    LINNET_CHECK(entry.begin <= entry.end && entry.end <= data_bytes, where, "\"", entry.name, "\" has offsets [",
                 entry.begin, ", ", entry.end, "] in ", data_bytes, " bytes of data");
    LINNET_CHECK(entry.end - entry.begin == wanted, where, "\"", entry.name, "\" of shape ", entry.shape, " and dtype ",
                 entry.dtype, " has ", entry.end - entry.begin, " bytes");
  }
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : header.tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](auto* a, auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  uint64_t end = 0;
  for (const SafetensorsEntry* entry : order) {
    LINNET_CHECK(entry->begin == end, where, "\"", entry->name, "\" begins at byte ", entry->begin,
                 " but the tensor before it ends at ", end);
    end = entry->end;
  }
  LINNET_CHECK(end == data_bytes, where, "the tensors end at byte ", end, " of ", data_bytes, " bytes of data");
}

/// I64 as i32; throws where a value does not fit.
void read_narrowed(const std::string& where, const InputFile& file, uint64_t offset, const SafetensorsEntry& entry,
                   Tensor& result) {
  int32_t* to = result.mutable_data<int32_t>();
  std::vector<int64_t> wide(static_cast<size_t>(std::min<int64_t>(result.numel(), 65536)));
  for (int64_t done = 0; done < result.numel();) {
    int64_t count = std::min<int64_t>(result.numel() - done, static_cast<int64_t>(wide.size()));
    file.read(offset + static_cast<uint64_t>(done) * 8, wide.data(), static_cast<uint64_t>(count) * 8);
    for (int64_t i = 0; i < count; ++i) {
      to[done + i] = static_cast<int32_t>(wide[static_cast<size_t>(i)]);
      LINNET_CHECK(to[done + i] == wide[static_cast<size_t>(i)], where, "\"", entry.name, "\" has dtype I64 and holds ",
                   wide[static_cast<size_t>(i)], ", which i32 cannot hold");
    }
    done += count;
  }
}

}  // namespace

void save_safetensors(const std::string& path, const StateDict& state) {
  const std::string where = "save_safetensors: " + path + ": ";
  const auto& tensors = state.tensors();
  // Wide elements first, so that each tensor lies aligned; the header keeps the state's order.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(tensors[a].second.dtype()) > size_of(tensors[b].second.dtype());
  });
  SafetensorsHeader header{{}, state.texts()};
  for (const auto& [name, tensor] : tensors)
    header.tensors.push_back({name, spelling(tensor.dtype()), tensor.shape(), 0, 0});
  uint64_t end = 0;
  for (size_t i : order) {
    header.tensors[i].begin = end;
    end += static_cast<uint64_t>(tensors[i].second.bytes());
    header.tensors[i].end = end;
  }
  std::string text = format_safetensors_header(where, header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  LINNET_CHECK(text.size() <= kMaxHeader, where, "the header has ", text.size(), " bytes, at most ", kMaxHeader,
               " can be read again");

  AtomicFile file("save_safetensors", path);
  uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (size_t i : order) {
    Tensor host = tensors[i].second.to(Device::cpu);
    file.write(host.raw(), static_cast<size_t>(host.bytes()));
  }
  file.commit();
}

StateDict load_safetensors(const std::string& path) {
  const std::string where = "load_safetensors: " + path + ": ";
  InputFile file(where, path);
  uint64_t length = 0;
  LINNET_CHECK(file.size() >= 8, where, "is no safetensors file: it has ", file.size(),
               " bytes, the header's length alone takes 8");
  file.read(0, &length, sizeof length);
  LINNET_CHECK(length <= file.size() - 8, where, "is no safetensors file, or cut off: a header of ", length,
               " bytes in a file of ", file.size());
  LINNET_CHECK(length <= kMaxHeader, where, "a header of ", length, " bytes, at most ", kMaxHeader, " are read");
  std::string text(static_cast<size_t>(length), ' ');
  file.read(8, text.data(), length);
  SafetensorsHeader header = detail::parse_safetensors_header(where + "the header: ", text);
  check_layout(where, header, file.size() - 8 - length);

  StateDict state;
  for (auto& [name, value] : header.texts) state.set_text(name, std::move(value));
  for (const SafetensorsEntry& entry : header.tensors) {
    Tensor tensor = Tensor::empty(entry.shape, reading(where, entry).dtype, Device::cpu);
    uint64_t offset = 8 + length + entry.begin;
    if (entry.dtype == "I64")
      read_narrowed(where, file, offset, entry, tensor);
    else
      file.read(offset, tensor.mutable_raw(), entry.end - entry.begin);
    state.set(entry.name, std::move(tensor));
  }
  return state;
}

}  // namespace linnet
