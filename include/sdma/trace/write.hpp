#pragma once
// A trace as files: JSON Lines, which comes back as it was, Perfetto's JSON, which is for looking at, and text for reading.
//
//   save_json_lines(trace, "run.jsonl");         auto t = load_json_lines("run.jsonl");         // *t == trace
//   save_perfetto(trace, "run.json");            // open in ui.perfetto.dev or chrome://tracing
//
// JSON Lines: one object a line; docs/trace.md is its schema.
//
//   {"sdma_trace":1,"clock":"steady","events":3,"lost":0}
//   {"lane":0,"group":"gpu0","name":"engine 14 queue 0"}
//   {"text":0,"is":"bytes in flight"}
//   {"ns":1200,"lane":0,"event":"packet_begin","position":64,"length":4,"dwords":["0x00000005",...],"packet":"fence ..."}
//
// Addresses, signal values and dwords are "0x..." strings (JSON's numbers lose what is above 2^53), times, positions and
// counts numbers. `packet` is for readers; it is not read back.
//
// Perfetto: a process a group, a thread a lane, a complete event ("X") a packet, instants for doorbells, signals, faults and
// queues, counters, arrows; times begin at the first event. An arrow where no packet runs hangs on a bar of a nanosecond. A
// packet without an end lasts until the trace does and says `unfinished`; an end without its beginning becomes an instant
// of that name. Packets of a lane that overlap without nesting (an engine runs several at once) are laid into further
// threads "NAME (2)", "(3)": nothing is dropped.
//
// Text, an event a line: its time since `first_ns`, its lane, and what happened there, packets decoded.
//
//            12.345 us  gpu0  engine 14 queue 0    @64 fence addr=0x1000 value=2
//
// Errors: a Diagnostic with what could not be written or read, where (file:line), and why. Writing tells of a full disk:
// success means that all bytes were taken and the file is closed. A trace that a file cuts off is an error, not a shorter
// trace. Names are UTF-8; what is not becomes U+FFFD. Requires of a Trace that no Recorder made: events by time, lanes and
// texts that are there. Allocates. Any thread; a Trace is a value.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {
namespace trace {

std::string to_json_lines(const Trace&);
std::string to_perfetto(const Trace&);
std::string to_text(const Trace&);
/// One event of a trace, whose lanes and texts are enough; ends with a newline.
std::string to_line(const Trace&, const Event&, std::uint64_t first_ns);

/// The trace that a text holds. `file` is what errors call it.
Result<Trace, Diagnostic> from_json_lines(std::string_view text, std::string_view file = "trace.jsonl");

/// To a file, replaced if it is there; "-": standard output. On an error what was written stays, incomplete.
Result<void, Diagnostic> save_json_lines(const Trace&, const std::string& path);
Result<void, Diagnostic> save_perfetto(const Trace&, const std::string& path);
/// From a file; "-": standard input.
Result<Trace, Diagnostic> load_json_lines(const std::string& path);

}  // namespace trace
}  // namespace v0
}  // namespace sdma
