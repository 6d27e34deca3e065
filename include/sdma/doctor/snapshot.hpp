// SPDX-License-Identifier: MIT
#pragma once
// What is known about queues at one moment: the input of `diagnose`. Plain data, from a process, dumps or a recording.
//
//   Snapshot s;
//   s.queues.push_back({.name = "gpu 0 queue 2",
//                       .ring = dwords,
//                       .rptr = {0x1c0, Source::memory}, .wptr = {0x240, Source::memory}});
//   s.words.add(GpuVa{0x7f0000001000}, bytes);            // or s.peek = a function that reads a live process
//   puts(to_text(diagnose(s)).c_str());
//
// A member of type Known says where its value comes from. Source::unknown means that the value is not known: `diagnose`
// never uses such a value, and says what it could not examine. Leave out what you do not know. In particular:
//
//   driver (a debugger's snapshot)   ring, rptr, wptr, exceptions; no doorbell, no engine, no time
//   `.ring` file                     ring, positions, doorbell, the producer's own positions; no memory of words
//   text                             dwords, perhaps rptr and wptr; neither memory nor the other queues
//   trace.jsonl                      the packets that were executed, doorbells, signals, destroyed queues
//
// Positions are bytes, counted as the queue counts them. Those of MI300X do not wrap: position p is at offset p modulo
// the size of the ring. Set `positions_wrap` for a dump that has offsets instead.
//
// `watched_ns` and `rptr_first` describe the queue while it was watched: a queue whose rptr has changed is slow, and is
// never called hung. A snapshot of one moment has watched_ns = 0; a queue at a copy may then simply be executing it.
//
// to_json writes a snapshot as text, and snapshot_from_json reads it, so the diagnosis can be repeated on any machine.
//
// Plain values; any thread may use them. `peek` is called by `diagnose`, in its thread. Errors: those of
// snapshot_from_json.
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/engine/fault.hpp"
#include "sdma/packets/generation.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/sync/describe.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {
class Bound;
struct StallReport;
}}  // namespace sdma::v0_3

namespace sdma { inline namespace v0_3 { namespace doctor {

/// Where a value comes from.
enum class Source : std::uint8_t {
  unknown,    ///< the value is not known
  memory,     ///< read from the process's memory
  dump,       ///< in a dump
  user,       ///< on the command line
  driver,     ///< from the kernel driver
  recording,  ///< in a recording
  node,       ///< the software node's own state
};
/// "unknown", "memory", ...
std::string_view name(Source) noexcept;

/// A value that may be unknown.
template <class T> struct Known {
  T value{};                      ///< meaningless if the source is unknown
  Source from = Source::unknown;  ///< where the value comes from
  constexpr explicit operator bool() const noexcept { return from != Source::unknown; }
  constexpr const T& operator*() const noexcept { return value; }
};

/// One queue.
struct QueueSnapshot {
  std::string name{};                          ///< how reports call it: "gpu 0 queue 2", "stuck.ring"
  std::uint64_t id{};                          ///< the driver's number
  Known<GpuId> gpu{};                          ///< the GPU whose engine serves it
  Known<EngineId> engine{};                    ///< which engine serves it
  Generation generation = kDefaultGeneration;  ///< of the engine, which decides how packets are read

  std::uint32_t process{};              ///< of `merged` snapshots: which of them it is from, so whose addresses it has
  Known<GpuVa> ring_va{};               ///< address of the ring's first dword
  std::vector<std::uint32_t> ring{};    ///< the whole ring; or, if `first` is not 0, a window of it
  std::uint64_t first = 0;              ///< position of the first dword in `ring`; nothing wraps if it is not 0
  bool part = false;                    ///< `ring` begins at 0 and is only a part; how large the ring is is not known
  Known<std::uint64_t> ring_bytes{};    ///< size of the ring, if `ring` may hold only a part of it, or nothing
  Known<std::uint64_t> rptr{}, wptr{};  ///< the values in memory
  bool positions_wrap = false;          ///< they are offsets in the ring, so wptr may be less than rptr
  Known<std::uint64_t> doorbell{};      ///< the last value that was rung; not readable on the driver
  Known<std::uint64_t> committed{}, reserved{};  ///< the producer's own positions: what it published, what it took
  Known<std::uint64_t> rptr_first{};             ///< rptr when the doctor began to watch

