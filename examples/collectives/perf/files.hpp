#pragma once
// Files that are whole whenever the program ends.
//
//   auto rows = Rows::open("ag.csv");                 // at once, so that a folder that is not there is said before the sweep
//   rows->add(line);                                  // all of the line, or none: what did not fit is taken back
//   save("ag.json", text);                            // beside it, then renamed over it: the old one or the new one
//
// What is no ordinary file (a terminal, a pipe, /dev/full) is written as it is. Names that are links stay links. One thread.
// Errors: Diagnostics with the file's name and the reason; a reader that has gone is `gone`.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace collectives::perf {

/// The rule of a Diagnostic that says that whoever read has gone: nothing to tell anybody.
inline constexpr std::string_view kGone = "gone";

class Rows {
 public:
  /// "-": standard output.
  static sdma::Result<Rows, sdma::Diagnostic> open(const std::string& path);
  Rows(Rows&&) noexcept;
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  sdma::Result<void, sdma::Diagnostic> add(std::string_view lines);
  sdma::Result<void, sdma::Diagnostic> close();

 private:
  Rows(int fd, std::string path) noexcept : fd_(fd), path_(std::move(path)) {}

  int fd_;
  std::string path_;
  std::uint64_t written_ = 0;
};

/// Could `save` write there? Leaves no trace.
sdma::Result<void, sdma::Diagnostic> can_save(const std::string& path);
sdma::Result<void, sdma::Diagnostic> save(const std::string& path, std::string_view text);

}  // namespace collectives::perf
