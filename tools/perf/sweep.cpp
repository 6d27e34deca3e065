// SPDX-License-Identifier: MIT
#include "sweep.hpp"

#include "collectives/plan.hpp"
#include "ranks.hpp"
#include "schedule_file.hpp"
#include "sdma/core/compiler.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace collectives::perf {

using namespace sdma;

namespace {

using Failure = std::vector<Diagnostic>;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Entrant {
  Point point;
  std::unique_ptr<Contender> contender{};
  std::vector<double> us{};
  std::vector<Span> spans{};  ///< of several ranks, in place of `us`
};

Failure failed(Diagnostic d, const Point& p) {
  if (d.hint.empty()) d.hint = "if it is only slow, use a longer --timeout";
  return failed(Failure{std::move(d)}, p.way, p.bytes);
}

void spin(Deadline end) noexcept {
  while (!end.passed()) SDMA_PAUSE();
}

/// A variant of ours. Run::prepare has published the first round.
class Ours final : public Contender {
 public:
  explicit Ours(Run run) : run_(std::move(run)) {}

  Result<void, Diagnostic> fill(std::uint64_t seed) override {
    run_.fill(seed);
    return {};
  }
  Result<void, Diagnostic> arm(Deadline d) override {
    return run_.round() == 0 ? Result<void, Diagnostic>{} : run_.refill(d);
  }
  Result<void, Diagnostic> start(Deadline d) override { return run_.start(d); }
  Result<void, Diagnostic> wait(Deadline d) override { return run_.wait(d); }
  bool starts() const override { return run_.starts(); }
  Result<Check, Diagnostic> check() override { return run_.check(); }
  std::vector<std::string> notes() const override { return run_.plan().notes; }

 private:
  Run run_;
};

/// Binds the plan, and performs a round if one had to be published.
Result<std::unique_ptr<Contender>, Failure> prepare_ours(const Plan& p, Device& d, const Settings& s) {
  auto run = Run::prepare(p, d, bind_options(s));
  if (!run) return std::move(run.error());
  std::unique_ptr<Contender> ours = std::make_unique<Ours>(*std::move(run));
  if (p.options.prelaunch == Prelaunch::off) return ours;
  const auto deadline = Deadline::in(s.timeout);
  auto done = ours->start(deadline);
  if (done) done = ours->wait(deadline);
  if (!done) return Failure{std::move(done.error())};
  return ours;
}

/// One size: its entrants, and the phases of its measurement. A phase returns false if `go_on` did.
class Size {
 public:
  Size(const Settings& s, const Table& t, Device& d, const Companions& c, const GoOn& go_on)
      : settings_(s), table_(t), device_(d), companions_(c), go_on_(go_on) {}

  Result<std::vector<Point>, Failure> measure(std::span<const Way> ways, std::uint64_t bytes) {
    if (auto e = prepare(ways, bytes); !e) return std::move(e.error());
    using Phase = Result<bool, Failure> (Size::*)();
    for (const Phase phase : {&Size::time, &Size::verify, &Size::energy, &Size::beside}) {
      const auto done = (this->*phase)();
      if (!done) return done.error();
      if (!*done) return std::vector<Point>{};
    }
    std::vector<Point> points;
    for (auto& e : entrants_) points.push_back(std::move(e.point));
    return points;
  }

 private:
  Result<void, Failure> prepare(std::span<const Way> ways, std::uint64_t bytes) {
    for (const auto& way : ways) {
      auto& e = entrants_.emplace_back(Entrant{.point = {.bytes = bytes, .way = way}});
      auto options = options_of(settings_, way, bytes);
      if (way.rival != Rival::none) {
        auto c = companions_.rival(way, options);
        if (!c) return failed(std::move(c.error()), e.point);
        enter(e, *std::move(c), options);
        continue;
      }
      auto c = way.file ? prepare_file(*way.file, options, device_, settings_) : prepare_own(options, ways.size() > 1);
      if (!c) return failed(std::move(c.error()), way, bytes);
      enter(e, *std::move(c), options);
    }
    return {};
  }

