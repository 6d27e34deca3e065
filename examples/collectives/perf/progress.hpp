// SPDX-License-Identifier: MIT
#pragma once
// Shows the progress and an estimate of the remaining time on one line of a terminal, which it overwrites each time.
// Prints nothing if standard error is not a terminal.
//
//   Progress p{total};               // in any unit: bytes, sizes
//   p.show("3 of 10: 1M b2b");       // "3 of 10: 1M b2b, about 5 s left": after the first second, ten times per second
//   p.done(part);                    // adds to the completed part of the total
//   p.clear();                       // before anything else is written to the terminal
//
// A Progress belongs to one thread. No errors: a failure to write to standard error cannot be reported.
#include <chrono>
#include <string>
#include <string_view>

namespace collectives::perf {

/// `done` and `all` are in the same unit.
std::string progress(std::string_view what, double seconds, double done, double all);

class Progress {
 public:
  explicit Progress(double all);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(std::string_view what);
  void done(double part) noexcept { done_ += part; }
  void clear();

 private:
  bool on_, shown_ = false;
  double all_, done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_{};
};

}  // namespace collectives::perf
