// SPDX-License-Identifier: MIT
#pragma once
// One line of progress on a terminal, which each call overwrites,
// and which the end erases. Nothing if standard error is not one.
//
//   Progress progress;                                                   // Progress{1s}: nothing in the first second
//   progress.show([&] { return fmt::format("{} of {}", done, all); });   // the text is made at most ten times a second
//   progress.clear();                                                    // before something else is written
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace sdma::tool {

class Progress {
 public:
  explicit Progress(std::chrono::milliseconds before = kBetween) : next_(std::chrono::steady_clock::now() + before) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }
  template <class Text> void show(Text text) {
    if (on_ && due()) show_now(text());
  }
  /// Ten times a second at most: for a caller whose text has another use, too.
  bool due() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + kBetween;
    return true;
  }
  void show_now(const std::string& text) {
    if (!on_) return;
    shown_ = true;
    const auto line = kNothing + text;
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  void clear() {
    if (shown_) std::fputs(kNothing, stderr);
    shown_ = false;
  }

 private:
  static constexpr std::chrono::milliseconds kBetween{100};
  static constexpr char kNothing[] = "\r\033[K";
  bool on_ = ::isatty(STDERR_FILENO) == 1, shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace sdma::tool
