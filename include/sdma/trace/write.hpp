// SPDX-License-Identifier: MIT
#pragma once
// A trace as a file: JSON Lines, which can be read back without loss;
// Perfetto's JSON, for a trace viewer; a picture; and plain text.
//
//   save(trace, "run.jsonl");                    auto t = load_json_lines("run.jsonl");         // *t == trace
//   save(trace, "run.json");                     // open in ui.perfetto.dev or chrome://tracing
//
// JSON Lines: one object per line; docs/trace.md has the schema. A LinesReader follows a file that grows.
//
//   {"sdma_trace":2,"clock":"steady","events":3,"lost":0}
//   {"lane":0,"group":"gpu0","name":"engine 14 queue 0"}
//   {"text":0,"is":"bytes in flight"}
//   {"range":0,"address":"0x800000000000","bytes":65536,"is":"gpu7.buf"}
//   {"ns":1200,"lane":0,"event":"packet_begin","position":64,"length":4,"dwords":["0x00000005",..],"packet":"fence .."}
//
// Addresses, signal values and dwords are "0x..." strings (JSON numbers lose precision above 2^53); times, positions
// and counts are numbers. `packet` is for people; it is not read back.
//
// Perfetto: each group is a process, each lane a thread, and each packet a complete event ("X"). Doorbells, signals,
// faults and queues are instants; counters and arrows keep their form. Times begin at the first event. An arrow that
// begins or ends where no packet runs is attached to a bar of one nanosecond. A packet without an end lasts until the
// end of the trace and is marked `unfinished`; an end without a beginning becomes an instant called packet_end. Packets
// of a lane that overlap (an engine runs several at once) go to further threads "NAME (2)", "(3)": nothing is dropped.
// Actions of host threads are complete events, too, called by what they do. Addresses are shown by name.
//
// Picture (SVG): one bar per packet, one or more rows per lane, and arrows from trigger to completion. Times begin at
// the first event. If there are more than 20000 packets, those of a row that are narrower than a pixel and begin in the
// same pixel become one bar, whose title says how many they are and how much of the time they ran. At most 20000 bars
// and 2000 arrows are drawn; the picture says what is merged and what is missing.
//
// Text: one event per line, with its time since `first_ns`, its lane, and what happened. Packets are decoded.
//
//            12.345 us  gpu0  engine 14 queue 0    @64 fence addr=0x1000 value=2
//
// Errors: a Diagnostic says what could not be written or read, where (file:line), and why. A file is written whole or
// not at all (core/file.hpp). A trace that is cut off is an error, not a shorter trace. Names are UTF-8; invalid bytes
// become U+FFFD. A Trace that no Recorder made must have its events sorted by time, and every lane and text that they
// refer to. The functions allocate; any thread may call them.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace trace {

/// The trace as JSON Lines: one object per line.
std::string to_json_lines(const Trace&);
/// The trace as JSON for Perfetto and chrome://tracing.
std::string to_perfetto(const Trace&);
/// The trace as text, one event per line.
std::string to_text(const Trace&);
/// The line of one event. The event need not be one of the trace: only
/// the trace's lanes, texts and names are used. Ends with a newline.
std::string to_line(const Trace&, const Event&, std::uint64_t first_ns);

/// The events of these GPUs, of links that lead from or to them, and of host threads.
Trace of_gpus(Trace, std::span<const std::uint32_t> gpus);

/// What timeline_svg draws.
struct TimelineOptions {
  std::string title{};              ///< above the picture
  double begin_ns = 0, end_ns = 0;  ///< by the trace's clock; both 0: the whole trace
  double width = 0, height = 0;     ///< in pixels; 0: 680 wide, and as high as the rows; larger where the text needs it
};
/// The picture of a trace.
std::string timeline_svg(const Trace&, const TimelineOptions& = {});
/// A trace of several in one picture, and the line above its lanes.
struct Titled {
  std::string title{};   ///< such as the name of its schedule
  const Trace* trace{};  ///< not null
};
/// Several traces in one picture, from top to bottom, over one axis: each begins at 0 with its first event. `begin_ns`
/// and `end_ns` are by the clock of the first.
std::string timelines_svg(std::span<const Titled>, const TimelineOptions& = {});

/// The trace that a text of JSON Lines holds. `file`: the name of the text in errors.
Result<Trace, Diagnostic> from_json_lines(std::string_view text, std::string_view file = "trace.jsonl");

/// Reads a file; "-" is standard input. It may also be a binary recording (`sdma emulate --trace=run.bin`).
Result<Trace, Diagnostic> load_json_lines(const std::string& path);

/// The form of a trace file, which its name selects; every option --trace of this project follows this rule.
enum class Form : std::uint8_t {
  perfetto,  ///< any other name: for ui.perfetto.dev and chrome://tracing
  html,      ///< run.html: one page for a browser, which needs nothing else
  jsonl,     ///< run.jsonl: for programs; load_json_lines reads it back
  text       ///< for a terminal; no file name selects it
};

/// The form that a file of this name has.
Form form_of(std::string_view path) noexcept;

/// `name`: the title of the trace on a page.
std::string to_string(const Trace&, Form, std::string_view name = "trace");
/// Writes a file in the form that its name selects, and replaces it if it exists; "-" is standard output, in Perfetto's
/// form. After an error, the old file remains.
Result<void, Diagnostic> save(const Trace&, const std::string& path);

/// Follows a file of JSON Lines that grows during a run. One thread at a time. After an error, which names the line,
/// every further call returns the same Diagnostic.
class LinesReader {
 public:
  /// `file`: the name of the file in errors.
  explicit LinesReader(std::string_view file = "trace.jsonl");
  ~LinesReader();
  LinesReader(const LinesReader&) = delete;
  LinesReader& operator=(const LinesReader&) = delete;

  /// Returns all lanes, texts and names so far, and the new events. A last line without a newline is kept until the
  /// rest arrives. The header's count of events is not checked.
  Result<Trace, Diagnostic> feed(std::string_view);

 private:
  class State;
  std::unique_ptr<State> state_;
  friend Result<Trace, Diagnostic> from_json_lines(std::string_view, std::string_view);
};

}}}  // namespace sdma::v0_3::trace
