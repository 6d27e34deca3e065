// SPDX-License-Identifier: MIT
#pragma once
// How much of the host's memory the driver lets all processes use, and how much of it is in use.
//
//   total - total/64 - 3 GiB     GTT and USERPTR together: what ALLOC_MEMORY_OF_GPU may use. Where less than twice the
//                                3 GiB would be left, half of total - total/64 instead. The parameter
//                                no_system_mem_limit lifts this limit
//   total / 2                    GTT alone, because the kernel's allocator of such pages has a limit of its own
//
// Older kernels allow 15/16 of the total for the first and 3/8 for the second.
//
// Threads: under the node's lock. Nothing here fails.
#include <cstdint>
#include <utility>

namespace sdma::emulator {

struct SystemLimits {
  std::uint64_t all{};  ///< bytes of GTT and USERPTR
  std::uint64_t gtt{};  ///< bytes of GTT
};

/// The limits of a machine with `total` bytes of memory. `unlimited`: the parameter no_system_mem_limit.
constexpr SystemLimits system_limits(std::uint64_t total, bool unlimited) noexcept {
  constexpr std::uint64_t kReserve = std::uint64_t{3} << 30;
  const auto most = total - total / 64;
  const auto limit = most < 2 * kReserve ? most / 2 : most - kReserve;
  return {.all = unlimited ? ~std::uint64_t{0} : limit, .gtt = total / 2};
}

/// The bytes that a process uses through one GPU, by kind. Other processes read them (shared_limits.hpp).
struct MemoryUse {
  std::uint64_t vram{}, gtt{}, userptr{};  ///< allocated through /dev/kfd
  std::uint64_t gem_vram{}, gem_gtt{};     ///< allocated through a DRM node
  MemoryUse& operator+=(const MemoryUse& o) noexcept {
    for (const auto kind :
         {&MemoryUse::vram, &MemoryUse::gtt, &MemoryUse::userptr, &MemoryUse::gem_vram, &MemoryUse::gem_gtt})
      this->*kind += __atomic_load_n(&(o.*kind), __ATOMIC_RELAXED);
    return *this;
  }
};

/// Bytes that are counted as used until this is destroyed.
class Charge {
 public:
  Charge() = default;
  Charge(std::uint64_t& used, std::uint64_t bytes) noexcept : used_(&used), bytes_(bytes) {
    __atomic_fetch_add(used_, bytes_, __ATOMIC_SEQ_CST);
  }
  Charge(Charge&& o) noexcept : used_(o.used_), bytes_(o.bytes_) { o.used_ = nullptr; }
  Charge& operator=(Charge&& o) noexcept {
    std::swap(used_, o.used_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Charge() {
    if (used_) __atomic_fetch_sub(used_, bytes_, __ATOMIC_SEQ_CST);
  }

 private:
  std::uint64_t* used_{};
  std::uint64_t bytes_{};
};

}  // namespace sdma::emulator
