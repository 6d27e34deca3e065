// SPDX-License-Identifier: MIT
#include "pinned.hpp"

#include <cstring>

namespace sdma::inline v0::detail::cuda {

PinnedMemory& PinnedMemory::of_process() {
  static auto* const only = new PinnedMemory;  // never destroyed, like what it holds
  return *only;
}

PinnedMemory::Piece PinnedMemory::take(PhysicalGpu& gpu, std::uint64_t bytes) {
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
    out.status = gpu.driver().host_allocate(&at, bytes, kPortable | kDeviceMapped);
    out.at = static_cast<std::byte*>(at);
    out.bytes = bytes;
  }
  if (out) std::memset(out.at, 0, bytes);
  return out;
}

void PinnedMemory::give(const Piece& p) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(p);
}

}  // namespace sdma::inline v0::detail::cuda
