#include "linnet/core/safetensors.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <functional>

#include "linnet/core/atomic_file.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "support/close.h"
#include "support/temp_dir.h"
#include "support/vectors.h"

using namespace linnet;
using test_support::read_file;
using test_support::TempDir;

namespace {

std::string file_of(const std::string& header, size_t data_bytes, uint64_t length) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\0');
}
std::string file_of(const std::string& header, size_t data_bytes) { return file_of(header, data_bytes, header.size()); }

/// What load_safetensors says to a file with these bytes, after its path; "" where it loads.
std::string fault_of(const TempDir& dir, const std::string& bytes) {
  write_file(dir / "f", bytes);
  try {
    load_safetensors(dir / "f");
  } catch (const Error& error) {
    std::string start = "load_safetensors: " + (dir / "f") + ": ", message = error.what();
    CHECK(message.compare(0, start.size(), start) == 0);
    return message.substr(start.size());
  }
  return "";
}

/// A header with one F32 tensor "w".
std::string one(const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
  return "{\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

}  // namespace

TEST_CASE("a saved state loads with the same order, bits, shapes, dtypes and texts") {
  TempDir dir;
  StateDict state;
  state.set("odd.name", Tensor::from<uint8_t>({1, 2, 255}, {3}));
  state.set("zürich \"q\" \n", Tensor::from<float>({0.1f, -0.0f, INFINITY, 1e-45f, NAN, 3}, {2, 3}));
  state.set("scalar", Tensor::scalar(0.1, Dtype::f64));
  state.set("empty", Tensor::zeros({2, 0, 5}));
  state.set("index", Tensor::from<int32_t>({-2147483647 - 1, 7}, {1, 2}));
  state.set_text("settings", "{\"dim\": 64}\n");
  state.set_text("empty text", "");
  save_safetensors(dir / "f", state);
  StateDict back = load_safetensors(dir / "f");
  REQUIRE(back.tensors().size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    const auto& [name, tensor] = state.tensors()[i];
    const auto& [name_back, tensor_back] = back.tensors()[i];
    CHECK(name_back == name);
    CHECK(tensor_back.shape() == tensor.shape());
    REQUIRE(tensor_back.dtype() == tensor.dtype());
    CHECK(test::same_bits(tensor_back, tensor.to(Device::cpu)));
  }
  CHECK(back.texts() == state.texts());
  CHECK(dir.names() == std::vector<std::string>{"f"});

  save_safetensors(dir / "none", StateDict());
  CHECK(load_safetensors(dir / "none").tensors().empty());
}

TEST_CASE("CK4: header and data are padded to whole words, each tensor lies aligned") {
  TempDir dir;
  for (int length = 1; length < 20; ++length) {
    StateDict state;
    state.set(std::string(static_cast<size_t>(length), 'n'), Tensor::zeros({3}, Dtype::u8));
    state.set("f64", Tensor::zeros({1}, Dtype::f64));
    state.set("f32", Tensor::zeros({3}));
    save_safetensors(dir / "f", state);
    std::string file = read_file(dir / "f");
    uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    CHECK((8 + header) % 8 == 0);
    CHECK(file[8] == '{');
    std::string text = file.substr(8, header);
    CHECK(text.find_last_not_of(' ') == text.rfind('}'));
    auto entry = nlohmann::json::parse(text);
    CHECK(entry["f64"]["data_offsets"][0].get<int>() % 8 == 0);
    CHECK(entry["f32"]["data_offsets"][0].get<int>() % 4 == 0);
    CHECK(file.size() == 8 + header + 3 + 8 + 12);
  }
}

TEST_CASE("CK5: a transpose and a slice are saved as what they show") {
  TempDir dir;
  StateDict state;
  Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  state.set("transpose", compute::transpose(x, 0, 1));
  state.set("slice", x.slice(1, 2));
  save_safetensors(dir / "f", state);
  StateDict back = load_safetensors(dir / "f");
  CHECK(back.get("transpose").to_vector<float>() == std::vector<float>{1, 3, 2, 4});
  CHECK(back.get("slice").to_vector<float>() == std::vector<float>{3, 4});
  CHECK(back.get("slice").shape() == Shape{1, 2});
}

TEST_CASE("I64 is read as i32 where every value fits, BOOL as u8") {
  TempDir dir;
  std::string header = one("[2]", "[0,16]", "I64"), bytes = file_of(header, 16);
  int64_t values[] = {-5, 2147483647};
  std::memcpy(bytes.data() + 8 + header.size(), values, 16);
  CHECK(fault_of(dir, bytes) == "");
  Tensor loaded = load_safetensors(dir / "f").get("w");
  CHECK(loaded.to_vector<int32_t>() == std::vector<int32_t>{-5, 2147483647});
  values[1] = 2147483648;
  std::memcpy(bytes.data() + 8 + header.size(), values, 16);
  CHECK(fault_of(dir, bytes) == "\"w\" has dtype I64 and holds 2147483648, which i32 cannot hold");
  CHECK(fault_of(dir, file_of(one("[3]", "[0,3]", "BOOL"), 3)) == "");
  CHECK(load_safetensors(dir / "f").get("w").dtype() == Dtype::u8);
}

