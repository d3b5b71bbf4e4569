#include "linnet/core/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "linnet/core/error.h"
#include "support/temp_dir.h"
#include "support/vectors.h"

using namespace linnet;
using test_support::read_file;
using test_support::TempDir;
namespace fs = std::filesystem;

namespace {

/// Runs body in a child; its exit status.
int in_child(const std::function<int()>& body) {
  pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an atomic file appears whole, replaces the old one and leaves nothing else") {
  TempDir dir;
  write_file(dir / "a.txt", "old");
  CHECK(read_file(dir / "a.txt") == "old");
  {
    AtomicFile file("test", dir / "a.txt");
    file.write("half", 4);
    CHECK(read_file(dir / "a.txt") == "old");
    CHECK(dir.names().size() == 2);
  }
  CHECK(read_file(dir / "a.txt") == "old");
  CHECK(dir.names() == std::vector<std::string>{"a.txt"});
  write_file(dir / "a.txt", "new");
  CHECK(read_file(dir / "a.txt") == "new");
  CHECK(dir.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("two writers of one target do not disturb each other: the last to commit wins") {
  TempDir dir;
  AtomicFile one("test", dir / "a"), two("test", dir / "a");
  one.write("one", 3);
  two.write("two", 3);
  one.commit();
  CHECK(read_file(dir / "a") == "one");
  two.commit();
  CHECK(read_file(dir / "a") == "two");
  CHECK(dir.names() == std::vector<std::string>{"a"});
}

TEST_CASE("a temporary file of a dead writer goes; a living one's and everything else stays") {
  TempDir dir;
  for (const char* name :
       {"a.tmp-123-0", "a.tmp-1-77", "a.tmp-notes", "a.tmp-1", "a.tmp--", "a.tmp-1-2x", "b.tmp-123-0"})
    write_file(dir / name, "x");
  fs::create_directory(dir / "a.tmp-5-5");
  int living = open((dir / "a.tmp-1-77").c_str(), O_WRONLY);
  REQUIRE(flock(living, LOCK_EX) == 0);
  write_file(dir / "a", "y");
  close(living);
  CHECK(dir.names() == std::vector<std::string>{"a", "a.tmp--", "a.tmp-1", "a.tmp-1-2x", "a.tmp-1-77", "a.tmp-5-5",
                                                "a.tmp-notes", "b.tmp-123-0"});
}

TEST_CASE("a symbolic link is followed, permissions stay, and a relative path works") {
  TempDir dir;
  fs::create_directory(dir / "real");
  write_file(dir / "real/file", "old");
  fs::permissions(dir / "real/file", fs::perms(0640));
  fs::create_symlink("real/file", dir / "link");
  fs::create_symlink("link", dir / "link2");
  fs::create_symlink("real/fresh", dir / "dangling");
  write_file(dir / "link2", "new");
  CHECK(fs::is_symlink(dir / "link"));
  CHECK(fs::is_symlink(dir / "link2"));
  CHECK(read_file(dir / "real/file") == "new");
  CHECK((fs::status(dir / "real/file").permissions() & fs::perms::mask) == fs::perms(0640));
  write_file(dir / "dangling", "fresh");
  CHECK(read_file(dir / "real/fresh") == "fresh");
  CHECK(in_child([&] {
          fs::current_path(dir.path());
          write_file("here", "relative");
          return 0;
        }) == 0);
  CHECK(read_file(dir / "here") == "relative");
}

TEST_CASE("what cannot be written is an error that names path and reason") {
  TempDir dir;
  CHECK(message_of([&] { write_file(dir / "no/such/file", "x"); }) ==
        "write_file: " + (dir / "no/such/file") + ": cannot write: No such file or directory");
  CHECK(message_of([&] { write_file(dir.path(), "x"); }) == "write_file: " + dir.path().native() + ": is a directory");
  CHECK(message_of([&] { write_file("/dev/full", "x"); }) == "write_file: /dev/full: is not a regular file");
  CHECK(message_of([&] { write_file("", "x"); }) == "write_file: \"\" names no file");
  fs::create_symlink("loop", dir / "loop");
  CHECK(message_of([&] { write_file(dir / "loop", "x"); }) ==
        "write_file: " + (dir / "loop") + ": too many symbolic links");
}

TEST_CASE("where the system takes no more bytes, the old file stays and no temporary one") {
  TempDir dir;
  write_file(dir / "a", "old");
  SUBCASE("a limit on the size of files") {
    CHECK(in_child([&] {
            std::signal(SIGXFSZ, SIG_IGN);
            rlimit limit = {1000, 1000};
            if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
            std::string message = message_of([&] { write_file(dir / "a", std::string(5000, 'x')); });
            return message == "write_file: " + (dir / "a") + ": cannot write: File too large" ? 0 : 2;
          }) == 0);
  }
  SUBCASE("a full disk") {
    int status = in_child([&] {  // a disk of 64 KiB that only the child sees
      if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return 77;
      if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
      fs::create_directory(dir / "disk");
      if (mount("tmpfs", (dir / "disk").c_str(), "tmpfs", 0, "size=64k") != 0) return 77;
      write_file(dir / "disk/a", "old");
      std::string message = message_of([&] { write_file(dir / "disk/a", std::string(200000, 'x')); });
      if (message != "write_file: " + (dir / "disk/a") + ": cannot write: No space left on device") return 2;
      if (read_file(dir / "disk/a") != "old") return 3;
      return std::distance(fs::directory_iterator(dir / "disk"), fs::directory_iterator()) == 1 ? 0 : 4;
    });
    if (status == 77)
      MESSAGE("the case of a full disk skipped: no right to mount one");
    else
      CHECK(status == 0);
    std::error_code fault;
    fs::remove(dir / "disk", fault);
  }
  CHECK(read_file(dir / "a") == "old");
  CHECK(dir.names() == std::vector<std::string>{"a"});
}
