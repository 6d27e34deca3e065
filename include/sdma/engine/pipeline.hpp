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
//       case Progress::stopped: report(p.fault()); return;
//     }
//   }
//
//   doorbell -> prefetch -> front end -> window of packets in flight -> memory
//                           in order     they land by the rules of the Ordering:
//
//                       strict      rocr                       adversarial: as weak as hardware may be
//   copy, fill, write   at once     late, whole, any order     late, in pieces, any order; loads before stores
//   fence, atomic       at once     once all earlier landed    late, once all earlier landed; in order among themselves
//     later packets     wait        wait                       do not wait: may start and land before the fence
//   poll                holds back all later packets, waits for no earlier ones (in strict none is in flight)
//   timestamp           at once     once all earlier landed    late, once all earlier landed
//   trap                at once     once earlier fences landed the same, but late
//   cond_exec           its word is read when the front end reaches it; effects in flight may land later
//   published packets   read when executed                     may be fetched at the doorbell, indirect buffers too: a
//                                                              later change of them may or may not be seen
//   rptr                per step    per step                   late, at the latest when idle; before or after a poll
//   a waiting poll      yields      yields                     may keep the engine: `holds_engine`
//   a full ring         is full     is full                    may be mistaken for empty
//
// Everything lands in finite time: `step` returns idle or waiting only when nothing is left to land. The window has a fixed
// size: when it is full, the front end waits until a packet has landed. Nothing is allocated after construction, except by an
// adversarial pipeline that prefetches its first indirect buffer.
//
// Each packet is checked (privilege, fields, footprint) before its first store. A packet that fails writes nothing and stops
// the queue forever. In rocr, the effects of earlier packets land first; in adversarial, any part of them lands and the rest
// is dropped; in strict, nothing is in flight. The queue also stops at a bad doorbell, and at a packet whose memory is
// unmapped before it lands: then everything in flight is dropped.
//
// Threads: one at a time. It accesses memory as an engine does: fences are release stores of 32 bits, atomics are lock-free
// read-modify-writes, polls are acquire loads; copies are plain accesses. Errors: fault().
#include "sdma/engine/chooser.hpp"
#include "sdma/engine/execute.hpp"
#include "sdma/engine/fault.hpp"
#include "sdma/stream/reader.hpp"

#include <memory>
#include <span>

namespace sdma {
inline namespace v0 {

enum class Ordering : std::uint8_t { strict, rocr, adversarial };
std::string_view name(Ordering) noexcept;

/// A packet, at the moment when it starts or when all of it has landed.
struct PacketEvent {
  std::uint64_t queue{}, position{}, ticks{};  ///< position: bytes; that of the INDIRECT if depth > 0
  std::uint8_t depth{};
  PacketView view{};  ///< valid during the call; a long payload may be missing from its dwords
};

/// Notifications to the owner. Null functions are not called. All run on the thread that steps, inside a Section of its
/// Reader, and must not call a member of the Pipeline.
struct PipelineHooks {
  void* context = nullptr;
  void (*trap)(void* context, std::uint64_t queue, std::uint32_t trap_context) noexcept = nullptr;
  void (*begin)(void* context, const PacketEvent&) noexcept = nullptr;
  void (*end)(void* context, const PacketEvent&) noexcept = nullptr;
  void (*fault)(void* context,
                const Fault&) noexcept = nullptr;  ///< also for an expired poll after which the queue continues
};

/// What an expired poll does to its queue. For real engines, this is not known (docs/litmus.md, Q9).
enum class PollTimeout : std::uint8_t { stop, go_on, either };

struct PipelineConfig {
  std::span<std::uint32_t> ring{};  ///< a power of two of dwords; read only
  std::uint64_t* rptr{};            ///< bytes; execution begins here. Null: begins at 0, and is not published
  AddressSpace::Reader* reader{};   ///< the engine's; may be shared by pipelines of one thread
  GpuId gpu{};
  EngineId engine{};
  std::uint64_t queue{};  ///< for faults and traces
  Ordering ordering = Ordering::strict;
  std::uint64_t seed = 0;                          ///< for rocr and adversarial; not used with a chooser
  Chooser* chooser{};                              ///< not owned
  std::uint32_t pieces = 8;                        ///< 1 to 64: the most pieces of a copy in adversarial
  std::uint32_t window = 16;                       ///< 1 to 32: packets in flight
  bool prefetch = true, late_rptr = true;          ///< parts of adversarial; turn them off to keep a search small
  bool split_stores = true, holding_polls = true;  ///< the same
  std::uint32_t linger = 0;  ///< adversarial: steps without a landing once no packet can start; use 0 in a search
  PollTimeout poll_timeout = PollTimeout::stop;
  TickSource ticks{};
  EngineState* state{};  ///< null: the pipeline's own
  PipelineHooks hooks{};
};

enum class Progress : std::uint8_t {
  progressed,  ///< at least one action was done: call again
  idle,        ///< all published packets are complete, and rptr is written
  waiting,     ///< a poll (or a looping atomic, a semaphore) is not satisfied, and nothing else can be done
  stopped,     ///< fault()
};

class Pipeline {
 public:
  static constexpr std::uint32_t kMaxDepth = 4;  ///< of indirect buffers

  /// Allocates a private copy of the ring's size. Requires ring and reader.
  explicit Pipeline(const PipelineConfig&);
  ~Pipeline();  ///< effects in flight never land, as when a queue is destroyed
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// The position in bytes up to which the ring may be read: the producer's value, loaded with acquire. The same value again
  /// has no effect; a value that is lower, or more than a ring ahead, is a fault.
  void doorbell(std::uint64_t position) noexcept;

  /// Does up to `budget` actions: the start of a packet, a landing, a retry of a poll. Requires budget > 0.
  Progress step(std::uint32_t budget) noexcept;

  /// Would step do anything? A retry of an unsatisfied poll counts only if the poll is finite.
  bool ready() noexcept;

  /// A poll waits and does not yield: the thread that serves the engine must not step its other pipelines meanwhile.
  bool holds_engine() const noexcept;
  /// The word that the queue waits for; zero if it does not wait.
  GpuVa waits_for() const noexcept;
  /// Null unless stopped.
  const Fault* fault() const noexcept;

  struct Counters {
    std::uint64_t packets{}, bytes{}, doorbells{};
  };
  /// `bytes`: stored by copies, fills and writes.
  const Counters& counters() const noexcept;
  /// How far the front end has read, in bytes; rptr may lag.
  std::uint64_t position() const noexcept;
  std::uint64_t queue() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace sdma
