// SPDX-License-Identifier: MIT
#pragma once
// A ring in plain memory with nobody who reads it: tests move rptr themselves.
#include "sdma/core/deadline.hpp"
#include "sdma/queue/ring.hpp"

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>

namespace test {

struct RingBytes {
  static constexpr std::size_t kDwords = 256;
  alignas(256) std::uint32_t dwords[kDwords]{};
  alignas(64) std::uint64_t rptr[2]{};
  alignas(64) std::uint64_t wptr = 0, doorbell = 0;

  sdma::RingMemory memory() {
    return {.dwords = dwords, .rptr = rptr, .wptr = &wptr, .doorbell = &doorbell, .caching = sdma::Caching::write_back};
  }
  void read_to(std::uint64_t position) { std::atomic_ref(rptr[0]).store(position, std::memory_order_release); }
  std::uint64_t published() { return std::atomic_ref(doorbell).load(std::memory_order_acquire); }
};

/// The address at which an engine of these tests finds a word: the host's own.
template <class T> sdma::GpuVa va(const T& word) { return sdma::GpuVa{reinterpret_cast<std::uintptr_t>(&word)}; }

inline sdma::Deadline soon() { return sdma::Deadline::in(std::chrono::milliseconds(5)); }
/// A test that is right never gets there.
inline sdma::Deadline far() { return sdma::Deadline::in(std::chrono::seconds(60)); }
inline sdma::Deadline past() { return {}; }

}  // namespace test
