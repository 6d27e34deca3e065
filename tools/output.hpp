#pragma once
// Where a verb's data goes: standard output, or the file of -o.
//
//   Output out{"-"};                            // nothing is created before the first flush
//   out.text() += line; if (!out.drain()) return out.exit_code();
//   return out.close() ? kOk : out.exit_code();
//
// A file is written whole or not at all: sdma/core/file.hpp. A full disk is an error with its reason. If the reader of a pipe has
// gone, the program ends without a message, as `yes | head` does.
#include "sdma/core/file.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

class Output {
 public:
  using Kind = FileWriter::Kind;

  explicit Output(std::string path, Kind kind = Kind::whole) : file_(std::move(path), kind) {}

  /// What waits to be written.
  std::string& text() noexcept { return text_; }
  void append(const void* bytes, std::size_t n) { text_.append(static_cast<const char*>(bytes), n); }
  /// Writes all that waits, now. False after an error, which has been reported.
  bool flush();
  /// Writes if much is waiting. False after an error, which has been reported.
  bool drain() { return text_.size() < kMuch || flush(); }
  /// Writes all that waits, and then these bytes, without a copy of them.
  bool write(const void* bytes, std::size_t n) {
    return flush() && told(file_.write({static_cast<const char*>(bytes), n}));
  }
  /// Writes all that is left and closes.
  bool close();
  /// What to end with after a false.
  int exit_code() const noexcept { return exit_code_; }

 private:
  static constexpr std::size_t kMuch = std::size_t{1} << 20;
  bool told(const Result<void, Diagnostic>&);

  FileWriter file_;
  std::string text_{};
  int exit_code_ = 0;
};

/// Is what -o or --trace names one of these inputs, or named twice? Whoever writes it loses the other. It has been reported then.
struct Written {
  std::string option, path;
};
bool overwrites(const std::vector<Written>&, const std::vector<std::string>& inputs);

}  // namespace sdma::tool
