// SPDX-License-Identifier: MIT
#pragma once
// A trace as a JSON Lines file (sdma/trace/write.hpp) that grows during a run, event by event.
//
//   LinesWriter w(fd);                      // an empty file
//   w.write(names, event);                  // appends the event, and before it the lanes, texts and names that are new
//
// load_json_lines reads the file at any time, and LinesReader follows it. The header has room for its numbers to grow,
// and is written again in place after each event:
//
//   {"sdma_trace":2,"clock":"steady","events":                   2,"lost":                   0}
//   {"lane":0,"group":"gpu0","name":"engine 14 queue 0"}
//   {"ns":1200,"lane":0,"event":"doorbell","position":64}         <- appended whole, with the lines that it needs
//   {"ns":1300,"lane":0,"event":"doorbell","position":128}
//
// If the process is killed, the file may hold one event more than its header counts; readers accept that. If the disk
// has no room for an event, no part of it stays in the file, and the header counts it as lost. Once there is room
// again, later events are written.
//
// One thread at a time. Two writers of one file overwrite each other's lines, so a forked child must use a file of its
// own. Errors: `write` returns whether the event is in the file.
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace trace {

class LinesWriter {
 public:
  /// Replaces the contents of the file. `fd` must be writable at any offset. The caller keeps it open, and closes it.
  explicit LinesWriter(int fd, std::string_view clock = "steady");

  /// The file before its first event, with the clock "steady". Inline, because the tool begins files, too.
  static constexpr std::string_view kEmpty =
      "{\"sdma_trace\":2,\"clock\":\"steady\",\"events\":                   0,\"lost\":                   0}\n";

  /// Uses only the lanes, texts and names of `names`, which may only grow from call to call. Returns false if the event
  /// is lost, because the disk or the memory is full; `lost` then counts it.
  bool write(const Trace& names, const Event&) noexcept;
  /// Counts an event that the caller could not bring here.
  void lose() noexcept;
  /// How many events this writer has put into the file.
  std::uint64_t events() const noexcept { return events_; }
  /// How many events were lost: those that `write` could not keep, and those of `lose`.
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  bool put_header() noexcept;
  bool append(std::string_view) noexcept;
  bool put(const Trace& names, const Event&) noexcept;

  int fd_;
  std::string clock_, text_{};
  std::uint64_t end_ = 0;                           ///< end of the last whole line, in bytes; 0: not even the header
  std::size_t lanes_ = 0, texts_ = 0, ranges_ = 0;  ///< how many the file holds
  std::uint64_t events_ = 0, lost_ = 0;
};

}}}  // namespace sdma::v0_3::trace
