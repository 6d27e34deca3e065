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
#include "../progress.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace collectives::perf {

/// `done` and `all` are in the same unit.
inline std::string progress(std::string_view what, double seconds, double done, double all) {
  std::string text(what);
  // The first percents do not predict the rest.
  constexpr double kEnough = 0.02;
  if (done <= kEnough * all) return text;
  return text + ", about " + std::to_string(static_cast<long>(seconds * (all - done) / done + 0.5)) + " s left";
}

class Progress {
 public:
  explicit Progress(double all) : all_(all) {}
  void show(std::string_view what) {
    line_.show([&] {
      const auto spent = std::chrono::steady_clock::now() - begin_;
      return progress(what, std::chrono::duration<double>(spent).count(), done_, all_);
    });
  }
  void done(double part) noexcept { done_ += part; }
  void clear() { line_.clear(); }

 private:
  sdma::tool::Progress line_{std::chrono::seconds(1)};
  double all_, done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace collectives::perf
