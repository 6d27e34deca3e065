// SPDX-License-Identifier: MIT
#pragma once
// Why queues hang: which packet waits, for what, and which queue or thread would have to change it.
//
//   const Diagnosis d = diagnose(snapshot);
//   puts(to_text(d).c_str());
//   if (d.verdict() == Verdict::hung) ...
//
//   Waits for the host: a poll of a word that nothing writes. gpu 0 queue 2 is at position 0x40, and has not moved for
//   at least 5 s: poll_mem addr=0x7f0000001000 func=ge reference=5. It waits for 0x7f0000001000 ge 5; the word holds 4.
//   No packet of the 3 rings stores to the word, so only a host thread can change it. [inferred: ...] To do: ...
//
//   queue          rptr   wptr   state
//   gpu 0 queue 2  0x40   0x80   never-written
//   ...
//
// `diagnose` first finds, for each queue, what stops its engine: a fault, positions that contradict each other, dwords
// that begin no packet, or a poll whose condition is false. Then it follows one execution of all pending packets, in
// which every queue proceeds as far as the known words allow. A poll that this execution satisfies is not a hang: its
// queue waits for another one that makes progress. A poll that only the host can satisfy is not a hang either, unless
// every thread that could store the value is known to sleep until these queues continue. Each remaining queue is hung,
// and is either the cause, part of a cycle, or a consequence of another one.
//
// Each statement says what it rests on. `seen`: it is in the snapshot. `inferred`: it follows from what was seen and
// from how the engine is documented to work. `guessed`: another explanation is possible; the statement names what would
// decide. A queue about which too little is known is never called healthy: it has the class `unknown`.
//
// No document says whether hardware leaves rptr before or after a poll that waits, and rptr may lag. So the packet
// before rptr, with its indirect buffer, and those after it are candidates too, as in sync/describe.hpp. If nothing is
// pending, and nothing shows whether that packet is complete, the answer is a guess.
//
// Allocates in proportion to the rings; the time is at most N log N for N packets, for each word that is polled. No
// shared state; any thread may call these functions. Errors: none; a snapshot that contradicts itself is a finding.
#include "sdma/doctor/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// Why a queue, or the program that waits for it, makes no progress.
enum class HangClass : std::uint8_t {
  healthy,             ///< nothing hangs
  unknown,             ///< too little is known; the statements say what
  never_written,       ///< a poll waits for a word that no packet stores to
  wrong_value,         ///< packets store to the word, but no value that satisfies the poll
  wrong_half,          ///< the other half of the 64-bit word satisfies the poll
  beyond_mask,         ///< no value can satisfy the condition
  stale_epoch,         ///< the poll or the post belongs to another round
  cycle,               ///< queues wait for each other
  one_engine,          ///< the packet that would satisfy the poll needs the engine that the poll occupies
  doorbell_not_rung,   ///< wptr was stored, but the doorbell was not rung
  wptr_not_stored,     ///< the doorbell was rung, but wptr was not stored
  wptr_inside_packet,  ///< wptr lies inside a packet, or is not a multiple of 4
  cut_by_wrap,         ///< a packet begins before the end of the ring and ends after it
  unknown_opcode,      ///< a dword that begins no packet of this engine
  header_overwritten,  ///< a packet whose first dword was overwritten
  overrun,             ///< the producer overwrote packets that were not read yet
  full_ring,           ///< the ring is full, and what the poll waits for is not in it
  fault,               ///< an access to an address that is not mapped
  destroyed,           ///< the queue was destroyed while packets were pending
  no_such_engine,      ///< its GPU does not have the queue's engine
  poll_expired,        ///< a poll with a finite number of retries gave up
  no_mailbox,          ///< a TRAP without a fence to the event's mailbox: the kernel ignores the interrupt
  lost_wakeup,         ///< the value is there, but the thread that waits for it sleeps
  wrong_word,          ///< the completion was stored to another word
  no_atomics,          ///< an atomic over a link that does not complete atomics
  follows,             ///< waits for a queue that hangs for a reason of its own
  unpublished,         ///< a reserved slot was not published, and holds back all later ones
};
/// How many classes of hangs there are.
inline constexpr auto kHangClasses = static_cast<std::size_t>(HangClass::unpublished) + 1;
/// "never-written", ...: the words of JSON.
std::string_view name(HangClass) noexcept;
/// "poll of a word that nothing writes": the words of text.
std::string_view title(HangClass) noexcept;

/// What a statement rests on.
enum class Basis : std::uint8_t {
  seen,      ///< it is in the snapshot
  inferred,  ///< it follows from what was seen
  guessed,   ///< another explanation is possible
};
std::string_view name(Basis) noexcept;

/// One sentence of a diagnosis, and what it rests on.
struct Statement {
  std::string text{};         ///< a sentence with a full stop
  Basis basis = Basis::seen;  ///< seen, inferred or guessed
  std::string rests_on{};     ///< "doorbell in the dump", "MI300X has 16 engines"; a guess also says what would decide
};

/// A packet of a queue.
struct Place {
  std::size_t queue{};       ///< index into Snapshot::queues
  std::uint64_t position{};  ///< in bytes
  std::string packet{};      ///< its text
};

