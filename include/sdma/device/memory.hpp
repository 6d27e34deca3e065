// SPDX-License-Identifier: MIT
#pragma once
// What a device lends: memory, signals, events. The destructor of a handle gives back what it holds.
//
//   Memory a = *device.allocate({.where = GpuId{0}, .bytes = 1 << 20});
//   a.host()[5] = std::byte{1};              // if the host can reach it (all host memory; VRAM of a large-BAR GPU)
//   ring.submit(CopyLinear{.src = a.va(), .dst = b, .bytes = n});
//
//   SignalMemory done = *device.create_signal();
//   ring.submit(Atomic{.addr = done->va, .value = 1});
//   wait(*done, Compare::eq, 1, deadline, ring);
//
//   Event e = *device.create_event();        // to block without polling: a mailbox and an interrupt
//   ring.submit(Fence{.addr = e.mailbox(), .value = e.id()}, Trap{.context = e.id()});
//   device.wait_event(e, deadline);
//
// Destroy queues before the memory that their packets refer to: an engine may touch that memory until the queue's
// destructor returns. So declare queues after memory. Handles may outlive the device: the memory stays until they are
// destroyed.
//
// Handles are move-only, and each belongs to one thread at a time. Any threads may share the memory itself. No errors:
// the device that creates a handle reports them.
#include "sdma/core/lease.hpp"
#include "sdma/core/units.hpp"
#include "sdma/sync/signal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sdma::inline v0 {

/// What memory is for. The KFD device chooses the memory's flags accordingly.
enum class Purpose : std::uint8_t {
  data,    ///< bytes that engines copy
  words,   ///< signals, flags, timestamps: uncached if that matters
  packets  ///< rings and indirect buffers that the host writes
};

/// A request for memory.
struct MemoryRequest {
  std::optional<GpuId> where{};     ///< whose memory; nullopt: the host's
  std::uint64_t bytes{};            ///< 1 or more
  std::uint64_t alignment = 4096;   ///< of the host address and the VA: a power of two
  std::uint64_t gpus = ~0ull;       ///< bit g: GPU g may access it
  Purpose purpose = Purpose::data;  ///< how engines and the host use it
  bool host_access = true;          ///< for a GPU's memory: map it for the host too
  bool shareable = false;           ///< other processes may open it: device/share.hpp
};

/// Memory at one GPU address, the same for every GPU that may access it. Host memory is zeroed; the contents of a GPU's
/// memory are undefined.
class Memory {
 public:
  Memory() = default;
  Memory(Lease lease, GpuVa va, std::uint64_t bytes, std::byte* host) noexcept
      : lease_(std::move(lease)), va_(va), bytes_(bytes), host_(host) {}

  /// The address of its first byte, as engines see it.
  GpuVa va() const noexcept { return va_; }
  /// Its length in bytes.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// All of the memory as the host sees it; empty if the host cannot reach it.
  std::span<std::byte> host() const noexcept { return {host_, host_ ? static_cast<std::size_t>(bytes_) : 0}; }
  /// The same bytes as an array of the trivial type `T`.
  template <class T> std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(host_), host_ ? static_cast<std::size_t>(bytes_ / sizeof(T)) : 0};
  }
  /// Its number on its device.
  std::uint64_t id() const noexcept { return lease_.id(); }
  /// Gives it back now.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  GpuVa va_{};
  std::uint64_t bytes_ = 0;
  std::byte* host_ = nullptr;
};

/// A request for a signal.
struct SignalRequest {
  std::optional<GpuId> where{};  ///< whose memory; nullopt: the host's, which is right if a host thread waits
  std::uint64_t value{};         ///< the initial value
};

/// A signal's 64-bit word, alone on its cache line.
class SignalMemory {
 public:
  SignalMemory() = default;
  SignalMemory(Lease lease, const Signal& s) noexcept : lease_(std::move(lease)), signal_(s) {}

  const Signal& operator*() const noexcept { return signal_; }
  const Signal* operator->() const noexcept { return &signal_; }
  /// Gives it back now.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  Signal signal_{};
};

/// An interrupt that a thread can wait for. A TRAP takes effect only if an earlier FENCE has stored the id in the
/// mailbox; the wake-up clears the mailbox. One waiter at a time.
class Event {
 public:
  Event() = default;
  Event(Lease lease, GpuVa mailbox, std::uint32_t id) noexcept : lease_(std::move(lease)), mailbox_(mailbox), id_(id) {}

  /// The address of the word to which a fence stores `id` before the TRAP.
  GpuVa mailbox() const noexcept { return mailbox_; }
  /// The event's number: Trap::context, and the value of the fence.
  std::uint32_t id() const noexcept { return id_; }
  /// Gives it back now.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  GpuVa mailbox_{};
  std::uint32_t id_ = 0;
};

}  // namespace sdma::inline v0
