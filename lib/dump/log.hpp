// SPDX-License-Identifier: MIT
#pragma once
// Decides once what the lines of a text are: a log's, a dump's, or others; and reads the log. Internal: the reader of
// dumps leaves a log out, and the doctor uses it as evidence (doctor/kernel_log.hpp).
//
//   const Log log = read_log(bytes);
//   for (const LogLine& l : log.lines) use(l.message->what, l.match["address"], l.seconds);    // in the order of time
//   if (log.is_log && log.has_dump) ... read_text_dump(log.rest) ...
//
//   LogReader reader;                                // a text of any length, of which no more is kept than it says
//   while (more(bytes)) reader.add(bytes);           // parts may end anywhere
//   const Log log = reader.finish();
//
//   12:> Nov 22 10:00:01 n7 kernel: [  812.400126] amdgpu 0000:c1:00.0: amdgpu:   in page starting at
//   13:> address 0x00007f5566778000 from client 18
//        `------------ prefixes ------------------'       `- device -'          `--- text and match ---
//
// A text is a log if its lines have a log's prefixes, are records of JSON or of journald, name the driver, or say what
// messages.hpp has. The other lines of a log are ordinary: no line of a log is ever a dword of a ring. A dump that was
// printed into the log, or stands beside it, is a block of rows: numbers alone, or after an offset with a colon. If
// such a row has the log's own prefix, its words name the driver or a ring, or most lines of the log are rows.
//
// A line that mail has wrapped, or that a terminal has cut at its width, is joined with the next ones. Lines are
// ordered by their own times: first by the direction in which most of the text's times go (the newest line may be the
// first), then within a start of a machine (log_sources.hpp): the lines of each come one after the other, also if the
// log has those of several. Without times, the order of the lines of faults decides the direction. A start that was
// saved twice shows by the same line at the same microsecond, and counts once.
//
// A part is read line by line. The width at which mail or a terminal has wrapped lines is that of the parts up to now.
// Of a log, only lines with a message are kept, and what may be a dump (log_rest.hpp); a record of JSON waits until it
// is whole. A text that is no log is kept as it is.
//
// Pure functions that allocate; any thread. A LogReader: one thread at a time. No errors.
#include "log_sources.hpp"
#include "messages.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// A line of a log that has a message.
struct LogLine {
  std::size_t first = 1, last = 1;  ///< numbers of its lines in the text
  std::size_t record = 0;           ///< how many records of the log come before it in time
  std::optional<double> seconds{};  ///< since the machine started
  std::optional<double> date{};     ///< of a clock, in seconds: only differences mean something
  std::size_t source = 0;           ///< the machine and its start: an index of Log::sources
  std::string device{};             ///< PCI address: "0000:c1:00.0"; "" if the line has none
  std::string_view text{};          ///< what is said, without prefixes
  const Message* message{};
  PhraseMatch match{};

  /// The text from the message on, without blanks and quotes at its end.
  std::string_view said() const noexcept;
};

struct Log {
  Log() = default;
  Log(Log&&) = default;  // and no copy: views refer to `texts`

  bool is_log = false;      ///< the text is one, or has one
  bool of_runtime = false;  ///< it has lines of a runtime
  bool of_kernel = false;   ///< it has lines of the kernel
  std::string form{};       ///< "dmesg", "JSON", ...
  std::size_t records = 0;  ///< all of them, with a message or without
  std::vector<LogSource> sources{};
  std::deque<std::string> texts{};
  std::vector<LogLine> lines{};
  bool has_dump = false;  ///< lines of the text are rows of a dump; or the text is no log, and its reader decides
  std::string rest{};     ///< of a log: the lines of the dump alone, where they stood; or else the text, decoded
};

class LogReader {
 public:
  LogReader();
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  void add(std::string_view bytes);
  /// The lines with a message among those that have come, as if nothing followed; valid as long as the reader.
  std::vector<LogLine> so_far(std::vector<LogSource>& sources);
  /// How many bytes of the text are kept.
  std::size_t kept() const noexcept;
  Log finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};
Log read_log(std::string_view bytes);

/// "a kernel's log of 15 lines, from 8123.402 to 8123.405", "a kernel's log of 30 lines of 2 machines"
std::string describe(const Log&);

}}}  // namespace sdma::v0_3::detail
