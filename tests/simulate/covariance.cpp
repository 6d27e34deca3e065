// SPDX-License-Identifier: MIT
// What a fit knows of several parameters together, and what that leaves of the uncertainty of a time.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/fit.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

using namespace sdma;

namespace {

std::shared_ptr<const Schedule> pushes(const std::string& bytes, int count) {
  std::string s = "sdma 1\ngpus 2\nbuffer gpu*.b bytes=4M\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n";
  for (int i = 0; i < count; ++i) s += "copy_linear bytes=" + bytes + " src=gpu0.b dst=gpu1.b\n";
  auto parsed = parse_schedule(
      s + "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\n" + "wait host.done == 1\nend\n",
      "t.sdma");
  REQUIRE(parsed);
  return std::make_shared<const Schedule>(std::move(*parsed));
}

/// A machine that is fitted to the times of the shipped one with errors of one percent.
MachineDescription fitted_to(const std::vector<std::shared_ptr<const Schedule>>& all, const MachineDescription& start,
                             unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(1, 0.01);
  std::vector<Observation> o;
  for (const auto& s : all)
    o.push_back(Observation::time("t", s, simulate(*s, *mi300x_machine(2))->ns * error(random)));
  const auto f = fit(o, start, {.free = {{Cost::engine_packet}, {Cost::engine_latency}, {Cost::engine_release}}});
  REQUIRE(f);
  return f->machine;
}

const std::vector<std::shared_ptr<const Schedule>>& measured_pushes() {
  static const std::vector all{pushes("64", 1), pushes("64", 2), pushes("64", 4),
                               pushes("64", 8), pushes("4K", 1), pushes("4K", 6)};
  return all;
}

}  // namespace

TEST_CASE("a time that was fitted to is known better than the parameters in it", "[long]") {
  // Latency and release are known only as a sum, and the flights are assumed.
  std::vector<double> refits;
  MachineDescription last;
  double mean = 0, squares = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    last = fitted_to(measured_pushes(), *mi300x_machine(2), seed);
    refits.push_back(simulate(*measured_pushes()[0], last)->ns);
    mean += refits.back() / 8;
  }
  for (const auto t : refits) squares += (t - mean) * (t - mean) / 7;
  last.model_error = 0;
  const auto with = sensitivity(*measured_pushes()[0], last)->uncertainty_ns;
  last.covariance = {};
  const auto without = sensitivity(*measured_pushes()[0], last)->uncertainty_ns;
  CHECK(with < 4 * std::sqrt(squares));
  CHECK(with > std::sqrt(squares) / 4);
  CHECK(without > 4 * with);
}

TEST_CASE("what an earlier fit knows of other parameters stays") {
  auto start = *mi300x_machine(2);
  start.covariance = {{Cost::kernel_poll, Cost::engine_latency, Cost::kernel_release}, {9, 1, 2, 1, 4, 1, 2, 1, 16}};
  const auto now = fitted_to(measured_pushes(), start, 1).covariance;
  const auto n = now.of.size();
  REQUIRE(now.values.size() == n * n);
  CHECK(std::vector(now.of.begin(), now.of.begin() + 3) ==
        std::vector{Cost::kernel_poll, Cost::kernel_release, Cost::engine_packet});
  CHECK(now.values[1] == 2);
  CHECK(now.values[2] == 0);
  CHECK(now.values[n + 1] == 16);
}

TEST_CASE("the sensitivity leaves out only what changes nothing") {
  const auto s = pushes("64K", 3);
  const auto m = *mi300x_machine(2);
  const auto h = *sensitivity(*s, m);
  for (std::size_t i = 0; i < kCosts; ++i) {
    auto low = h.ns, high = h.ns;
    for (const auto side : {-1, 1}) {
      auto other = m;
      auto& p = other.parameters[i];
      p.value += side * p.uncertainty;
      if (p.value <= 0 || (unit(static_cast<Cost>(i)) == "fraction" && p.value > 1)) p.value = m.parameters[i].value;
      const auto ns = simulate(*s, other)->ns;
      low = std::min(low, ns), high = std::max(high, ns);
    }
    const auto row =
        std::find_if(h.rows.begin(), h.rows.end(), [&](auto& r) { return r.cost == static_cast<Cost>(i); });
    INFO(name(static_cast<Cost>(i)));
    CHECK((row == h.rows.end() ? h.ns : row->low_ns) <= low);
    CHECK((row == h.rows.end() ? h.ns : row->high_ns) >= high);
  }
}
