// SPDX-License-Identifier: MIT
#pragma once
// Memory objects that leave their process: as a DMABUF, or through an IPC handle.
//
//   DMABUF    a descriptor of the exporter's arena that gives access to nothing: it is open for appending alone, and
//             the arena cannot grow. Its file position is the number of a record
//   record    in the arena: where the object lies, its size, GPU and flags. A nonce distinguishes it from others that
//             had its number
//   holder    each DMABUF and each import locks one byte of the record's range of locks (F_OFD_SETLK). The kernel
//             unlocks it when the last copy of the descriptor and the last mapping through it are gone, however their
//             processes end. The exporter frees the bytes of an object when no lock is left
//
//   int fd = open_dmabuf(arena.fd(), slot, true, O_CLOEXEC);
//   object_of(fd)->flags;                 // in any process that has a descriptor of it
//
// Descriptors of ours have numbers that a program does not use: see away(). They are closed by exec.
// Any thread may call these functions; they do not allocate. Errors: -1 with errno.
#include <sys/types.h>
#include <cstdint>
#include <optional>

namespace sdma::emulator {

struct ObjectInfo {
  std::uint64_t bytes{}, offset{};  ///< offset: in the arena `inode`
  std::uint32_t gpu{}, flags{};
  std::uint32_t slot{}, nonce{};     ///< of its record; 0: none
  std::uint32_t ipc{}, ipc_flags{};  ///< ipc: 1 if an IPC handle names it, with these flags of the caller
  ino_t inode{};
};

/// The arena of another process, from which objects were imported.
class Source {
 public:
  Source(int file, ino_t number) noexcept : fd(file), inode(number) {}
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  const int fd;
  const ino_t inode;
};

/// The record of an arena that is open as `fd`; nullopt if there is none with this number.
std::optional<ObjectInfo> read_record(int fd, std::uint32_t slot) noexcept;
bool write_record(int fd, const ObjectInfo&) noexcept;

/// A DMABUF of the object with this record.
int open_dmabuf(int arena, std::uint32_t slot, bool writable, int flags) noexcept;
/// What a descriptor refers to; nullopt if it is not a DMABUF of ours.
std::optional<ObjectInfo> object_of(int fd) noexcept;
/// Opens the arena of a DMABUF for the object's bytes, and holds the object; -1: it is gone.
int open_object(int dmabuf, const ObjectInfo&) noexcept;
/// Locks and unlocks the object for a descriptor. False: it is gone.
bool hold(int arena, const ObjectInfo&) noexcept;
void let_go(int arena, std::uint32_t slot) noexcept;
/// Whether any descriptor but this one holds the object.
bool is_held(int arena, std::uint32_t slot) noexcept;
/// True if `fd` is a descriptor of any kind.
bool is_open(int fd) noexcept;

/// Whether the process may create a file of this size. Beyond its limit (`ulimit -f`), a call would end the process, so
/// the answer is false, with errno EFBIG and, once, a message on stderr.
bool size_permitted(std::uint64_t bytes) noexcept;

/// Moves a descriptor of ours to a number beyond the program's limit if possible, otherwise to a high one, because some
/// programs rely on the next free number or close all small ones.
int away(int fd) noexcept;

}  // namespace sdma::emulator
