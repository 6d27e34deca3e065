// SPDX-License-Identifier: MIT
#pragma once
// One queue of an engine as a state machine. This is the executable model of ordering (docs/engine.md).
//
//   AddressSpace::Reader reader{space, GpuId{0}};
//   Pipeline p{{.ring = memory.dwords, .rptr = memory.rptr, .reader = &reader, .gpu = GpuId{0}, .engine = EngineId{2},
//               .queue = 17, .ordering = Ordering::adversarial, .seed = 42}};
//   for (;;) {
//     p.doorbell(load_acquire(doorbell));                       // it never reads past this position
//     switch (p.step(64)) {                                     // at most 64 actions
//       case Progress::progressed: continue;
//       case Progress::waiting: watch(p.waits_for()); ...       // a poll is not satisfied: call again soon
//       case Progress::idle: sleep_until_doorbell(); ...        // everything has landed, rptr is written
//       case Progress::stopped: return report(p.fault());
//     }
//   }
//
//   doorbell -> prefetch -> front end -> window of packets in flight -> memory
//                           in order     they land by the rules of the Ordering (sdma/engine/ordering.hpp)
//
// Everything lands in finite time: `step` returns idle or waiting only when nothing is left to land. A step takes
// bounded time, however large its packets are: after about 4 MiB it returns, and the next step continues in the same
// packet. The window has a fixed size: when it is full, the front end waits until a packet has landed. Nothing is
// allocated after construction, except by an adversarial pipeline that prefetches its first indirect buffer.
//
// Each packet is checked (privilege, fields, footprint) before its first store. A packet that fails the check writes
// nothing and stops the queue for good. In rocr, the effects of earlier packets land first; in adversarial, any part of
// them lands and the rest is dropped; in strict, nothing is in flight. The queue also stops at a bad doorbell, and at a
// packet whose memory is unmapped before it lands: then everything in flight is dropped.
//
// Threads: one at a time. A Pipeline accesses memory as an engine does: fences are release stores of 32 bits, atomics
// are lock-free read-modify-writes, polls are acquire loads, and copies are plain accesses. Errors: fault().
#include "chooser.hpp"
#include "execute.hpp"
#include "sdma/engine/fault.hpp"
#include "sdma/engine/ordering.hpp"
#include "sdma/stream/reader.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// A packet, at the moment when it starts or when all its effects have landed.
struct PacketEvent {
  std::uint64_t queue{}, position{}, ticks{};  ///< position: in bytes; if depth > 0, that of the INDIRECT
  std::uint8_t depth{};                        ///< 0: in the ring; n: in an indirect buffer, nested n deep
  PacketView view{};                           ///< valid during the call; a long payload may be missing from its dwords
};

/// Notifications to the owner. Null functions are not called. All of them run on the thread that calls step, inside a
/// Section of its Reader. They must not call a member of the Pipeline.
struct PipelineHooks {
  void* context = nullptr;  ///< passed to the functions below
  /// Called when a TRAP interrupts the host. Unless the ordering is adversarial, rptr is written first.
  void (*trap)(void* context, std::uint64_t queue, std::uint32_t trap_context) noexcept = nullptr;
  void (*begin)(void* context, const PacketEvent&) noexcept = nullptr;  ///< a packet starts, or begins to wait
  void (*end)(void* context, const PacketEvent&) noexcept = nullptr;    ///< its effects have landed
  /// Also called for an expired poll after which the queue continues.
  void (*fault)(void* context, const Fault&) noexcept = nullptr;
};

/// What happens to a queue when one of its polls expires. What real engines do is not known (docs/litmus.md, Q9).
/// `stop`: the queue stops with a fault; `keep_running`: it reports one and continues; `either`: the chooser decides.
enum class PollTimeout : std::uint8_t { stop, keep_running, either };

/// What becomes of an INDIRECT. No driver enables indirect buffers for the queues of programs, and what an engine then
/// does is not known (docs/packets.md). `run`: its packets are executed; `ignore`: the queue passes it, and does not
/// read its address; `stall`: the queue never gets past it; `fault`: the queue stops with bad_ib.
enum class IndirectBuffers : std::uint8_t { run, ignore, stall, fault };
/// "run", "ignore", "stall", "fault".
constexpr std::string_view name(IndirectBuffers i) noexcept {
  constexpr std::string_view kNames[] = {"run", "ignore", "stall", "fault"};
  return kNames[static_cast<std::size_t>(i)];
}

