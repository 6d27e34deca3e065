// SPDX-License-Identifier: MIT
#pragma once
// Records what happened, when, and in which lane. Everything that executes packets, in hardware or in software, uses
// this form.
//
//   trace::Recorder rec;                                               // room for 2^18 events, allocated once
//   const auto lane = rec.lane("gpu0", "engine 14 queue 0");           // control path: once per lane
//   rec.doorbell(lane, trace::now(), position);                        // hot path: stores one event, no text, no lock
//   rec.packet_begin(lane, trace::now(), position, dwords);
//   rec.packet_end(lane, trace::now(), position);
//   save(rec.snapshot(), "run.json");                                  // trace/write.hpp
//
//   lane   gpu0 | engine 14 queue 0     --D--[copy_linear......][atomic]----
//          gpu0 | engine 14 push        --D--------[poll_mem.........][copy_linear]---
//          host | main                  [builds 3 packets for gpu0.push][rings gpu0.push][waits for host.done >= 8..]
//                                                                                         time, ns -->
//
// Engines run packets; host threads and kernels perform actions. A lane of a queue is named by the queue's name, if it
// has one, or by its number. `name` gives names to ranges of addresses. Whatever shows a trace then prints
// gpu7.buf[64K] instead of an address. A name holds for the whole trace.
//
// Times are in nanoseconds. A trace has one clock, which the constructor names: that of `now`, or another (virtual
// time, or an engine's TIMESTAMPs converted to the host's clock). A position is a ring position in bytes. The
// packet_begin and packet_end events of a packet have the same position. A packet without an end is written as
// unfinished.
//
// Recording is wait-free and allocates nothing: events have a fixed size and go to a preallocated buffer of kStripes
// stripes. A lane writes to its own stripe, and to the next one once that is full. Only the first 16 dwords of a packet
// are stored, and text is produced only when a trace is written. When all stripes are full, events are lost: `lost`
// counts them, and each file says so. A simulation has no time to disturb: its Recorder(Recorder::kGrows, "virtual")
// allocates as it records, and loses an event only if memory runs out.
//
// Threads: any thread may call anything at any time. A snapshot that is taken while other threads record contains each
// event whole or not at all, and counts events that were being written as lost.
// Errors: a recorder that could not allocate its buffer loses every event, and its capacity() is 0.
#include "sdma/core/names.hpp"
#include "sdma/core/units.hpp"
#include "sdma/packets/generation.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace trace {

/// A row of the picture: an engine's queue, a host thread, a link. Valid for the Recorder that returned it.
struct LaneId {
  std::uint32_t value{};  ///< an index of Trace::lanes
  friend constexpr bool operator==(LaneId, LaneId) = default;
};
/// A text that a Recorder keeps: the name of a counter, the cause of a fault.
struct TextId {
  std::uint32_t value{};  ///< an index of Trace::texts
  friend constexpr bool operator==(TextId, TextId) = default;
};

/// A row of the picture: a queue, a host thread or a link.
struct Lane {
  std::string group{};  ///< "gpu0", "host", "links": drawn as one process
  std::string name{};   ///< "engine 14 queue 0", "host thread 1", "link 0->1"
  friend bool operator==(const Lane&, const Lane&) = default;
};

/// The lane of a queue: group "gpu0", name "engine 14 push" or "engine 14 queue 0". `queue`: "push", "queue 0".
Lane queue_lane(GpuId, EngineId, std::string_view queue);

/// What happened. Files use the names that `name(Kind)` returns.
enum class Kind : std::uint8_t {
  doorbell,         ///< `position`: the doorbell's value
  packet_begin,     ///< `position`: that of its first dword; `dwords`, `length`
  packet_end,       ///< `position`: as in packet_begin
  signal,           ///< the word at `address` now holds `value`
  fault,            ///< `position`; `address`, if there is one; `text`: the cause
  queue_created,    ///< `value`: bytes of the ring
  queue_destroyed,  ///< `position`: how far the engine had read
  counter,          ///< `text`: its name; `value`
  flow_begin,       ///< an arrow begins here; `value`: its number
  flow_end,         ///< the arrow with the number `value` ends here
  /// A host thread or a kernel begins what `text` says; "{}" in it means `value`; `address`: a word that it waits for.
  action_begin,
  action_end,  ///< it ends what it began last
  epoch,       ///< from `position` on, the packets of this queue belong to epoch `value` of its schedule
};
inline constexpr std::size_t kKinds = 13;  ///< the number of enumerators of Kind
/// "doorbell", "packet_begin", ...; "" for a number that is not a Kind.
std::string_view name(Kind) noexcept;

/// One event, of fixed size. Members that its kind does not use are zero.
struct Event {
  static constexpr std::size_t kDwords = 16;  ///< the most dwords of a packet that are kept

  std::uint64_t ns{};                          ///< by the trace's clock
  LaneId lane{};                               ///< where it happened
  Kind kind{};                                 ///< what happened
  std::uint8_t dword_count{};                  ///< how many of `dwords` are valid
  Generation generation = kDefaultGeneration;  ///< of the engine whose packet this is
  TextId text{};                               ///< see Kind
  std::uint32_t length{};    ///< dwords of the whole packet; greater than `dword_count` if it was too long to keep
  std::uint64_t position{};  ///< of the ring, in bytes
  std::uint64_t value{};     ///< see Kind
  GpuVa address{};           ///< as engines see it
  std::array<std::uint32_t, kDwords> dwords{};  ///< the first dwords of a packet

