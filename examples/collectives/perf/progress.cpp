// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <unistd.h>
#include <cstdio>

namespace collectives::perf {

using namespace std::chrono_literals;

namespace {

constexpr auto kBefore = 1s, kBetween = 1s / 10;
constexpr char kNothing[] = "\r\033[K";

}  // namespace

std::string progress(std::string_view what, double seconds, double done, double all) {
  std::string text(what);
  // The first percents do not predict the rest.
  constexpr double kEnough = 0.02;
  if (done <= kEnough * all) return text;
  return text + ", about " + std::to_string(static_cast<long>(seconds * (all - done) / done + 0.5)) + " s left";
}

Progress::Progress(double all) : on_(::isatty(STDERR_FILENO) == 1), all_(all) {}

void Progress::show(std::string_view what) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || now - begin_ < kBefore || now - last_ < kBetween) return;
  last_ = now;
  const auto text = kNothing + progress(what, std::chrono::duration<double>(now - begin_).count(), done_, all_);
  std::fwrite(text.data(), 1, text.size(), stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fputs(kNothing, stderr);
  shown_ = false;
}

}  // namespace collectives::perf
