// SPDX-License-Identifier: MIT
#include "power.hpp"

#include "sdma/core/deadline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr auto kInterval = 5ms;

}  // namespace

PowerMeter::PowerMeter(EnergyCounters counters, Watchdog& dog, std::chrono::nanoseconds limit, Now now)
    : dog_(dog), limit_(limit), now_(std::move(now)) {
  for (auto& c : counters) gpus_.push_back({.counter = std::move(c)});
}

PowerMeter::~PowerMeter() { stop(); }

Result<void, Diagnostic> PowerMeter::measure_idle(std::chrono::duration<double> t) {
  begin();
  std::this_thread::sleep_for(t);
  for (const auto deadline = Deadline::in(limit_); !ready_ && !deadline.passed();)
    std::this_thread::sleep_for(kInterval);
  const auto w = end();
  if (!w) return w.error();
  idle_ = *w;
  return {};
}

void PowerMeter::read(Gpu& g) {
  const auto j = [&] {
    const auto bounded = dog_.watch("an energy counter", limit_);
    return g.counter->joules();
  }();
  if (!j) return wrong_.push_back(j.error());
  if (*j == g.seen) return;
  g.seen = *j;
  const auto now = now_();
  if (g.changes++ == 0) g.first = *j, g.first_at = now;
  g.last = *j;
  g.last_at = now;
}

void PowerMeter::begin() {
  stop();
  wrong_.clear();
  for (auto& g : gpus_) {
    read(g);
    g.changes = 0;
  }
  stop_ = ready_ = false;
  reader_ = std::thread([this] {
    while (!stop_ && wrong_.empty()) {
      std::this_thread::sleep_for(kInterval);
      for (auto& g : gpus_) read(g);
      ready_ = std::all_of(gpus_.begin(), gpus_.end(), [](const Gpu& g) { return g.changes >= 2; });
    }
    ready_ = true;  // or will never be
  });
}

void PowerMeter::stop() {
  stop_ = true;
  if (reader_.joinable()) reader_.join();
}

Result<double, Diagnostic> PowerMeter::end() {
  stop();
  if (!wrong_.empty()) return wrong_.front();
  double sum = 0;
  for (const auto& g : gpus_) {
    if (g.changes < 2)
      return Diagnostic{.where = "--energy",
                        .message = fmt::format("an energy counter changed {} in this time, and it takes two changes",
                                               g.changes == 0 ? "never" : "once"),
                        .hint = "use a longer --energy-seconds"};
    sum += (g.last - g.first) / std::chrono::duration<double>(g.last_at - g.first_at).count();
  }
  return sum;
}

}  // namespace collectives::perf
