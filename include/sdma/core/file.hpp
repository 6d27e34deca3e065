#pragma once
// Files that are there whole or not at all.
//
//   if (auto e = save_file("run.json", text); !e) puts(to_string(e.error()).c_str());
//
//   FileWriter out{"ring.bin"};                      // nothing happens before the first write
//   while (more()) if (auto e = out.write(bytes); !e) return e;
//   return out.close();                              // now ring.bin is there; without this call, what was there before stays
//
//   kind    name                 what is written
//   whole   a regular file       goes to a file without a name, which takes the place of the old one when it is closed and on disk
//   whole   "-", /dev/stdout,    is written as it comes
//           a pipe, a terminal
//   live    any                  is seen at once: a log that others follow. A write that fails is taken back, so that no part
//                                of a line stays
//
// Neither an error nor a signal leaves half of a `whole` file. Names that are links stay links, and a file that is replaced
// keeps its permissions, and its owner where that is allowed. Where its folder takes no other file, a file that may be written
// is written in place.
//
// Errors: Diagnostics with the file's name ("stdout" for "-"), the reason, and a hint. Success of `close` means that all bytes
// were taken: a full disk is never silent. A pipe's reader that has gone is an error that `reader_gone` recognises; the program
// has to ignore SIGPIPE for that. After a failed write a `whole` file is lost, and each further call gives the same error.
// Requires: one thread at a time. Two writers of one file do not meet: the last to close wins.
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

  /// For an early error: could it be written? Changes nothing that is there; of kind `live`, it creates the file.
  Result<void, Diagnostic> open();
  Result<void, Diagnostic> write(std::string_view bytes);
  /// A file to which nothing was written is there too, and empty.
  Result<void, Diagnostic> close();

 private:
  Diagnostic failed(int error);
  int open_beside(bool there);
  int link_beside();

  std::string path_;
  std::string target_{}, beside_{};  // of a file that has not its name yet: what it becomes; its name so far, or none
  std::uint64_t written_ = 0;
  Kind kind_;
  bool in_place_ = false;  // and empty before the first byte
  int fd_ = -1, error_ = 0;
};

/// All of it, in one call.
Result<void, Diagnostic> save_file(const std::string& path, std::string_view bytes);

/// The rule of such an error.
inline constexpr std::string_view kReaderGone = "reader-gone";
/// Was this a pipe whose reader has gone? There is nobody to tell.
[[nodiscard]] inline bool reader_gone(const Diagnostic& d) noexcept { return d.rule == kReaderGone; }

}  // namespace v0
}  // namespace sdma
