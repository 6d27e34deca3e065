// SPDX-License-Identifier: MIT
#pragma once
// A trace as a binary file (records.hpp) that grows during a run, event by event.
//
//   RecordsWriter w(fd);                    // an empty file
//   w.write(names, event);                  // appends the event, and before it the lanes, texts and names that are new
//
// An event is stored to a mapping of the file, without a system call: if the process is killed, the kernel keeps what
// was stored. The file grows by chunks that are allocated on the disk before they are mapped, so a full disk costs
// events, which the header counts, and never the process.
//
// One thread at a time, and one process: a forked child must use a file of its own. Nothing here throws.
// Errors: `write` returns whether the event is in the file.
#include "records.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace trace {

class RecordsWriter {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;

  /// `fd` must be readable and writable. The caller keeps it open, and closes it.
  explicit RecordsWriter(int fd, std::string_view clock = "steady") noexcept;
  ~RecordsWriter();
  RecordsWriter(const RecordsWriter&) = delete;
  RecordsWriter& operator=(const RecordsWriter&) = delete;

  /// The file before its first event: a header alone, which the first event replaces.
  static std::string empty(std::string_view clock = "steady") {
    const auto h = detail::records_header(clock, sizeof(detail::RecordsHeader));
    return {reinterpret_cast<const char*>(&h), sizeof h};
  }

  /// As LinesWriter::write.
  bool write(const Trace& names, const Event&) noexcept;
  /// Counts an event that the caller could not bring here.
  void lose() noexcept;

 private:
  std::byte* room(std::size_t bytes) noexcept;
  bool grow() noexcept;
  bool put_text(std::uint8_t kind, std::string_view first, std::string_view second, const NameTable::Range*) noexcept;
  bool put_new(const Trace& names) noexcept;
  bool put(const Event&) noexcept;

  int fd_;
  detail::RecordsHeader first_;      ///< what the header begins as
  detail::RecordsHeader* header_{};  ///< a mapping of its own
  std::byte* chunk_{};               ///< the last one
  std::size_t chunks_ = 0, used_ = 0;
  std::size_t lanes_ = 0, texts_ = 0, ranges_ = 0;  ///< how many the file holds
};

}}}  // namespace sdma::v0_3::trace
