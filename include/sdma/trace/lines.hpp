#pragma once
// A trace as JSON Lines while it is being made: written event by event, and read as far as it has come.
//
//   LinesWriter w(fd);                       // an empty file
//   w.write(names, event);                   // appends the event, and before it the lanes and texts that are new in `names`
//
//   LinesReader r("run.jsonl");
//   while (read_more(piece)) {
//     const auto t = r.feed(piece);          // the events that are whole by now and that no feed has returned before
//     if (!t) return report(t.error());
//   }
//
// The format is that of trace/write.hpp, and load_json_lines reads the file at any time. The header has room for its numbers to
// grow, and is written again in place after each event:
//
//   {"sdma_trace":1,"clock":"steady","events":                   2,"lost":                   0}
//   {"lane":0,"group":"gpu0","name":"engine 14 queue 0"}
//   {"ns":1200,"lane":0,"event":"doorbell","position":64}         <- appended whole, with the lanes and texts that it needs
//   {"ns":1300,"lane":0,"event":"doorbell","position":128}
//
// A process that is killed leaves at most one event more than its header counts, which readers accept. An event that finds no
// room on the disk leaves nothing in the file: the header counts it as lost, and later events are written once there is room again.
//
// Threads: one at a time per object. Two writers of one file overwrite each other, so a forked child takes a file of its own.
// Errors: the writer's `write` says whether the event is in the file; the reader returns a Diagnostic with the line, and returns
// it again from then on.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {
namespace trace {

class LinesWriter {
 public:
  /// Replaces what the file holds. `fd` stays the caller's, is open for writing, and can be written at any offset.
  explicit LinesWriter(int fd, std::string_view clock = "steady");

  /// Of `names` only lanes and texts count, and they only grow from call to call. False: lost, and counted.
  bool write(const Trace& names, const Event&);
  std::uint64_t events() const noexcept { return events_; }
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  bool put_header();
  bool append(std::string_view);

  int fd_;
  std::string clock_, text_{};
  std::uint64_t end_ = 0;              ///< of what is whole in the file; 0: not even the header
  std::size_t lanes_ = 0, texts_ = 0;  ///< in the file
  std::uint64_t events_ = 0, lost_ = 0;
};

class LinesReader {
 public:
  /// `file` is what errors call it.
  explicit LinesReader(std::string_view file = "trace.jsonl");
  ~LinesReader();
  LinesReader(const LinesReader&) = delete;
  LinesReader& operator=(const LinesReader&) = delete;

  /// All lanes and texts so far, and the events that are new. A last line without an end waits for the rest of it; how many
  /// events the header counts does not matter.
  Result<Trace, Diagnostic> feed(std::string_view);

 private:
  class State;
  std::unique_ptr<State> state_;
  friend Result<Trace, Diagnostic> from_json_lines(std::string_view, std::string_view);
};

}  // namespace trace
}  // namespace v0
}  // namespace sdma
