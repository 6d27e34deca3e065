// SPDX-License-Identifier: MIT
#pragma once
// Copies that other tools have recorded, as the text of a schedule: to check it, simulate it, draw it or change it.
//
//   auto c = read_copies(text, "run_memory_copy_trace.csv");
//   if (c) puts(schedule_text(*c).c_str());
//
//   rocprofv3      the CSV of --memory-copy-trace      directions, agents, streams, times; no sizes, no addresses
//   Chrome traces  JSON as kineto writes it (PyTorch)  directions, devices, streams, sizes, times; no addresses
//   AMD_LOG_LEVEL  lines of the HIP runtime, from 4    addresses, sizes, engines, directions, and what waits for what
//
// Each stream becomes a queue for each engine, or each direction, that it uses. Polls keep the order of a stream or, in
// a log of the HIP runtime, that of `wait_event`. Addresses that overlap or touch become one buffer; without addresses,
// each copy has its own buffers. The schedule submits everything at once: the times between copies appear only in
// comments. RecordedCopies::unknown, and comments of the text, list what the file does not say.
//
// Takes time and memory near-linear in the text. Allocates. There is no shared state; any thread may call these
// functions. Errors: a Diagnostic, if the text is none of these forms or has no copy.
#include "sdma/core/result.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0 {

/// A copy, as far as it is known.
struct RecordedCopy {
  Place from{}, to{};                                    ///< the host, or a GPU
  std::uint64_t bytes{};                                 ///< 0: not known
  std::optional<std::uint64_t> source{}, destination{};  ///< addresses
  std::string stream{};                                  ///< its name in the file
  std::optional<std::uint32_t> engine{};                 ///< of the GPU that executes it
  std::optional<std::size_t> after{};                    ///< the copy that it waits for: an index of `copies`
  std::string when{};                                    ///< "8051000100 ns, for 12300 ns"
};

struct RecordedCopies {
  std::string form{};                  ///< "rocprofv3", "a Chrome trace" or "a log of the HIP runtime"
  std::string file{};                  ///< the name that the text was read with
  std::vector<RecordedCopy> copies{};  ///< by begin; of a log, in its order
  std::vector<std::string> gpus{};     ///< the file's name for each GPU
  std::vector<std::string> unknown{};  ///< sentences: what the file does not say, and what is assumed instead
};

Result<RecordedCopies, Diagnostic> read_copies(std::string_view text, std::string_view file);

/// A schedule in the language of docs/schedules.md, with comments. A copy of unknown size has `param bytes`.
std::string schedule_text(const RecordedCopies&);

}}  // namespace sdma::v0
