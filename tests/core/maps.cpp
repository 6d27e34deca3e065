// SPDX-License-Identifier: MIT
#include "../../lib/core/maps.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "../../lib/core/descriptor.hpp"
#include "support/catch.hpp"

using namespace sdma::detail;

namespace {

const std::string kLine = "7f5c00000000-7f5c00021000 rw-s 00001000 fe:01 7340041                    ";

/// The paths of a file with this text, and the rest of each line by its beginning.
std::vector<std::string> paths_in(const std::string& text, std::size_t most = ~std::size_t{0}) {
  const Descriptor file(memfd_create("maps", MFD_CLOEXEC));
  REQUIRE(write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  lseek(file.get(), 0, SEEK_SET);
  std::vector<std::string> out;
  each_mapping(file.get(), [&](const MapsLine& m) {
    CHECK(m.from == 0x7f5c00000000);
    out.emplace_back(m.path);
    return out.size() < most;
  });
  return out;
}

}  // namespace

TEST_CASE("a line of maps is taken apart, with its path as the kernel writes it") {
  for (const std::string path : {"/srv/a", "/srv/a file  with blanks", "/memfd:sdma-kfd (deleted)", "/a\\012b",
                                 "[heap]", "[anon: a name]", "[stack]", ""}) {
    const auto line = kLine + path;
    const auto m = maps_line(line);
    REQUIRE(m);
    CHECK(m->from == 0x7f5c00000000);
    CHECK(m->to == 0x7f5c00021000);
    CHECK(m->offset == 0x1000);
    CHECK(m->device == "fe:01");
    CHECK(m->inode == 7340041);
    CHECK(m->path == path);
    CHECK((m->readable() && m->writable() && !m->executable() && m->shared()));
  }
}

TEST_CASE("pages of no file have no inode, and need no blanks after it") {
  const auto m = maps_line("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0");
  REQUIRE(m);
  CHECK(m->to == 0xffffffffff601000);
  CHECK(m->inode == 0);
  CHECK(m->path.empty());
  CHECK((!m->readable() && !m->writable() && m->executable() && !m->shared()));
}

TEST_CASE("what is not a whole line of maps is no mapping") {
  const std::string whole = "7f5c00000000-7f5c00021000 rw-s 00001000 fe:01 7340041";
  for (std::size_t n = 0; n < whole.rfind(' ') + 2; ++n) CHECK_FALSE(maps_line(whole.substr(0, n)));
  for (const auto* line : {"7f5c00000000 7f5c00021000 rw-s 00001000 fe:01 1", "-7f5c00021000 rw-s 00001000 fe:01 1",
                           "1-2 rw 00001000 fe:01 1", "1-2 rw-s 0x1000 fe:01 1", "1-2 rw-s 1000 fe:01 0x1", "a file"})
    CHECK_FALSE(maps_line(line));
}

TEST_CASE("a file of maps is read line by line, until the caller has seen enough") {
  const auto text = kLine + "/a\n" + kLine + "\n" + kLine + "/b c\n";
  CHECK(paths_in(text) == std::vector<std::string>{"/a", "", "/b c"});
  CHECK(paths_in(text, 2) == std::vector<std::string>{"/a", ""});
  CHECK(paths_in("").empty());
}

TEST_CASE("a last line without its end is left out, because its path may go on") {
  CHECK(paths_in(kLine + "/a\n" + kLine + "/b") == std::vector<std::string>{"/a"});
}

TEST_CASE("a path of any length neither ends the reading nor looks like another line") {
  for (const std::size_t n : {300, 4000, 4095, 4200, 5000, 20000}) {
    // What would be read as a line, if the reader began anew inside the path.
    std::string path = "/";
    while (path.size() < n) path += " 1-2 rw-s 00001000 fe:01 1 ";
    const auto all = paths_in(kLine + "/a\n" + kLine + path + "\n" + kLine + "/b\n");
    REQUIRE(all.size() == 3);
    CHECK(all[0] == "/a");
    CHECK(path.starts_with(all[1]));
    CHECK(all[1].size() >= std::min<std::size_t>(path.size(), 4096));
    CHECK(all[2] == "/b");
  }
}

TEST_CASE("the maps of this process have its stack") {
  const Descriptor maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  const auto here = static_cast<std::uint64_t>(getauxval(AT_RANDOM));  // the kernel put it there
  std::string name;
  each_mapping(maps.get(), [&](const MapsLine& m) {
    if (here >= m.from && here < m.to) name = m.path;
    return name.empty();
  });
  CHECK(name == "[stack]");
}
