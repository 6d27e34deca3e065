// SPDX-License-Identifier: MIT
// What a machine was taken from, how far it is off by what copies have in common, and copies through runtimes.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/measurements.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

using namespace sdma;

namespace {

std::vector<Measurements> tables(std::initializer_list<const char*> names) {
  std::vector<Measurements> out;
  for (const std::string name : names) {
    auto read = read_measurements(SDMA_SOURCE_ROOT "/share/published/" + name + ".csv");
    REQUIRE(read);
    out.push_back(*std::move(read));
  }
  return out;
}

Schedule parsed(const std::string& text) {
  auto s = parse_schedule(text, "t.sdma");
  for (const auto& d : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(s);
  return *std::move(s);
}

CopyPattern pattern(const std::string& queues, const std::string& start = "") {
  const auto s = parsed(
      "sdma 1\ngpus 4\nbuffer gpu*.b bytes=64K\nbuffer host.h bytes=64K\nsignal host.d value=0\n"
      "signal gpu*.w value=0\n" +
      queues + "host main\n" + start + "submit *\nend\n");
  const auto t = simulate(s, *mi300x_machine(4));
  for (const auto& d : t ? std::vector<Diagnostic>{} : t.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(t);
  return t->pattern;
}
std::string queue(int from, int to, const std::string& packets) {
  return fmt::format("queue gpu{}.q{} peer=gpu{}\n{}end\n", from, to, to, packets);
}
std::string copy(const std::string& src, const std::string& dst) {
  return "copy_linear bytes=4K src=" + src + " dst=" + dst + "\n";
}

}  // namespace

TEST_CASE("shipped machines say how far they are off, and the tables agree") {
  const std::tuple<const char*, Through, std::vector<Measurements>> all[] = {
      {"mi300x:8", Through::rings, tables({"dma-latte", "mi300x"})},
      {"mi355x:8", Through::rings, tables({"mi355x"})},
      {"mi300x:8", Through::hip, tables({"mi300x-hip"})},
      {"mi355x:8", Through::hip, tables({"mi355x-hip"})}};
  for (const auto& [layout, how, read] : all) {
    auto m = *layout_machine(layout);
    through(m, how);
    const auto found = *judge(read, m);
    INFO(layout);
    REQUIRE(found.size() == m.judged.size());
    for (const auto& j : found) {
      INFO(name(j.pattern));
      const auto* const known = m.judgement(j.pattern);
      REQUIRE(known);
      CHECK(known->model_error == Approx(j.model_error).epsilon(0.05));
      for (const auto& [a, b] : {std::pair{&known->fitted, &j.fitted}, {&known->predicted, &j.predicted}}) {
        CHECK(a->cells == b->cells);
        CHECK(a->mean == Approx(b->mean).epsilon(0.02));
        CHECK(a->worst == Approx(b->worst).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("a cell of a source from which anything was taken is fitted, whatever its weight") {
  const auto m = *mi300x_machine();
  const auto read = tables({"dma-latte", "mi300x", "mi355x"});
  for (const auto& r : read[0].rows) CHECK(m.fitted_to(r.source));
  // The rates of links and of the host, and what broadcasts cost, are from all sources of the second table but one.
  const auto& rows = read[1].rows;
  CHECK(std::count_if(rows.begin(), rows.end(), [&](auto& r) { return !m.fitted_to(r.source); }) == 1);
  for (const auto& r : read[2].rows) CHECK_FALSE(m.fitted_to(r.source));
  CHECK(m.fitted_to("AMDResearch/AMD-DMA-Latte PERFORMANCE.md @893db06, table All-to-All"));
  CHECK_FALSE(m.fitted_to(""));
  // What is fitted names its sources, and a file keeps them.
  for (const auto& p : m.parameters) CHECK((!p.fitted() || !p.taken_from.empty()));
  const auto again = machine_from_json(to_json(m));
  REQUIRE(again);
  CHECK(again->parameters == m.parameters);
  CHECK(again->judged.size() == m.judged.size());
  // A parameter that is set is taken from nothing.
  auto other = m;
  for (std::size_t i = 0; i < kCosts; ++i)
    REQUIRE(other.set(name(static_cast<Cost>(i)), m.parameters[i].value) == Errc::ok);
  CHECK_FALSE(other.fitted_to(read[0].rows[0].source));
}

TEST_CASE("what copies have in common") {
  CHECK(pattern(queue(0, 1, copy("gpu0.b", "gpu1.b"))) == CopyPattern::pair);
  CHECK(pattern(queue(0, 1, copy("gpu0.b", "gpu1.b")) + queue(1, 0, copy("gpu1.b[4K]", "gpu0.b[4K]"))) ==
        CopyPattern::pair);
  CHECK(pattern(queue(0, 1, copy("gpu0.b", "gpu1.b")) + queue(0, 2, copy("gpu0.b[4K]", "gpu2.b"))) ==
        CopyPattern::own_sources);
  CHECK(pattern(queue(0, 1, copy("gpu0.b", "gpu1.b")) + queue(0, 2, copy("gpu0.b", "gpu2.b"))) ==
        CopyPattern::one_source);
  CHECK(pattern(queue(0, 1, "copy_swap bytes=4K a=gpu0.b b=gpu1.b\n")) == CopyPattern::swaps);
  CHECK(pattern("queue gpu0.q engine=0\n" + copy("host.h", "gpu0.b") + "end\n") == CopyPattern::host);
  CHECK(pattern(queue(0, 1, copy("gpu0.b", "gpu1.b") + "fence addr=gpu1.w value=1\n") +
                queue(1, 2,
                      "poll_mem addr=gpu1.w func=ge reference=1 interval=10 retry=forever\n" +
                          copy("gpu1.b", "gpu2.b"))) == CopyPattern::relay);
  // A trigger is the host's.
  CHECK(
      pattern(queue(0, 1,
                    "poll_mem addr=host.d func=ge reference=1 interval=10 retry=forever\n" + copy("gpu0.b", "gpu1.b")),
              "set host.d = 1\n") == CopyPattern::pair);
}

TEST_CASE("an interval has the error of its pattern") {
  auto m = *mi300x_machine(4);
  const auto s = parsed("sdma 1\ngpus 4\nbuffer gpu*.b bytes=64K\nsignal host.d value=0\n" +
                        queue(0, 1, copy("gpu0.b", "gpu1.b") + "atomic op=add_rtn_64 addr=host.d value=1\n") +
                        "host main\nsubmit *\nwait host.d == 1\nend\n");
  m.model_error = 0.1;
  m.judged.clear();
  const auto general = spread(s, m)->uncertainty_ns;
  m.judged = {{.pattern = CopyPattern::host, .model_error = 1}};
  CHECK(spread(s, m)->uncertainty_ns == Approx(general));
  m.judged = {{.pattern = CopyPattern::pair, .predicted = {3, 0.25, 0.5}, .model_error = 0.5}};
  CHECK(spread(s, m)->uncertainty_ns > 2 * general);
  CHECK(sensitivity(s, m)->uncertainty_ns == Approx(spread(s, m)->uncertainty_ns));
  CHECK(judged_text(CopyPattern::pair, m) == "a pair: 3 predicted cells are off by 25.0 % (worst 50 %)");
  CHECK(judged_text(CopyPattern::relay, m).find("no published measurement") != std::string::npos);
  CHECK(to_table(*simulate(s, m), nullptr, &m).find("like it     a pair: 3 predicted") != std::string::npos);
}

TEST_CASE(
    "through HIP: every published cell of MI300X within a factor of 1.5, and calls of MI355X above 16 KB within 1.1") {
  auto m = *layout_machine("mi300x:8");
  const auto own = m;
  through(m, Through::hip);
  CHECK(m.name == own.name + ", through HIP");
  const auto read = tables({"mi300x-hip", "mi355x-hip"});
  const auto hip = *predict(read[0].observations, m), rings = *predict(read[0].observations, own);
  CHECK(hip.size() == 9);
  for (std::size_t i = 0; i < hip.size(); ++i) {
    INFO(read[0].observations[i].id);
    CHECK(hip[i].error < 0.5);
    CHECK(hip[i].error > 1 / 1.5 - 1);
    CHECK(rings[i].value < hip[i].value);
    CHECK(m.fitted_to(read[0].rows[i].source));
  }
  auto newer = *layout_machine("mi355x:8");
  through(newer, Through::hip);
  const auto there = *predict(read[1].observations, newer);
  for (std::size_t i = 0; i < there.size(); ++i) {
    const auto& r = read[1].rows[i];
    CHECK_FALSE(newer.fitted_to(r.source));
    if (r.settings.starts_with("bytes=4K") || r.settings.starts_with("bytes=16K") ||
        r.settings.find("batch=1") != r.settings.npos)
      continue;
    INFO(r.settings);
    CHECK(std::abs(there[i].error) < 0.1);
  }
}

TEST_CASE("through HIP, a batch pays up to 16 KB, and above it not") {
  auto hip = *layout_machine("mi300x:1"), calls = hip, hsa = hip;
  through(hip, Through::hip);
  through(calls, Through::hip_calls);
  through(hsa, Through::hsa);
  const auto batch = [](const std::string& bytes) {
    std::string text = "sdma 1\ngpus 1\nbuffer gpu0.b bytes=" + bytes + "\nbuffer host.b bytes=" + bytes +
                       "\nsignal host.d value=0\nqueue gpu0.q engine=0\nfor i in 0..256\ncopy_linear bytes=" + bytes +
                       " src=host.b dst=gpu0.b\nend\natomic op=add_rtn_64 addr=host.d value=1\nend\n"
                       "host main\nsubmit *\nwait host.d == 1\nend\n";
    return parsed(text);
  };
  const auto ns = [](const Schedule& s, const MachineDescription& m) { return simulate(s, m)->ns; };
  const auto each = [&](const std::string& bytes) {
    auto s = batch(bytes);
    s.queues[0].doorbell_each = true;
    return ns(s, calls);
  };
  CHECK(each("4K") > 2 * ns(batch("4K"), hip));
  CHECK(each("16K") > 1.5 * ns(batch("16K"), hip));
  CHECK(each("128K") < ns(batch("128K"), hip));
  // One byte more is an engine's, chained by a signal.
  CHECK(ns(batch("128K"), hip) > 3 * ns(batch("16K"), hip));
  // ROCr's batch does not chain them.
  CHECK(ns(batch("128K"), hsa) < ns(batch("128K"), hip) / 2);
}
