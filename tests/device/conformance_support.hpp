// SPDX-License-Identifier: MIT
#pragma once
// What the tests of conformance share: a device of each kind, memory, a queue that counts what is done. Deadlines here
// are long: they end a test that would hang, and decide nothing.
#include "conformance.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

#include <cstring>

namespace conformance {

using namespace sdma;

inline Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }
/// For what must not happen: long enough to be seen if it does, and no failure if the machine is slow.
inline Deadline briefly() { return Deadline::in(std::chrono::milliseconds(20)); }

/// A value that must be there; what is missing ends the test with its reason.
template <class T> T must(Result<T, Diagnostic> r) {
  if (!r) FAIL(to_string(r.error()));
  return std::move(*r);
}

/// Runs `test(device, traits)` on each device.
template <class F> void on_each(F test) {
  for (const auto& under : devices_under_test()) {
    INFO("device: " << under.name);
    const auto device = under.open();
    REQUIRE(device);
    test(*device, under);
  }
}

/// Between the host's stores to GPU memory and the doorbell, and between a completion and the host's loads.
inline void flush(const Device& d) {
  for (std::uint32_t g = 0; g < d.topology().gpus.size(); ++g) REQUIRE(d.flush_host_writes(GpuId{g}) == Errc::ok);
}
/// One of the engines of a GPU: those of MI300X, or on a GPU with fewer engines another.
inline EngineId engine(const Device& d, std::uint32_t n, std::uint32_t gpu = 0) {
  return EngineId{n % d.topology().gpus[gpu].engines()};
}

/// A queue, its ring and a signal that counts what is done.
struct Lane {
  Device& device;
  SignalMemory done;
  Queue queue;
  Ring<> ring;
  std::uint32_t epoch = 0;

  explicit Lane(Device& d, QueueRequest r = {})
      : device(d), done(must(d.create_signal())), queue(must(d.create_queue(r))), ring(queue.memory()) {}

  /// Packets, and a fence after them; waits for room. What the host has stored before is flushed.
  template <class... P> void submit(const P&... p) {
    ++epoch;
    flush(device);
    const auto end = soon();
    for (Backoff b;;) {
      const auto e = ring.submit(p..., Fence{.addr = done->va, .value = epoch});
      if (e == Errc::ok) return;
      REQUIRE(e == Errc::no_space);
      REQUIRE(b.step(end));
    }
  }
  bool finish(Deadline d = soon()) {
    const bool done_in_time = wait(*done, Compare::ge, epoch, d, ring).has_value();
    flush(device);
    return done_in_time;
  }
};

inline Memory host_memory(Device& d, std::uint64_t bytes) { return must(d.allocate({.bytes = bytes})); }
inline Memory gpu_memory(Device& d, std::uint32_t gpu, std::uint64_t bytes) {
  return must(d.allocate({.where = GpuId{gpu}, .bytes = bytes}));
}

inline void pattern(std::span<std::byte> s, unsigned seed) {
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = static_cast<std::byte>((i * 131 + i / 251 + seed * 17) & 0xff);
}
inline bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}
inline bool all_are(std::span<const std::byte> s, unsigned value) {
  return s.empty() || (s[0] == static_cast<std::byte>(value) && std::memcmp(&s[0], &s[0] + 1, s.size() - 1) == 0);
}

}  // namespace conformance
