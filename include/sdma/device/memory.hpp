#pragma once
// What a device lends: memory, signals, events. Each handle gives back what it holds when it ends.
//
//   Memory a = *device.allocate({.where = GpuId{0}, .bytes = 1 << 20});
//   a.host()[5] = std::byte{1};              // where the host can reach it (all of a large-BAR GPU, all host memory)
//   ... CopyLinear{.src = a.va(), ...}
//
//   SignalMemory done = *device.create_signal();
//   ... Atomic{.addr = done->va, .value = ~0ull};   wait(*done, Compare::eq, 0, deadline, ring)
//
//   Event e = *device.create_event();        // blocks without looking: a mailbox and an interrupt
//   ... Fence{.addr = e.mailbox(), .value = e.id()}, Trap{.context = e.id()};   device.wait_event(e, deadline)
//
// Free what packets name after the queues that may still execute them: a queue's destructor returns when the engine touches
// nothing, so declare queues behind memory. Handles may outlive the device: the memory stays until they end.
//
// Handles are move-only; one thread at a time each. What is behind them is as shared as memory is. No errors: a device
// makes them, and says why not.
#include "sdma/core/units.hpp"
#include "sdma/sync/signal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sdma {
inline namespace v0 {

/// Something that goes back to `owner` once. What every handle holds.
class Lease {
 public:
  using Return = void (*)(void* owner, std::uint64_t id) noexcept;

  Lease() = default;
  Lease(Return give_back, void* owner, std::uint64_t id) noexcept : return_(give_back), owner_(owner), id_(id) {}
  Lease(Lease&& o) noexcept : return_(std::exchange(o.return_, nullptr)), owner_(o.owner_), id_(o.id_) {}
  Lease& operator=(Lease&& o) noexcept {
    if (this == &o) return *this;
    reset();
    return_ = std::exchange(o.return_, nullptr);
    owner_ = o.owner_;
    id_ = o.id_;
    return *this;
  }
  ~Lease() { reset(); }
  void reset() noexcept {
    if (return_) std::exchange(return_, nullptr)(owner_, id_);
  }
  explicit operator bool() const noexcept { return return_ != nullptr; }
  std::uint64_t id() const noexcept { return id_; }

 private:
  Return return_ = nullptr;
  void* owner_ = nullptr;
  std::uint64_t id_ = 0;
};

/// What memory is for: KFD chooses flags by it.
enum class Purpose : std::uint8_t {
  data,    ///< bytes that engines copy
  words,   ///< signals, flags, timestamps: uncached where that matters
  packets  ///< rings and indirect buffers that the host writes
};

struct MemoryRequest {
  std::optional<GpuId> where{};  ///< whose memory; nullopt: the host's
  std::uint64_t bytes{};
  std::uint64_t alignment = 4096;  ///< of address and VA: a power of two
  std::uint64_t gpus = ~0ull;      ///< bit g: GPU g may touch it
  Purpose purpose = Purpose::data;
  bool host_access = true;  ///< of a GPU's memory: map it for the host too
};

/// Memory under one GPU address, the same for every GPU that may touch it. The host's is zeroed, a GPU's holds anything.
class Memory {
 public:
  Memory() = default;
  Memory(Lease lease, GpuVa va, std::uint64_t bytes, std::byte* host) noexcept
      : lease_(std::move(lease)), va_(va), bytes_(bytes), host_(host) {}

  GpuVa va() const noexcept { return va_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// All of it as the host sees it; empty where the host cannot reach it.
  std::span<std::byte> host() const noexcept { return {host_, host_ ? static_cast<std::size_t>(bytes_) : 0}; }
  /// The same as an array of trivial `T`.
  template <class T> std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(host_), host_ ? static_cast<std::size_t>(bytes_ / sizeof(T)) : 0};
  }
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  GpuVa va_{};
  std::uint64_t bytes_ = 0;
  std::byte* host_ = nullptr;
};

struct SignalRequest {
  std::optional<GpuId> where{};  ///< whose memory; nullopt: the host's, where hosts wait
  std::uint64_t value{};         ///< to begin with
};

/// A signal's 64-bit word, alone on its cache line.
class SignalMemory {
 public:
  SignalMemory() = default;
  SignalMemory(Lease lease, const Signal& s) noexcept : lease_(std::move(lease)), signal_(s) {}

  const Signal& operator*() const noexcept { return signal_; }
  const Signal* operator->() const noexcept { return &signal_; }
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  Signal signal_{};
};

/// An interrupt that a thread can sleep for. A TRAP counts only if a FENCE has stored the id in the mailbox before; the
/// wake-up takes the id out again. One waiter at a time.
class Event {
 public:
  Event() = default;
  Event(Lease lease, GpuVa mailbox, std::uint32_t id) noexcept : lease_(std::move(lease)), mailbox_(mailbox), id_(id) {}

  GpuVa mailbox() const noexcept { return mailbox_; }
  std::uint32_t id() const noexcept { return id_; }
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  GpuVa mailbox_{};
  std::uint32_t id_ = 0;
};

}  // namespace v0
}  // namespace sdma
