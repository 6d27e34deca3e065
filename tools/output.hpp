#pragma once
// Where a verb's data goes: standard output, or the file of -o.
//
//   Output out{"-"};                            // nothing is created before the first flush
//   out.text() += line; if (!out.drain()) return out.exit_code();
//   return out.close() ? kOk : out.exit_code();
//
// A file is there whole or not at all: it is written without a name and takes the place of what was there when it is closed, so
// that neither an error nor Ctrl-C leaves half of it. What is no file (a pipe, a terminal, /dev/full) is written as it comes,
// and so is a file where its folder takes no other.
// A full disk is an error with its reason; a reader that has gone is none: the program ends quietly, as `yes | head` does.
#include <string>
#include <string_view>
#include <vector>

namespace sdma::tool {

class Output {
 public:
  /// live: others read while it is written, so a file has its name from the beginning.
  enum class Kind { whole, live };

  explicit Output(std::string path, Kind kind = Kind::whole) : path_(std::move(path)), kind_(kind) {}
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
  /// Writes all that waits, and these bytes behind it, without a copy of them.
  bool write(const void* bytes, std::size_t n) { return flush() && write_all(static_cast<const char*>(bytes), n); }
  /// Writes all that is left and closes.
  bool close();
  /// What to end with after a false.
  int exit_code() const noexcept { return exit_code_; }

 private:
  static constexpr std::size_t kMuch = std::size_t{1} << 20;
  bool fail(int error);
  bool open();
  int open_beside();
  bool write_all(const char* bytes, std::size_t n);
  int link_beside();

  std::string path_, text_;
  std::string target_{}, beside_{};  ///< of a file that has not its name yet: what it becomes; its name so far, or none
  Kind kind_;
  int fd_ = -1, exit_code_ = 0;
};

/// Is what -o or --trace names one of these inputs, or named twice? Whoever writes it loses the other. It has been reported then.
struct Written {
  std::string option, path;
};
bool overwrites(const std::vector<Written>&, const std::vector<std::string>& inputs);

}  // namespace sdma::tool