  /// Completes the options as they are planned.
  Result<std::unique_ptr<Contender>, Failure> prepare_own(Options& options, bool several) {
    if (options.variant == Variant::automatic) options.variant = choose(table_, options);
    // The chosen variant decides where the result is.
    options.in_place = options.in_place && options.variant == Variant::swap;
    const bool spread = several && settings_.where == sdma::DeviceKind::cuda && options.engines.empty();
    if (spread) options.engines = engines();
    const auto p = plan(options);
    if (!p) return Failure{p.error()};
    if (spread)
      groups_ += std::max_element(p->counts.begin(), p->counts.end(), [](const Counts& a, const Counts& b) {
                   return a.doorbells < b.doorbells;
                 })->doorbells;
    return prepare_ours(*p, device_, settings_);
  }

  void enter(Entrant& e, std::unique_ptr<Contender> c, const Options& o) {
    e.contender = std::move(c);
    e.point.count = count_of(o) / settings_.type.bytes;
    e.point.type = settings_.type.name;
    e.point.in_place = is_in_place(o);
    e.point.ran = o.variant;
    e.point.notes = e.contender->notes();
  }

  /// All engines, from the one after those of earlier entrants.
  std::vector<std::uint32_t> engines() const {
    const auto n = device_.topology().gpus.front().engines();
    std::vector<std::uint32_t> all(n);
    for (std::uint32_t i = 0; i < n; ++i) all[i] = (groups_ + i) % n;
    return all;
  }

  /// Runs one round, and returns microseconds.
  Result<double, Failure> round(Entrant& e, std::chrono::nanoseconds settle) {
    auto& c = *e.contender;
    const auto deadline = Deadline::in(settings_.timeout);
    if (auto r = c.arm(deadline); !r) return failed(std::move(r.error()), e.point);
    auto from = Clock::now();
    if (settings_.ranks) {  // until all have filled and published
      const auto last = settings_.ranks->meet();
      if (!last) return failed(last.error(), e.point);
      // Ranks of one machine begin at one moment, unless one needs longer than `settle` to leave the meeting.
      from = settings_.ranks_per_node.grouped() ? Clock::now() : *last;
    }
    spin({from + settle});
    const auto begin = Clock::now();
    if (auto r = c.start(deadline); !r) return failed(std::move(r.error()), e.point);
    if (auto r = c.wait(deadline); !r) return failed(std::move(r.error()), e.point);
    const auto end = Clock::now();
    const std::chrono::duration<double, std::micro> us = end - begin;
    const auto own = c.microseconds();
    // Nodes have no clock in common: only how long it took counts.
    if (own) e.spans.push_back({{}, Clock::time_point(std::chrono::nanoseconds(std::llround(*own * 1e3)))});
    else if (settings_.ranks) e.spans.push_back({c.starts() ? begin : Clock::time_point::max(), end});
    return own.value_or(us.count());
  }

  Result<bool, Failure> time() {
    for (auto& e : entrants_)
      if (auto r = e.contender->fill(settings_.seed); !r) return failed(std::move(r.error()), e.point);
    for (std::uint32_t i = 0; i < settings_.warmups + settings_.iterations; ++i)
      for (auto& e : entrants_) {
        if (!go_on_()) return false;
        const auto us = round(e, settings_.settle);
        if (!us) return us.error();
        if (i >= settings_.warmups) e.us.push_back(*us);
      }
    for (auto& e : entrants_) {
      if (settings_.ranks) {
        e.spans.erase(e.spans.begin(), e.spans.begin() + settings_.warmups);
        auto us = settings_.ranks->slowest(e.spans);
        if (!us) return failed(std::move(us.error()), e.point);
        e.us = *std::move(us);
      }
      e.point.us = times_of(std::move(e.us));
      set_bandwidths(e.point, bus_factor(options_of(settings_, e.point.way, e.point.bytes)));
    }
    return true;
  }

