// SPDX-License-Identifier: MIT
#pragma once
// The power of GPUs, from their energy counters (device/energy_counters.hpp).
//
//   PowerMeter meter{counters, watchdog, 30s};     // a reading that takes longer ends the program
//   meter.measure_idle(1s);
//   meter.begin();                                 // a thread reads the counters every 5 ms
//   ... work ...
//   meter.end();                                   // watts: the mean from the first to the last change of each counter
//
// Counters change only every 20 to 100 ms, and a counter's age at a reading is not known. So readings count only at the
// moments at which a counter has changed.
//
//   reads    | |  |  |  |  |  |  |  |  |
//   counter  ~~~~~|~~~~~~~|~~~~~~~|~~~~~      the energy between the first and the last |, divided by their distance
//
// One thread. Errors: a Diagnostic if a counter cannot be read, or changed less than twice.
#include "device/energy_counters.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace collectives::perf {

using sdma::detail::EnergyCounter;
using sdma::detail::EnergyCounters;

inline constexpr std::chrono::milliseconds kInterval{5};

class PowerMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Now = std::function<Time()>;
  /// `limit`: of a reading. `now`: the time of a change, asked after the reading that finds it.
  PowerMeter(EnergyCounters counters, Watchdog& dog, std::chrono::nanoseconds limit,
             Now now = std::chrono::steady_clock::now)
      : dog_(dog), limit_(limit), now_(std::move(now)) {
    for (auto& c : counters) gpus_.push_back({.counter = std::move(c)});
  }
  ~PowerMeter() { stop(); }

  /// For at least this long, and until each counter has changed twice, because a busy machine may delay the readings.
  sdma::Result<void, sdma::Diagnostic> measure_idle(std::chrono::duration<double> t) {
    begin();
    std::this_thread::sleep_for(t);
    for (const auto deadline = sdma::Deadline::in(limit_); !ready_ && !deadline.passed();)
      std::this_thread::sleep_for(kInterval);
    const auto w = end();
    if (!w) return w.error();
    idle_ = *w;
    return {};
  }
  double idle() const noexcept { return idle_; }  ///< watts of all GPUs together

  void begin() {
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
  /// Watts of all GPUs together, since `begin`.
  sdma::Result<double, sdma::Diagnostic> end() {
    stop();
    if (!wrong_.empty()) return wrong_.front();
    double sum = 0;
    for (const auto& g : gpus_) {
      if (g.changes < 2)
        return sdma::Diagnostic{
            .where = "--energy",
            .message = fmt::format("an energy counter changed {} in this time, and it takes two changes",
                                   g.changes == 0 ? "never" : "once"),
            .hint = "use a longer --energy-seconds"};
      sum += (g.last - g.first) / std::chrono::duration<double>(g.last_at - g.first_at).count();
    }
    return sum;
  }

 private:
  struct Gpu {
    EnergyCounter counter;
    double seen{}, first{}, last{};  ///< joules
    Time first_at{}, last_at{};
    unsigned changes{};
  };
  void read(Gpu& g) {
    const auto j = [&] {
      const auto bounded = dog_.watch("an energy counter", limit_);
      return g.counter();
    }();
    if (!j) return wrong_.push_back(j.error());
    if (*j == g.seen) return;
    g.seen = *j;
    const auto now = now_();
    if (g.changes++ == 0) g.first = *j, g.first_at = now;
    g.last = *j;
    g.last_at = now;
  }
  void stop() {
    stop_ = true;
    if (reader_.joinable()) reader_.join();
  }

  Watchdog& dog_;
  std::chrono::nanoseconds limit_;
  Now now_;
  std::vector<Gpu> gpus_{};
  std::vector<sdma::Diagnostic> wrong_{};  ///< since `begin`
  std::thread reader_{};                   ///< uses the members above from `begin` to `stop`
  std::atomic<bool> stop_ = false;
  std::atomic<bool> ready_ = false;  ///< each counter has changed twice, or the reader has ended
  double idle_ = 0;
};

}  // namespace collectives::perf