/// Who could make the poll's condition true.
struct Release {
  /// What kind of writer that is.
  enum class By : std::uint8_t {
    unknown,  ///< not known, or the queue does not wait for a word
    nobody,   ///< no value satisfies the condition
    host,     ///< only a host thread, or a queue that is not in the snapshot: this is not a hang
    packet,   ///< the packet at `place`
  };
  By by = By::unknown;           ///< who could write the word
  std::optional<Place> place{};  ///< that packet, if `by` is `packet`
};
std::string_view name(Release::By) noexcept;

/// The word that is waited for.
struct WordSeen {
  GpuVa va{};                            ///< where the word is
  std::string name{};                    ///< of the range that holds it, or ""
  Compare func{};                        ///< the comparison that the wait makes
  std::uint64_t reference{};             ///< what the word is compared with
  std::uint32_t mask = 0xffffffff;       ///< the bits that are compared
  std::optional<std::uint64_t> value{};  ///< nullopt: it could not be read
};

/// What is wrong with one queue or host thread, or that nothing is.
struct Finding {
  HangClass what = HangClass::unknown;  ///< the class of the hang
  Basis basis = Basis::inferred;        ///< of the class; a guess is not a verdict
  std::optional<std::size_t> queue{};   ///< index into Snapshot::queues; nullopt: about a host thread
  std::optional<Place> at{};            ///< the packet at which the queue stalls
  std::optional<WordSeen> word{};       ///< the word that is waited for, if any
  Release release{};                    ///< who could end the wait
  std::vector<Place> cycle{};  ///< of a cycle: where each queue stalls; each waits for the next, the last for the first
  std::vector<Statement> statements{};  ///< the reasons for the finding, in order
  std::string to_do{};                  ///< what to change, in one or two sentences
};

/// How a packet near rptr relates to the positions.
/// `consumed`: it lies before rptr; `at_rptr`: rptr points to it; `pending`: it lies after rptr.
enum class Part : std::uint8_t { consumed, at_rptr, pending };
/// A packet near the place where a queue stalls.
struct NearPacket {
  Part part{};  ///< how it relates to rptr
  /// Its first byte, counted as rptr and wptr are. For a packet of an indirect buffer: that of the INDIRECT.
  std::uint64_t position{};
  std::string text{};  ///< the packet, as a dump shows it
};

/// A row of the table, and the packets around rptr.
struct QueueState {
  std::string name{};                               ///< as the snapshot names it
  Known<GpuId> gpu{};                               ///< whose engine serves it
  Known<EngineId> engine{};                         ///< which engine serves it
  Known<std::uint64_t> rptr{}, wptr{}, doorbell{};  ///< positions in bytes
  std::uint64_t ring_bytes{};                       ///< 0: not known
  HangClass what = HangClass::unknown;              ///< the class of its finding
  std::size_t pending_packets{};                    ///< without NOPs
  bool moved = false;                               ///< rptr changed while the queue was watched
  std::uint64_t moved_bytes{};                      ///< by how much
  std::vector<NearPacket> near{};                   ///< the packets around rptr
};

/// A queue of an engine that was reset: what is complete, and what is to be sent again (sdma/queue/reset.hpp). Which
/// completions were seen is inferred from the words of its fences.
struct AfterReset {
  static constexpr std::size_t kMostPackets = 32;  ///< so many are listed
  /// A packet that is not complete.
  struct Packet {
    std::uint64_t position{};  ///< in bytes
    std::string fate{};        ///< "repeat", "send" or "held"
    std::string text{};        ///< the packet
    std::string why{};         ///< why, in one clause
  };
  std::size_t queue{};                           ///< index into Snapshot::queues
  std::string state{};                           ///< "unknown", "whole", "again" or "decide"
  std::string why{};                             ///< of "unknown": what is not known
  std::uint64_t from{};                          ///< everything before this position is complete
  std::size_t done{}, repeat{}, send{}, held{};  ///< packets of each fate
  std::size_t dwords{};                          ///< of those that are sent again
  std::vector<Packet> packets{};                 ///< the first of them
};

/// `healthy`: nothing hangs; `undecided`: it is not sure whether; `hung`: a queue or a host thread hangs; `waits`: only
/// the host can end what a queue waits for, and may still do so.
enum class Verdict : std::uint8_t { healthy, undecided, hung, waits };
std::string_view name(Verdict) noexcept;

struct Diagnosis {
  std::string from{};                     ///< as Snapshot::from
  std::vector<Finding> findings{};        ///< causes first, then what follows from them; never empty
  std::vector<QueueState> queues{};       ///< in the order of Snapshot::queues
  std::vector<PageFault> page_faults{};   ///< as Snapshot::page_faults
  std::vector<LogEvent> events{};         ///< as Snapshot::events
  std::vector<AfterReset> after_reset{};  ///< queues of engines that were reset; empty: no such reset is known
  std::uint64_t watched_ns{};             ///< how long the queues were watched; 0: a single moment
  std::vector<std::string> notes{};       ///< what was not examined

  /// That of all findings: hung if one is; else undecided, if one is; else waits, if one does.
  Verdict verdict() const noexcept;
  /// That of one of them. A guess is undecided; `follows` is what the queue is that it waits for.
  Verdict verdict(const Finding&) const noexcept;
};

Diagnosis diagnose(const Snapshot&);

/// The first finding, as one line.
std::string summary(const Diagnosis&);
/// A paragraph, a table of all queues, and the packets around rptr of the queues that hang. Ends with a newline.
std::string to_text(const Diagnosis&);
/// One object, on one line, with a newline.
std::string to_json(const Diagnosis&);

}}}  // namespace sdma::v0_3::doctor