TEST_CASE("CK1: a hostile file is refused, saying why") {
  TempDir dir;
  auto header_fault = [&](const std::string& header, size_t data = 4) { return fault_of(dir, file_of(header, data)); };
  // The file as a whole.
  CHECK(fault_of(dir, "") == "is no safetensors file: it has 0 bytes, the header's length alone takes 8");
  CHECK(fault_of(dir, file_of("{}", 0, 3)) ==
        "is no safetensors file, or cut off: a header of 3 bytes in a file of 10");
  CHECK(fault_of(dir, file_of("{}", 0, ~uint64_t(0))) ==
        "is no safetensors file, or cut off: a header of 18446744073709551615 bytes in a file of 10");
  CHECK(fault_of(dir, file_of("", 0)) == "the header: is not a JSON object");
  CHECK(header_fault("[]") == "the header: is not a JSON object");
  CHECK(header_fault(" {}") == "the header: is not a JSON object");
  CHECK(header_fault(std::string("{}\0 ", 4), 0) == "the header: is not a JSON object");
  CHECK(header_fault("{\"w\":") == "the header: is not JSON (byte 6)");
  CHECK(header_fault("{} {}") == "the header: is not JSON (byte 4)");
  CHECK(header_fault("{\"\xff\":{}}") == "the header: is not JSON (byte 3)");
  CHECK(header_fault("{}") == "the tensors end at byte 0 of 4 bytes of data");
  // The header's structure.
  CHECK(header_fault("{\"w\":3}") == "the header: \"w\": a number where none belongs");
  CHECK(header_fault("{\"w\":null}") == "the header: \"w\": null where it does not belong");
  CHECK(header_fault("{\"w\":{}}") == "the header: \"w\": no dtype");
  CHECK(header_fault("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}") == "the header: \"w\": no data_offsets");
  CHECK(header_fault(std::string(100000, '{')) == "the header: is not JSON (byte 2)");
  CHECK(header_fault("{\"w\":{\"shape\":" + std::string(100000, '[')) ==
        "the header: \"w\": an array where none belongs");
  CHECK(header_fault("{\"w\":{\"shape\":{\"x\":{}}}}") == "the header: \"w\": an object where none belongs");
  CHECK(header_fault("{\"__metadata__\":{\"a\":1}}") == "the header: \"__metadata__\": a number where none belongs");
  std::string w = one("[1]", "[0,4]"), inner = w.substr(1, w.size() - 2);
  CHECK(header_fault("{" + inner + "," + inner + "}") == "the header: name \"w\" is given twice");
  CHECK(header_fault("{\"w\":{\"shape\":[1],\"shape\":[1]}}") == "the header: field \"shape\" is given twice");
  // Shapes, dtypes and offsets.
  CHECK(header_fault(w) == "");
  CHECK(header_fault(one("[1]", "[0,2]", "BF16"), 2) ==
        "\"w\" has dtype BF16; F32, F64, I32, I64, U8 and BOOL can be read");
  CHECK(header_fault(one("[1000,1000]", "[0,4]")) == "\"w\" of shape (1000, 1000) and dtype F32 has 4 bytes");
  CHECK(header_fault(one("[-1]", "[0,4]")) == "the header: \"w\": shape holds -1");
  CHECK(header_fault(one("[1.0]", "[0,4]")) == "the header: \"w\": shape holds a number that is no 64-bit integer");
  CHECK(header_fault(one("[9223372036854775808]", "[0,4]")) == "the header: \"w\": shape holds a number too large");
  CHECK(header_fault(one("[99999999999999999999]", "[0,4]")) ==
        "the header: \"w\": shape holds a number that is no 64-bit integer");
  CHECK(header_fault(one("[4294967296,4294967296,4294967296]", "[0,0]"), 0) ==
        "the header: \"w\": shape: (4294967296, 4294967296) has too many elements");
  CHECK(header_fault(one("[4611686018427387905]", "[0,4]")) ==
        "the header: \"w\": shape: (4611686018427387905) has too many elements");
  CHECK(header_fault(one("[1,1,1,1,1,1,1,1,1]", "[0,4]")) ==
        "the header: \"w\": shape: 9 axes given, at most 8 wanted");
  CHECK(header_fault(one("[1]", "[4,0]")) == "\"w\" has offsets [4, 0] in 4 bytes of data");
  CHECK(header_fault(one("[2]", "[0,8]")) == "\"w\" has offsets [0, 8] in 4 bytes of data");
  CHECK(header_fault(one("[1]", "[0,4,4]")) == "the header: \"w\": data_offsets are not two numbers");
  CHECK(header_fault(one("[1]", "[0,-4]")) == "the header: \"w\": data_offsets holds -4");
  CHECK(header_fault(one("[1]", "[4,8]"), 8) == "\"w\" begins at byte 4 but the tensor before it ends at 0");
  std::string u = one("[1]", "[2,6]");
  u[2] = 'u';
  CHECK(header_fault("{" + inner + "," + u.substr(1), 8) ==
        "\"u\" begins at byte 2 but the tensor before it ends at 4");
  CHECK(header_fault(w, 5) == "the tensors end at byte 4 of 5 bytes of data");
}

