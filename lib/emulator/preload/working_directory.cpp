// SPDX-License-Identifier: MIT
// Interposes chdir and getcwd, with their variants.
#include "working_directory.hpp"

#include "../no_memory.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "paths.hpp"

#include <fmt/format.h>

#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sdma::emulator {
namespace {

constexpr std::string_view kMark = "/sdma-cwd-", kGone = " (deleted)";

/// The kernel's answer; "" if the directory was removed.
std::string kernels_directory() {
  char room[PATH_MAX];
  const auto n = ::syscall(SYS_getcwd, room, sizeof room);
  return n > 0 ? std::string(room) : std::string();
}

/// The path in the tree that the name of a removed directory contains; "" for any other directory.
std::string marked() {
  char room[PATH_MAX];
  const auto n = SDMA_REAL(readlink)("/proc/self/cwd", room, sizeof room);
  const std::string_view target(room, n > 0 ? static_cast<std::size_t>(n) : 0);
  const auto mark = target.find(kMark);
  const auto begin = mark == target.npos ? mark : target.find(':', mark);
  if (begin == target.npos || !target.ends_with(kGone)) return {};
  std::string path(target.substr(begin + 1, target.size() - kGone.size() - begin - 1));
  std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

bool near_the_tree(std::string_view path) {
  return path == "/" || path.starts_with("/sys") || path.starts_with("/dev") || path.starts_with("/proc");
}

/// Whether relative paths can lead into the tree. Once true, it stays so: a child of vfork shares it with its parent.
enum class Relative : std::uint8_t { unknown, never, perhaps };
std::atomic<Relative> relative{Relative::unknown};

bool perhaps() {
  auto now = relative.load(std::memory_order_relaxed);
  if (now == Relative::unknown) {
    const auto path = kernels_directory();
    now = path.empty() || near_the_tree(path) ? Relative::perhaps : Relative::never;
    relative.store(now, std::memory_order_relaxed);
  }
  return now == Relative::perhaps;
}

}  // namespace

void note_working_directory() noexcept {
  if (relative.load(std::memory_order_relaxed) != Relative::perhaps)
    relative.store(Relative::unknown, std::memory_order_relaxed);
}

WorkingDirectory working_directory(bool climbs) {
  const int before = errno;
  WorkingDirectory d;
  if (perhaps() || climbs) {
    d.path = kernels_directory();
    if (d.path.empty()) {
      d.path = marked();
      d.in_tree = !d.path.empty();
    } else if (!climbs && !near_the_tree(d.path)) {
      d.path.clear();
    }
  }
  errno = before;
  return d;
}

int enter(const std::string& path) {
  auto name = path;
  std::replace(name.begin(), name.end(), '/', '\\');
  constexpr int kTries = 16;  // another thread may use the same name
  for (const auto* folder : {"/dev/shm", "/tmp", "/var/tmp", "/run"})
    for (int i = 0; i < kTries; ++i) {
      const auto made = fmt::format("{}{}{}-{}:{}", folder, kMark, ::getpid(), i, name);
      if (::mkdir(made.c_str(), 0700) != 0) {
        if (errno == EEXIST) continue;
        break;
      }
      relative.store(Relative::perhaps, std::memory_order_relaxed);
      const int r = SDMA_REAL(chdir)(made.c_str());
      const int error = errno;
      ::rmdir(made.c_str());
      errno = error;
      return r;
    }
  return -1;
}

}  // namespace sdma::emulator

using namespace sdma::emulator;

namespace {

int enter_entry(const Found& found) {
  if (found.entry->kind != Kind::directory) return errno = ENOTDIR, -1;
  return enter(found.path);
}

/// Stores a working directory of the tree as getcwd does; `real` is the C library's function.
template <class Real> char* stored(char* to, std::size_t bytes, Real real) {
  return guarded<char*>(nullptr, [&]() -> char* {
    const auto d = working_directory();
    if (!d.in_tree) return real();
    const auto needed = d.path.size() + 1;
    if (to && bytes == 0) return errno = EINVAL, nullptr;
    if (bytes != 0 && bytes < needed) return errno = ERANGE, nullptr;
    auto* at = to ? to : static_cast<char*>(std::malloc(std::max(bytes, needed)));
    if (!at) return errno = ENOMEM, nullptr;
    return static_cast<char*>(std::memcpy(at, d.path.c_str(), needed));
  });
}

}  // namespace

SDMA_FRONT int chdir(const char* path) noexcept {
  return guarded(-1, [&] {
    const auto found = find_entry(AT_FDCWD, path);
    if (found.entry) return enter_entry(found);
    const int r = SDMA_REAL(chdir)(found.name(path));
    if (r == 0) note_working_directory();
    return r;
  });
}
SDMA_FRONT int fchdir(int fd) noexcept {
  return guarded(-1, [&] {
    if (const auto path = directory_path(fd); !path.empty()) return enter(path);
    const int r = SDMA_REAL(fchdir)(fd);
    if (r == 0) note_working_directory();
    return r;
  });
}

// The third is the function that programs compiled with _FORTIFY_SOURCE call.
extern "C" char* __getcwd_chk(char*, std::size_t, std::size_t);
SDMA_FRONT char* getcwd(char* to, std::size_t bytes) noexcept {
  return stored(to, bytes, [&] { return SDMA_REAL(getcwd)(to, bytes); });
}
SDMA_FRONT char* __getcwd_chk(char* to, std::size_t bytes, std::size_t room) {
  return stored(to, bytes, [&] { return SDMA_REAL(__getcwd_chk)(to, bytes, room); });
}
SDMA_FRONT char* get_current_dir_name() noexcept {
  return stored(nullptr, 0, [&] { return SDMA_REAL(get_current_dir_name)(); });
}
