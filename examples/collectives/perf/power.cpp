#include "power.hpp"

#include <fmt/format.h>

#include <thread>

namespace collectives::perf {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr auto kInterval = 5ms;

}  // namespace

PowerMeter::PowerMeter(EnergyCounters counters) {
  for (auto& c : counters) gpus_.push_back({.counter = std::move(c)});
}

Result<void, Diagnostic> PowerMeter::measure_idle(std::chrono::duration<double> t) {
  begin();
  for (const auto start = read_at_; wrong_.empty() && std::chrono::steady_clock::now() - start < t;) {
    std::this_thread::sleep_for(kInterval);
    sample();
  }
  const auto w = watts();
  if (!w) return w.error();
  idle_ = *w;
  return {};
}

void PowerMeter::read(Gpu& g) {
  const auto j = g.counter->joules();
  if (!j) return wrong_.push_back(j.error());
  if (*j == g.seen) return;
  g.seen = *j;
  const auto now = std::chrono::steady_clock::now();
  if (g.changes++ == 0) g.first = *j, g.first_at = now;
  g.last = *j;
  g.last_at = now;
}

void PowerMeter::begin() {
  wrong_.clear();
  for (auto& g : gpus_) {
    read(g);
    g.changes = 0;
  }
  read_at_ = std::chrono::steady_clock::now();
}

void PowerMeter::sample() {
  const auto now = std::chrono::steady_clock::now();
  if (now - read_at_ < kInterval) return;
  read_at_ = now;
  for (auto& g : gpus_) read(g);
}

Result<double, Diagnostic> PowerMeter::watts() const {
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
