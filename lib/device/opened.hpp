// SPDX-License-Identifier: MIT
#pragma once
// Which memory of a device belongs to which other process.
//
//   opened.add(id, {.va = va, .bytes = n, .socket = handle.socket, .owner = fetched.owner});
//   opened.origin(va)          the process, and whether it has ended; nullopt for memory of one's own
//   opened.owner(socket)       the process, if memory of it is open: all of it shares one descriptor of the process
//
// Any thread; one lock. Internal. No errors.
#include "sdma/core/units.hpp"
#include "share_server.hpp"

#include <algorithm>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace detail {

class OpenedMemory {
 public:
  struct Piece {
    GpuVa va{};
    std::uint64_t bytes{};
    std::array<std::uint64_t, 2> socket{};
    std::shared_ptr<OwnerProcess> owner{};
  };
  void add(std::uint64_t id, Piece p) {
    const std::lock_guard lock(mutex_);
    pieces_.insert_or_assign(id, std::move(p));
  }
  void remove(std::uint64_t id) noexcept {
    const std::lock_guard lock(mutex_);
    pieces_.erase(id);
  }
  std::shared_ptr<OwnerProcess> owner(const std::array<std::uint64_t, 2>& socket) const {
    const auto p = find([&](const Piece& piece) { return piece.socket == socket; });
    return p.owner;
  }
  std::optional<MemoryOwner> origin(GpuVa va) const {
    const auto p = find([&](const Piece& piece) { return va.value - piece.va.value < piece.bytes; });
    if (!p.owner) return {};
    return MemoryOwner{static_cast<std::uint32_t>(p.owner->pid()), p.owner->ended()};
  }

 private:
  template <class Is> Piece find(Is is) const {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(pieces_.begin(), pieces_.end(), [&](const auto& p) { return is(p.second); });
    return at == pieces_.end() ? Piece{} : at->second;
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Piece> pieces_{};
};

}}}  // namespace sdma::v0_3::detail
