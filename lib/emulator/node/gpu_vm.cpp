// SPDX-License-Identifier: MIT
#include "gpu_vm.hpp"

#include <cerrno>

namespace sdma::emulator {

Mapping GpuVm::mapping(std::uint64_t va, const Piece& p) const noexcept {
  const auto& info = p.pages->info;
  return {.va = GpuVa{va},
          .bytes = p.bytes,
          .host = p.pages->view + p.offset,
          .owner = (info.flags & kfd::kVram) != 0 ? info.gpu : Mapping::kHost,
          .gpus = std::uint64_t{1} << gpu_,
          .access = p.access};
}

int GpuVm::join(AddressSpace& space) {
  std::vector<Mapping> all;
  for (const auto& [va, p] : pieces_) all.push_back(mapping(va, p));
  if (const auto e = space.map(all); e != Errc::ok) return e == Errc::no_space ? ENOMEM : EINVAL;
  space_ = &space;
  return 0;
}

/// The first piece that ends after `va`.
GpuVm::Pieces::iterator GpuVm::first_after(std::uint64_t va) noexcept {
  auto it = pieces_.upper_bound(va);
  if (it == pieces_.begin()) return it;
  const auto before = std::prev(it);
  return va - before->first < before->second.bytes ? before : it;
}

/// Removes everything from [va, va + bytes), and adds pieces.
int GpuVm::change(std::uint64_t va, std::uint64_t bytes, Pieces added) {
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

int GpuVm::map(std::uint64_t va, Piece p) {
  const auto it = first_after(va);
  if (it != pieces_.end() && it->first < va + p.bytes) return EINVAL;
  return replace(va, std::move(p));
}

int GpuVm::replace(std::uint64_t va, Piece p) {
  const auto bytes = p.bytes;
  Pieces added;
  added.emplace(va, std::move(p));
  return change(va, bytes, std::move(added));
}

int GpuVm::unmap(std::uint64_t va, const Pages& pages) {
  const auto it = pieces_.find(va);
  return it == pieces_.end() || it->second.pages.get() != &pages ? ENOENT : change(va, it->second.bytes, {});
}

int GpuVm::clear(std::uint64_t va, std::uint64_t bytes) { return change(va, bytes, {}); }

int GpuVm::remove(const Pages& pages) {
  std::vector<GpuVa> removed;
  for (const auto& [at, p] : pieces_)
    if (p.pages.get() == &pages && p.pins == 0) removed.push_back(GpuVa{at});
  return exchange(removed, {});
}

/// Removes whole pieces, and adds others.
int GpuVm::exchange(std::span<const GpuVa> removed, Pieces added) {
  std::vector<Mapping> fresh;
  for (const auto& [at, p] : added) fresh.push_back(mapping(at, p));
  const auto e = space_->replace(removed, fresh, engine_patience());
  if (e == Errc::no_space) return ENOMEM;
  if (e != Errc::ok && e != Errc::timed_out) return EINVAL;
  for (const auto at : removed) pieces_.erase(at.value);
  pieces_.merge(added);
  return 0;
}

GpuVm::Piece* GpuVm::exactly(std::uint64_t va, std::uint64_t bytes) noexcept {
  const auto it = pieces_.find(va);
  return it == pieces_.end() || it->second.bytes != bytes ? nullptr : &it->second;
}

}  // namespace sdma::emulator
