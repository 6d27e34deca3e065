#pragma once
// The power of the GPUs of a collective, from counters of energy that change only every 20 to 100 ms.
//
//   PowerMeter meter{counters_of_nvml(...)};
//   meter.measure_idle(1s);
//   meter.begin();
//   while (busy) { work(); meter.sample(); }        // reads the counters at most every 5 ms
//   meter.watts();                                  // mean from the first to the last change of each counter
//
// A counter's age at a reading is not known, so readings count only at the moments at which a counter has changed.
//
//   reads    | |  |  |  |  |  |  |  |  |
//   counter  ~~~~~|~~~~~~~|~~~~~~~|~~~~~      the energy between the first and the last |, divided by their distance
//
// One thread. Errors: Diagnostics: a counter that cannot be read, or that changed less than twice.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <chrono>
#include <memory>
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
  explicit PowerMeter(EnergyCounters);

  sdma::Result<void, sdma::Diagnostic> measure_idle(std::chrono::duration<double>);
  double idle() const noexcept { return idle_; }  ///< watts of all GPUs together

  void begin();
  void sample();
  /// Of all GPUs together, since `begin`.
  sdma::Result<double, sdma::Diagnostic> watts() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Gpu {
    std::unique_ptr<EnergyCounter> counter;
    double seen{}, first{}, last{};  ///< joules
    Time first_at{}, last_at{};
    unsigned changes{};
  };
  void read(Gpu&);

  std::vector<Gpu> gpus_;
  std::vector<sdma::Diagnostic> wrong_{};  ///< of `begin` and `sample`
  Time read_at_{};
  double idle_ = 0;
};

}  // namespace collectives::perf
