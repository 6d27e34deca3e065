// SPDX-License-Identifier: MIT
#pragma once
// Lines of the driver in a kernel's log, and what its wordings mean. Internal: the reader of dumps leaves them out, and
// the doctor uses them as evidence (doctor/kernel_log.hpp).
//
//   for (const LogLine& l : log_lines(plain_text(bytes)))
//     if (const Wording* w = l.wording()) ...                // "in page starting at address " is LogWord::page
//
//   12:> Nov 22 10:00:01 n7 kernel: [  812.400126] amdgpu 0000:c1:00.0: amdgpu:   in page starting at
//   13:> address 0x00007f5566778000 from client 18
//        `------------ before --------------------'       `- device -'          `------- text -------
//
// Prefixes before the driver's name are ignored: time stamps, host names, and what journald, containers, `grep -n` and
// mail add. A line that mail has wrapped is joined to the previous one. A log that was printed with the newest line
// first (journalctl -r) is returned in the order of time.

//
// Adding a wording is adding a row to kWordings, with the versions of the driver that print it. Pure functions that
// allocate in proportion to the text; any thread. No errors.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0 { namespace detail {

/// What a wording is for.
enum class LogWord : std::uint8_t {
  fault,           ///< the first line of a page fault
  process,         ///< of the fault: "NAME pid N thread ..." follows
  page,            ///< of the fault: its address follows
  client,          ///< of the fault: the unit follows
  access,          ///< of the fault: 1 for a write follows
  other,           ///< of the fault: nothing that is used
  whole_fault,     ///< a fault in one line: its address follows
  dumped_process,  ///< of a devcoredump: "NAME PID: N" follows
  dumped_fault,    ///< of a devcoredump: the last fault's address follows, 0 if there was none
  event,           ///< anything else that says something about copies
};

/// A wording: `key`, and `also` behind it in the same line.
struct Wording {
  LogWord what{};
  std::string_view key{}, also{};
  std::string_view versions{};  ///< of Linux, or what else prints it
  std::string_view means{};     ///< of an event: one sentence or two
};
/// The wordings of a fault's lines first. Source: the driver of each version, and public reports.
std::span<const Wording> wordings() noexcept;

/// A line of the log that the driver or a runtime has written.
struct LogLine {
  std::size_t first = 1, last = 1;  ///< numbers of its lines in the text
  std::optional<double> seconds{};  ///< since the machine started
  std::string device{};             ///< PCI address: "0000:c1:00.0"; "" if the line has none
  std::string text{};               ///< what is said, without prefix and device
  const Wording* wording = nullptr;

  /// What follows the wording's key; "" without a wording.
  std::string_view after_key() const noexcept;
  /// The text from the key on, without blanks at its end.
  std::string_view said() const noexcept;
};

/// The lines of a log that have a wording, in the order of time; none if it is not a log. `text` is plain (plain.hpp).
std::vector<LogLine> log_lines(std::string_view text);

/// A text without lines of its log: they are empty, so that the others keep their numbers.
struct TextBesideLog {
  std::string rest{};            ///< without any line of the kernel but dumps that it printed
  std::string without_faults{};  ///< without the lines of page faults, which have numbers as dumps do
};
/// Nothing if the text is not a log.
std::optional<TextBesideLog> without_log(std::string_view text);

}}}  // namespace sdma::v0::detail
