// SPDX-License-Identifier: MIT
#pragma once
// Pinned host memory of the whole process: what devices have freed serves later requests.
//
//   auto p = PinnedMemory::of_process().take(gpu, bytes);      // zeroed; at least so many bytes
//   PinnedMemory::of_process().give(p);
//
// Nothing is given back to the driver: that call blocks while a stream of the process waits, and a stream may wait for
// ever. A piece serves requests of at least half its size. Any thread; internal. Errors: the driver's status.
#include "gpu.hpp"

#include <mutex>
#include <vector>

namespace sdma::inline v0::detail::cuda {

class PinnedMemory {
 public:
  struct Piece {
    std::byte* at{};
    std::uint64_t bytes{};
    Status status = kSuccess;  ///< if `at` is null
    explicit operator bool() const noexcept { return at != nullptr; }
  };

  static PinnedMemory& of_process();
  Piece take(PhysicalGpu&, std::uint64_t bytes);
  void give(const Piece&);

 private:
  std::mutex mutex_;
  std::vector<Piece> spare_;
};

}  // namespace sdma::inline v0::detail::cuda
