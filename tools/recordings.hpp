// SPDX-License-Identifier: MIT
#pragma once
// Recordings of copies that other tools have made, as texts (sdma/schedule/copies.hpp) or databases of rocpd.
//
//   auto copies = load_copies("results.db", {});
//   if (!copies) return report(copies.error()), kInput;
//   tell_assumed(*copies);                                  // notes: what the file does not say
//
// A database is read where it lies, or as it came out of an archive or a pipe, with at most 256 MiB of memory beside
// its own bytes, and is never written. Without SQLite3, the error is what this program lacks. Beside the CSV of copies,
// NAME_memory_copy_trace.csv, the tables NAME_marker_api_trace.csv and of calls are read, too.
#include "sdma/schedule/copies.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sdma::tool {

Result<RecordedCopies, Diagnostic> load_copies(const std::string& path, const CopiesOptions&);
/// May a text that begins so be a recording? The kernel's and the runtime's logs begin otherwise.
bool begins_recording(std::string_view begin) noexcept;
/// Reports what is unknown, what was left out, and what was assumed of single copies: at most 8 of these, and how many
/// more.
void tell_assumed(const RecordedCopies&);

/// Where a page of a process lies in a recording (0: the process is not known): "the source of the copy of line 2 of
/// hip.log, 8.0 MB into 33.6 MB", and whose memory it is. "" if the recording does not show it.
std::string place_in(const RecordedCopies&, std::uint64_t page, std::uint32_t process);

inline constexpr std::string_view kDatabaseMark{"SQLite format 3\0", 16};  ///< a file of SQLite begins so
/// The copies of a database of rocpd. Errors: another database, a broken one, one that needs too much memory or time.
Result<RecordedCopies, Diagnostic> read_rocpd(const std::string& path, const CopiesOptions& = {});
/// The same for one in memory, from an archive or a pipe. `name`: for errors.
Result<RecordedCopies, Diagnostic> read_rocpd(std::string_view bytes, const std::string& name,
                                              const CopiesOptions& = {});

}  // namespace sdma::tool
