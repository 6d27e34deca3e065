// SPDX-License-Identifier: MIT
#pragma once
// The offsets of a node: an mmap of /dev/kfd or of any render node, at the
// offset that an ioctl returned, must give the pages that the ioctl meant.
//
//   offset  0                          what other processes see of this one: shown.hpp
//           (g+1) << 32                doorbells of GPU g: at multiples of 4 GiB,
//                                      because libhsakmt 5.2.3 cuts offsets there
//           (g+1) << 32 | 1 MiB        the page of remapped registers (HDP flush) of GPU g
//           64 << 32 ...               memory objects, one after another; an offset is never reused
//
// Doorbells and registers are in one sparse memfd per process, the arena. Each object has a file of its own
// (object_file.hpp): allocated here, or imported. The program's calls of mmap are intercepted
// (preload/interpose_map.cpp), because its descriptors of the devices give access to nothing: each is opened for ioctl
// alone, so it can be neither read nor written nor mapped.
//
// The arena's inode identifies such a descriptor, so a program can dup it and pass it on. Its file position is a tag
// that all dups share: it says whether the descriptor is /dev/kfd or a DRM node.
//
// Our own view of an object stays mapped until the object is freed and no engine can access it any more. Forked
// children do not inherit our views (MADV_DONTFORK). The kernel frees the memory with the last descriptor and mapping,
// however the program ends.
//
// Any thread may call these functions. Errors: null, or -1 with errno. Only `add` allocates, and may throw.
#include "object_file.hpp"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

namespace sdma::emulator {

inline constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t page_up(std::uint64_t n) noexcept { return (n + kPage - 1) & ~(kPage - 1); }

constexpr std::uint64_t doorbell_offset(std::uint32_t gpu) noexcept { return std::uint64_t{gpu + 1} << 32; }
constexpr std::uint64_t register_offset(std::uint32_t gpu) noexcept { return doorbell_offset(gpu) | 1u << 20; }

inline constexpr std::uint64_t kFirstObject = std::uint64_t{64} << 32;

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

  /// Gives a file that `open` creates an offset in the node, for `bytes` bytes (whole pages), until `remove`. `open`
  /// returns a descriptor, which then belongs to the arena. Returns 0, with errno, if it returns -1.
  template <class Open> std::uint64_t add(std::uint64_t bytes, Open open) {
    const std::lock_guard lock(files_mutex_);
    const auto offset = next_;
    auto& file = files_.try_emplace(offset, File{.bytes = bytes}).first->second;  // first, because only this throws
    if (!file.own(open())) return files_.erase(offset), 0;
    next_ += page_up(bytes);
    return offset;
  }
  void remove(std::uint64_t offset) noexcept;
  /// Where the bytes at `offset` are; nullopt unless all `bytes` lie in one object, or among doorbells or registers.
  std::optional<Place> find(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  /// Maps our view of a range.
  std::byte* view(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  static void drop(std::byte* view, std::uint64_t bytes) noexcept;
  int fd() const noexcept { return fd_; }
  ino_t inode() const noexcept { return inode_; }

  /// Call them around a fork, so that the child finds all files.
  void before_fork() noexcept { files_mutex_.lock(); }
  void after_fork() noexcept { files_mutex_.unlock(); }
  /// For a forked child, after before_fork: closes our descriptors, so that the child does not keep the memory alive.
  void abandon() noexcept;

 private:
  /// A descriptor with the inode that it had: the program may have closed it, and another file have its number.
  struct File {
    std::uint64_t bytes{};
    int fd = -1;
    dev_t dev{};
    ino_t inode{};
    bool own(int descriptor) noexcept;
    bool valid() const noexcept;
    void close() const noexcept;
  };

  int fd_ = -1;
  dev_t dev_{};
  ino_t inode_{};
  mutable std::mutex files_mutex_;
  std::uint64_t next_ = kFirstObject;
  std::map<std::uint64_t, File> files_;
};

inline constexpr std::uint64_t kDmabuf = std::uint64_t{1} << 40, kDrmNode = std::uint64_t{1} << 32;
inline constexpr unsigned kSerialBits = 22, kSerialShift = 41;
/// The tag of a DRM file. `serial` distinguishes it from other files of the same node; dups of a descriptor share it.
constexpr std::uint64_t drm_tag(std::uint32_t minor, std::uint32_t serial) noexcept {
  return std::uint64_t{serial & ((1u << kSerialBits) - 1)} << kSerialShift | kDrmNode | minor;
}
/// The meaning of one of our descriptors.
struct Descriptor {
  std::uint64_t tag{};  ///< 0: /dev/kfd; a drm_tag; or kDmabuf
  bool ours{};          ///< belongs to the given arena, not to another process's
};
constexpr bool is_dmabuf(const Descriptor& d) noexcept { return (d.tag & kDmabuf) != 0; }
constexpr bool is_drm(const Descriptor& d) noexcept { return (d.tag & kDrmNode) != 0; }
/// The minor and the serial number of a DRM file.
constexpr std::uint32_t minor_of(const Descriptor& d) noexcept { return static_cast<std::uint32_t>(d.tag); }
constexpr std::uint32_t serial_of(const Descriptor& d) noexcept {
  return static_cast<std::uint32_t>(d.tag >> kSerialShift);
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
