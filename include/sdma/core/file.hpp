#pragma once
// Files that are written whole or not at all.
//
//   if (auto e = save_file("run.json", text); !e) puts(to_string(e.error()).c_str());
//
//   FileWriter out{"ring.bin"};                      // nothing happens before the first write
//   while (more()) if (auto e = out.write(bytes); !e) return e;
//   return out.close();                              // now ring.bin exists; without this call, the old file remains
//
//   kind    path                 bytes
//   whole   a regular file       go to a file without a name, which replaces the old file after `close` has synced it to disk
//   whole   "-", /dev/stdout,    are written at once
//           a pipe, a terminal
//   live    any                  are visible at once, for a log that others follow. A write that fails is taken back, so the
//                                file never ends with a part of a line
//
// Neither an error nor a signal leaves half of a `whole` file. A symbolic link stays a link. A file that is replaced keeps its
// permissions, and its owner if the process may set it. If the process may write the file but not its folder, the file is
// written in place.
//
// Errors: Diagnostics with the path ("stdout" for "-"), the reason, and a hint. If `close` succeeds, all bytes were written: a
// full disk is always reported. If the reader of a pipe has gone, the error satisfies `reader_gone`; the program must ignore
// SIGPIPE to see it. After a failed write a `whole` file is lost, and each further call returns the same error.
// Threads: one at a time. If two writers replace the same file, the last one to close wins.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sdma {
inline namespace v0 {

class FileWriter {
 public:
  enum class Kind : std::uint8_t { whole, live };

  /// "-": standard output.
  explicit FileWriter(std::string path, Kind kind = Kind::whole) : path_(std::move(path)), kind_(kind) {}
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  /// Optional; reports early that a file cannot be written. A `whole` file does not change yet; a `live` file is created.
  Result<void, Diagnostic> open();
  Result<void, Diagnostic> write(std::string_view bytes);
  /// Creates the file, or replaces it. If nothing was written, the file is empty.
  Result<void, Diagnostic> close();

 private:
  Diagnostic failed(int error);
  int open_beside(bool there);
  int link_beside();

  std::string path_;
  std::string target_{}, beside_{};  // the file to replace; the name of the new file until then, or ""
  std::uint64_t written_ = 0;
  Kind kind_;
  bool in_place_ = false;  // cut to nothing before the first byte
  int fd_ = -1, error_ = 0;
};

/// Opens, writes and closes in one call.
Result<void, Diagnostic> save_file(const std::string& path, std::string_view bytes);

/// Diagnostic::rule of the error below.
inline constexpr std::string_view kReaderGone = "reader-gone";
/// Was this a pipe whose reader has gone? Then a program ends without a message.
[[nodiscard]] inline bool reader_gone(const Diagnostic& d) noexcept { return d.rule == kReaderGone; }

}  // namespace v0
}  // namespace sdma
