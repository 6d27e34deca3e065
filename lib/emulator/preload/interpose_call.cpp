// SPDX-License-Identifier: MIT
// Interposes what leads a program around the functions of the C library:
//
//   syscall            open, openat, ioctl and mmap of the node's devices are those of the node; munmap is that of
//                      interpose_map. All other calls go to the kernel without a look-up, because allocators use them
//                      while the loader is running
//                      exec by number is checked as by name
//   a program in Go    contains the instruction of a system call: if it contains the name of the device too, stderr
//                      names it when it starts; with --require-node, it ends there
//
// These functions run in children that share the memory of their parent (vfork), so nothing here allocates.
// Any thread may call them.
#include "../node/node.hpp"
#include "../node/user.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "leaving.hpp"
#include "mapping.hpp"

#include <fcntl.h>
#include <link.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <span>
#include <string_view>

namespace {

using namespace sdma::emulator;

/// Whether a path that may be a bad pointer is that of a device, or lies in the topology.
bool of_node(long path) noexcept {
  char text[32]{};
  const auto at = static_cast<std::uint64_t>(path);
  if (path == 0 || !from_user(text, at, std::min<std::uint64_t>(sizeof text - 1, kPage - at % kPage))) return false;
  constexpr std::string_view kPrefixes[] = {kDevice, "/dev/dri/", "/sys/class/kfd/", "/sys/devices/virtual/kfd/"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](auto p) { return std::string_view(text).starts_with(p); });
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
  if (::dl_iterate_phdr(in_go, nullptr) == 1 &&
      leave(program_invocation_name,
            "is a program in Go, which opens files without the C library: what it opens itself is not the node's") != 0)
    ::_exit(126);
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
        return reinterpret_cast<long>(map_for_program(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]),
                                                      static_cast<int>(a[2]), static_cast<int>(a[3]),
                                                      static_cast<int>(a[4]), a[5]));
      break;
    case SYS_munmap: return unmap_for_program(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]));
    case SYS_execve:
      if (refused(AT_FDCWD, path(a[0]), false, reinterpret_cast<char* const*>(a[2]))) return -1;
      break;
    case SYS_execveat:
      if (refused(static_cast<int>(a[0]), path(a[1]), false, reinterpret_cast<char* const*>(a[3]))) return -1;
      break;
    default: break;
  }
  return machine_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
#endif
