// SPDX-License-Identifier: MIT
#pragma once
// The memory of a node: one sparse memfd per process, the arena. An mmap of /dev/kfd or of any render node, at the
// offset that an ioctl returned, must give the pages that the ioctl meant.
//
//   offset  0                          what other processes see of this one: shown.hpp
//           kEventPage                 the slots of events of a program that brings no page; mapped at 2 << 62
//           (g+1) << 32                doorbells of GPU g: at multiples of 4 GiB,
//                                      because libhsakmt 5.2.3 cuts offsets there
//           (g+1) << 32 | 1 MiB        the page of remapped registers (HDP flush) of GPU g
//           kRecords                   what each exported object is: object_file.hpp
//           g << 57 ... (g+1) << 57    memory objects of GPU g, from the end down; an offset is never reused
//           from 1 << 63, no file      kFirstImport ...: objects in the arenas of other processes
//
// A descriptor of a device is the arena, opened once more, so that an mmap that is not intercepted finds the same
// bytes. Its file position is a tag that all dups share, and that says whether it is /dev/kfd or a DRM node. The tag
// lies beyond the end of the file, whose size is sealed: nothing can be read or written there.
//
// Objects lie below each other because a program's mappings do, so that the kernel can join those of neighbours. Our
// own views are of pieces of the arena, each with many objects: neither a descriptor nor a mapping belongs to one
// object. They stay until all objects of a piece are released. Forked children do not inherit them (MADV_DONTFORK), and
// core dumps do not contain them. The kernel frees the memory with the last descriptor and mapping, however the program
// ends.
//
// Any thread may call these functions. Errors: 0 or null, with errno; a refusal of the machine is named once on stderr.
// Only `allocate` and `import` allocate, and may throw.
#include "object_file.hpp"

#include <sys/types.h>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace sdma::emulator {

inline constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t page_up(std::uint64_t n) noexcept { return (n + kPage - 1) & ~(kPage - 1); }

constexpr std::uint64_t doorbell_offset(std::uint32_t gpu) noexcept { return std::uint64_t{gpu + 1} << 32; }
constexpr std::uint64_t register_offset(std::uint32_t gpu) noexcept { return doorbell_offset(gpu) | 1u << 20; }

inline constexpr std::uint64_t kEventPage = 1 << 20, kEventPageBytes = 4096 * 8;
inline constexpr std::uint64_t kRecords = std::uint64_t{32} << 32;
inline constexpr std::uint64_t kFirstObject = std::uint64_t{64} << 32;
inline constexpr unsigned kGpuShift = 57;
inline constexpr std::uint64_t kArenaBytes = std::uint64_t{8} << kGpuShift;
/// A plain mmap fails there, because no file is as long.
inline constexpr std::uint64_t kFirstImport = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 32);
/// The GPU of an object.
constexpr std::uint32_t gpu_at(std::uint64_t offset) noexcept {
  return static_cast<std::uint32_t>(offset >> kGpuShift);
}

/// The name of an arena in /proc/PID/fd, which identifies a descriptor from another process.
inline constexpr const char* kArenaName = "sdma-kfd";

/// A position in a file.
struct Place {
  int fd{};
  std::uint64_t offset{};
};

