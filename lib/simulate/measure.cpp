// SPDX-License-Identifier: MIT
// Times mechanisms on a device.
#include "core/median.hpp"
#include "unfitted.hpp"

#include "sdma/schedule/bind.hpp"
#include "sdma/simulate/mechanisms.hpp"
#include "sdma/sync/describe.hpp"
#include "sdma/sync/wait.hpp"

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
/// Times whose passes differ by more than this count less in the fit, in proportion.
constexpr double kSteady = 0.05;

/// One mechanism, bound to the device.
class Rig {
 public:
  static Result<Rig, std::vector<Diagnostic>> on(Device& d, const Mechanism& m) {
    auto b = bind(*m.schedule, d);
    if (b) return Rig{m, *std::move(b)};
    for (auto& e : b.error()) e.where = m.id() + (e.where.empty() ? "" : ": ") + e.where;
    return std::move(b.error());
  }

  Result<double, Diagnostic> round(const MeasureOptions& o) {
    const auto deadline = Deadline::in(o.round_limit);
    ++epoch_;
    auto begin = Clock::now();
    for (std::size_t q = 0; q < m_->schedule->queues.size(); ++q)
      if (const auto e = bound_.submit(q, deadline); !e) return failed(std::string(message(e.error())));
    if (m_->trigger) {
      for (const auto from = Clock::now(); Clock::now() - from < o.settle;) {}
      begin = Clock::now();
      bound_.set(*m_->trigger, epoch_);
    }
    for (const auto c : m_->completions)
      if (auto e = wait(c, deadline); !e) return std::move(e.error());
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }

 private:
  Rig(const Mechanism& m, Bound b) : m_(&m), bound_(std::move(b)) {}

  Diagnostic failed(std::string message) const { return {.where = m_->id(), .message = std::move(message)}; }

  /// In slices, so that a fault of a queue ends it.
  Result<void, Diagnostic> wait(std::size_t completion, Deadline d) const {
    for (;;) {
      if (sdma::wait(bound_.signal(completion), Compare::ge, epoch_, d.within(20ms))) return {};
      for (std::size_t q = 0; q < m_->schedule->queues.size(); ++q)
        if (const auto f = bound_.device().fault(bound_.queue(q)))
          return Diagnostic{
              .where = m_->id(), .message = describe(*f), .hint = "on hardware: " + std::string(on_hardware(f->kind))};
      if (d.passed()) {
        auto e = failed("a round has not ended at its deadline");
        e.hint = "if the device is only slow, give it more time";
        return e;
      }
    }
  }

  const Mechanism* m_;
  Bound bound_;
  std::uint64_t epoch_ = 0;
};

Result<double, std::vector<Diagnostic>> one_pass(Device& d, const Mechanism& m, const MeasureOptions& o) {
  auto rig = Rig::on(d, m);
  if (!rig) return std::move(rig.error());
  std::vector<double> ns;
  for (std::uint32_t i = 0; i < o.warmups + o.rounds; ++i) {
    const auto t = rig->round(o);
    if (!t) return std::vector{t.error()};
    if (i >= o.warmups) ns.push_back(*t);
  }
  return detail::median(std::move(ns));
}

}  // namespace

Result<Measurements, std::vector<Diagnostic>> measure(Device& d, std::span<const Mechanism> all,
                                                      const MeasureOptions& o) {
  if (o.passes == 0 || o.rounds == 0)
    return std::vector{Diagnostic{.where = "measure", .message = "no pass or no round was asked for"}};
  std::vector<std::vector<double>> medians(all.size());
  for (std::uint32_t pass = 0; pass < o.passes; ++pass)
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (o.progress && !o.progress(all[i], pass * all.size() + i, o.passes * all.size()))
        return std::vector<Diagnostic>{};
      auto t = one_pass(d, all[i], o);
      if (!t) return std::move(t.error());
      medians[i].push_back(*t);
    }
  Measurements out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto middle = detail::median(medians[i]);
    double squares = 0;
    for (const auto m : medians[i]) squares += (m - middle) * (m - middle);
    const auto spread = o.passes > 1 ? std::sqrt(squares / (o.passes - 1)) : 0;
    out.observations.push_back(Observation::time(all[i].id(), all[i].schedule, middle, spread));
    out.observations.back().weight = i + o.judged >= all.size() ? 0 : std::min(1.0, kSteady * middle / spread);
    out.rows.push_back({.schedule = all[i].file, .settings = all[i].settings, .what = "time_us", .source = o.source});
  }
  detail::free_parameters(d.topology(), out);
  return out;
}

}}  // namespace sdma::v0_3
