#pragma once
// One queue of an engine as a state machine, and THE executable model of what orders what (docs/engine.md).
//
//   AddressSpace::Reader reader{space, GpuId{0}};
//   Pipeline p{{.ring = memory.dwords, .rptr = memory.rptr, .reader = &reader, .gpu = GpuId{0}, .engine = EngineId{2},
//               .queue = 17, .ordering = Ordering::adversarial, .seed = 42}};
//   for (;;) {
//     p.doorbell(load_acquire(doorbell));                       // how far it may read: never past it
//     switch (p.step(64)) {                                     // at most 64 actions
//       case Progress::progressed: continue;
//       case Progress::waiting: look_at(p.waits_for()); ...     // a poll is not met: come back, soon
//       case Progress::idle: sleep_until_doorbell(); ...        // all landed, rptr written
//       case Progress::stopped: report(p.fault()); return;
//     }
//   }
//
//   doorbell -> prefetch -> front end -> window of packets in flight -> memory
//                           in order     they land by the rules of the Ordering:
//
//                       strict      rocr                       adversarial: as weak as hardware may be
//   copy, fill, write   at once     late, whole, any order     late, in pieces, any order; loads before stores
//   fence, atomic       at once     when all earlier landed    late, when all earlier landed; in order among themselves
//     what is later     waits       waits                      does not wait: may start and land before the fence
//   poll                holds all that is later, waits for nothing that is earlier (in strict nothing is in flight)
//   timestamp           at once     when all earlier landed    late, when all earlier landed
//   trap                at once     when earlier fences landed the same, late
//   cond_exec           its word is read when the front end arrives, ahead of all that is in flight
//   published packets   read when executed                     may be fetched at the doorbell, indirect buffers too: a
//                                                              later change of them is not seen, or is seen
//   rptr                per step    per step                   late, at the latest when idle; before or behind a poll
//   a waiting poll      yields      yields                     may keep the engine: `holds_engine`
//   a full ring         is full     is full                    may be taken for empty
//
// Everything lands in finite time: `step` returns idle or waiting only when nothing is in flight. The window has a fixed size;
// when it is full the front end waits until something has landed. Nothing is allocated after construction, except by an
// adversarial pipeline that prefetches its first indirect buffer.
//
// Each packet is checked (fields, rights, footprint) before its first store. What fails stops the queue for ever: nothing
// of that packet is written; packets in flight are dropped, except in adversarial, where they may land first. A packet
// that passed and whose memory is unmapped before it lands stops the queue as well.
//
// Threads: one at a time. Memory is touched as real memory: fences are release stores of 32 bits, atomics are lock-free
// read-modify-writes, polls are acquire loads; copies are plain. Errors: fault().
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

/// One packet, when it starts and when all of it has landed.
struct PacketEvent {
  std::uint64_t queue{}, position{}, ticks{};  ///< position: bytes; of the INDIRECT, where depth > 0
  std::uint8_t depth{};
  PacketView view{};  ///< valid during the call; a long payload may be missing from its dwords
};

/// What the outside is told. Null functions are not called; all run on the thread that steps, inside a Section of its Reader, and
/// call no member of the Pipeline.
struct PipelineHooks {
  void* context = nullptr;
  void (*trap)(void* context, std::uint64_t queue, std::uint32_t trap_context) noexcept = nullptr;
  void (*begin)(void* context, const PacketEvent&) noexcept = nullptr;
  void (*end)(void* context, const PacketEvent&) noexcept = nullptr;
  void (*fault)(void* context,
                const Fault&) noexcept = nullptr;  ///< also an expired poll behind which the queue goes on
};

/// What a finite poll that has expired does to its queue: nobody knows of real engines (docs/litmus.md, Q9).
enum class PollTimeout : std::uint8_t { stop, go_on, either };

struct PipelineConfig {
  std::span<std::uint32_t> ring{};  ///< a power of two of dwords; read only
  std::uint64_t* rptr{};            ///< bytes; execution begins here. Null: nobody is told, begin at 0
  AddressSpace::Reader* reader{};   ///< the engine's; may be shared by pipelines of one thread
  GpuId gpu{};
  EngineId engine{};
  std::uint64_t queue{};  ///< for faults and traces
  Ordering ordering = Ordering::strict;
  std::uint64_t seed = 0;                          ///< of rocr and adversarial, unless there is a chooser
  Chooser* chooser{};                              ///< not owned
  std::uint32_t pieces = 8;                        ///< 1 to 64: into how many a copy falls in adversarial, at most
  std::uint32_t window = 16;                       ///< 1 to 32: packets in flight
  bool prefetch = true, late_rptr = true;          ///< parts of adversarial: an exploration stays small without them
  bool split_stores = true, holding_polls = true;  ///< the same
  std::uint32_t linger = 0;  ///< adversarial: steps in which an idle queue lands nothing; 0 in an exploration
  PollTimeout poll_timeout = PollTimeout::stop;
  TickSource ticks{};
  EngineState* state{};  ///< null: the pipeline's own
  PipelineHooks hooks{};
};

enum class Progress : std::uint8_t {
  progressed,  ///< something was done: call again
  idle,        ///< all that the doorbell allows is done, landed, and told
  waiting,     ///< a poll (or a looping atomic, a semaphore) is not met, and nothing else is left to do
  stopped,     ///< fault()
};

class Pipeline {
 public:
  static constexpr std::uint32_t kMaxDepth = 4;  ///< of indirect buffers

  /// Allocates a private copy of the ring's size. Requires ring and reader.
  explicit Pipeline(const PipelineConfig&);
  ~Pipeline();  ///< what is in flight never lands, as when a queue is destroyed
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// The position in bytes up to which the ring may be read: what the producer stored, loaded with acquire. The same value
  /// again is nothing new; one that goes backwards, or more than a ring ahead, is a fault.
  void doorbell(std::uint64_t position) noexcept;

  /// Does up to `budget` actions: a packet's start, a landing, a look of a poll. Requires budget > 0.
  Progress step(std::uint32_t budget) noexcept;

  /// Would step do anything? A look at an unmet poll is nothing, unless it is a finite one.
  bool ready() noexcept;

  /// A poll waits and does not yield: whoever serves the engine steps none of its other pipelines meanwhile.
  bool holds_engine() const noexcept;
  /// The word that is waited for; zero if none is.
  GpuVa waits_for() const noexcept;
  /// Null unless stopped.
  const Fault* fault() const noexcept;

  struct Counters {
    std::uint64_t packets{}, bytes{}, doorbells{};
  };
  /// `bytes`: stored by copies, fills and writes.
  const Counters& counters() const noexcept;
  /// Bytes: how far the front end has read, whatever rptr says.
  std::uint64_t position() const noexcept;
  std::uint64_t queue() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace sdma
