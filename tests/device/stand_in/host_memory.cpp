// SPDX-License-Identifier: MIT
#include "host_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

namespace stand_in {

namespace {
/// Where a piece begins in its page: the driver packs small pieces.
constexpr std::size_t kPacked = 0x400;
}  // namespace

struct HostMemory::Pages {
  Pages(void* a, std::size_t b, bool o) : at(static_cast<std::byte*>(a)), bytes(b), own(o) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (own) ::munmap(at - kPacked, kPacked + bytes);
  }

  std::byte* at;
  std::size_t bytes;
  bool own;
};

HostMemory& HostMemory::get() {
  static auto* const only = new HostMemory;
  return *only;
}

Status HostMemory::allocate(void** out, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  void* at = ::mmap(nullptr, kPacked + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return kOutOfMemory;
  at = static_cast<std::byte*>(at) + kPacked;
  auto pages = std::make_shared<Pages>(at, bytes, true);
  const std::lock_guard lock(mutex_);
  all_.emplace(reinterpret_cast<Pointer>(at), std::move(pages));
  *out = at;
  return kSuccess;
}

Status HostMemory::pin(void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<Pointer>(at);
  const std::lock_guard lock(mutex_);
  const auto next = all_.lower_bound(begin);
  if (next != all_.end() && next->first < begin + bytes) return kAlreadyRegistered;
  if (next != all_.begin() && std::prev(next)->first + std::prev(next)->second->bytes > begin)
    return kAlreadyRegistered;
  all_.emplace(begin, std::make_shared<Pages>(at, bytes, false));
  return kSuccess;
}

std::optional<std::pair<Pointer, std::size_t>> HostMemory::range(Pointer at) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto it = all_.upper_bound(at);
  if (it == all_.begin() || at - std::prev(it)->first >= std::prev(it)->second->bytes) return std::nullopt;
  return std::pair(std::prev(it)->first, std::prev(it)->second->bytes);
}

Status HostMemory::free(void* at) {
  const std::lock_guard lock(mutex_);
  return all_.erase(reinterpret_cast<Pointer>(at)) == 1 ? kSuccess : kInvalidValue;
}

bool HostMemory::registered(void* at) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto it = all_.find(reinterpret_cast<Pointer>(at));
  return it != all_.end() && !it->second->own;
}

std::optional<Piece> HostMemory::find(Pointer at, std::size_t bytes) const noexcept {
  const std::shared_lock lock(mutex_);
  auto it = all_.upper_bound(at);
  if (it == all_.begin()) return std::nullopt;
  const auto& pages = (--it)->second;
  const auto skip = static_cast<std::size_t>(at - it->first);
  if (skip >= pages->bytes) return std::nullopt;
  return Piece{.keep = pages, .data = pages->at + skip, .size = std::min(bytes, pages->bytes - skip)};
}

}  // namespace stand_in
