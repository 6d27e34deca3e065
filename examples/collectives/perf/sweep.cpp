#include "sweep.hpp"

#include "collectives/run.hpp"

#include <chrono>

namespace collectives::perf {

using namespace sdma;

namespace {

using Failure = std::vector<Diagnostic>;

/// Runs one round, and returns microseconds. Publishes it before, not after: a round that is published and never started would
/// leave its polls waiting, which holds up other queues on some devices.
Result<double, Diagnostic> timed(Run& run, std::chrono::nanoseconds timeout) {
  const auto deadline = Deadline::in(timeout);
  if (!run.ahead())
    if (auto e = run.refill(deadline); !e) return std::move(e.error());
  const auto begin = std::chrono::steady_clock::now();
  if (auto e = run.start(deadline); !e) return std::move(e.error());
  if (auto e = run.wait(deadline); !e) return std::move(e.error());
  const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
  return us.count();
}

Failure failed(Diagnostic d, const Way& way, std::uint64_t bytes) {
  d.where = name(way) + ", " + size_text(bytes) + (d.where.empty() ? "" : ": " + d.where);
  if (d.hint.empty()) d.hint = "if it is only slow, use a longer --timeout";
  return {std::move(d)};
}

}  // namespace

Result<std::optional<Point>, Failure> measure(const Settings& s, const Table& table, Device& device, const Way& way,
                                              std::uint64_t bytes, const GoOn& go_on) {
  auto options = options_of(s, way, bytes);
  if (options.variant == Variant::automatic) options.variant = choose(table, options);
  // The chosen variant decides where the result is.
  options.in_place = options.in_place && options.variant == Variant::swap;
  const auto p = plan(options);
  if (!p) return failed(p.error(), way, bytes);
  auto run = Run::prepare(*p, device, {.gpus = s.gpus});
  if (!run) {
    for (auto& d : run.error()) d.where = name(way) + ", " + size_text(bytes) + (d.where.empty() ? "" : ": ") + d.where;
    return std::move(run.error());
  }
  Point point{.bytes = bytes, .count = count_of(options), .way = way, .ran = options.variant, .notes = p->notes};

  run->fill(s.seed);
  std::vector<double> us;
  for (std::uint32_t i = 0; i < s.warmups + s.iterations; ++i) {
    if (!go_on()) return std::optional<Point>{};
    const auto t = timed(*run, s.timeout);
    if (!t) return failed(t.error(), way, bytes);
    if (i >= s.warmups) us.push_back(*t);
  }
  point.us = times_of(std::move(us));
  set_bandwidths(point, bus_factor(options.collective, options.gpus));

  for (std::uint32_t i = 0; i < s.checks; ++i) {
    if (!go_on()) return std::optional<Point>{};
    run->fill(s.seed + 1 + i);
    if (const auto t = timed(*run, s.timeout); !t) return failed(t.error(), way, bytes);
    auto check = run->check();
    if (check.wrong != 0 && point.wrong.value_or(0) == 0) point.first_wrong = std::move(check.first);
    point.wrong = point.wrong.value_or(0) + check.wrong;
  }
  return std::optional{std::move(point)};
}

}  // namespace collectives::perf
