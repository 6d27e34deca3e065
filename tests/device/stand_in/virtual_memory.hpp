// SPDX-License-Identifier: MIT
#pragma once
// The GPUs' memory: handles, reserved addresses, and what is mapped where for which device.
//
//   reserved addresses   |....[ mapped: a handle's bytes ]........|   PROT_NONE for the host, mapped or not
//   the handle's bytes         [ memfd, mapped elsewhere ]            where commands find them
//   allocations          whole mappings of a handle of their own
//
// So a program that dereferences a GPU address crashes here too. Alignment, size and state errors return kInvalidValue.
// Any thread may use it; memory lives until the last mapping, handle and command have let go of it.
#include "memory.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace stand_in {

class VirtualMemory {
 public:
  static constexpr std::size_t kGranularity = std::size_t{2} * 1024 * 1024;
  static constexpr std::size_t kDeviceBytes = std::size_t{80} * 1024 * 1024 * 1024;

  static VirtualMemory& get();

  /// `exports`: its memory may become a descriptor.
  Status create(abi::Handle*, std::size_t bytes, int device, bool exports = false);
  /// The caller closes the descriptor.
  Status export_file(abi::Handle, int* file);
  /// A descriptor that `export_file` of this process or of another made; it stays the caller's.
  Status import_file(abi::Handle*, int file);
  Status release(abi::Handle);
  Status reserve(Pointer*, std::size_t bytes, std::size_t alignment, Pointer at);
  Status unreserve(Pointer, std::size_t bytes);
  Status map(Pointer, std::size_t bytes, std::size_t offset, abi::Handle);
  /// The range must consist of whole mappings; so must that of set_access.
  Status unmap(Pointer, std::size_t bytes);
  Status set_access(Pointer, std::size_t bytes, int device, int flags);

  /// As cuMemAlloc has it: for its device, and for those that have a way to it.
  Status allocate(Pointer*, std::size_t bytes, int device);
  Status free(Pointer);
  /// Lets a device use all that `of` has allocated so, and will. False: it may already.
  bool open_way(int device, int of);
  struct Range {
    Pointer start;
    std::size_t bytes;
    int device;
  };
  /// The allocation or mapping with this address.
  std::optional<Range> range(Pointer) const noexcept;

  bool reserved(Pointer) const noexcept;
  std::optional<Piece> find(Pointer, std::size_t bytes, int device, Use) const;

 private:
  class Bytes;
  struct Mapping {
    std::shared_ptr<Bytes> bytes;
    std::size_t offset, size;
    std::uint64_t readers{}, writers{};  ///< bit d: device d
  };
  using Mappings = std::map<Pointer, Mapping>;

  std::optional<std::pair<Mappings::iterator, Mappings::iterator>> whole_mappings(Pointer, std::size_t bytes);

  mutable std::shared_mutex mutex_;
  abi::Handle next_handle_ = 1;
  std::map<abi::Handle, std::shared_ptr<Bytes>> handles_;
  std::map<Pointer, std::size_t> reserved_;
  Mappings mappings_;
  struct Allocation {
    std::size_t bytes, mapped;
    int device;
    abi::Handle handle;
  };
  std::map<Pointer, Allocation> allocations_;
  std::array<std::uint64_t, 64> ways_{};  ///< of each device: bit d: device d may use its allocations
};

}  // namespace stand_in
