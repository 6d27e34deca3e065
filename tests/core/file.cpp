#include "sdma/core/file.hpp"

#include "support/catch.hpp"
#include "support/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cstdio>
#include <thread>

using namespace sdma;
using test::content;
using test::Folder;

namespace {

using Kind = FileWriter::Kind;

mode_t mode(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 ? s.st_mode & 07777 : 0;
}

TEST_CASE("a file is there when it is closed, and nothing is beside it") {
  const Folder folder;
  const auto path = folder / "a";
  {
    FileWriter out{path};
    REQUIRE(out.write("one "));
    REQUIRE(out.write("two"));
    CHECK_FALSE(std::filesystem::exists(path));
    REQUIRE(out.close());
  }
  CHECK(content(path) == "one two");
  CHECK(folder.files() == 1);
  REQUIRE(save_file(path, "three"));
  CHECK(content(path) == "three");
  REQUIRE(save_file(path, ""));
  CHECK(content(path).empty());
  CHECK(folder.files() == 1);
}

TEST_CASE("what is not closed has never been there") {
  const Folder folder;
  const auto path = folder / "a";
  { REQUIRE(FileWriter{path}.write("lost")); }
  CHECK(folder.files() == 0);
  REQUIRE(save_file(path, "old"));
  { REQUIRE(FileWriter{path}.write("lost")); }
  { REQUIRE(FileWriter{path}.open()); }
  CHECK(content(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a disk that becomes full leaves the old file, and the new one stays lost") {
  const Folder folder;
  const auto path = folder / "a";
  REQUIRE(save_file(path, "old"));
  FileWriter out{path};
  REQUIRE(out.write("new"));
  {
    const test::FullAfter full{10};
    const auto r = out.write("which does not fit");
    REQUIRE_FALSE(r);
    CHECK(r.error().where == path);
    CHECK(r.error().message == "cannot be written: File too large");
  }
  CHECK_FALSE(out.write("!"));
  CHECK_FALSE(out.close());
  CHECK(content(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a writer that is closed writes no more") {
  const Folder folder;
  FileWriter out{folder / "a"};
  REQUIRE(out.close());
  CHECK_FALSE(out.write("x"));
  CHECK_FALSE(out.close());
  CHECK(content(folder / "a").empty());
}

TEST_CASE("what is replaced keeps its permissions, and a link stays a link") {
  const Folder folder;
  const auto path = folder / "a", link = folder / "link";
  const auto mask = ::umask(027);
  REQUIRE(save_file(path, "one"));
  ::umask(mask);
  CHECK(mode(path) == 0640);
  ::chmod(path.c_str(), 0604);
  std::filesystem::create_symlink(path, link);
  REQUIRE(save_file(link, "two"));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(content(path) == "two");
  CHECK(mode(path) == 0604);
}

TEST_CASE("what cannot be written is named") {
  const Folder folder;
  const auto nowhere = save_file(folder / "no/where", "");
  REQUIRE_FALSE(nowhere);
  CHECK(to_string(nowhere.error()) == (folder / "no/where") +
                                          ": error: cannot be written: No such file or directory\n"
                                          "  hint: create the folder first, or correct the path");
  const auto a_folder = save_file(folder.path.string(), "");
  REQUIRE_FALSE(a_folder);
  CHECK(a_folder.error().message == "cannot be written: Is a directory");
  CHECK_FALSE(FileWriter{folder / "no/where"}.open());
}

TEST_CASE("without rights, nothing is touched; without those of the folder, the file is written in place") {
  const Folder folder;
  const auto path = folder / "a";
  REQUIRE(save_file(path, "old"));
  ::chmod(folder.path.c_str(), 0777);
  ::chmod(path.c_str(), 0444);
  CHECK(test::elsewhere(
      [&] {
        const auto r = save_file(path, "new");
        return !r && r.error().message == "cannot be written: Permission denied";
      },
      true));
  CHECK(content(path) == "old");
  ::chmod(path.c_str(), 0666);
  ::chmod(folder.path.c_str(), 0555);
  CHECK(
      test::elsewhere([&] { return FileWriter{path}.open() && content(path) == "old" && save_file(path, "n"); }, true));
  CHECK(content(path) == "n");
  CHECK(test::elsewhere([&] { return !save_file(folder / "b", "x"); }, true));
  ::chmod(folder.path.c_str(), 0755);
  CHECK(folder.files() == 1);
}

TEST_CASE("a full device is an error") {
  if (::access("/dev/full", W_OK) != 0) return;
  for (const auto kind : {Kind::whole, Kind::live}) {
    const auto r = FileWriter{"/dev/full", kind}.write("x");
    REQUIRE_FALSE(r);
    CHECK(r.error().message == "cannot be written: No space left on device");
    CHECK(r.error().hint == "free some space, or write to another disk");
  }
  CHECK(test::elsewhere([] {
    ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
    const auto r = save_file("-", "x");
    return !r && r.error().where == "stdout";
  }));
}

TEST_CASE("a pipe gets bytes as they come, and may lose its reader") {
  const Folder folder;
  const auto path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] { got = content(path); });
  REQUIRE(save_file(path, "through"));
  reader.join();
  CHECK(got == "through");
  CHECK(std::filesystem::is_fifo(path));

  int ends[2]{};
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  CHECK(test::elsewhere([&] {
    ::signal(SIGPIPE, SIG_IGN);
    ::dup2(ends[1], STDOUT_FILENO);
    const auto r = save_file("-", "x");
    return !r && reader_gone(r.error());
  }));
  ::close(ends[1]);
}

TEST_CASE("standard output goes on where it is, under either name") {
  const Folder folder;
  const auto path = folder / "out";
  for (const auto* name : {"-", "/dev/stdout"}) {
    CHECK(test::elsewhere([&] {
      ::dup2(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
      return std::fputs("a", stdout) >= 0 && save_file(name, "b") && ::write(STDOUT_FILENO, "c", 1) == 1;
    }));
    CHECK(content(path) == "abc");
  }
  CHECK(folder.files() == 1);
}

TEST_CASE("a live file is seen at once, and a write that fails is taken back") {
  const Folder folder;
  const auto path = folder / "a";
  REQUIRE(save_file(path, "old"));
  FileWriter out{path, Kind::live};
  REQUIRE(out.open());
  CHECK(content(path).empty());
  REQUIRE(out.write("one\n"));
  CHECK(content(path) == "one\n");
  {
    const test::FullAfter full{6};
    const auto r = out.write("two\n");
    REQUIRE_FALSE(r);
    CHECK(r.error().where == path);
  }
  CHECK(content(path) == "one\n");
  REQUIRE(out.write("three\n"));
  REQUIRE(out.close());
  CHECK(content(path) == "one\nthree\n");
}

}  // namespace
