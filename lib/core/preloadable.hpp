// SPDX-License-Identifier: MIT
#pragma once
// Why the loader would not load a library that LD_PRELOAD names into a program: what the file says, and who starts it.
//
//   const auto why = why_not_preloaded("./tool");
//   if (why.barrier != Barrier::none) say("'./tool' {}", text_of(why.barrier));
//
//   #! script   its interpreter decides, at most five deep, as in the kernel
//   privileges  the loader ignores LD_PRELOAD if the program gets another user, another group, or capabilities that
//               this process does not have. It does not get them from a file system without set-user-id, or after
//               no_new_privs
//
// A file that cannot be read has no barrier that is known. Allocates nothing, and calls only `Files` and the kernel, so
// it may run between vfork and exec. Internal.
#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {

enum class Barrier : std::uint8_t { none, privileges, capabilities, narrow, loaderless };

/// How a sentence about the program goes on: "is linked statically". "": nothing is in the way.
constexpr const char* text_of(Barrier b) noexcept {
  switch (b) {
    case Barrier::privileges: return "runs with the privileges of its owner";
    case Barrier::capabilities: return "has privileges of its own (capabilities)";
    case Barrier::narrow: return "is not a 64-bit program";
    case Barrier::loaderless: return "is linked statically";
    case Barrier::none: break;
  }
  return "";
}

/// The C library's functions; the software node, which interposes them, passes those that it has replaced.
struct Files {
  int (*open)(const char*, int, ...) = ::open;
  int (*fstat)(int, struct stat*) = ::fstat;
  ssize_t (*pread)(int, void*, std::size_t, off_t) = ::pread;
};

struct WhyNot {
  Barrier barrier{};
  std::array<char, 256> interpreter{};  ///< of a script: whose barrier it is; "": the program's own
};

namespace preloadable {

inline bool gains_privileges(const struct stat& s) noexcept {
  const auto user = (s.st_mode & S_ISUID) != 0 ? s.st_uid : ::geteuid();
  const bool group = (s.st_mode & S_ISGID) != 0 && (s.st_mode & S_IXGRP) != 0;
  return user != ::getuid() || (group ? s.st_gid : ::getegid()) != ::getgid();
}

/// Of a file that begins with `head`. `s`: of the file.
inline Barrier of_file(int fd, const struct stat& s, const std::array<char, 256>& head, const Files& files) noexcept {
  struct statfs system {};
  const bool gives = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 &&
                     (::fstatfs(fd, &system) != 0 || (system.f_flags & ST_NOSUID) == 0);
  if (gives && gains_privileges(s)) return Barrier::privileges;
  if (gives && ::getuid() != 0 && ::fgetxattr(fd, "security.capability", nullptr, 0) > 0) return Barrier::capabilities;
  Elf64_Ehdr h{};
  std::memcpy(&h, head.data(), sizeof h);
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return Barrier::none;
  if (h.e_ident[EI_CLASS] != ELFCLASS64) return Barrier::narrow;
  for (std::uint16_t i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr p{};
    const auto at = static_cast<off_t>(h.e_phoff + std::uint64_t{i} * h.e_phentsize);
    if (files.pread(fd, &p, sizeof p, at) != sizeof p || p.p_type == PT_INTERP) return Barrier::none;
  }
  return Barrier::loaderless;
}

/// The word after `#!`, and a zero.
inline void cut_interpreter(std::array<char, 256>& head) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  head.back() = '\0';
  auto* const begin = std::find_if_not(head.data() + 2, head.data() + head.size() - 1, blank);
  auto* const end =
      std::find_if(begin, head.data() + head.size() - 1, [&](char c) { return c == '\0' || c == '\n' || blank(c); });
  const auto n = end - begin;
  std::memmove(head.data(), begin, static_cast<std::size_t>(n));
  head[static_cast<std::size_t>(n)] = '\0';
}

}  // namespace preloadable

/// Of a program that exists and can be executed.
inline WhyNot why_not_preloaded(const char* program, const Files& files = {}) noexcept {
  constexpr int kInterpreters = 5;
  WhyNot why;
  for (int depth = 0; depth <= kInterpreters; ++depth) {
    const int fd = files.open(depth == 0 ? program : why.interpreter.data(), O_RDONLY | O_CLOEXEC);
    std::array<char, 256> head{};
    struct stat s {};
    const bool readable =
        fd >= 0 && files.fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && files.pread(fd, head.data(), head.size(), 0) > 0;
    const bool script = readable && std::memcmp(head.data(), "#!", 2) == 0;
    if (readable && !script) why.barrier = preloadable::of_file(fd, s, head, files);
    if (fd >= 0) ::close(fd);
    if (!script) break;
    preloadable::cut_interpreter(head);
    why.interpreter = head;
  }
  return why;
}

}}}  // namespace sdma::v0_3::detail
