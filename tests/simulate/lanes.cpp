// SPDX-License-Identifier: MIT
// One run of many machines finds what a run of each of them finds, or leaves it to them.
#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

using namespace sdma;

namespace {

using Settings = std::vector<ParseOptions::Setting>;

Schedule shipped(std::string_view name, const Settings& set) {
  const auto text = read_file(fmt::format(SDMA_SOURCE_ROOT "/share/sdma/collectives/{}.sdma", name));
  REQUIRE(text);
  auto s = parse_schedule(*text, name, {.set = set});
  for (const auto& d : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(s);
  return *std::move(s);
}

/// By how much a row of the sensitivity is off that of a simulation for each end, as a part of the interval.
double worst_row(const Schedule& s, const MachineDescription& m) {
  const auto found = sensitivity(s, m);
  REQUIRE(found);
  REQUIRE(found->rows.size() > 5);
  double worst = 0;
  for (const auto& r : found->rows) {
    auto low = found->ns, high = found->ns;
    for (const auto by : {-m.parameter(r.cost).uncertainty, m.parameter(r.cost).uncertainty}) {
      auto other = m;
      auto& value = other.parameter(r.cost).value;
      const bool fraction = unit(r.cost) == "fraction";
      value = std::max(unit(r.cost) == "ns" ? 0 : value / 100, fraction ? std::min(1.0, value + by) : value + by);
      const auto t = simulate(s, other);
      REQUIRE(t);
      low = std::min(low, t->ns);
      high = std::max(high, t->ns);
    }
    INFO(name(r.cost) << ": " << r.low_ns << " to " << r.high_ns << ", alone " << low << " to " << high);
    const auto off = std::max(std::abs(r.low_ns - low), std::abs(r.high_ns - high)) / found->uncertainty_ns;
    CHECK(off < 0.1);
    worst = std::max(worst, off);
  }
  return worst;
}

double worst_row(std::string_view machine, std::string_view name, const Settings& set) {
  INFO(machine << ", " << name);
  const auto m = layout_machine(machine);
  REQUIRE(m);
  return worst_row(shipped(name, set), *m);
}

}  // namespace

TEST_CASE("the rows of a sensitivity are those of a simulation for each") {
  for (const auto* variant : {"pcpy", "bcst", "b2b"})
    for (const auto* bytes : {"1K", "1M", "64M"})
      for (const auto* prelaunch : {"off", "shared"}) {
        INFO(variant << ' ' << bytes << ' ' << prelaunch);
        worst_row("mi300x:8", "all_gather", {{"variant", variant}, {"bytes", bytes}, {"prelaunch", prelaunch}});
      }
  worst_row("mi355x:8", "all_gather", {{"variant", "pcpy"}, {"bytes", "16M"}});
  worst_row("mi300x:8", "all_to_all", {{"bytes", "64M"}});
  worst_row("mi300x:8", "kernels", {{"collective", "all_gather"}, {"bytes", "1M"}, {"protocol", "ll"}});
  worst_row("mi300x:8", "kernels", {{"collective", "all_reduce"}, {"bytes", "64M"}, {"protocol", "simple"}});
  worst_row("nodes:2x4", "nodes", {{"N", "8"}, {"per_node", "4"}, {"bytes", "16M"}});
}

TEST_CASE("a row that makes up much of the interval is that of a simulation of its own") {
  // In these, lanes are late: by 45 % of the interval for nic.flight_ns, and by 30 % for a kernel's.
  for (const auto* bytes : {"64K", "1M"})
    worst_row("nodes:2x4", "nodes", {{"N", "8"}, {"per_node", "4"}, {"bytes", bytes}});
  worst_row("switch:16", "reductions", {{"N", "16"}, {"bytes", "64K"}});
}

TEST_CASE("where flows would begin and end in another order, a row is that of a simulation of its own") {
  // The ports of the switch are full, and the flows come one after another.
  CHECK(worst_row("switch:16x400G", "all_gather", {{"N", "16"}, {"bytes", "16M"}}) < 0.01);
}