class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// A new descriptor for the device with this tag; `flags` as for open.
  int open_node(std::uint64_t tag, int flags) const noexcept;
  bool owns(dev_t dev, ino_t inode) const noexcept { return fd_ >= 0 && dev == dev_ && inode == inode_; }

  /// A new object of a GPU, of whole pages: its offset.
  std::uint64_t allocate(std::uint32_t gpu, std::uint64_t bytes);
  /// Ends an object. Its bytes are freed by a later `allocate`, when no mapping of the program and no holder has them.
  void release(std::uint64_t offset) noexcept;
  /// Takes back an object that was released while others hold it. False: there is none at this offset.
  bool take_back(std::uint64_t offset) noexcept;
  /// The view of a live object.
  std::byte* at(std::uint64_t offset) const noexcept;
  /// The record of a live object, created at its first export; 0 if there is no room.
  std::uint32_t record(std::uint64_t offset, const ObjectInfo&) noexcept;

  /// The arena of another process, opened once for all imports from it. `link`: an entry of /proc/PID/fd. May throw.
  std::shared_ptr<const Source> source(const char* link, ino_t inode);
  /// An offset for bytes of another process's arena, until `forget`.
  std::uint64_t import(std::shared_ptr<const Source>, std::uint64_t from, std::uint64_t bytes);
  void forget(std::uint64_t offset) noexcept;

  /// Where the bytes at `offset` are; nullopt unless all `bytes` lie in one object, or among doorbells or registers.
  std::optional<Place> find(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  /// Maps our view of a range of a file.
  static std::byte* view(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;
  std::byte* view(std::uint64_t offset, std::uint64_t bytes) const noexcept { return view(fd_, offset, bytes); }
  static void drop(std::byte* view, std::uint64_t bytes) noexcept;
  int fd() const noexcept { return fd_; }
  ino_t inode() const noexcept { return inode_; }
  /// False if the program has closed the descriptor, whose number may be another file's now.
  bool valid() const noexcept;

  /// Call them around a fork, so that the child finds all files.
  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }
  /// For a forked child, after before_fork: closes our descriptors, so that the child does not keep the memory alive.
  void abandon() noexcept;

 private:
  struct Live {
    std::uint64_t bytes{};
    std::uint32_t slot{};  ///< of its record; 0: it was never exported
    bool mapped{};         ///< by the program, when the arena was swept last
  };
  struct Piece {
    std::uint64_t bytes{}, users{};
    std::byte* view{};
  };
  struct Import {
    std::uint64_t bytes{}, from{};
    std::shared_ptr<const Source> source{};
  };
  using Lives = std::map<std::uint64_t, Live>;
  using Pieces = std::map<std::uint64_t, Piece>;

  Pieces::iterator piece_of(std::uint64_t offset) noexcept;
  bool make_piece(std::uint32_t gpu, std::uint64_t bytes);
  void leave_piece(std::uint64_t offset) noexcept;
  void free_bytes(Lives::iterator) noexcept;
  void mark_mapped() noexcept;
  void sweep() noexcept;

  int fd_ = -1;
  dev_t dev_{};
  ino_t inode_{};
  mutable std::mutex mutex_;
  std::array<std::uint64_t, 8> next_{},
      begin_{};                                  ///< of each GPU: the end of the free part of its piece, and the piece
  Lives objects_, kept_;                         ///< kept: released, but not yet freed
  std::uint64_t kept_bytes_ = 0, patience_ = 0;  ///< and how many of them the next sweep waits for
  Pieces pieces_;
  std::uint32_t slots_ = 0;
  std::map<ino_t, std::weak_ptr<const Source>> sources_;
  std::map<std::uint64_t, Import> imports_;
  std::uint64_t next_import_ = kFirstImport;
};

/// Tags: file positions of our descriptors, all beyond the end of an arena.
inline constexpr std::uint64_t kTag = std::uint64_t{1} << 62, kDmabuf = std::uint64_t{1} << 61,
                               kReadOnlyDmabuf = std::uint64_t{1} << 60, kDrmNode = std::uint64_t{1} << 32;
inline constexpr unsigned kSerialBits = 22, kSerialShift = 33;
/// The tag of a DRM file. `serial` distinguishes it from other files of the same node; dups of a descriptor share it.
constexpr std::uint64_t drm_tag(std::uint32_t minor, std::uint32_t serial) noexcept {
  return kTag | std::uint64_t{serial & ((1u << kSerialBits) - 1)} << kSerialShift | kDrmNode | minor;
}
/// The meaning of one of our descriptors.
struct Descriptor {
  std::uint64_t tag{};  ///< kTag: /dev/kfd; a drm_tag; or kTag | kDmabuf | the number of its record
  bool ours{};          ///< belongs to the given arena, not to another process's
};
constexpr bool is_dmabuf(const Descriptor& d) noexcept { return (d.tag & kDmabuf) != 0; }
constexpr bool is_drm(const Descriptor& d) noexcept { return !is_dmabuf(d) && (d.tag & kDrmNode) != 0; }
/// The minor and the serial number of a DRM file.
constexpr std::uint32_t minor_of(const Descriptor& d) noexcept { return static_cast<std::uint32_t>(d.tag); }
constexpr std::uint32_t serial_of(const Descriptor& d) noexcept {
  return static_cast<std::uint32_t>(d.tag >> kSerialShift) & ((1u << kSerialBits) - 1);
}

/// What a descriptor is; nullopt if it is neither a device nor a DMABUF of any process. `ours` may be null.
std::optional<Descriptor> descriptor_of(int fd, const Arena* ours) noexcept;
/// The entry of a descriptor in /proc/self/fd.
struct FdLink {
  explicit FdLink(int fd) noexcept;
  char path[32];
};
/// The name of the memfd that an entry of some /proc/PID/fd refers to, stored in `room`; "" for another file.
std::string_view memfd_name(const char* link, std::span<char> room) noexcept;

}  // namespace sdma::emulator
