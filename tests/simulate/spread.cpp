// SPDX-License-Identifier: MIT
// What a few simulations say of a time's interval and of ratios; parameters at a bound of their fit; HIP's costs; a
// topology as a machine.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

using namespace sdma;

namespace {

/// `n` copies from the host to gpu0 by engine 0, each a submit of its own if `each`, with a signal each if `signals`.
Schedule blocks(std::uint64_t n, const std::string& bytes, bool each, bool signals) {
  const std::string copy = "copy_linear bytes=" + bytes + " src=host.pool dst=gpu0.kv\n",
                    done = "atomic op=add_rtn_64 addr=host.done value=1\n";
  std::string text = "sdma 1\ngpus 2\nbuffer host.pool bytes=" + bytes + "\nbuffer gpu0.kv bytes=" + bytes +
                     "\nbuffer gpu1.kv bytes=" + bytes + "\nsignal host.done value=0\nqueue gpu0.q engine=0\n";
  const auto times = fmt::format("{}", n);
  if (each) {
    text += copy + (signals ? done : "") + "end\n";
    if (!signals) text += "queue gpu0.last engine=0\n" + done + "end\n";
    text += "host main\nrepeat " + times + "\nsubmit gpu0.q\nend\n" + (signals ? "" : "submit gpu0.last\n");
    text += "wait host.done >= " + (signals ? times : "1") + "\nend\n";
  } else {
    text +=
        "for i in 0.." + times + "\n" + copy + "end\n" + done + "end\nhost main\nsubmit *\nwait host.done >= 1\nend\n";
  }
  auto s = parse_schedule(text, "t.sdma");
  for (const auto& d : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(s);
  return *std::move(s);
}
double us(const Schedule& s, const MachineDescription& m) {
  const auto t = simulate(s, m);
  for (const auto& d : t ? std::vector<Diagnostic>{} : t.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(t);
  return t->total_ns / 1e3;
}

}  // namespace

TEST_CASE("a spread has the interval of a sensitivity, and two of them that of their ratio") {
  const auto m = *mi300x_machine(2);
  const auto few = blocks(4, "64K", false, true), many = blocks(16, "64K", false, true);
  const auto a = *spread(few, m), b = *spread(many, m);
  const auto known = *sensitivity(few, m);
  CHECK(a.ns == known.ns);
  CHECK(a.uncertainty_ns == Approx(known.uncertainty_ns));
  CHECK(a.alternatives.size() == known.alternatives.size());
  CHECK(a.at_bound.empty());
  const auto ratio = speed_up(a, b, m), again = *speed_up(few, many, m);
  CHECK(ratio.value == Approx(a.ns / b.ns));
  CHECK(ratio.uncertainty == Approx(again.uncertainty));
  CHECK(ratio.uncertainty_ns == b.uncertainty_ns);
  // What both share cancels.
  CHECK(ratio.uncertainty / ratio.value < std::hypot(a.uncertainty_ns / a.ns, b.uncertainty_ns / b.ns));
}

TEST_CASE("where two rates are equal, the interval has that of the one that is a little higher") {
  auto m = *mi300x_machine(2);
  const auto s = *parse_schedule(
      "sdma 1\ngpus 2\nbuffer gpu*.b bytes=64M\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
      "copy_linear bytes=64M src=gpu0.b dst=gpu1.b\natomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "host main\nsubmit *\nwait host.done == 1\nend\n",
      "t.sdma");
  m.model_error = 0;
  // The link is as fast as the engine: a faster one changes nothing, a slower one does.
  auto equal = m;
  equal.parameter(Cost::xgmi_efficiency).value = m[Cost::engine_rate] / 64;
  auto only_engine = equal;
  only_engine.parameter(Cost::xgmi_efficiency).uncertainty = 0;
  only_engine.parameter(Cost::engine_rate).uncertainty = 0;
  CHECK(spread(s, equal)->uncertainty_ns > 2 * spread(s, only_engine)->uncertainty_ns);
}

TEST_CASE("a parameter whose fit ended at a bound is marked where it matters") {
  auto m = *mi300x_machine(2);
  const auto s = blocks(4, "64K", false, true);
  m.parameter(Cost::engine_packet).at_bound = true;
  m.parameter(Cost::engine_poll).at_bound = true;  // nothing polls
  CHECK(spread(s, m)->at_bound == std::vector{Cost::engine_packet});
  const auto h = *sensitivity(s, m);
  CHECK(std::count_if(h.rows.begin(), h.rows.end(), [](const auto& r) { return r.at_bound; }) == 1);
  const auto table = to_table(*simulate(s, m), &h);
  CHECK(table.find("engine.packet_ns * !") != table.npos);
  CHECK(table.find("\n! its fit ended at a bound") != table.npos);
  CHECK(to_json(*simulate(s, m), &h).find("\"at_bound\": true") != std::string::npos);
}

TEST_CASE("through HIP: public figures of MI300X lie within a factor of 1.5") {
  const auto rings = *mi300x_machine(2);
  auto hip = rings;
  through_hip(hip);
  CHECK(hip.name == rings.name + ", through HIP");
  struct Figure {
    const char* what;
    Schedule schedule;
    double us, count;
  };
  const Figure all[] = {{"a row of a 2D copy", blocks(512, "4K", true, false), 8.2, 512},
                        {"4,096 blocks of 4 KB, a call each", blocks(4096, "4K", true, true), 22'400, 1},
                        {"4,096 blocks of 4 KB in a batch", blocks(4096, "4K", false, true), 10'500, 1},
                        {"blocks of 32 KB, a call each", blocks(4096, "32K", true, true), 9.937, 4096}};
  for (const auto& f : all) {
    CAPTURE(f.what);
    const auto through = us(f.schedule, hip) / f.count, own = us(f.schedule, rings) / f.count;
    CAPTURE(through, own);
    CHECK(through > f.us / 1.5);
    CHECK(through < f.us * 1.5);
    CHECK(own < f.us / 1.5);
  }
  // A batch is the faster one, as published.
  CHECK(us(all[1].schedule, hip) > 1.5 * us(all[2].schedule, hip));
}

TEST_CASE("a topology alone is a machine with the parameters of its generation") {
  const auto shipped = *mi300x_machine(4);
  const auto m = machine_from_json(to_json(shipped.topology), "mine.json");
  REQUIRE(m);
  CHECK(m->topology == shipped.topology);
  CHECK(m->parameters == shipped.parameters);
  CHECK(m->name == shipped.topology.name);
  const auto newer = *layout_machine("mi355x:2");
  CHECK(machine_from_json(to_json(newer.topology), "mine.json")->parameters == newer.parameters);
  const auto wrong = machine_from_json("{\"gpus\": 3}", "mine.json");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().where.find("mine.json") != std::string::npos);
}
