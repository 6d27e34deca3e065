// SPDX-License-Identifier: MIT
#pragma once
// Host memory of several processes: pages of a file, which each process pins for its GPUs.
//
//   FilePages pages;
//   Status s = RegisteredMemory::of_process().take(gpu, file, bytes, alignment, pages);
//   RegisteredMemory::of_process().give(pages);        nothing uses them any more; they are still pinned
//   RegisteredMemory::of_process().collect();          unpins what was given, if no stream has commands left
//
// The driver's call that unpins pages blocks while a stream of the process waits, and a stream may wait for ever. So
// pages are unpinned later, and a device that calls `collect` issues nothing meanwhile. If another device or the
// program itself lets a stream wait at that moment, the call blocks until that stream goes on. Pages of a file never
// serve another request, because another process may still use them.
// Any thread; internal. Errors: the driver's status.
#include "../request.hpp"
#include "../share_server.hpp"
#include "gpu.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <mutex>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

class RegisteredMemory {
 public:
  static RegisteredMemory& of_process() {
    static auto* const only = new RegisteredMemory;  // never destroyed, like what it holds
    return *only;
  }
  Status take(PhysicalGpu& gpu, int file, std::uint64_t bytes, std::uint64_t alignment, FilePages& out) {
    if (gpu.attribute(kHostPointers) == 0) return kNotSupported;  // GPUs would have other addresses
    const auto pages = map_pages(file, bytes, std::max(alignment, kPage));
    if (!pages.at) return kOutOfMemory;
    const InContext here(gpu);
    const auto s = gpu.driver().host_register(pages.at, bytes, kPortable | kDeviceMapped);
    if (s == kSuccess) out = pages;
    else munmap(pages.base, pages.base_bytes);
    return s;
  }
  void give(const FilePages& p) {
    const std::lock_guard lock(mutex_);
    given_.push_back(p);
  }
  bool has_given() noexcept {
    const std::lock_guard lock(mutex_);
    return !given_.empty();
  }
  void collect(PhysicalGpu& gpu) noexcept {
    const std::lock_guard lock(mutex_);
    if (given_.empty() || !PhysicalGpu::all_idle()) return;
    const InContext here(gpu);
    for (const auto& p : given_)
      if (gpu.driver().host_unregister(p.at) == kSuccess) munmap(p.base, p.base_bytes);
    given_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<FilePages> given_;
};

}}}  // namespace sdma::v0_3::detail::cuda