  /// The dwords that were kept.
  std::span<const std::uint32_t> packet() const noexcept { return {dwords.data(), dword_count}; }
  friend bool operator==(const Event&, const Event&) = default;
};

/// A recording as a value, as files hold it.
struct Trace {
  std::string clock = "steady";      ///< the name of the clock of `ns`, for people
  std::vector<Lane> lanes{};         ///< indexed by LaneId
  std::vector<std::string> texts{};  ///< indexed by TextId
  NameTable names{};                 ///< of addresses
  std::vector<Event> events{};       ///< by time; at the same time by lane, then in the order of recording
  std::uint64_t lost{};              ///< how many events happened but are not here
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// The host's steady clock, the one that Deadline uses.
inline std::uint64_t now() noexcept {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

class Recorder {
 public:
  static constexpr std::size_t kDefaultEvents = std::size_t{1} << 18;  ///< 30 MiB, touched by the constructor
  static constexpr std::size_t kMostEvents = std::size_t{1} << 31;     ///< the largest room of fixed size
  static constexpr std::size_t kGrows = ~std::size_t{0};               ///< no fixed size: recording locks and allocates
  static constexpr std::size_t kStripes = 16;                          ///< parts of the buffer; each lane begins in one

  /// Room for `events`, up to kMostEvents, rounded up to a multiple of kStripes; or kGrows.
  explicit Recorder(std::size_t events = kDefaultEvents, std::string_view clock = "steady");
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Control path: may allocate and lock.
  /// The lane of this name; creates it if it is new.
  LaneId lane(std::string_view group, std::string_view name);
  LaneId lane(const Lane& l) { return lane(l.group, l.name); }
  /// The id of this text; creates it if it is new.
  TextId text(std::string_view);
  /// Names a range of addresses (core/names.hpp), from the beginning of the trace on.
  void name(GpuVa, std::uint64_t bytes, std::string_view);
  void name(const NameTable&);
  /// A copy of everything recorded so far. Recording continues.
  Trace snapshot() const;
  /// How many events it can hold, or kGrows; 0 if its buffer could not be allocated.
  std::size_t capacity() const noexcept;

  // Hot path: wait-free, noexcept, no allocation, except with kGrows.
  /// Records one event. Drops it, and counts it as lost, if there is no room.
  void record(const Event&) noexcept;
  /// How many events were dropped so far.
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  /// A number for an arrow, different from all numbers that this Recorder returned before.
  std::uint64_t new_flow() noexcept { return flows_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// A doorbell with the value `position` was rung.
  void doorbell(LaneId l, std::uint64_t ns, std::uint64_t position) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::doorbell, .position = position});
  }
  /// An engine of generation `g` has begun the packet at `position`. Keeps its first Event::kDwords dwords.
  void packet_begin(LaneId l, std::uint64_t ns, std::uint64_t position, std::span<const std::uint32_t> dwords,
                    Generation g = kDefaultGeneration) noexcept;
  /// The packet that began at `position` has ended.
  void packet_end(LaneId l, std::uint64_t ns, std::uint64_t position) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::packet_end, .position = position});
  }
  /// The word at `address` now holds `value`.
  void signal(LaneId l, std::uint64_t ns, GpuVa address, std::uint64_t value) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::signal, .value = value, .address = address});
  }
  /// A queue had a fault at `position`; `why`: the cause; `address`: where, if it has one.
  void fault(LaneId l, std::uint64_t ns, std::uint64_t position, TextId why, GpuVa address = {}) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::fault, .text = why, .position = position, .address = address});
  }
  /// A queue with a ring of `ring_bytes` bytes was created.
  void queue_created(LaneId l, std::uint64_t ns, std::uint64_t ring_bytes) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::queue_created, .value = ring_bytes});
  }
  /// A queue was destroyed; the engine had read up to `position`.
  void queue_destroyed(LaneId l, std::uint64_t ns, std::uint64_t position) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::queue_destroyed, .position = position});
  }
  /// The counter `name` now has this value.
  void counter(LaneId l, std::uint64_t ns, TextId name, std::uint64_t value) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::counter, .text = name, .value = value});
  }
  /// An arrow begins here; `flow`: a number from new_flow.
  void flow_begin(LaneId l, std::uint64_t ns, std::uint64_t flow) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::flow_begin, .value = flow});
  }
  /// The arrow with this number ends here.
  void flow_end(LaneId l, std::uint64_t ns, std::uint64_t flow) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::flow_end, .value = flow});
  }
  /// A host thread or a kernel has begun an action; "{}" in its text means `value`, `waits_for`: a word it waits for.
  void action_begin(LaneId l, std::uint64_t ns, TextId what, std::uint64_t value = 0, GpuVa waits_for = {}) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::action_begin, .text = what, .value = value, .address = waits_for});
  }
  /// The action that this lane began last has ended.
  void action_end(LaneId l, std::uint64_t ns) noexcept { record({.ns = ns, .lane = l, .kind = Kind::action_end}); }
  /// From `position` on, the packets of this queue belong to `epoch`.
  void epoch(LaneId l, std::uint64_t ns, std::uint64_t position, std::uint64_t epoch) noexcept {
    record({.ns = ns, .lane = l, .kind = Kind::epoch, .position = position, .value = epoch});
  }

 private:
  struct Slots;
  struct Names;

  std::unique_ptr<Slots> slots_;
  std::unique_ptr<Names> names_;
  std::atomic<std::uint64_t> lost_{0}, flows_{0};
};

}}}  // namespace sdma::v0_3::trace
