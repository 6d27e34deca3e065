// SPDX-License-Identifier: MIT
#pragma once
// One line of progress on a terminal, which each call overwrites,
// and which the end erases. Nothing if standard error is not one.
//
//   Progress progress;
//   progress.show([&] { return fmt::format("{} of {}", done, all); });   // the text is made at most ten times a second
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace sdma::tool {

class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  template <class Text> void show(Text text) {
    const auto now = std::chrono::steady_clock::now();
    if (!on_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    const std::string line = "\r\033[K" + text();
    std::fwrite(line.data(), 1, line.size(), stderr);
  }

 private:
  bool on_ = ::isatty(STDERR_FILENO) == 1, shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace sdma::tool
