// SPDX-License-Identifier: MIT
// Interposes what leads a program around the functions of the C library:
//
//   syscall            open, openat, ioctl and mmap of the node's devices are those of the node. All other calls go to
//                      the kernel without a look-up, because allocators use them while the loader is running
//   exec, posix_spawn  a program that is linked statically and contains the name of the node's device: stderr names it,
//                      because nothing can be preloaded into it
//   a program in Go    contains the instruction of a system call: if it contains the name of the device too, stderr
//                      names it when it starts
//
// These functions run in children that share the memory of their parent (vfork), so nothing here allocates.
// Any thread may call them.
#include "../node/node.hpp"
#include "../node/user.hpp"
#include "../real.hpp"
#include "front.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace {

using namespace sdma::emulator;

constexpr std::string_view kDevice = "/dev/kfd";

/// Whether a path that may be a bad pointer is that of a device, or lies in the topology.
bool of_node(long path) noexcept {
  char text[32]{};
  const auto at = static_cast<std::uint64_t>(path);
  if (path == 0 || !from_user(text, at, std::min<std::uint64_t>(sizeof text - 1, kPage - at % kPage))) return false;
  constexpr std::string_view kPrefixes[] = {kDevice, "/dev/dri/", "/sys/class/kfd/", "/sys/devices/virtual/kfd/"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](auto p) { return std::string_view(text).starts_with(p); });
}

/// Whether a file is a program without a loader that contains the name of the device.
bool goes_around(const char* path) noexcept {
  const int fd = SDMA_REAL(open)(path, O_RDONLY | O_CLOEXEC);
  struct stat s {};
  const bool readable = fd >= 0 && SDMA_REAL(fstat)(fd, &s) == 0 && S_ISREG(s.st_mode);
  const auto bytes = static_cast<std::size_t>(s.st_size);
  void* const at =
      readable && bytes > sizeof(Elf64_Ehdr) ? machine_mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (fd >= 0) ::close(fd);
  if (at == MAP_FAILED) return false;
  const auto* const h = static_cast<const Elf64_Ehdr*>(at);
  bool found = std::memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
               (h->e_type == ET_EXEC || h->e_type == ET_DYN) && h->e_phoff < bytes &&
               h->e_phnum <= (bytes - h->e_phoff) / sizeof(Elf64_Phdr);
  const auto* const p = reinterpret_cast<const Elf64_Phdr*>(static_cast<const std::byte*>(at) + h->e_phoff);
  for (unsigned i = 0; found && i < h->e_phnum; ++i) found = p[i].p_type != PT_INTERP;
  found = found && ::memmem(at, bytes, kDevice.data(), kDevice.size());
  ::munmap(at, bytes);
  return found;
}

/// Names a program that finds no GPU. `searched`: a name without a slash is searched for in PATH.
void name_static(const char* file, bool searched) noexcept {
  const int before = errno;
  char path[PATH_MAX];
  const char* rest = searched && file && !std::strchr(file, '/') ? std::getenv("PATH") : nullptr;
  for (const char* found = rest ? nullptr : file; found || rest; found = nullptr) {
    if (!found) {
      const auto n = static_cast<int>(::strcspn(rest, ":"));
      std::snprintf(path, sizeof path, "%.*s/%s", n, rest, file);
      rest = rest[n] == ':' ? rest + n + 1 : nullptr;
      if (SDMA_REAL(access)(path, X_OK) != 0) continue;
      found = path;
    }
    if (goes_around(found))
      ::dprintf(STDERR_FILENO, "sdma emulator: '%s' is linked statically: it does not find the node's GPUs\n", found);
    break;
  }
  errno = before;
}

/// Whether a segment of notes has one of Go's linker.
bool made_by_go(const ElfW(Nhdr) * note, std::size_t bytes) noexcept {
  constexpr std::string_view kGo{"Go\0", 4};
  const auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
  while (bytes >= sizeof *note) {
    const auto size = sizeof *note + padded(note->n_namesz) + padded(note->n_descsz);
    if (size > bytes) return false;
    if (note->n_namesz == kGo.size() && std::memcmp(note + 1, kGo.data(), kGo.size()) == 0) return true;
    note = reinterpret_cast<decltype(note)>(reinterpret_cast<const std::byte*>(note) + size);
    bytes -= size;
  }
  return false;
}

