// SPDX-License-Identifier: MIT
#pragma once
// A temporary folder, and what tests of files need in it.
//
//   const test::Folder folder;
//   save(text, folder / "a");   CHECK(test::content(folder / "a") == text);   CHECK(folder.files() == 1);
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "end_child.hpp"

namespace test {

struct Folder {
  std::filesystem::path path;
  Folder() {
    auto name = (std::filesystem::temp_directory_path() / "sdma-test-XXXXXX").string();
    if (::mkdtemp(name.data())) path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  auto files() const { return std::distance(std::filesystem::directory_iterator(path), {}); }
};

inline std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Simulates a full disk: while this object exists, no file of the process can grow beyond `bytes`.
class FullAfter {
 public:
  explicit FullAfter(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  FullAfter(const FullAfter&) = delete;
  FullAfter& operator=(const FullAfter&) = delete;
  ~FullAfter() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

/// Runs `f` in a child process, on request without the rights of root, and returns its result.
template <class F> bool elsewhere(F f, bool as_nobody = false) {
  std::fflush(nullptr);  // otherwise the child prints the buffered text again
  const auto child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (as_nobody && ::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    end_child([&] { return f() ? 0 : 1; });
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace test
