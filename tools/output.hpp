// SPDX-License-Identifier: MIT
#pragma once
// What a verb prints: messages on standard error, and its data on standard output or in the file of -o.
//
//   report(diagnostic);                         // "file:0xOFFSET: error[rule]: message", and a hint on the next line
//   Output out{"-"};                            // nothing is created before the first flush
//   out.text() += line; if (!out.drain()) return out.exit_code();
//   return out.close() ? kOk : out.exit_code();
//
// Messages are coloured only on a terminal, and not if NO_COLOR is set or TERM is "dumb".
//
// With --json, each message is one JSON object on a line of its own, which share/schemas/message.json describes: a
// program that reads the answer can read in the same way why there is none.
//
// A file is written completely or not at all, except where sdma/core/file.hpp says otherwise; a note then says so. A
// full disk is an error, reported with its reason. If the reader has exited, that is not an error: the program ends
// quietly, as `yes | head` does.
#include "json/exit.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/file.hpp"

#include <span>
#include <string>
#include <vector>

namespace sdma::tool {

void report(const Diagnostic&);
void report(std::span<const Diagnostic>);
/// What `report` prints.
std::string line_of(const Diagnostic&);
/// All later messages are JSON.
void report_as_json();
/// All later messages are also kept, for an answer that has them.
void keep_reports();
const std::vector<Diagnostic>& kept_reports();
/// The name of an input in messages.
inline std::string shown(const std::string& path) { return path == "-" ? "stdin" : path; }
/// "sdma: error: message", and the hint. Returns the exit code of a usage error.
Exit complain(const std::string& message, const std::string& hint = "");

class Output {
 public:
  using Kind = FileWriter::Kind;

  explicit Output(const std::string& path, Kind kind = Kind::whole) : path_(path), file_(path, kind) {}

  /// Text that is not written yet.
  std::string& text() noexcept { return text_; }
  /// Writes the pending text now. Returns false after an error, which has been reported.
  bool flush();
  /// Writes if much text is pending. Returns false after an error, which has been reported.
  bool drain() { return text_.size() < kMuch || flush(); }
  /// Writes the pending text, and then these bytes without copying them.
  bool write(const void* bytes, std::size_t n) {
    return flush() && succeeded(file_.write({static_cast<const char*>(bytes), n}));
  }
  /// Writes the pending text and closes.
  bool close();
  /// The exit code after one of these returned false.
  int exit_code() const noexcept { return exit_code_; }

 private:
  static constexpr std::size_t kMuch = std::size_t{1} << 20;
  bool succeeded(const Result<void, Diagnostic>&);

  const std::string path_;
  FileWriter file_;
  std::string text_{};
  int exit_code_ = 0;
};

/// Writes the text to a file or, for "-", to standard output. Reports any error, and returns an exit code.
int write_text(const std::string& path, std::string text);

/// Complains if standard input is named more than once, and returns whether it is.
bool reads_stdin_twice(const std::vector<std::string>& inputs);

/// True if an output is also one of the inputs, or is named twice, so that writing it would destroy data. Reports it.
/// `what`: what the inputs are, in the report.
struct Written {
  std::string option, path;
};
bool overwrites(const std::vector<Written>&, const std::vector<std::string>& inputs, const char* what = "the input");

}  // namespace sdma::tool