  Known<std::uint64_t> exceptions{};  ///< KFD's exception status: bit n - 1 is the exception with code n
  Known<Fault> fault{};               ///< why the engine stopped the queue; `anonymous` if only the address is known
  std::string fault_text{};           ///< of a recording: the fault in words, which say more than `fault` does
  Known<bool> destroyed{};            ///< the queue was destroyed
  Known<std::uint32_t> engines{};     ///< how many sDMA engines its GPU has
  Known<bool> host_atomics{};         ///< does the link from its GPU to host memory complete atomics?
};

/// An address range of the process.
struct Range {
  /// `host`: host memory; `vram`: a GPU's memory; `ring`: a queue's; `doorbell`: a page of doorbells; `other`:
  /// anything else.
  enum class Kind : std::uint8_t { other, host, vram, ring, doorbell };
  GpuVa va{};              ///< where it begins
  std::uint64_t bytes{};   ///< its length
  std::string name{};      ///< how reports call it: "gpu 0 memory", "[heap]"
  Kind kind{};             ///< what is mapped there
  Known<GpuId> gpu{};      ///< of vram: whose memory it is
  std::string object{};    ///< what other processes may have mapped, too: device and inode of a file; "": nothing
  std::uint64_t offset{};  ///< where the range begins in it
};

/// Memory that a process of a merged snapshot has, and an earlier one as well.
struct SharedRange {
  std::uint32_t process{};  ///< the later one
  GpuVa va{};               ///< where its queues find the memory
  std::uint64_t bytes{};    ///< its length
  GpuVa at{};               ///< where it is in the merged snapshot
};

/// A thread of the host that waits for a word.
struct HostWait {
  std::string name{};          ///< "thread 4711"
  GpuVa signal{};              ///< the word that the thread waits for
  Compare func = Compare::ge;  ///< the comparison that ends the wait
  std::uint64_t reference{};   ///< what the word is compared with
  std::uint32_t bytes = 8;     ///< of the word
  Known<bool> asleep{};        ///< it sleeps until an interrupt wakes it, and does not read the word meanwhile
};

/// From which machine, and from which of its starts, a line of a log is. Facts of two origins have nothing in common:
/// the same number is another process, another address space and another GPU.
struct LogOrigin {
  std::string host{};   ///< the machine, or what stands for it in the log, such as a pod; "": the log does not name it
  std::string boot{};   ///< the id of the start of the machine; "": the log does not have it
  std::size_t start{};  ///< which of that machine's starts in the log it is, from 1; 0: the log has one
  std::string words{};  ///< "host node7, boot 2 of 3"; "" if the whole log is of one origin
  bool operator==(const LogOrigin&) const = default;
};

/// A page fault that the driver reported, not for one of the queues: read.hpp. What the report does not say is empty.
struct PageFault {
  GpuVa page{};                           ///< address of its first byte
  Known<GpuId> gpu{};                     ///< whose engine made the access
  std::string device{};                   ///< the PCI address of that GPU: "0000:c1:00.0"; of ROCr: "node-1"
  std::uint32_t process{};                ///< whose access it was; 0: not known
  std::string program{};                  ///< its name, at most 15 characters
  std::optional<double> seconds{};        ///< since the machine started, of the first report
  std::string hub{};                      ///< "mmhub0"
  std::string client{};                   ///< the unit that made the access: "SDMA0"; or its number: "0xd"
  std::string die{};                      ///< "AID0.XCD0"
  std::optional<std::uint32_t> vmid{};    ///< the address space, as the GPU counts them
  std::optional<std::uint32_t> pasid{};   ///< the address space, as the driver counts them; not a process
  std::optional<std::uint32_t> status{};  ///< the status register; all ones: the GPU did not answer
  std::optional<bool> write{};            ///< it stored
  std::uint32_t reports = 1;              ///< how often it was reported: by each die, and for each retry
  std::string copy{};                     ///< the recorded copy that touches the page, in words
  std::string from{};                     ///< "the kernel's log", "dmesg.txt"
  LogOrigin origin{};                     ///< whose log it is
};
/// "0x7f0901400000, GPU 0000:c1:00.0, unit SDMA0, a write, process 4711 (trainer)".
std::string in_words(const PageFault&);

/// Another line of a log that says something about copies: that a ring timed out, or that a GPU was reset.
struct LogEvent {
  std::optional<double> seconds{};          ///< since the machine started, of the first such line
  std::string device{};                     ///< PCI address, or ""
  std::string ring{};                       ///< the driver's name of a ring: "sdma1.0"
  std::optional<std::uint32_t> engine{};    ///< as the line counts it
  std::optional<std::uint32_t> queue{};     ///< of its process, as the line counts it
  std::optional<std::uint32_t> process{};   ///< that the line names, or the one below it
  std::string program{};                    ///< its name
  std::optional<std::uint32_t> pasid{};     ///< an address space, as the driver counts them
  std::optional<std::uint64_t> doorbell{};  ///< of the queue
  std::optional<std::uint64_t> address{};   ///< that the line names
  std::string said{};                       ///< the line, without what stands before its message
  std::string means{};                      ///< one sentence or two
  std::string to_do{};                      ///< what to do, without a full stop, or ""
  std::uint32_t reports = 1;                ///< how often the log says it
  std::string from{};                       ///< "dmesg.txt"
  LogOrigin origin{};                       ///< whose log it is
};

/// A word that changed while the queues were watched.
struct MovingWord {
  GpuVa va{};                     ///< the word
  std::uint64_t first{}, last{};  ///< what it held at the first and at the last look
  std::uint32_t changes{};        ///< how many looks found another value than the look before
  std::uint32_t looks{};          ///< how often it was read
};

/// A store by the host to a word, or its intention to make one.
struct HostPost {
  GpuVa signal{};         ///< the word that is stored to
  std::uint64_t value{};  ///< what is stored
  bool happened{};        ///< true: it was recorded; false: the program will make it
};

/// Parts of memory as they were at one moment.
class Words {
 public:
  void add(GpuVa va, std::span<const std::byte> bytes);
  /// Adds a word of `bytes` bytes at `va`, which holds `value`.
  void add(GpuVa va, std::uint64_t value, std::uint32_t bytes);
  /// Is no byte known?
  bool empty() const noexcept { return pieces_.empty(); }
  /// Errc::unmapped if one of the bytes is not in it. What was added last wins.
  [[nodiscard]] Errc read(GpuVa va, std::span<std::byte> out) const;
  /// Calls `f(va, bytes)` for each part, in the order of `add`.
  template <class Fn> void each(Fn f) const {
    for (const auto& p : pieces_) f(p.va, std::span<const std::byte>(p.bytes));
  }

