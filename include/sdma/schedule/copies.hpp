// SPDX-License-Identifier: MIT
#pragma once
// Copies that other tools have recorded, as the text of a schedule: to check it, simulate it, draw it or change it.
//
//   auto c = read_copies(text, "run_memory_copy_trace.csv");
//   if (c && contradictions(*c).empty()) puts(schedule_text(*c).c_str());
//
//   rocprofv3, JSON  sizes, agents with their table, streams (from ROCm 7.0), times, allocations, and ranges of roctx
//                    if calls are recorded, too; no addresses
//   rocprofv3, CSV   directions, agents, streams (from ROCm 7.0), times; no sizes, no addresses. Ranges of roctx with
//                    the tables of markers and calls, which are files of their own (`calls`). The file of its
//                    allocations has no copies: `memory_alone` reads it
//   Chrome traces    JSON as kineto writes it (PyTorch): directions, devices, streams, sizes, times; addresses of those
//                    copies whose call is recorded with them
//   AMD_LOG_LEVEL    lines of the HIP runtime, from 4: addresses, sizes, ROCr's engines, what waits for what, failures
//   tables           `copies_of` takes rows that a reader of another form has found (the tool: databases of rocpd)
//
// An import states what the file shows. The order of two copies comes from their stream, from signals and from the
// waits of a host thread; times never order anything. Times refute: copies of a stream that overlapped are not ordered,
// and a note of the later one tells. A copy that failed, or that a kernel made, is in `left_out`. A table or the
// direction says which agents are GPUs; a GPU that is not named is one of its own. Whatever is assumed of a copy is in
// its `notes`, and what holds for the whole file in `unknown`.
//
// Each stream becomes a queue for each engine, or each direction, that it uses; a copy without a stream has a queue of
// its own. Polls keep the order. Addresses of a process that overlap or touch become one buffer; without addresses,
// each copy has its own buffers. The schedule submits everything at once: the times between copies are comments.
//
// Time and memory grow about linearly with the text; JSON is read as a stream of rows. Allocates. There is no shared
// state; any thread may call these functions. Errors: a Diagnostic, if the text is none of these forms, contradicts
// itself, or has no copy.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/generation.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A copy, as far as it is known.
struct RecordedCopy {
  /// What the engine does with the bytes.
  enum class Kind : std::uint8_t {
    copy,       ///< from `source` to `destination`
    broadcast,  ///< from `source` to `destination` and `second`, in a packet
    swap        ///< exchanges those at `source` and `destination`
  };
  Place from{}, to{};                                    ///< the host, or a GPU
  std::uint64_t bytes{};                                 ///< 0: not known
  std::optional<std::uint64_t> source{}, destination{};  ///< addresses of the process
  Kind kind{};                                           ///< of a log alone; others do not tell
  Place second_to{};                                     ///< of a broadcast: the place of `second`
  std::optional<std::uint64_t> second{};                 ///< of a broadcast: the other destination
  std::string process{};                                 ///< "" if the file names none
  std::string stream{};                                  ///< its name in the file; "": not recorded, so it has no order
  std::optional<std::uint32_t> engine{};                 ///< the kernel's number; only if the file says which it is
  std::optional<std::uint32_t> rocr_engine{};            ///< ROCr's number, which is not the kernel's
  std::vector<std::size_t> after{};                      ///< the copies that it waits for: smaller indices of `copies`
  std::optional<std::uint64_t> begin_ns{}, end_ns{};     ///< when it ran, by the clock of the file
  std::optional<std::uint64_t> asked_ns{};               ///< when the program asked for it, by that clock
  std::string phase{};                                   ///< ranges of roctx around its call: "forward > layer 3"
  std::string where{};                                   ///< in the file: "line 3"
  std::string when{};                ///< "8051000100 ns, for 12300 ns"; of a log, when it was asked for
  bool ended = true;                 ///< false: the file shows that it, or its call, did not end well
  std::vector<std::string> notes{};  ///< what is assumed of this copy, or what the file refutes
};

