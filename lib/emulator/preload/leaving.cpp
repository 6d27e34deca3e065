// SPDX-License-Identifier: MIT
// Programs that leave the node, and how it is said.
#include "leaving.hpp"

#include "../../core/abstract_address.hpp"
#include "../../core/preloadable.hpp"
#include "../real.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace sdma::emulator {
namespace {

using sdma::detail::Barrier;

constexpr std::string_view kLibrary = "libsdma-emulator.so";

/// The name of the socket through which `sdma emulate --require-node` learns of programs; "": they may leave.
char left_name[64];

[[gnu::constructor]] void read_environment() {
  const char *required = std::getenv("SDMA_EMULATE_REQUIRE_NODE"), *machine = std::getenv("SDMA_EMULATE_MACHINE");
  if (required && required == std::string_view("1"))
    std::snprintf(left_name, sizeof left_name, "sdma-left-%s", machine ? machine : "");
}

/// Whether a list of libraries for LD_PRELOAD has ours.
bool names_library(std::string_view list) noexcept {
  while (!list.empty()) {
    const auto word = list.substr(0, list.find_first_of(" :"));
    if (word.ends_with(kLibrary)) return true;
    list.remove_prefix(word.size() + (word.size() < list.size() ? 1 : 0));
  }
  return false;
}
bool on_node(char* const* env) noexcept {
  constexpr std::string_view kVariable = "LD_PRELOAD=";
  for (; env && *env; ++env)
    if (const std::string_view v(*env); v.starts_with(kVariable)) return names_library(v.substr(kVariable.size()));
  return false;
}

/// A program that asks a process outside the node to start others.
bool asks_a_service(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  const std::string_view name = slash ? slash + 1 : path;
  for (const auto known : {"ssh", "systemd-run", "docker", "podman", "machinectl", "flatpak-spawn", "at", "batch"})
    if (name == known) return true;
  return false;
}

/// Whether a file contains the name of the device.
bool names_device(const char* path) noexcept {
  const int fd = SDMA_REAL(open)(path, O_RDONLY | O_CLOEXEC);
  struct stat s {};
  const bool known = fd >= 0 && SDMA_REAL(fstat)(fd, &s) == 0 && s.st_size > 0;
  const auto bytes = static_cast<std::size_t>(s.st_size);
  void* const at = known ? machine_mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (fd >= 0) ::close(fd);
  if (at == MAP_FAILED) return false;
  const bool found = ::memmem(at, bytes, kDevice.data(), kDevice.size());
  machine_munmap(at, bytes);
  return found;
}

/// `path` can be executed. `shown`: what lines call it.
int check(const char* path, const char* shown, char* const* env) noexcept {
  const auto why = sdma::detail::why_not_preloaded(path, {SDMA_REAL(open), SDMA_REAL(fstat), SDMA_REAL(pread)});
  const char* const script_of = why.interpreter.data();
  const bool script = script_of[0] != '\0';
  if (why.barrier != Barrier::none && (why.barrier != Barrier::loaderless || names_device(script ? script_of : path))) {
    char sentence[512];
    std::snprintf(sentence, sizeof sentence, "%s%s%s%s: it does not find the node's GPUs",
                  script ? "is a script of '" : "", script_of, script ? "', which " : "", text_of(why.barrier));
    return leave(shown, sentence);
  }
  if (!on_node(env))
    return leave(shown, "gets an environment without the node's LD_PRELOAD: it does not find the node's GPUs");
  if (asks_a_service(shown))
    return leave(shown, "has another process start programs: they do not find the node's GPUs");
  return 0;
}

/// A regular file that this process may execute.
bool can_run(const char* path) noexcept {
  struct stat s {};
  return SDMA_REAL(stat)(path, &s) == 0 && S_ISREG(s.st_mode) && SDMA_REAL(access)(path, X_OK) == 0;
}

int check_found(int dirfd, const char* file, bool searched, char* const* env) noexcept {
  char path[PATH_MAX];
  if (!file) return 0;
  if (dirfd != AT_FDCWD && file[0] != '/') {
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    const auto n = SDMA_REAL(readlink)(link, path, sizeof path - 1);
    if (n < 0) return 0;
    const auto used = static_cast<std::size_t>(n);
    std::snprintf(path + used, sizeof path - used, "%s%s", file[0] ? "/" : "", file);
    const char* const opened = file[0] ? path : link;
    return can_run(opened) ? check(opened, path, env) : 0;
  }
  const char* rest = searched && !std::strchr(file, '/') ? std::getenv("PATH") : nullptr;
  if (!rest) return can_run(file) ? check(file, file, env) : 0;
  for (bool more = true; more;) {
    const auto n = static_cast<int>(::strcspn(rest, ":"));
    std::snprintf(path, sizeof path, "%.*s%s%s", n, rest, n == 0 ? "" : "/", file);
    more = rest[n] == ':';
    rest += n + (more ? 1 : 0);
    if (can_run(path)) return check(path, path, env);
  }
  return 0;
}

}  // namespace

int leave(const char* program, const char* sentence) noexcept {
  const bool stays = left_name[0] != '\0';
  ::dprintf(STDERR_FILENO, "sdma emulator: '%s' %s%s\n", program, sentence,
            stays ? "; because of --require-node, it is not started" : "");
  if (!stays) return 0;
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sdma::detail::AbstractAddress at(left_name);
  (void)::sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, at.get(), at.bytes());
  if (fd >= 0) ::close(fd);
  return EACCES;
}

bool refused(int dirfd, const char* file, bool searched, char* const* env) noexcept {
  const int before = errno;
  const int error = check_found(dirfd, file, searched, env);
  errno = error == 0 ? before : error;
  return error != 0;
}

}  // namespace sdma::emulator