/// The parts and parameters of a Pipeline. `ring` and `reader` are required.
struct PipelineConfig {
  std::span<std::uint32_t> ring{};  ///< its size in dwords is a power of two; the pipeline only reads it
  /// Twice the ring, for packets that cross its end; empty: the pipeline has its own.
  std::span<std::uint32_t> copy{};
  /// In bytes; execution begins at its value. Null: execution begins at 0, and the position is not published.
  std::uint64_t* rptr{};
  AddressSpace::Reader* reader{};                  ///< pipelines that one thread steps may share it
  GpuId gpu{};                                     ///< for faults
  EngineId engine{};                               ///< for faults, and for PRE_EXE
  std::uint64_t queue{};                           ///< for faults and traces
  Generation generation = kDefaultGeneration;      ///< whose packets the engine executes; others are unknown to it
  Ordering ordering = Ordering::strict;            ///< when effects may land
  std::uint64_t seed = 0;                          ///< for rocr and adversarial; not used with a chooser
  Chooser* chooser{};                              ///< not owned
  std::uint32_t pieces = 8;                        ///< 1 to 64: into how many pieces adversarial may cut a copy
  std::uint32_t window = 16;                       ///< 1 to 32: packets in flight
  bool prefetch = true, late_rptr = true;          ///< parts of adversarial; turn them off to keep a search small
  bool split_stores = true, holding_polls = true;  ///< the same
  /// For adversarial: how many steps may pass without a landing when no packet can start. Use 0 in a search.
  std::uint32_t linger = 0;
  /// For adversarial: the queue may fall asleep when its doorbell rings, and before any packet. The caller of `step`
  /// must call `awaken` in the end.
  bool sleeps = false;
  PollTimeout poll_timeout = PollTimeout::stop;     ///< what an expired poll does to the queue
  IndirectBuffers indirect = IndirectBuffers::run;  ///< what becomes of an INDIRECT
  TickSource ticks{};                               ///< the node's clock
  EngineState* state{};                             ///< null: the pipeline's own
  PipelineHooks hooks{};                            ///< notifications; none by default
};

enum class Progress : std::uint8_t {
  progressed,  ///< at least one action was performed: call again
  idle,        ///< all published packets are complete, and rptr is written
  waiting,  ///< a poll (or a looping atomic, a semaphore) is not satisfied, or the queue sleeps; no action is possible
  stopped,  ///< fault() says why
};

class Pipeline {
 public:
  static constexpr std::uint32_t kMaxDepth = 4;  ///< how deep indirect buffers may be nested

  /// Allocates room for a private copy of the ring. The configuration must have a ring and a reader.
  explicit Pipeline(const PipelineConfig&);
  ~Pipeline();  ///< effects in flight never land, as when a queue is destroyed
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Sets the position in bytes up to which the ring may be read. Pass the producer's value, loaded with acquire. The
  /// same value again has no effect. A value that is lower, or more than a ring ahead, is a fault.
  void doorbell(std::uint64_t position) noexcept;

  /// Performs up to `budget` actions. An action is the start of a packet, a landing, or a retry of a poll. Requires
  /// budget > 0.
  Progress step(std::uint32_t budget) noexcept;

  /// Would `step` perform an action? A retry of an unsatisfied poll counts only if the poll is finite.
  bool ready() noexcept;

  /// True while the queue sleeps. It sees no doorbell and starts no packet; effects in flight land.
  bool asleep() const noexcept;
  /// Ends the sleep. Only the last of the doorbells that have rung meanwhile counts.
  void awaken() noexcept;

  /// True while a poll waits and does not yield the engine. Meanwhile, the thread that serves the engine must not step
  /// the engine's other pipelines.
  bool holds_engine() const noexcept;
  /// The word that the queue waits for; zero if it does not wait.
  GpuVa waits_for() const noexcept;
  /// Null unless the queue has stopped.
  const Fault* fault() const noexcept;

  /// What a pipeline has done so far.
  struct Counters {
    /// Packets that the front end has passed (some may be in flight), bytes stored, doorbells with new packets.
    std::uint64_t packets{}, bytes{}, doorbells{};
  };
  /// `bytes`: those that copies, fills and writes have stored.
  const Counters& counters() const noexcept;
  /// How many bytes the last step has moved: an owner of several pipelines knows by it which are busy.
  std::uint64_t moved() const noexcept;
  /// How far the front end has read, in bytes; rptr may lag.
  std::uint64_t position() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}}  // namespace sdma::v0_3
