// SPDX-License-Identifier: MIT
#pragma once
// Records of a log that are not lines: JSON of any shape, and journald's export and verbose forms. Internal.
//
//   const auto used = read_json_records(text.substr(at), [&](LogRecord& r) { ... });    // used.end, used.records
//
// JSON: an object with a field of text (log_forms.hpp) is a record, wherever it stands: `dmesg --json`, journalctl's
// json, json-pretty, json-seq and json-sse, Docker, Elastic, fluent-bit, cloud logs. So is a pair of a time and a line
// (Loki), and so is each string of a list (ansible's stdout_lines). A text may be a list of bytes, have several lines,
// begin with the prefixes of a line, or be JSON again.
//
// The views of a record live until the function that gets it returns. Pure; allocates for one record at a time. Any
// thread. No errors: what is cut off gives the records before the cut, and what there is of the last one.
#include "log_forms.hpp"

#include <functional>

namespace sdma { inline namespace v0_3 { namespace detail {

using TakeRecord = std::function<void(LogRecord&)>;

struct RecordsRead {
  std::size_t end = 0;      ///< how much of the text they are
  std::size_t records = 0;  ///< how many there are
  bool whole = false;       ///< of JSON: nothing is wrong with it
};
/// Does a value of JSON begin here that may have records?
bool begins_json(std::string_view text) noexcept;
RecordsRead read_json_records(std::string_view text, const TakeRecord&);
/// Does the value of JSON that begins here end in this text, or show that it is none? Otherwise more may follow.
bool ends_json(std::string_view text) noexcept;
/// One entry of journald, which begins here (begins_export, begins_verbose). `goes_on`: more of the text follows; then
/// an entry that may have more lines is not read, and `end` is 0.
RecordsRead read_export(std::string_view text, bool goes_on, const TakeRecord&);
RecordsRead read_verbose(std::string_view text, bool goes_on, const TakeRecord&);

}}}  // namespace sdma::v0_3::detail
