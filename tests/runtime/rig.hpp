// SPDX-License-Identifier: MIT
#pragma once
// A path of integration/runtime on a queue of a device, and signals in the device's memory.
#include "integration/runtime/gang.hpp"

#include "sdma/device/device.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"
#include "sync/support.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace rig {

using namespace sdma;

using test::far, test::past;

/// The members of ROCr's signal.
struct alignas(128) Signal64 {
  std::int64_t value = 0;
  std::uint64_t event_mailbox_ptr = 0;
  std::uint32_t event_id = 0;
  std::uint64_t start_ts = 0, end_ts = 0;
};
inline std::int64_t load(const Signal64& s) { return __atomic_load_n(&s.value, __ATOMIC_ACQUIRE); }
/// True when it is 0; false after a long time.
inline bool complete(Signal64& s) {
  return wait(Signal{.word = reinterpret_cast<std::uint64_t*>(&s.value), .va = hsa::value_va(s)}, Compare::eq, 0, far())
      .has_value();
}

/// The host's memory of a device.
class Host {
 public:
  Host(Device& d, std::uint64_t bytes) : memory_(*d.allocate({.bytes = bytes})) {}
  GpuVa va() const { return memory_.va(); }
  std::byte* begin() const { return memory_.host().data(); }
  std::byte* end() const { return begin() + memory_.bytes(); }
  void fill(std::uint32_t seed) {
    for (auto& b : memory_.host()) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  }

 private:
  Memory memory_;
};

/// Signals of a device; each begins at 1.
class Signals {
 public:
  explicit Signals(Device& d, std::size_t n) : memory_(*d.allocate({.bytes = n * sizeof(Signal64)})), n_(n) {
    for (std::size_t i = 0; i < n; ++i) new (&(*this)[i]) Signal64{.value = 1};
  }
  Signal64& operator[](std::size_t i) const { return reinterpret_cast<Signal64*>(memory_.host().data())[i]; }
  std::size_t size() const { return n_; }

 private:
  Memory memory_;
  std::size_t n_;
};

/// A queue and its path.
struct Lane {
  SignalMemory progress;
  Queue queue;
  runtime::CopyPath path;
  Lane(Device& d, const runtime::Engine& e, const QueueRequest& r)
      : progress(*d.create_signal()), queue(*d.create_queue(r)), path(e, queue.memory(), *progress) {}
  Lane(Device& d, std::uint32_t engine, const runtime::HostLink& link = {}, std::uint64_t ring = 64 * 1024)
      : Lane(d, *runtime::engine_of(d.topology().gpus[0].gfx, link), {.engine = EngineId{engine}, .ring_bytes = ring}) {
  }
};

}  // namespace rig
