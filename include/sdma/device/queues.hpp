// SPDX-License-Identifier: MIT
#pragma once
// Queues of a device in the form that programs need: one queue for each engine, created on first use; a completion that
// the link supports; and a drain before destruction.
//
//   EngineQueues queues{device};
//   auto* lane = *queues.between(GpuId{0}, GpuId{2});          // the engine that the node recommends; always the same
//   auto slot = lane->ring.reserve(64);                        // Ring<Producers::many>: any thread
//   AnyWriter w{slot->dwords, {lane->ring.generation()}};      // or Writer, where every GPU is an MI300X
//   w.copy({.src = a, .dst = b, .bytes = n});
//   complete_by_link(w, device.topology(), GpuId{0}, std::nullopt, *done, epoch);
//   lane->ring.publish(*slot, w.written().size());
//   ...
//   drain(lane->ring, *word, ++epoch, Deadline::in(1s));       // first: destroying a queue does not drain it
//
// Any thread may use an EngineQueues. A lane stays at its address until the EngineQueues is destroyed. Destroy the
// EngineQueues before the device. `complete` is a recipe like those in sync/recipes.hpp. Errors: the device's
// Diagnostics; the Writer's Errc; a StallReport from drain.
#include "sdma/device/device.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/wait.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace sdma { inline namespace v0_3 {

class EngineQueues {
 public:
  /// One queue and its ring.
  struct Lane {
    Queue queue{};               ///< the device's queue
    Ring<Producers::many> ring;  ///< the ring in that queue's memory
    explicit Lane(Queue q) noexcept : queue(std::move(q)), ring(queue.memory()) {}
  };

  explicit EngineQueues(Device& d, std::uint64_t ring_bytes = 64 * 1024) : device_(d), ring_bytes_(ring_bytes) {}

  /// The queue of that engine; the first call creates it. Creating a queue preempts all queues of the GPU, so make the
  /// first call before you measure anything.
  Result<Lane*, Diagnostic> on(GpuId g, EngineId e) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& lane = lanes_[{g, e}];
    if (!lane) {
      auto q = device_.create_queue({.gpu = g, .engine = e, .ring_bytes = ring_bytes_});
      if (!q) return q.error();
      lane = std::make_unique<Lane>(std::move(*q));
    }
    return lane.get();
  }
  /// The queue on `src` whose engine the node recommends for copies to `dst`.
  Result<Lane*, Diagnostic> between(GpuId src, GpuId dst) { return on(src, device_.topology().engine_for(src, dst)); }
  /// The queue on `g` whose engine faces the host, for one direction.
  Result<Lane*, Diagnostic> host(GpuId g, HostDirection d) { return on(g, device_.topology().engine_for(g, d)); }

 private:
  Result<Lane*, Diagnostic> on(GpuId g, const Result<EngineId>& e) {
    if (e) return on(g, *e);
    return Diagnostic{.where = "EngineQueues",
                      .message = "there is no such GPU, or it has no suitable engine",
                      .hint = "topology() lists the GPUs and their engines"};
  }

  Device& device_;
  const std::uint64_t ring_bytes_;
  std::mutex mutex_;
  std::map<std::pair<GpuId, EngineId>, std::unique_ptr<Lane>> lanes_;
};

/// Signals `word`, which lies in the memory of `word_at` (nullopt: the host's), from a queue of `engine_of`: adds 1 if
/// the link carries 64-bit atomics, otherwise stores `epoch`. With a single producer that counts epochs up from 1, a
/// wait for >= epoch works with both. If several queues signal one word, they need the atomic (see
/// Topology::completion).
template <class T>
Errc complete_by_link(BasicWriter<T>& w, const Topology& t, GpuId engine_of, std::optional<GpuId> word_at,
                      const Signal& word, std::uint32_t epoch) noexcept {
  return t.completion(engine_of, word_at) == Completion::atomic ? complete_with_atomic(w, word.va, 1)
                                                                : complete_with_fence(w, word.va, epoch);
}

/// Appends a FENCE and waits for it. Returns once all packets that were published before the call are complete, or at
/// the deadline with a report of the queue. `word`: nothing else may use it; free it after the queue, because a late
/// FENCE still stores to it. `epoch`: a new value each time. Call Device::fault to learn whether the queue had a fault.
template <Producers K>
Result<std::uint64_t, StallReport> drain(Ring<K>& ring, const Signal& word, std::uint32_t epoch,
                                         Deadline until) noexcept {
  const auto fence = completion_fence(ring.generation(), word.va, epoch);
  for (Backoff b; ring.submit(fence) == Errc::no_space;)
    if (!b.step(until)) break;
  return wait(word, Compare::eq, epoch, until, ring);
}

}}  // namespace sdma::v0_3
