#pragma once
// The bytes of a node: one sparse memfd per process, which serves as /dev/kfd and as every render node, because an mmap of any
// of them at the offset that an ioctl returned must give the same pages.
//
//   offset  (g+1) << 32                doorbells of GPU g: at multiples of 4 GiB, because libhsakmt 5.2.3 cuts offsets there
//           (g+1) << 32 | 1 MiB        the page of remapped registers (HDP flush) of GPU g
//           63 << 32                   exports to other processes: one record per object
//           64 << 32 ...               memory objects, one after another; an offset is never reused
//
// Memory imported from another process's arena has an offset in ours that refers to their pages. Only such mappings are
// intercepted (preload/interpose_map.cpp).
//
// The memfd's inode identifies a descriptor, so a program can dup it and pass it on. Its file position is a tag that all dups
// share: it says whether the descriptor is /dev/kfd, a DRM node or a DMABUF.
//
// Our own view of an object stays mapped until the object is freed and no engine can access it any more. Forked
// children do not inherit our views (MADV_DONTFORK). The kernel frees the memory with the last descriptor and mapping,
// however the program ends.
//
// Any thread may call these functions. Errors: null, or -1 with errno.
#include <sys/types.h>
#include <atomic>
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

/// The record of an exported object. It is in the arena itself, so that any process with a descriptor of it can read it.
struct Passed {
  std::uint64_t nonce{};  ///< never 0; also in an IPC handle, because a number may be reused for another object
  std::uint64_t offset{}, bytes{};
  std::uint32_t gpu{}, flags{};
};
bool read_passed(int arena, std::uint32_t number, Passed*) noexcept;
bool write_passed(int arena, std::uint32_t number, const Passed&) noexcept;

/// A position in an arena: a descriptor and an offset.
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

  /// An unused offset for `bytes` (whole pages).
  std::uint64_t reserve(std::uint64_t bytes) noexcept;
  /// Maps our view of a range.
  std::byte* view(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  static void drop(std::byte* view, std::uint64_t bytes) noexcept;
  /// Returns the pages to the kernel.
  void punch(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  int fd() const noexcept { return fd_; }
  /// Maps our view of a range of any arena.
  static std::byte* view_of(Place, std::uint64_t bytes) noexcept;
  /// Makes `bytes` at our `offset` refer to another arena. The caller keeps ownership of the descriptor.
  void stand_for(std::uint64_t offset, std::uint64_t bytes, Place);
  void stands_no_more(std::uint64_t offset) noexcept;
  /// The arena and offset to which `offset` refers; none: our own pages.
  std::optional<Place> stands_for(std::uint64_t offset) const noexcept;
  /// For a forked child: closes our descriptor, so that the child does not keep the parent's memory alive.
  void abandon() noexcept;

 private:
  int fd_ = -1;
  dev_t dev_{};
  ino_t inode_{};
  std::atomic<std::uint64_t> next_{std::uint64_t{64} << 32};
  struct Stand {
    std::uint64_t bytes{};
    Place place{};
  };
  mutable std::mutex stands_mutex_;
  std::map<std::uint64_t, Stand> stands_;
};

inline constexpr std::uint64_t kDmabuf = std::uint64_t{1} << 40, kDrmNode = std::uint64_t{1} << 32;
/// The meaning of a descriptor of an arena.
struct Descriptor {
  std::uint64_t tag{};  ///< 0: /dev/kfd; kDrmNode | minor; or kDmabuf | number of an object
  bool ours{};          ///< belongs to the given arena, not to another process's
};
constexpr bool is_dmabuf(const Descriptor& d) noexcept { return (d.tag & kDmabuf) != 0; }
constexpr bool is_drm(const Descriptor& d) noexcept { return (d.tag & kDrmNode) != 0; }
/// The minor of a DRM node, or the number of a DMABUF's object.
constexpr std::uint32_t number(const Descriptor& d) noexcept { return static_cast<std::uint32_t>(d.tag); }

/// What a descriptor is; nullopt if it does not belong to an arena. `ours` may be null.
std::optional<Descriptor> descriptor_of(int fd, const Arena* ours) noexcept;
/// True if an entry of some /proc/PID/fd is an arena of any process.
bool names_arena(const char* link) noexcept;

/// The entry of a descriptor in /proc/self/fd.
struct FdLink {
  explicit FdLink(int fd) noexcept;
  char path[32];
};
/// The name of the memfd that an entry of some /proc/PID/fd refers to, stored in `room`; "" for another file.
std::string_view memfd_name(const char* link, std::span<char> room) noexcept;

}  // namespace sdma::emulator
