// SPDX-License-Identifier: MIT
#pragma once
// Pinned host memory of the whole process: what devices have freed serves later requests.
//
//   auto p = PinnedMemory::of_process().take(gpu, bytes);   // zeroed; at least so many bytes, from a page on
//   PinnedMemory::of_process().give(p);
//
// Nothing is given back to the driver: that call blocks while a stream of the process waits, and a stream may wait for
// ever. A piece serves requests of at least half its size. The driver's pieces begin at any multiple of some hundred
// bytes once a program has pinned small ones: with driver 580.159 on an H200, a piece of 4,096 bytes at 0x...2b400.
// Any thread; internal. Errors: the driver's status.
#include "../request.hpp"
#include "gpu.hpp"

#include <cstring>
#include <mutex>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

inline std::byte* aligned(std::byte* p, std::uint64_t to) noexcept {
  return p + (round_up(reinterpret_cast<std::uintptr_t>(p), to) - reinterpret_cast<std::uintptr_t>(p));
}

class PinnedMemory {
 public:
  struct Piece {
    std::byte* at{};
    std::uint64_t bytes{};
    Status status = kSuccess;  ///< if `at` is null
    explicit operator bool() const noexcept { return at != nullptr; }
  };

  static PinnedMemory& of_process() {
    static auto* const only = new PinnedMemory;  // never destroyed, like what it holds
    return *only;
  }
  Piece take(PhysicalGpu& gpu, std::uint64_t bytes) {
    Piece out;
    {
      const std::lock_guard lock(mutex_);
      auto best = spare_.end();
      for (auto s = spare_.begin(); s != spare_.end(); ++s)
        if (s->bytes >= bytes && s->bytes / 2 <= bytes && (best == spare_.end() || s->bytes < best->bytes)) best = s;
      if (best != spare_.end()) {
        out = *best;
        spare_.erase(best);
      }
    }
    if (!out) {
      const InContext here(gpu);
      void* at = nullptr;
      out.status = gpu.driver().host_allocate(&at, bytes + kPage, kPortable | kDeviceMapped);
      if (at) out.at = aligned(static_cast<std::byte*>(at), kPage);
      out.bytes = bytes;
    }
    if (out) std::memset(out.at, 0, bytes);
    return out;
  }
  void give(const Piece& p) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(p);
  }

 private:
  std::mutex mutex_;
  std::vector<Piece> spare_;
};

}}}  // namespace sdma::v0_3::detail::cuda
