#pragma once
// Where a verb's data goes: standard output, or the file of -o.
//
//   Output out{"-"};                            // nothing is created before the first flush
//   out.text() += line; if (!out.drain()) return out.exit_code();
//   return out.close() ? kOk : out.exit_code();
//
// A full disk is an error with its reason; a reader that has gone is none: the program ends quietly, as `yes | head` does.
#include <string>

namespace sdma::tool {

class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  /// What waits to be written.
  std::string& text() noexcept { return text_; }
  void append(const void* bytes, std::size_t n) { text_.append(static_cast<const char*>(bytes), n); }
  /// Writes all that waits, now. False after an error, which has been reported.
  bool flush();
  /// Writes if much is waiting. False after an error, which has been reported.
  bool drain() { return text_.size() < kMuch || flush(); }
  /// Writes all that is left and closes.
  bool close();
  /// What to end with after a false.
  int exit_code() const noexcept { return exit_code_; }

 private:
  static constexpr std::size_t kMuch = std::size_t{1} << 20;
  bool fail(int error);

  std::string path_, text_;
  int fd_ = -1, exit_code_ = 0;
};

}  // namespace sdma::tool
