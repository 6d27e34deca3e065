// SPDX-License-Identifier: MIT
// What a few simulations say of a time's interval and of ratios; parameters at a bound of their fit; a topology as a
// machine.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

using namespace sdma;

namespace {

/// `n` copies from the host to gpu0 by engine 0, and a completion.
Schedule blocks(std::uint64_t n, const std::string& bytes) {
  auto s = parse_schedule(
      fmt::format("sdma 1\ngpus 2\nbuffer host.pool bytes={0}\nbuffer gpu0.kv bytes={0}\nsignal host.done value=0\n"
                  "queue gpu0.q engine=0\nfor i in 0..{1}\ncopy_linear bytes={0} src=host.pool dst=gpu0.kv\nend\n"
                  "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done >= 1\nend\n",
                  bytes, n),
      "t.sdma");
  for (const auto& d : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(s);
  return *std::move(s);
}

}  // namespace

TEST_CASE("a spread has the interval of a sensitivity, and two of them that of their ratio") {
  const auto m = *mi300x_machine(2);
  const auto few = blocks(4, "64K"), many = blocks(16, "64K");
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
  const auto s = blocks(4, "64K");
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
