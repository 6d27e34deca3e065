// SPDX-License-Identifier: MIT
#pragma once
// SVM: ranges of the program's own memory, with attributes, to which GPUs get access without an object.
//
//   svm.set(begin, bytes, {{kfd::SvmKind::access, gpu_id}});     // engines of that GPU see the program's pages there
//   svm.get(begin, bytes, attributes);
//   svm.forget(begin, bytes);                                    // the program unmaps the memory, or maps other there
//
//   attributes   preferred [AAAA][BBBB]     set() splits ranges at its ends, and fills gaps with the defaults: no
//                              ^--^         location, access for no GPU (XNACK is off), coherent, granularity 9
//
//   location     is remembered. There is one memory, so a prefetch moves nothing, and every location is reached
//   access       both kinds map the pages for the GPU; so does memory that the program may only read, for reading
//
// The kernel notices each change of the program's mappings; here, munmap and mmap by the C library's functions alone.
// What free() unmaps is thus forgotten when its place is mapped again.
//
// Any thread: a mutex of its own guards it, which no engine takes. What it calls back into this library (an allocator's
// munmap) passes through. Results are 0 or an errno. A set() that fails has changed no attribute, except that
// EADDRINUSE, for a range that an object has, and ENOMEM leave some ranges without access.
#include "../../kfd/abi.hpp"
#include "memory_objects.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <span>

namespace sdma::emulator {

class Svm {
 public:
  explicit Svm(Memory& m) noexcept : memory_(m) {}

  int set(std::uint64_t begin, std::uint64_t bytes, std::span<const kfd::SvmAttribute>);
  int get(std::uint64_t begin, std::uint64_t bytes, std::span<kfd::SvmAttribute>);
  void forget(std::uint64_t begin, std::uint64_t bytes) noexcept;
  /// False: there is no range, and nothing to forget.
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }

 private:
  struct Range {
    std::uint64_t end{};
    std::uint32_t preferred = kfd::kSvmUndefined, prefetched = kfd::kSvmUndefined;
    std::uint32_t flags = kfd::kSvmHostAccess | kfd::kSvmCoherent, granularity = 9;
    std::uint64_t access{}, in_place{};  ///< bit g: GPU g
    std::uint64_t mapped{};              ///< the same: its engines see the range
    bool read_only = false;              ///< as it is mapped
  };
  using Ranges = std::map<std::uint64_t, Range>;

  int check(std::uint64_t begin, std::uint64_t bytes) const;
  bool known(std::uint32_t gpu_id) const noexcept { return memory_.index(gpu_id) != memory_.gpus(); }
  Ranges::iterator split(std::uint64_t at);
  void change(Range&, const kfd::SvmAttribute&) noexcept;
  int map(std::uint64_t begin, Range&, bool writable);
  int unmap(std::uint64_t begin, Range&) noexcept;

  Memory& memory_;
  std::mutex mutex_;
  Ranges ranges_{};  ///< by their beginnings; they do not overlap
  std::atomic<bool> any_{false};
};

}  // namespace sdma::emulator