TEST_CASE("a header of more than 100 MB is refused before it is read") {
  TempDir dir;
  write_file(dir / "f", file_of("", 0, 100'000'001));
  std::filesystem::resize_file(dir / "f", 100'000'009);  // a hole: takes no room on the disk
  CHECK_THROWS_WITH_AS(
      load_safetensors(dir / "f"),
      ("load_safetensors: " + (dir / "f") + ": a header of 100000001 bytes, at most 100000000 are read").c_str(),
      Error);
}

TEST_CASE("refusing a lying header allocates nothing") {
  TempDir dir;
  write_file(dir / "f", file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[1024],\"data_offsets\":[0,4096]},"
                                "\"w\":{\"dtype\":\"F32\",\"shape\":[1000000],\"data_offsets\":[4096,4100]}}",
                                4100));
  int64_t before = memory_stats(Device::cpu).requested;
  CHECK_THROWS_AS(load_safetensors(dir / "f"), Error);
  CHECK(memory_stats(Device::cpu).requested == before);
}

TEST_CASE("what is no file, and what cannot be saved, is an error") {
  TempDir dir;
  auto starts = [&](const std::string& path) { return "load_safetensors: " + path + ": "; };
  CHECK_THROWS_WITH_AS(load_safetensors(dir / "no"),
                       (starts(dir / "no") + "cannot open: No such file or directory").c_str(), Error);
  CHECK_THROWS_WITH_AS(load_safetensors(dir.path()), (starts(dir.path()) + "is a directory").c_str(), Error);
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(load_safetensors(dir / "pipe"), (starts(dir / "pipe") + "is not a regular file").c_str(), Error);
  StateDict state;
  state.set("__metadata__", Tensor::zeros({1}));
  CHECK_THROWS_WITH_AS(save_safetensors(dir / "f", state),
                       ("save_safetensors: " + (dir / "f") + ": a tensor cannot be named __metadata__").c_str(), Error);
  StateDict binary;
  binary.set("\xff", Tensor::zeros({1}));
  CHECK_THROWS_WITH_AS(save_safetensors(dir / "f", binary),
                       ("save_safetensors: " + (dir / "f") + ": a name or text is not UTF-8").c_str(), Error);
  CHECK(dir.names() == std::vector<std::string>{"pipe"});
}

TEST_CASE("thousands of damaged files load or are refused, and never crash") {
  TempDir dir;
  StateDict state;
  state.set("blocks.0.weight", Tensor::full({3, 5}, 0.5));
  state.set("mask", Tensor::zeros({7}, Dtype::u8));
  state.set("empty", Tensor::zeros({0, 4}));
  state.set("wide", Tensor::zeros({2}, Dtype::f64));
  state.set_text("step", "12");
  save_safetensors(dir / "f", state);
  const std::string whole = read_file(dir / "f");
  uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  const std::string tokens[] = {"{",
                                "}",
                                "[",
                                "]",
                                "\"",
                                ",",
                                ":",
                                "-1",
                                "99999999999999999999",
                                "1e3",
                                "null",
                                "0",
                                "18446744073709551615",
                                "9223372036854775807",
                                "\\u0000",
                                "I64",
                                "shape",
                                "\xc3"};
  Generator random{7, 0, 0};
  int refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::string bytes = whole;
    for (int64_t edits = 1 + random.below(3); edits > 0 && !bytes.empty(); --edits) {
      // Mostly in the header, where damage is most telling.
      size_t bound = random.below(4) ? std::min<size_t>(bytes.size(), 8 + header) : bytes.size();
      size_t at = static_cast<size_t>(random.below(static_cast<int64_t>(bound)));
      switch (random.below(6)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
          break;
        case 2:
          bytes.resize(at);
          break;
        case 3:
          bytes.erase(at, 1 + static_cast<size_t>(random.below(4)));
          break;
        case 4: {
          const std::string& token = tokens[random.below(std::ssize(tokens))];
          bytes.replace(at, static_cast<size_t>(random.below(2)), token);
          // The length keeps step, so that the damage reaches the parser.
          uint64_t length = header + token.size();
          if (bytes.size() >= 8) std::memcpy(bytes.data(), &length, 8);
          break;
        }
        case 5:
          bytes.insert(at, bytes.substr(at, 1 + static_cast<size_t>(random.below(40))));
          break;
      }
    }
    { std::ofstream(dir / "f", std::ios::binary) << bytes; }
    try {
      load_safetensors(dir / "f");
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 3000);
}
