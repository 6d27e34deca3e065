// SPDX-License-Identifier: MIT
#pragma once
// The file of one memory object: a memfd with the object's bytes and nothing else, so that a process that gets a
// descriptor of it (a DMABUF) gets this object and no other.
//
//   int fd = create_object({.bytes = 4096, .gpu = 0, .flags = kVram, .nonce = 7});
//   object_of(fd)->flags;                 // in any process that has a descriptor of it
//   open_object(fd, O_RDWR)               // another descriptor of the same object
//
//   bytes         the size of the file, which is sealed: no holder can cut the object under another one's mapping
//   gpu, flags    in the file's name (/proc/self/fd), where no descriptor can change them
//   nonce         also: it distinguishes objects whose inode has the same number
//
// Descriptors have numbers that a program does not use: see away(). They are closed by exec.
// The kernel frees the memory with the last descriptor and mapping. Any thread may call these functions; they do not
// allocate. Errors: -1 with errno.
#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma::emulator {

struct ObjectInfo {
  std::uint64_t bytes{};
  std::uint32_t gpu{}, flags{}, nonce{};
  ino_t inode{};  ///< not used by create_object
};

int create_object(const ObjectInfo&) noexcept;
/// What a descriptor, or an entry of some /proc/PID/fd, refers to; nullopt if it is not an object.
std::optional<ObjectInfo> object_of(int fd) noexcept;
std::optional<ObjectInfo> object_of(const char* link) noexcept;
/// The GPU of an object with this name, without "/memfd:"; nullopt if it is not one of an object.
std::optional<std::uint32_t> gpu_of_object(std::string_view name) noexcept;
int open_object(int fd, int flags) noexcept;
/// True if `fd` is a descriptor of any kind.
bool is_open(int fd) noexcept;

/// The file position of a DMABUF descriptor that can be mapped only for reading; other DMABUFs have 0.
inline constexpr off_t kReadOnlyDmabuf = 1;

/// Whether the process may create a file of this size. Beyond its limit (`ulimit -f`), a call would end the process, so
/// the answer is false, with errno EFBIG and, once, a message on stderr.
bool size_permitted(std::uint64_t bytes) noexcept;

/// Opens a file only to recognise it: no one can read, write or map it through the descriptor (EBADF, EACCES).
inline constexpr int kOnlyIdentity = 3;

/// Moves a descriptor of ours to a number beyond the program's limit if possible, otherwise to a high one: some
/// programs rely on the next free number or close all small ones, and objects must not use up the program's numbers.
int away(int fd) noexcept;

}  // namespace sdma::emulator
