// SPDX-License-Identifier: MIT
#pragma once
// Files that are written whole or not at all, and files that are read.
//
//   if (auto e = save_file("run.json", text); !e) puts(to_string(e.error()).c_str());
//
//   FileWriter out{"ring.bin"};                      // nothing happens before the first write
//   while (more()) if (auto e = out.write(bytes); !e) return e;
//   return out.close();                              // now ring.bin exists; without this call, the old file remains
//
//   auto text = read_file("run.json");               // "-": standard input
//
//   kind    path                 bytes
//   whole   a regular file       go to a new file without a name. `close` syncs it to disk, then replaces the old one
//   whole   "-", /dev/stdout,    are written immediately
//           a pipe, a terminal
//   live    any                  are visible immediately, for a log that others follow. A failed write is undone, so
//                                the file never ends with a part of a line
//
// Neither an error nor a signal leaves half of a `whole` file, except where a file is written in place:
//
//   path                                      a `whole` file is
//   nothing, in a folder that may be written  created with the rights 0666 less the umask
//   a file of this user                       replaced by a file with the same group, and the same rights to read,
//                                             write and execute; other bits (set-uid, sticky) are not copied
//   a file of another user, with an access    written in place: owner and rights stay with the file. After an error the
//   list, or in a folder without rights       file may hold a part of the new contents; `in_place` and the error's hint
//                                             say so
//   a symbolic link                           what the link names, by the same rules; the link stays. The kernel
//                                             follows it, so a link that a shell's redirection may not follow is
//                                             refused. If it names no file, that file is created at once, empty
//   created by another user before `close`    not touched: `close` fails with EEXIST
//
// Errors: a Diagnostic has the path ("stdout" or "stdin" for "-"), the reason, and a hint. If `close` succeeds, all
// bytes were written: a full disk is always reported. If the reader of a pipe has gone, the error satisfies
// `reader_gone`; the program must ignore SIGPIPE to see it. After a failed write to a `whole` file, each further call
// returns the same error, and the new contents are lost.
// Threads: one at a time per FileWriter. If two writers replace the same file, the last one to close wins.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sdma { inline namespace v0_3 {

class FileWriter {
 public:
  /// `whole`: `close` replaces the file (but see the table above); `live`: each write is visible at once.
  enum class Kind : std::uint8_t { whole, live };

  /// `path`: "-" is standard output.
  explicit FileWriter(std::string path, Kind kind = Kind::whole) : path_(std::move(path)), kind_(kind) {}
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  /// Optional; reports early that a file cannot be written. A
  /// `whole` file does not change yet; a `live` file is created.
  Result<void, Diagnostic> open();
  /// Appends `bytes`.
  Result<void, Diagnostic> write(std::string_view bytes);
  /// Creates the file, or replaces it. If nothing was written, the file is empty.
  Result<void, Diagnostic> close();
  /// After `open` or `write`: true if a regular file is written in place, although its kind is `whole`.
  bool in_place() const noexcept { return in_place_; }

 private:
  Diagnostic failed(int error);
  int open_old();
  int open_beside();
  int open_instead();
  int choose();
  int link_beside();
  int rename_beside();

  std::string path_;
  std::string target_{}, beside_{};  // the file to replace; the new file's name until `close`, or ""
  std::uint64_t written_ = 0;
  Kind kind_;
  bool in_place_ = false;  // truncated before the first byte is written
  bool is_new_ = false;    // nothing had the path when it was opened
  int fd_ = -1, error_ = 0;
};

/// Opens, writes and closes in one call.
Result<void, Diagnostic> save_file(const std::string& path, std::string_view bytes);

/// A file that did not exist before.
struct FreshFile {
  int fd = -1;         ///< for reading and writing; the caller closes it
  std::string path{};  ///< the name that was free
};
/// Creates the file `path` or, if that name is taken, the first of path-1, path-2, ... that is free. Never opens a file
/// that exists, nor follows a symbolic link to one.
Result<FreshFile, Diagnostic> create_fresh(const std::string& path);

/// Reads a file piece by piece.
class FileReader {
 public:
  /// "-": standard input. Opened by the first read.
  explicit FileReader(std::string path) : path_(std::move(path)) {}
  FileReader(FileReader&& o) noexcept : path_(std::move(o.path_)), fd_(std::exchange(o.fd_, -1)) {}
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  /// Appends at most `most` bytes: those that can be read without waiting for more. False at the end of the file.
  Result<bool, Diagnostic> read(std::string& out, std::size_t most);

 private:
  std::string path_;
  int fd_ = -1;
};

/// All bytes of a file.
Result<std::string, Diagnostic> read_file(const std::string& path);

/// Diagnostic::rule of the error below.
inline constexpr std::string_view kReaderGone = "reader-gone";
/// Is this the error of a pipe whose reader has gone? If so, a program should end without a message.
[[nodiscard]] inline bool reader_gone(const Diagnostic& d) noexcept { return d.rule == kReaderGone; }

}}  // namespace sdma::v0_3
