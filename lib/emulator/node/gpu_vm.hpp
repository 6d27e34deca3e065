// SPDX-License-Identifier: MIT
#pragma once
// What one DRM file has mapped with GEM_VA: pieces of buffers at GPU addresses.
//
//   GpuVm vm(gpu);
//   vm.map(va, {.bytes = 4096, .offset = 0, .pages = buffer, .access = Access::read_write});
//   vm.join(space);     // ACQUIRE_VM: from now on, engines use these mappings as well
//
//   va  | piece of A          | piece of B |    |   clear and replace may cut a piece; engines never see a gap where a
//             |  replace with C   |                 mapping remains, because the address space changes in one step
//
// Until a file is acquired for /dev/kfd, no engine uses its mappings. Afterwards they share an address space with the
// mappings of MAP_MEMORY_TO_GPU, and neither can be mapped over the other.
//
// Threads: under the node's lock. Results are 0 or an errno: EINVAL for an overlap, ENOENT, EBUSY if a queue uses the
// piece, ENOMEM. A call that fails or throws has changed nothing.
#include "memory.hpp"

#include <map>
#include <memory>

namespace sdma::emulator {

class GpuVm {
 public:
  struct Piece {
    std::uint64_t bytes{}, offset{};  ///< offset: in the pages
    std::shared_ptr<Pages> pages{};
    Access access{};  ///< none of the bits: mapped, but every access is a fault
    std::uint32_t pins{};
  };

  explicit GpuVm(std::uint32_t gpu) : gpu_(gpu) {}

  int join(AddressSpace&);
  int map(std::uint64_t va, Piece);
  /// Maps, and removes what was mapped there by this file.
  int replace(std::uint64_t va, Piece);
  /// Removes the piece of `pages` that begins at `va`.
  int unmap(std::uint64_t va, const Pages& pages);
  /// Removes everything from [va, va + bytes).
  int clear(std::uint64_t va, std::uint64_t bytes);
  /// Removes all pieces of `pages`, except those that a queue uses.
  int remove(const Pages& pages);

  /// The piece that is mapped as exactly [va, va + bytes); null if there is none.
  Piece* exactly(std::uint64_t va, std::uint64_t bytes) noexcept;

 private:
  using Pieces = std::map<std::uint64_t, Piece>;

  Pieces::iterator first_after(std::uint64_t va) noexcept;
  int change(std::uint64_t va, std::uint64_t bytes, Pieces added);
  int exchange(std::span<const GpuVa> removed, Pieces added);
  Mapping mapping(std::uint64_t va, const Piece&) const noexcept;

  std::uint32_t gpu_;
  Pieces pieces_{};
  AddressSpace own_{};  ///< before join
  AddressSpace* space_ = &own_;
};

}  // namespace sdma::emulator
