// SPDX-License-Identifier: MIT
#pragma once
// The forms in which people have a log: what precedes a message in a line, and the fields of a record. Internal:
// log.hpp reads whole logs with them.
//
//   LogRecord r;
//   take_prefixes("<3>[  812.400126] amdgpu ...", r);        // r.seconds, r.priority, r.text, r.evident
//   take_field(use_of_field("_SOURCE_MONOTONIC_TIMESTAMP"), "812400126", r);
//
// One table has what may stand before a message (kLogPrefixes), and one the fields of records (kLogFields): those of
// journald in its export, verbose and JSON forms, and those of dmesg, of containers and of collectors of logs. A new
// form is a row there. Pure functions; any thread. No errors: what is not known stays in the text.
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// One message of a log, as its form gives it.
struct LogRecord {
  std::size_t first = 1, last = 1;          ///< numbers of its lines in the text
  std::optional<double> seconds{};          ///< since the machine started
  std::optional<double> date{};             ///< of a clock, in seconds; 0 is any moment that is the same for the log
  std::optional<unsigned> priority{};       ///< of syslog: 0 to 7
  std::string_view when{};                  ///< its time as it stands in the text
  std::string_view form{};                  ///< the row of the table that says that this is a log
  std::string_view device{};                ///< PCI address, if a field has it: "0000:c1:00.0"
  std::string_view host{};                  ///< the machine, or what stands for it: "node7"
  std::size_t host_rank = ~std::size_t{};   ///< of the field that names it: the lowest counts
  std::string_view boot{};                  ///< id of the start of the machine
  std::string_view text{};                  ///< what is said
  std::string_view part{};                  ///< of a text in parts: this one, with the blanks at its ends
  std::optional<std::uint64_t> sequence{};  ///< of /dev/kmsg
  std::optional<std::uint64_t> fragment{};  ///< of netconsole: offset of this part of the message
  bool evident = false;                     ///< nothing but a log has this form
  bool goes_on = false;                     ///< the next record has the rest of the text
  bool host_is_mark = false;                ///< host is only what stands before the line
};

/// Takes what stands before the message from a line, in any order and number: r.text is the rest.
void take_prefixes(std::string_view line, LogRecord& r) noexcept;

/// Of a line that a container's runtime has written, "2026-11-22T10:00:01.4Z stdout F text": r.part is the text.
void take_stream(std::string_view line, LogRecord& r) noexcept;

/// What a field of a record is for.
enum class LogField : std::uint8_t { none, text, boot_us, boot_s, date_us, date, priority, device, host, boot };
/// Its row: fields of text and of machines of lower rank are preferred.
struct LogFieldUse {
  LogField what{};
  std::size_t rank{};
};
LogFieldUse use_of_field(std::string_view key) noexcept;
/// Stores a field that is not a text. The value has to outlive the record.
void take_field(LogFieldUse use, std::string_view value, LogRecord& r) noexcept;

/// "KEY=VALUE" of journald: the length of the key; 0 for anything else.
std::size_t journal_key(std::string_view line) noexcept;
/// Does an entry of journald begin in this line: "__CURSOR=...", or, in the verbose form, "Sun 2026-11-22 ... [s=...]"?
bool begins_export(std::string_view line) noexcept;
bool begins_verbose(std::string_view line) noexcept;

}}}  // namespace sdma::v0_3::detail