/// The first object is the program: tells the caller with a value other than 0 that it is a program in Go, and contains
/// the name of the device.
int in_go(dl_phdr_info* program, std::size_t, void*) {
  bool go = false, named = false;
  for (const auto& p : std::span{program->dlpi_phdr, program->dlpi_phnum}) {
    const auto* at = reinterpret_cast<const std::byte*>(program->dlpi_addr + p.p_vaddr);
    if (p.p_type == PT_NOTE) go = go || made_by_go(reinterpret_cast<const ElfW(Nhdr)*>(at), p.p_filesz);
    if (p.p_type == PT_LOAD && (p.p_flags & PF_R) != 0)
      named = named || ::memmem(at, p.p_filesz, kDevice.data(), kDevice.size());
  }
  return go && named ? 1 : -1;
}

[[gnu::constructor]] void name_go() {
  if (::dl_iterate_phdr(in_go, nullptr) == 1)
    ::dprintf(STDERR_FILENO,
              "sdma emulator: '%s' is a program in Go, which opens files without the C library: what it opens itself is"
              " not the node's\n",
              program_invocation_name);
}

}  // namespace

#ifdef __x86_64__
SDMA_FRONT long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (auto& argument : a) argument = va_arg(list, long);
  va_end(list);
  const auto path = [](long at) { return reinterpret_cast<const char*>(at); };
  switch (number) {
    case SYS_open:
      if (of_node(a[0])) return ::open(path(a[0]), static_cast<int>(a[1]), static_cast<mode_t>(a[2]));
      break;
    case SYS_openat:
      if (of_node(a[1]))
        return ::openat(static_cast<int>(a[0]), path(a[1]), static_cast<int>(a[2]), static_cast<mode_t>(a[3]));
      break;
    case SYS_ioctl:
      if (Node::made())
        return ::ioctl(static_cast<int>(a[0]), static_cast<unsigned long>(a[1]), reinterpret_cast<void*>(a[2]));
      break;
    case SYS_mmap:
      if (Node::made())
        return reinterpret_cast<long>(::mmap(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]),
                                             static_cast<int>(a[2]), static_cast<int>(a[3]), static_cast<int>(a[4]),
                                             a[5]));
      break;
    default: break;
  }
  return machine_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
#endif

#define SDMA_EXEC(name, searched, parameters, ...) \
  SDMA_FRONT int name parameters {                 \
    name_static(file, searched);                   \
    return SDMA_REAL(name)(__VA_ARGS__);           \
  }
SDMA_EXEC(execve, false, (const char* file, char* const argv[], char* const env[]) noexcept, file, argv, env)
SDMA_EXEC(execv, false, (const char* file, char* const argv[]) noexcept, file, argv)
SDMA_EXEC(execvp, true, (const char* file, char* const argv[]) noexcept, file, argv)
SDMA_EXEC(execvpe, true, (const char* file, char* const argv[], char* const env[]) noexcept, file, argv, env)
#define SDMA_SPAWN(name, searched)                                                        \
  SDMA_EXEC(name, searched,                                                               \
            (pid_t * pid, const char* file, const posix_spawn_file_actions_t* actions,    \
             const posix_spawnattr_t* attributes, char* const argv[], char* const env[]), \
            pid, file, actions, attributes, argv, env)
SDMA_SPAWN(posix_spawn, false)
SDMA_SPAWN(posix_spawnp, true)

/// The functions with a list of arguments, whose number is counted first; `last` reads what follows them.
#define SDMA_EXEC_LIST(name, run, last)                                           \
  SDMA_FRONT int name(const char* file, const char* first, ...) noexcept {        \
    va_list list;                                                                 \
    std::size_t n = 1;                                                            \
    va_start(list, first);                                                        \
    while (va_arg(list, char*)) ++n;                                              \
    va_end(list);                                                                 \
    auto** argv = static_cast<char**>(__builtin_alloca((n + 1) * sizeof(char*))); \
    argv[0] = const_cast<char*>(first);                                           \
    va_start(list, first);                                                        \
    for (std::size_t i = 1; i <= n; ++i) argv[i] = va_arg(list, char*);           \
    char* const* env = last;                                                      \
    va_end(list);                                                                 \
    return ::run(file, argv, env);                                                \
  }
SDMA_EXEC_LIST(execl, execve, environ)
SDMA_EXEC_LIST(execlp, execvpe, environ)
SDMA_EXEC_LIST(execle, execve, va_arg(list, char* const*))
