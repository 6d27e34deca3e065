// SPDX-License-Identifier: MIT
#include "sdma/core/file.hpp"

#include "support/catch.hpp"
#include "support/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <cstdio>
#include <thread>
#include <tuple>

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

TEST_CASE("a replaced file keeps no set-uid, set-gid or sticky bit") {
  const Folder folder;
  const auto path = folder / "a";
  REQUIRE(save_file(path, "old"));
  REQUIRE(::chmod(path.c_str(), 07751) == 0);
  REQUIRE(save_file(path, "new"));
  CHECK(content(path) == "new");
  CHECK(mode(path) == 0751);
}

TEST_CASE("a file of another user is written in place: its owner stays, and nothing is owned by the writer") {
  if (::geteuid() != 0) return;
  const Folder folder;
  ::chmod(folder.path.c_str(), 0777);
  const auto path = folder / "a";
  const auto inode = [&] {
    struct stat s {};
    REQUIRE(::stat(path.c_str(), &s) == 0);
    return std::tuple{s.st_ino, s.st_uid};
  };
  // The user is another one for root, and root is another one for the user.
  constexpr uid_t kNobody = 65534;
  for (const auto& [owner, as_nobody] : {std::pair{kNobody, false}, std::pair{uid_t{0}, true}}) {
    REQUIRE(save_file(path, "old and longer"));
    REQUIRE(::chown(path.c_str(), owner, 0) == 0);
    REQUIRE(::chmod(path.c_str(), 04777) == 0);
    const auto before = inode();
    CHECK(test::elsewhere(
        [&] {
          FileWriter out{path};
          return out.write("new") && out.in_place() && out.close();
        },
        as_nobody));
    CHECK(inode() == before);
    CHECK(content(path) == "new");
    CHECK(folder.files() == 1);
    REQUIRE(::unlink(path.c_str()) == 0);
  }
}

TEST_CASE("a file with an access list is written in place, because its mode does not say who may read it") {
  const Folder folder;
  const auto path = folder / "a";
  REQUIRE(save_file(path, "old"));
  struct Entry {
    std::uint16_t tag, rights;
    std::uint32_t id;
  };
  // user:nobody:rw, mask:rw. The mode's group bits then show the mask, not what the group may do.
  struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{1, 6, ~0u}, {2, 6, 65534}, {4, 0, ~0u}, {16, 6, ~0u}, {32, 0, ~0u}};
  } list;
  if (::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0) return;
  FileWriter out{path};
  REQUIRE(out.write("new"));
  CHECK(out.in_place());
  REQUIRE(out.close());
  CHECK(content(path) == "new");
  CHECK(::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0);
}

TEST_CASE("a link without a target stays a link, and its target is created") {
  const Folder folder;
  const auto link = folder / "link", target = folder / "target";
  std::filesystem::create_symlink(target, link);
  REQUIRE(save_file(link, "through"));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(content(target) == "through");
  CHECK(folder.files() == 2);
  std::filesystem::remove(link);
  std::filesystem::create_symlink(folder / "no/target", link);
  CHECK_FALSE(save_file(link, "lost"));
  CHECK(std::filesystem::is_symlink(link));
}

TEST_CASE("what another user has put in the place of a new file is not touched") {
  if (::geteuid() != 0) return;
  const Folder folder;
  const auto path = folder / "a", theirs = folder / "theirs";
  REQUIRE(save_file(theirs, "theirs"));
  FileWriter linked{path};
  REQUIRE(linked.write("mine"));
  std::filesystem::create_symlink(theirs, path);
  CHECK_FALSE(linked.close());
  CHECK(content(theirs) == "theirs");
  std::filesystem::remove(path);

  FileWriter owned{path};
  REQUIRE(owned.write("mine"));
  REQUIRE(save_file(path, "theirs"));
  REQUIRE(::chown(path.c_str(), 65534, 0) == 0);
  const auto r = owned.close();
  REQUIRE_FALSE(r);
  CHECK(r.error().message == "cannot be written: File exists");
  CHECK(content(path) == "theirs");

  // A file of this user: the last writer wins.
  REQUIRE(::chown(path.c_str(), 0, 0) == 0);
  std::filesystem::remove(path);
  FileWriter last{path};
  REQUIRE(last.write("last"));
  REQUIRE(save_file(path, "first"));
  REQUIRE(last.close());
  CHECK(content(path) == "last");
}

TEST_CASE("an error in a file that is written in place says that the old contents are lost") {
  if (::geteuid() != 0) return;
  const Folder folder;
  const auto path = folder / "a";
  REQUIRE(save_file(path, "old"));
  REQUIRE(::chown(path.c_str(), 65534, 0) == 0);
  const test::FullAfter full{10};
  const auto r = save_file(path, "which does not fit");
  REQUIRE_FALSE(r);
  CHECK(r.error().hint == "the old contents are lost: this file can only be written in place");
}

TEST_CASE("a fresh file has a name that nothing had") {
  const Folder folder;
  const auto path = folder / "a";
  std::filesystem::create_symlink(folder / "elsewhere", folder / "a-1");
  REQUIRE(save_file(path, "old"));
  const auto made = create_fresh(path);
  REQUIRE(made);
  CHECK(made->path == path + "-2");
  CHECK(::lseek(made->fd, 0, SEEK_END) == 0);
  ::close(made->fd);
  CHECK(content(path) == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "elsewhere"));
  const auto nowhere = create_fresh(folder / "no/where");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message == "cannot be created: No such file or directory");
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
    return !r && to_string(r.error()).starts_with("error: cannot write to stdout: ");
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
