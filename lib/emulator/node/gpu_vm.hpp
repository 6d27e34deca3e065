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
#include "memory_objects.hpp"

#include <cerrno>
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

  int join(AddressSpace& space) {
    std::vector<Mapping> all;
    for (const auto& [va, p] : pieces_) all.push_back(mapping(va, p));
    if (const auto e = space.map(all); e != Errc::ok) return e == Errc::no_space ? ENOMEM : EINVAL;
    space_ = &space;
    return 0;
  }
  int map(std::uint64_t va, Piece p) {
    const auto it = first_after(va);
    if (it != pieces_.end() && it->first < va + p.bytes) return EINVAL;
    return replace(va, std::move(p));
  }
  /// Maps, and removes what was mapped there by this file.
  int replace(std::uint64_t va, Piece p) {
    const auto bytes = p.bytes;
    Pieces added;
    added.emplace(va, std::move(p));
    return change(va, bytes, std::move(added));
  }
  /// Removes the piece of `pages` that begins at `va`.
  int unmap(std::uint64_t va, const Pages& pages) {
    const auto it = pieces_.find(va);
    return it == pieces_.end() || it->second.pages.get() != &pages ? ENOENT : change(va, it->second.bytes, {});
  }
  /// Removes everything from [va, va + bytes).
  int clear(std::uint64_t va, std::uint64_t bytes) { return change(va, bytes, {}); }
  /// Removes all pieces of `pages`, except those that a queue uses.
  int remove(const Pages& pages) {
    std::vector<GpuVa> removed;
    for (const auto& [at, p] : pieces_)
      if (p.pages.get() == &pages && p.pins == 0) removed.push_back(GpuVa{at});
    return exchange(removed, {});
  }

  /// The piece that is mapped as exactly [va, va + bytes); null if there is none.
  Piece* exactly(std::uint64_t va, std::uint64_t bytes) noexcept {
    const auto it = pieces_.find(va);
    return it == pieces_.end() || it->second.bytes != bytes ? nullptr : &it->second;
  }

 private:
  using Pieces = std::map<std::uint64_t, Piece>;

  /// The first piece that ends after `va`.
  Pieces::iterator first_after(std::uint64_t va) noexcept {
    auto it = pieces_.upper_bound(va);
    if (it == pieces_.begin()) return it;
    const auto before = std::prev(it);
    return va - before->first < before->second.bytes ? before : it;
  }
  /// Removes everything from [va, va + bytes), and adds pieces.
  int change(std::uint64_t va, std::uint64_t bytes, Pieces added) {
    std::vector<GpuVa> removed;
    const auto end = va + bytes, first = va;
    for (auto it = first_after(first); it != pieces_.end() && it->first < end; ++it) {
      const auto& [at, p] = *it;
      if (p.pins != 0) return EBUSY;
      removed.push_back(GpuVa{at});
      const auto part = [&, &piece = p](std::uint64_t from, std::uint64_t to, std::uint64_t begin) {
        auto rest = piece;
        rest.offset += from - begin;
        rest.bytes = to - from;
        added.emplace(from, std::move(rest));
      };
      if (at < first) part(at, first, at);
      if (at + p.bytes > end) part(end, at + p.bytes, at);
    }
    return exchange(removed, std::move(added));
  }
  /// Removes whole pieces, and adds others.
  int exchange(std::span<const GpuVa> removed, Pieces added) {
    std::vector<Mapping> fresh;
    for (const auto& [at, p] : added) fresh.push_back(mapping(at, p));
    const auto e = space_->replace(removed, fresh, engine_patience());
    if (e == Errc::no_space) return ENOMEM;
    if (e != Errc::ok && e != Errc::timed_out) return EINVAL;
    for (const auto at : removed) pieces_.erase(at.value);
    pieces_.merge(added);
    return 0;
  }
  Mapping mapping(std::uint64_t va, const Piece& p) const noexcept {
    const auto& info = p.pages->info;
    return {.va = GpuVa{va},
            .bytes = p.bytes,
            .host = p.pages->view + p.offset,
            .owner = (info.flags & kfd::kVram) != 0 ? info.gpu : Mapping::kHost,
            .gpus = std::uint64_t{1} << gpu_,
            .access = p.access};
  }

  std::uint32_t gpu_;
  Pieces pieces_{};
  AddressSpace own_{};  ///< before join
  AddressSpace* space_ = &own_;
};

}  // namespace sdma::emulator
