#pragma once
// The bytes of a node: one sparse memfd a process, which stands for /dev/kfd and for every render node at once, because an
// mmap of any of them at the offset that an ioctl returned must give the same pages.
//
//   offset  (g+1) << 32                doorbells of GPU g: at multiples of 4 GiB, since libhsakmt 5.2.3 cuts offsets there
//           (g+1) << 32 | 1 MiB        the page of remapped registers (HDP flush) of GPU g
//           63 << 32                   what has been passed on to other processes: a record an object
//           64 << 32 ...               memory objects, one behind another; an offset is never used twice
//
// Memory of another process's arena, imported here, has an offset of ours that stands for pages of theirs: the only mapping
// calls that are looked at (preload/interpose_map.cpp).
//
// A descriptor is known by the memfd's inode, so it may be dup'ed and passed on. What it stands for is its file position, a
// tag that all dups share: /dev/kfd, a DRM node, or a DMABUF.
//
// Our own view of an object stays mapped until the object is freed and no engine can be inside it. Forked children do not
// get our views (MADV_DONTFORK), and the memory goes with the last descriptor and mapping: however the program ends.
//
// Any thread. Errors: null, -1 with errno.
#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace sdma::emulator {

inline constexpr std::uint64_t kPage = 4096;

constexpr std::uint64_t doorbell_offset(std::uint32_t gpu) noexcept { return std::uint64_t{gpu + 1} << 32; }
constexpr std::uint64_t register_offset(std::uint32_t gpu) noexcept { return doorbell_offset(gpu) | 1u << 20; }

/// What an object that was exported is: kept in the arena itself, so that any process that has a descriptor of it can read it.
struct Passed {
  std::uint64_t nonce{};  ///< never 0; in an IPC handle, too: a number that is used again is another object
  std::uint64_t offset{}, bytes{};
  std::uint32_t gpu{}, flags{};
};
bool read_passed(int arena, std::uint32_t number, Passed*) noexcept;
bool write_passed(int arena, std::uint32_t number, const Passed&) noexcept;

/// A place in some arena: a descriptor and an offset.
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

  /// A descriptor of its own for the node with this tag; `flags` as for open.
  int open_node(std::uint64_t tag, int flags) const noexcept;
  bool owns(dev_t dev, ino_t inode) const noexcept { return fd_ >= 0 && dev == dev_ && inode == inode_; }

  /// An offset for `bytes` (pages) that nobody else has.
  std::uint64_t reserve(std::uint64_t bytes) noexcept;
  /// Our view of a piece.
  std::byte* view(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  static void drop(std::byte* view, std::uint64_t bytes) noexcept;
  /// Gives the pages back to the machine.
  void punch(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  int fd() const noexcept { return fd_; }
  /// Our view of a piece of any arena.
  static std::byte* view_of(Place, std::uint64_t bytes) noexcept;
  /// From now on `bytes` at our `offset` stand for another's. The descriptor stays the caller's.
  void stand_for(std::uint64_t offset, std::uint64_t bytes, Place);
  void stands_no_more(std::uint64_t offset) noexcept;
  /// What a mapping at `offset` really is; none: our own pages.
  std::optional<Place> stands_for(std::uint64_t offset) const noexcept;
  /// In a forked child: closes our descriptor, so that only the parent's memory counts.
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
/// What a descriptor of an arena stands for.
struct Descriptor {
  std::uint64_t tag{};  ///< 0: /dev/kfd; kDrmNode | minor; kDmabuf | number of an object
  bool ours{};          ///< of the arena that was asked for, not of another process's
};
constexpr bool is_dmabuf(const Descriptor& d) noexcept { return (d.tag & kDmabuf) != 0; }
constexpr bool is_drm(const Descriptor& d) noexcept { return (d.tag & kDrmNode) != 0; }
/// Of a DRM node, the minor; of a DMABUF, the object's number.
constexpr std::uint32_t number(const Descriptor& d) noexcept { return static_cast<std::uint32_t>(d.tag); }

/// None: not a descriptor of any arena. `ours` may be null.
std::optional<Descriptor> descriptor_of(int fd, const Arena* ours) noexcept;
/// Does an entry of some /proc/PID/fd stand for an arena, whosever?
bool names_arena(const char* link) noexcept;

}  // namespace sdma::emulator
