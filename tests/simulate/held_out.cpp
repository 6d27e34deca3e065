// SPDX-License-Identifier: MIT
// What a fit has not seen: which parts of a table are left out, that
// they do not act on the fit, and how their errors are counted.
#include "sdma/simulate/held_out.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <cmath>

using namespace sdma;

namespace {

const std::string kCopies =
    "sdma 1\nparam bytes = 4K\nparam count = 1\ngpus 4\nbuffer gpu0.in bytes=bytes\nbuffer gpu*.out bytes=bytes\n"
    "signal host.done value=0\nqueue gpu0.q peer=gpu1\nfor i in 0..count\n"
    "copy_linear bytes=bytes src=gpu0.in dst=gpu{1+i%3}.out\nend\natomic op=add_rtn_64 addr=host.done value=1\nend\n"
    "host main\nsubmit *\nwait host.done == 1\nend\n";

MachineDescription truth() {
  auto m = *mi300x_machine(4);
  REQUIRE(m.set("engine.packet_ns", 900) == Errc::ok);
  REQUIRE(m.set("engine.latency_ns", 2500) == Errc::ok);
  return m;
}

/// Three columns (16, 4 and 2 copies against one) of four sizes, as `truth` has them times `factor(column, row)`.
template <class Factor> Measurements table(Factor factor, const std::string& more = "") {
  std::string text =
      "#: free engine.packet_ns 300 50 5000\n#: free engine.latency_ns 1000 100 10000\n"
      "schedule,settings,what,baseline,baseline_settings,value,weight,source\n";
  const auto read = [](const std::string&) -> Result<std::string, Diagnostic> { return kCopies; };
  const auto value = [&](const std::string& settings, const std::string& bytes) {
    const auto one = measurements_from_csv("schedule,settings,what,baseline,baseline_settings,value,source\nc.sdma," +
                                               settings + ",speed_up,c.sdma," + bytes + ",1,x\n",
                                           "t.csv", read);
    REQUIRE(one);
    return predict(one->observations, truth())->front().value;
  };
  int row = 0;
  for (const auto* bytes : {"bytes=512", "bytes=2K", "bytes=64K", "bytes=256K"}) {
    for (const auto count : {16, 4, 2}) {
      const auto settings = fmt::format("{} count={}", bytes, count);
      text += fmt::format("c.sdma,{},speed_up,c.sdma,{},{:.6f},,{}\n", settings, bytes,
                          value(settings, bytes) * factor(count, row), count == 2 ? "another" : "one source");
    }
    ++row;
  }
  auto m = measurements_from_csv(text + more, "t.csv", read);
  for (const auto& d : m ? std::vector<Diagnostic>{} : m.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(m);
  return std::move(*m);
}

std::vector<HeldOut> parts(const Measurements& m) {
  auto p = held_out(m, *mi300x_machine(4), m.options);
  for (const auto& d : p ? std::vector<Diagnostic>{} : p.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(p);
  return std::move(*p);
}
const HeldOut& named(const std::vector<HeldOut>& all, const std::string& name) {
  for (const auto& p : all)
    if (p.name == name) return p;
  FAIL("no part " << name);
  return all.front();
}

}  // namespace

TEST_CASE("each column, half, quarter and source is left out once; what has no weight is never fitted to", "[long]") {
  const auto m = table([](int, int) { return 1.0; }, "c.sdma,bytes=8K count=4,speed_up,c.sdma,bytes=8K,9,0,x\n");
  const auto all = parts(m);
  std::string names;
  for (const auto& p : all) names += fmt::format("{} ({})\n", p.name, p.cells.size());
  CHECK(names ==
        "lines that are never fitted to (1)\n"
        "column c.sdma count=16 (4)\ncolumn c.sdma count=4 (4)\ncolumn c.sdma count=2 (4)\n"
        "half 1 of 2 of the rows (6)\nhalf 2 of 2 of the rows (6)\n"
        "quarter 1 of 4 of the rows (3)\nquarter 2 of 4 of the rows (3)\nquarter 3 of 4 of the rows (3)\n"
        "quarter 4 of 4 of the rows (3)\nsource another (4)\nsource one source (8)\n");
  for (const auto& p : all) {
    INFO(p.name);
    if (p.kind == HeldOut::Kind::unseen) CHECK(p.mean_error() > 0.3);
    else CHECK(p.mean_error() < 0.01);
    for (const auto& c : p.cells) CHECK(c.spread > 0);
  }
  CHECK(named(all, "half 2 of 2 of the rows").cells.front().observation == 6);
}

TEST_CASE("what is left out does not act on the fit", "[long]") {
  // One column is nonsense: without it the fit finds the truth, and says how wrong that column is.
  const auto all = parts(table([](int count, int) { return count == 16 ? 0.5 : 1.0; }));
  const auto without = named(all, "column c.sdma count=16");  // GCC 14 takes a reference for a dangling one
  CHECK(without.machine[Cost::engine_latency] == Approx(2500).epsilon(0.01));
  CHECK(without.machine[Cost::engine_packet] == Approx(900).epsilon(0.01));
  CHECK(without.mean_error() == Approx(1).epsilon(0.02));
  CHECK(std::abs(named(all, "column c.sdma count=4").machine[Cost::engine_packet] / 900 - 1) > 0.05);
}

TEST_CASE("errors: one factor for each row, the best variant, and what lies inside the interval") {
  const auto m = table([](int count, int row) { return count == 4 && row == 3 ? 3 : row == 0 ? 1.25 : 1.0; });
  HeldOut p{.kind = HeldOut::Kind::unseen, .name = "by hand"};
  const auto exact = predict(m.observations, truth());
  REQUIRE(exact);
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    const auto off = std::abs((*exact)[i].value - m.observations[i].value);
    p.cells.push_back({i, (*exact)[i], i < 3 ? 0.6 * off : 2 * off + 1e-6});
  }
  const HeldOut* one[] = {&p};
  const auto e = errors_of(m, one, false);
  CHECK(e.cells == 12);
  CHECK(e.rows == 4);
  CHECK(e.worst == Approx(2.0 / 3).epsilon(1e-3));
  CHECK(e.mean == Approx((3 * 0.2 + 2.0 / 3) / 12).epsilon(1e-3));
  // The row that is off as a whole costs nothing any more; that with one wrong cell does.
  const auto factor = std::cbrt(1.0 / 3);
  CHECK(e.after_factor == Approx((2 * (1 / factor - 1) + (1 - 1 / (3 * factor))) / 12).epsilon(1e-3));
  CHECK(e.compared == 4);
  CHECK(e.best == 3);
  CHECK(e.inside_one == Approx(9.0 / 12));
  CHECK(e.inside_two == Approx(1));
  CHECK(e.inside_one_deviation == Approx(0.25 * std::sqrt(3) / 2).epsilon(0.1));  // one row of four, drawn four times
  CHECK(errors_of(m, one, true).cells == 0);
}

TEST_CASE("a speed-up: what both times depend on cancels, and the model's error remains") {
  auto m = truth();
  m.model_error = 0;
  m.judged.clear();
  const auto t = table([](int, int) { return 1.0; });
  const auto& o = t.observations[1];
  const auto same = speed_up(*o.schedule, *o.schedule, m);
  REQUIRE(same);
  CHECK(same->value == 1);
  CHECK(same->uncertainty == Approx(0).margin(1e-12));
  CHECK(same->tie());
  const auto two = speed_up(*o.baseline, *o.schedule, m);
  const auto base = sensitivity(*o.baseline, m), own = sensitivity(*o.schedule, m);
  CHECK(two->value == Approx(base->ns / own->ns));
  CHECK(two->uncertainty > 0);
  CHECK(two->uncertainty / two->value <
        0.7 * std::hypot(base->uncertainty_ns / base->ns, own->uncertainty_ns / own->ns));
  CHECK_FALSE(two->tie());
  CHECK(two->ns == own->ns);
  CHECK(two->uncertainty_ns == Approx(own->uncertainty_ns).epsilon(0.02));
  m.model_error = 0.1;
  CHECK(speed_up(*o.baseline, *o.schedule, m)->uncertainty_ns ==
        Approx(sensitivity(*o.schedule, m)->uncertainty_ns).epsilon(0.02));
  // The model's error is one of latencies: it does not apply while bytes move.
  const auto latent = [&](const Schedule& s) {
    const auto r = simulate(s, m);
    REQUIRE(r->working_ns > 0);
    REQUIRE(r->working_ns < r->ns);
    return (r->ns - r->working_ns) / r->ns;
  };
  CHECK(speed_up(*o.schedule, *o.schedule, m)->uncertainty == Approx(0.1 * latent(*o.schedule)));
  CHECK(sensitivity(*o.baseline, m)->uncertainty_ns ==
        Approx(std::hypot(base->uncertainty_ns, 0.1 * base->ns * latent(*o.baseline))));
  CHECK(*machine_from_json(to_json(m), "m.json") == m);
}

TEST_CASE("a fit says how large the errors are that it leaves") {
  // Half of the cells are 10 % off: the smaller of both halves is less than 68 %, so the larger one counts.
  const auto m = table([](int count, int row) { return (count / 2 + row) % 2 == 0 ? 1.1 : 1 / 1.1; });
  const auto f = fit(m.observations, m.from(*mi300x_machine(4)), m.options);
  REQUIRE(f);
  CHECK(f->machine.model_error > 0.05);
  CHECK(f->machine.model_error < 0.2);
  CHECK(rounded(*f, m.options).model_error == Approx(f->machine.model_error).epsilon(0.06));
}
