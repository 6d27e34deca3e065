// SPDX-License-Identifier: MIT
// What LD_PRELOAD names instead of a path that it cannot contain.
#include "preload.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

/// A folder as /tmp is, and a library in a folder whose name has a blank.
struct Machine {
  test::Folder folder{};
  std::string shared = folder / "tmp", own = shared + "/sdma-" + std::to_string(::geteuid());
  fs::path library = folder / "a b/lib.so";
  Machine() {
    fs::create_directories(library.parent_path());
    fs::create_directory(shared);
    REQUIRE(::chmod(shared.c_str(), 01777) == 0);
    std::ofstream(library) << "library";
  }
  Result<std::string, Diagnostic> name() const { return preload_name(library, {shared}); }
  std::string refusal() const {
    const auto n = name();
    return n ? "a name: " + *n : n.error().message;
  }
};

bool says(const std::string& message, const std::string& why) { return message.find(why) != message.npos; }

}  // namespace

TEST_CASE("a library is named by its path, or by a link to its folder that each run finds again") {
  const Machine m;
  const auto plain = preload_name("/a/b/lib.so", {m.shared});
  REQUIRE(plain);
  CHECK(*plain == "/a/b/lib.so");
  CHECK(fs::is_empty(m.shared));

  const auto mask = ::umask(077);
  const auto first = m.name(), second = m.name();
  ::umask(mask);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first == *second);
  CHECK(first->starts_with(m.own + "/"));
  CHECK(first->substr(m.own.size()).find_first_of(" :$") == std::string::npos);
  CHECK(test::content(*first) == "library");
  struct stat st {};
  REQUIRE(::stat(m.own.c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0755);  // a descendant may become another user

  for (const auto* special : {"c:d", "c$LIB", "c d"}) {
    CAPTURE(special);
    const auto library = m.library.parent_path() / special / "lib.so";
    fs::create_directory(library.parent_path());
    std::ofstream(library) << special;
    const auto n = preload_name(library, {m.shared});
    REQUIRE(n);
    CHECK(test::content(*n) == special);
  }
  CHECK(std::distance(fs::directory_iterator(m.own), {}) == 4);
}

TEST_CASE("what another user has put in the place of the link is not used") {
  const Machine m;
  SECTION("a link instead of the folder") {
    fs::create_directory(m.folder / "trap");
    fs::create_directory_symlink(m.folder / "trap", m.own);
    CHECK(says(m.refusal(), m.own + ": Not a directory"));
    CHECK(fs::is_empty(m.folder / "trap"));
  }
  SECTION("a file") {
    std::ofstream(m.own) << "";
    CHECK(says(m.refusal(), m.own + ": Not a directory"));
  }
  SECTION("a link to another library") {
    const auto n = m.name();
    REQUIRE(n);
    const auto link = fs::path(*n).parent_path();
    fs::remove(link);
    fs::create_directory_symlink("/", link);
    CHECK(says(m.refusal(), link.string() + " is not a link to it"));
  }
  SECTION("the folder of another user, as only root can make it") {
    if (::geteuid() != 0) return;
    fs::create_directory(m.own);
    REQUIRE(::chown(m.own.c_str(), 65534, 65534) == 0);
    CHECK(says(m.refusal(), m.own + " belongs to another user"));
  }
  SECTION("a folder in which others may rename what they do not own") {
    REQUIRE(::chmod(m.shared.c_str(), 0777) == 0);
    CHECK(says(m.refusal(), "any user may rename what is in " + m.shared));
  }
}

TEST_CASE("where the first folder cannot have a link, the second does; without both, the reasons are said") {
  const Machine m;
  const auto missing = m.folder / "none";
  const auto n = preload_name(m.library, {missing, m.shared});
  REQUIRE(n);
  CHECK(n->starts_with(m.own + "/"));
  const auto none = preload_name(m.library, {missing, missing});
  REQUIRE_FALSE(none);
  CHECK(says(none.error().message, "cannot be preloaded: LD_PRELOAD cannot contain the ' ' of its path"));
  CHECK(says(none.error().message, missing + ": No such file or directory; " + missing));
}

}  // namespace sdma::tool
