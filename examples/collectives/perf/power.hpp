// SPDX-License-Identifier: MIT
#pragma once
// The power of the GPUs of a collective, from counters of energy that change only every 20 to 100 ms.
//
//   PowerMeter meter{nvml_counters(...), watchdog, 30s};         // a reading that takes longer ends the program
//   meter.measure_idle(1s);
//   meter.begin();                                 // a thread reads the counters every 5 ms
//   ... work ...
//   meter.end();                                   // watts: the mean from the first to the last change of each counter
//
// A counter's age at a reading is not known, so readings count only at the moments at which a counter has changed.
//
//   reads    | |  |  |  |  |  |  |  |  |
//   counter  ~~~~~|~~~~~~~|~~~~~~~|~~~~~      the energy between the first and the last |, divided by their distance
//
// One thread uses a meter. Errors: Diagnostics: a counter that cannot be read, or that changed less than twice.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "watchdog.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace collectives::perf {

/// Of one GPU.
class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;
  /// Since any moment; never falls.
  virtual sdma::Result<double, sdma::Diagnostic> joules() = 0;

 protected:
  EnergyCounter() = default;
  EnergyCounter(const EnergyCounter&) = delete;
  EnergyCounter& operator=(const EnergyCounter&) = delete;
};

using EnergyCounters = std::vector<std::unique_ptr<EnergyCounter>>;

class PowerMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Now = std::function<Time()>;
  /// `limit`: of a reading. `now`: the time of a change, asked after the reading that finds it.
  PowerMeter(EnergyCounters, Watchdog&, std::chrono::nanoseconds limit, Now now = std::chrono::steady_clock::now);
  ~PowerMeter();

  /// For at least this long, and until each counter has changed twice, because a busy machine may delay the readings.
  sdma::Result<void, sdma::Diagnostic> measure_idle(std::chrono::duration<double>);
  double idle() const noexcept { return idle_; }  ///< watts of all GPUs together

  void begin();
  /// Watts of all GPUs together, since `begin`.
  sdma::Result<double, sdma::Diagnostic> end();

 private:
  struct Gpu {
    std::unique_ptr<EnergyCounter> counter;
    double seen{}, first{}, last{};  ///< joules
    Time first_at{}, last_at{};
    unsigned changes{};
  };
  void read(Gpu&);
  void stop();

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
