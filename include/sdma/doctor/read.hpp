// SPDX-License-Identifier: MIT
#pragma once
// Snapshots from files: dumps of rings, dumps in text, recordings, core files.
//
//   Snapshot s;
//   add(s, *load_dump("stuck.ring"), "stuck.ring");
//   add(s, text->dumps.front(), "umr.txt", {.rptr = 0x40, .wptr = 0x80});
//   add(s, *trace::load_json_lines("run.jsonl"), "run.jsonl");
//   s.words.add(GpuVa{0x7f0000001000}, 3, 4);              // what a polled word holds
//   add_kernel_log(s, *read_file("dmesg.txt"), "dmesg.txt");
//   const auto d = diagnose(s);
//
// Files differ in what they hold. A `.ring` has positions, the doorbell and the producer's own positions, and no
// memory. A text has dwords, and positions only if a tool printed them. A recording has the packets that an engine has
// begun, doorbells, and the last value of each signal, but not the packets that were never begun. Each function adds a
// note about what is missing.
//
// The kernel's devcoredump has the rings of the kernel's own queues, but no queues of processes; `add` says so in a
// note.
//
// A core file of the kernel has no queues. It has the memory of the program, with the words and with the rings that a
// runtime such as ROCr allocates there; it does not have mappings of devices. A `gpucore.*` of ROCr has queues and the
// memory that is mapped from devices. Give both, because each has what the other lacks.
//
// The kernel's log has page faults of GPUs, and other lines about copies, such as a ring that timed out. Neither a
// queue's state nor a core file says this. The log is a ring, and the driver limits the rate of its messages, so a
// fault may have happened even if the log does not have it. A fault has a process only if its own lines name one, or if
// a fault of the same GPU, VMID and PASID does, both within a second: who uses an address space changes.
//
// Everything here allocates, in proportion to its input. No shared state; any thread may call these functions. Errors:
// one Diagnostic with the name of the file.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/dump/place.hpp"
#include "sdma/dump/text.hpp"
#include "sdma/queue/dump.hpp"
#include "sdma/trace/trace.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// `name`: how reports call the queue.
void add(Snapshot&, const RingDump&, std::string_view name);
/// Positions that are given replace those of the text.
void add(Snapshot&, const TextDump&, std::string_view name, const RingPositions& = {}, Source = Source::user);
/// One queue for each lane that has packets.
void add(Snapshot&, const trace::Trace&, std::string_view name);
/// Do these bytes begin like a core file, or another ELF file?
bool is_core(std::span<const std::byte>) noexcept;
/// Are these the bytes of a `gpucore.*`?
bool is_gpu_core(std::span<const std::byte>) noexcept;
/// The bytes of a core file: they have to stay until the snapshot is diagnosed, because its `peek` reads them. Add the
/// core file of the kernel first: the memory of a file that is added later is read first.
Result<void, Diagnostic> add_core(Snapshot&, std::span<const std::byte>, std::string_view name);
/// Is this a log, of the kernel or of a runtime, in whatever form, or does it have one beside a dump?
bool is_kernel_log(std::string_view text);
/// The log of this machine's kernel, as dmesg reads it. Diagnostic: this user may not read it; root may.
Result<std::string, Diagnostic> kernel_log();
/// Adds the faults and events of a log, and a note of how many lines it has; nothing if the text is not a log. With
/// several processes: those of `process` and those whose process is not named; without `process`, all: `diagnose` then
/// believes the fault whose page a packet touches.
void add_kernel_log(Snapshot&, std::string_view text, std::string_view name, std::optional<std::uint32_t> process = {});

/// Appends the next bytes of a text; false at its end. While it waits for them, it may say what is `known` by now: the
/// faults and events that this adds to a snapshot, from the first one on.
using MoreText = std::function<Result<bool, Diagnostic>(std::string& to, const std::function<void(Snapshot&)>& known)>;
/// What a text has beside the lines of a log.
struct LogRest {
  bool is_log = false;    ///< it is a log, or has one beside a dump
  bool has_dump = false;  ///< read_text_dump reads it
  std::string text{};     ///< of a log: its dump alone, where it stood; or else the whole text
};
/// The same for a text of any length, also one that never ends: of a log, only what it says is kept. Diagnostic: that
/// of `more`, or that more than 1 GiB of the text is no log.
Result<LogRest, Diagnostic> add_kernel_log(Snapshot&, const MoreText& more, std::string_view name,
                                           std::optional<std::uint32_t> process = {});

}}}  // namespace sdma::v0_3::doctor
