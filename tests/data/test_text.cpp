#include "linnet/data/text.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "linnet/core/atomic_file.h"
#include "linnet/core/error.h"
#include "support/real_data.h"
#include "support/temp_dir.h"
#include "support/vectors.h"

using namespace linnet;
using namespace linnet::data;
using test_support::TempDir;
using Strings = std::vector<std::string>;

namespace {

void write_gz(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(file);
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

}  // namespace

TEST_CASE("lines: LF, CRLF, empty ones, a missing last newline, a byte order mark; plain and packed") {
  TempDir dir;
  const std::pair<std::string, Strings> cases[] = {
      {"", {}},
      {"\n", {""}},
      {"a", {"a"}},
      {"a\nb\n", {"a", "b"}},
      {"a\r\n\r\n\r\nb", {"a", "", "", "b"}},
      {"\n\na\n\n", {"", "", "a", ""}},
      {"a\rb\n", {"a\rb"}},
      {"\xEF\xBB\xBF\u00e4\n\u20ac", {"\u00e4", "\u20ac"}},
      {std::string(200000, 'x') + "\n" + std::string(65535, 'y'), {std::string(200000, 'x'), std::string(65535, 'y')}},
  };
  for (const auto& [text, lines] : cases) {
    write_file(dir / "a.txt", text);
    CHECK(read_lines(dir / "a.txt") == lines);
    write_gz(dir / "a.gz", text);
    CHECK(read_lines(dir / "a.gz") == lines);
  }
}

TEST_CASE("a text file that is not one is an error that names the place") {
  TempDir dir;
  const auto fault = [&](const std::string& name, const TextLimits& limits = {}) {
    try {
      read_lines(dir / name, limits);
    } catch (const Error& error) {
      const std::string start = "read_lines: " + (dir / name) + ": ", message = error.what();
      return message.starts_with(start) ? message.substr(start.size()) : message;
    }
    return std::string();
  };
  write_file(dir / "bad", "good\nab\u00e4\xFFz\n");
  CHECK(fault("bad") == "line 2 is not UTF-8 at byte 5");
  write_file(dir / "cut", "\u00e4\n\xC3");
  CHECK(fault("cut") == "line 2 is not UTF-8 at byte 1");
  CHECK(fault("none") == "cannot open: No such file or directory");
  std::filesystem::create_directory(dir / "folder");
  std::filesystem::create_directory(dir / "folder.gz");
  CHECK(fault("folder") == "is a directory");
  CHECK(fault("folder.gz") == "is a directory");
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(fault("pipe") == "is not a regular file");
  write_file(dir / "six", "abc\nd\n");
  CHECK(fault("six", {.file_bytes = 5}) == "has more than 5 bytes, the limit");
  CHECK(fault("six", {.file_bytes = 6, .line_bytes = 3}) == "");
  CHECK(fault("six", {.line_bytes = 2}) == "line 1 has more than 2 bytes, the limit");
  CHECK(fault("six", {.line_bytes = -1}) == "limits of 4294967296 and -1 bytes given, 0 or more wanted");

  write_file(dir / "plain.gz", "no gzip\n");
  CHECK(fault("plain.gz") == "is not a gzip file, though its name ends with .gz");
  write_gz(dir / "bomb.gz", std::string(3000000, '\n'));
  CHECK(fault("bomb.gz", {.file_bytes = 1000000}) == "has more than 1000000 bytes, the limit");
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i * 7919 % 30011) + "\n";
  write_gz(dir / "good.gz", text);
  const std::string packed = test_support::read_file(dir / "good.gz");
  for (size_t size : {packed.size() - 1, packed.size() - 8, packed.size() / 2, size_t(12), size_t(3)}) {
    write_file(dir / "short.gz", packed.substr(0, size));
    INFO(size);
    CHECK(fault("short.gz") != "");
  }
  write_file(dir / "short.gz", packed.substr(0, packed.size() / 2));
  CHECK(fault("short.gz") == "cannot unpack: the file is cut off");
  for (size_t at : {packed.size() / 2, packed.size() - 5}) {  // data; checksum
    std::string changed = packed;
    changed[at] ^= 0x10;
    write_file(dir / "changed.gz", changed);
    CHECK(fault("changed.gz").starts_with("cannot unpack: "));
  }
}

TEST_CASE("parallel files have the same number of lines") {
  TempDir dir;
  write_file(dir / "a", "1\n2\n");
  write_file(dir / "b", "one\n\n");
  write_file(dir / "c", "1\n2\n3");
  CHECK(read_parallel({dir / "a", dir / "b"}) == std::vector<Strings>{{"1", "2"}, {"one", ""}});
  CHECK(read_parallel({}).empty());
  CHECK_THROWS_WITH_AS(read_parallel({dir / "a", dir / "b", dir / "c"}),
                       ("read_parallel: " + (dir / "a") + " has 2 lines but " + (dir / "c") + " has 3").c_str(), Error);
}

TEST_CASE("Multi30k: 29000 pairs of sentences") {
  const auto en = test_support::real_data_or_say("translation/train.en.gz");
  const auto de = test_support::real_data_or_say("translation/train.de.gz");
  if (!en || !de) return;
  const auto texts = read_parallel({*en, *de});
  CHECK(texts[0].size() == 29000);
  CHECK(texts[0][0] == "Two young, White males are outside near many bushes.");
  CHECK(texts[1][0] == "Zwei junge wei\u00dfe M\u00e4nner sind im Freien in der N\u00e4he vieler B\u00fcsche.");
}