/// Memory that a process had, from one place of the file to another.
struct RecordedAllocation {
  std::uint64_t address{}, bytes{};                 ///< where it begins, and how long it is
  std::string process{}, memory{};                  ///< "device memory", "host memory"
  std::string where{}, freed{};                     ///< "line 3"; freed: "" if the file does not show it
  std::string fault{};                              ///< "line 9" of a log: the first report of a page fault in it
  bool gone{};                                      ///< it was freed before that report
  std::string aligned{};                            ///< what aligns the two clocks, if another file has the report
  std::optional<std::uint64_t> from_ns{}, to_ns{};  ///< by the clock of the file
};

/// A page fault that a recording reports.
struct RecordedFault {
  std::uint64_t address{};                               ///< in the page
  std::string where{};                                   ///< "line 9"
  std::optional<std::uint64_t> after_ns{}, before_ns{};  ///< times of the lines around it, by the clock of the file
};

/// What a file shows of the copies of processes.
struct RecordedCopies {
  std::string form{};                             ///< "rocprofv3", "a Chrome trace" or "a log of the HIP runtime"
  std::string file{};                             ///< the name that the text was read with
  std::vector<RecordedCopy> copies{};             ///< by begin; of a log, in its order
  std::vector<std::string> gpus{};                ///< the file's name for each GPU
  std::vector<std::string> unknown{};             ///< sentences: what the file does not say
  std::vector<std::string> left_out{};            ///< sentences: copies that no engine made
  std::vector<RecordedAllocation> allocations{};  ///< in the order of the file
  std::vector<RecordedFault> faults{};            ///< in the order of the file
  std::uint64_t resolution_ns = 1;                ///< of its times
};

/// A copy as a row of a table.
struct CopyRow {
  /// What an agent is.
  enum class Side : std::uint8_t {
    unknown,  ///< the file does not say
    host,     ///< the host
    gpu       ///< a GPU
  };
  std::string from{}, to{};  ///< names of the agents; "": not recorded
  Side from_is{}, to_is{};   ///< what the table of agents, or the direction, says that they are
  std::uint64_t bytes{};     ///< 0: not known
  std::optional<std::uint64_t> source{}, destination{};  ///< addresses of the process
  std::string process{}, stream{};                       ///< names in the file; "": not recorded
  std::uint64_t begin_ns{}, end_ns{};                    ///< by the clock of the file
  std::optional<std::uint64_t> asked_ns{};               ///< when the program asked for it, by that clock
  std::string phase{};                                   ///< as that of RecordedCopy
  std::string where{};                                   ///< in the file: "line 3"
  std::vector<std::string> notes{};                      ///< what is assumed of this copy
};
/// The rows of a recording, in any order.
struct CopyTable {
  bool memory_alone = false;                       ///< as that of CopiesOptions
  std::string form{}, file{};                      ///< as those of RecordedCopies
  std::vector<CopyRow> rows{};                     ///< in any order
  std::vector<RecordedAllocation> allocations{};   ///< in the order of the file
  std::vector<std::string> unknown{}, left_out{};  ///< sentences, as those of RecordedCopies
  std::uint64_t resolution_ns = 1;                 ///< of its times
};
/// Names the GPUs, orders the copies of each stream, and says what the rows leave open.
Result<RecordedCopies, Diagnostic> copies_of(CopyTable);

/// A table of rocprofv3's CSV beside that of the copies, of the same process: ranges of roctx, or calls of HIP or HSA.
struct CallsTable {
  std::string file{};  ///< its name
  std::string text{};  ///< the CSV
};

/// What the caller knows about a recording.
struct CopiesOptions {
  std::optional<Generation> generation{};  ///< of the GPUs: with it, a log's engines may become the kernel's
  bool memory_alone = false;               ///< a recording may have allocations and no copy
  std::vector<CallsTable> calls{};         ///< of rocprofv3's CSV, which has them in files of their own
};
Result<RecordedCopies, Diagnostic> read_copies(std::string_view text, std::string_view file, const CopiesOptions& = {});

/// Where the schedule, run with the durations of the file, would contradict its times by more than their resolution: a
/// copy that could only begin later than it began. Empty for all that the readers make. At most 8, and how many more.
std::vector<Diagnostic> contradictions(const RecordedCopies&);

/// A schedule in the language of docs/schedules.md, with comments. A copy of unknown size has `param bytes`.
std::string schedule_text(const RecordedCopies&);

}}  // namespace sdma::v0_3