  Result<bool, Failure> verify() {
    for (auto& e : entrants_)
      for (std::uint32_t i = 0; i < settings_.checks; ++i) {
        if (!go_on_()) return false;
        if (auto r = e.contender->fill(settings_.seed + 1 + i); !r) return failed(std::move(r.error()), e.point);
        if (const auto us = round(e, settings_.settle); !us) return us.error();
        auto check = e.contender->check();
        if (!check) return failed(std::move(check.error()), e.point);
        if (settings_.ranks)
          if (auto r = settings_.ranks->add(*check); !r) return failed(std::move(r.error()), e.point);
        if (check->wrong != 0 && e.point.wrong.value_or(0) == 0) e.point.first_wrong = std::move(check->first);
        e.point.wrong = e.point.wrong.value_or(0) + check->wrong;
      }
    return true;
  }

  /// Repeats rounds for at least this long, and returns their microseconds; none: `go_on` returned false.
  Result<std::vector<double>, Failure> repeat(Entrant& e, Seconds t, std::chrono::nanoseconds settle) {
    std::vector<double> all;
    for (const auto begin = Clock::now(); all.empty() || Clock::now() - begin < t;) {
      if (!go_on_()) return std::vector<double>{};
      const auto us = round(e, settle);
      if (!us) return us.error();
      all.push_back(*us);
    }
    return all;
  }

  /// Without settling: the time between rounds would cost energy, too.
  Result<bool, Failure> energy() {
    if (!companions_.power) return true;
    auto& meter = *companions_.power;
    for (auto& e : entrants_) {
      meter.begin();
      const auto begin = Clock::now();
      const auto rounds = repeat(e, *settings_.energy, {});
      const Seconds whole = Clock::now() - begin;
      const auto watts = meter.end();
      if (!rounds) return rounds.error();
      if (rounds->empty()) return false;
      if (!watts) {
        // The times are good nevertheless.
        e.point.notes.push_back(fmt::format("no energy for {}, {}: {}; {}", name(e.point.way), size_text(e.point.bytes),
                                            watts.error().message, watts.error().hint));
        continue;
      }
      const auto above = *watts - meter.idle();
      const auto joules = above * whole.count() / static_cast<double>(rounds->size());
      const auto moved = moved_bytes(options_of(settings_, e.point.way, e.point.bytes));
      e.point.energy =
          Energy{.joules = joules, .nanojoules_per_byte = joules * 1e9 / static_cast<double>(moved), .watts = above};
    }
    return true;
  }

  Result<bool, Failure> beside() {
    if (!companions_.product) return true;
    auto& product = *companions_.product;
    for (auto& e : entrants_) {
      if (auto r = product.begin(); !r) return failed(std::move(r.error()), e.point);
      auto rounds = repeat(e, settings_.beside->measured, settings_.settle);
      const auto rate = product.end();
      if (!rounds) return rounds.error();
      if (!rate) return failed(rate.error(), e.point);
      if (rounds->empty()) return false;
      e.point.beside =
          Beside{.us = times_of(*std::move(rounds)).median, .product_alone = product.alone(), .product = *rate};
    }
    return true;
  }

  const Settings& settings_;
  const Table& table_;
  Device& device_;
  const Companions& companions_;
  const GoOn& go_on_;
  std::vector<Entrant> entrants_{};
  std::uint32_t groups_ = 0;  ///< of a GPU, of the entrants so far
};

}  // namespace

Result<std::vector<Point>, Failure> measure(const Settings& s, const Table& table, Device& device,
                                            std::span<const Way> ways, std::uint64_t bytes, const Companions& c,
                                            const GoOn& go_on) {
  return Size(s, table, device, c, go_on).measure(ways, bytes);
}

}  // namespace collectives::perf