 private:
  struct Piece {
    GpuVa va{};
    std::vector<std::byte> bytes{};
  };
  std::vector<Piece> pieces_{};
};

struct Snapshot {
  std::string from{};                    ///< "process 4711", "stuck.ring and 2 other files"
  std::vector<QueueSnapshot> queues{};   ///< all that are known
  Words words{};                         ///< read first
  Peek peek{};                           ///< the memory of a live process; empty: only `words` are known
  std::vector<Range> ranges{};           ///< what the process has mapped
  bool ranges_complete = false;          ///< an address outside all ranges is not mapped
  std::vector<PageFault> page_faults{};  ///< those that the driver reported
  std::vector<LogEvent> events{};        ///< what else its log says about copies
  std::vector<HostWait> waits{};         ///< host threads that wait for a word
  std::vector<HostPost> posts{};         ///< stores that the host has made or will make
  bool all_queues = false;               ///< no other queue of the process exists
  bool all_threads = false;              ///< no thread but those in `waits` will store to a word or submit packets
  bool others_run = false;       ///< a queue that is not in `queues`, such as one of kernels, may be executing packets
  std::uint64_t watched_ns = 0;  ///< how long the queues were watched; 0: a single moment
  bool stalls = false;           ///< the user says that these queues have not completed what they should
  bool after_reset = false;      ///< the user says that the engine of these queues was reset
  std::vector<SharedRange> shared{};  ///< of `merged` snapshots
  std::vector<MovingWord> moving{};   ///< words that queues wait for, and that changed meanwhile
  std::vector<std::string> notes{};   ///< what could not be read, one sentence each, for the reader of the report
};

/// What a wait that gave up has left: one queue, the words around it, the thread that waited. `waited`: for how long,
/// if the caller knows it; the queue was watched for that time. `diagnose` calls `peek`. A report is less than a ring:
/// at most StallReport::kHead dwords from rptr on, and one packet before it. If more is pending, a wait that nothing
/// satisfies is a guess, and so it is without the other queues: this queue may wait for one of them.
///
///   const auto limit = 200ms;
///   if (auto w = wait(done, Compare::ge, 5, Deadline::in(limit), ring); !w)
///     log(to_text(diagnose(snapshot_of(w.error(), peek, limit))));
Snapshot snapshot_of(const StallReport&, const Peek& = {}, std::chrono::nanoseconds waited = {});
/// A schedule that is bound to a device: its queues, the device's memory, the schedule's names. The queues are read
/// twice, `watch` apart, so that a queue that moves is known to be slow. Call it after the host threads of the schedule
/// have ended: the snapshot does not have their actions. Engines may run; producers of the rings should not. On
/// hardware, faults are those that the device has reported.
///
///   if (auto w = run(*bound); !w) puts(summary(diagnose(snapshot_of(*bound))).c_str());
Snapshot snapshot_of(const Bound&, std::chrono::nanoseconds watch = std::chrono::milliseconds(2));
/// Snapshots of several processes as one, so that cycles across memory that they share are found. An address of process
/// n has n in its bits from 48 on, and memory that is shared has the address of the first process that has it: a note
/// says so.
Snapshot merged(std::vector<Snapshot>);
/// The address in the snapshot of what process `process` calls `va`.
GpuVa address_in(const Snapshot&, std::uint32_t process, GpuVa va) noexcept;

/// From now on, what `peek` reads is added to `words`, so that `to_json` has all that a diagnosis used. The snapshot
/// must not move meanwhile.
void keep_what_is_read(Snapshot&);
/// One object with a newline. It has `words`, and not what `peek` could still read.
std::string to_json(const Snapshot&);
/// Is this the beginning of such a text?
bool is_snapshot(std::string_view text) noexcept;
/// Errors name the file and what is wrong with it.
Result<Snapshot, Diagnostic> snapshot_from_json(std::string_view text, std::string_view file);

}}}  // namespace sdma::v0_3::doctor
