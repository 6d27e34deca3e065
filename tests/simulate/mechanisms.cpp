// SPDX-License-Identifier: MIT
// Mechanisms: their schedules, their times on a device, and the machine that a fit to them finds.
#include "sdma/simulate/mechanisms.hpp"
#include "sdma/check/check.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <set>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t M = 1 << 20;

/// A round with these lines of the host; one queue, whose fence stores done.
std::string round(const std::string& host, const std::string& queue = "") {
  return "sdma 1\ngpus 1\nsignal host.go value=0\nsignal host.done value=0\nqueue gpu0.q engine=0\n" + queue +
         "fence addr=host.done value=epoch\nend\nhost main\n" + host + "end\n";
}
std::string refusal(const std::string& text) {
  const auto m = mechanism("t.sdma", text);
  REQUIRE(!m);
  return m.error().front().message;
}

/// Times of all mechanisms as a machine has them.
Measurements simulated(const MachineDescription& m, const MechanismOptions& o = {}) {
  Measurements out;
  for (const auto& each : mechanisms(m.topology, o)) {
    const auto t = simulate(*each.schedule, m);
    REQUIRE(t);
    out.observations.push_back(Observation::time(each.id(), each.schedule, t->ns, t->ns / 1000));
    out.rows.push_back({.schedule = each.file, .settings = each.settings, .what = "time_us", .source = "simulated"});
  }
  return out;
}

double ns_of(const std::string& text, const MachineDescription& m) {
  const auto s = parse_schedule(text, "t.sdma");
  REQUIRE(s);
  const auto t = simulate(*s, m);
  REQUIRE(t);
  return t->ns;
}

const Parameter& free_of(const Measurements& m, const MachineDescription& from, Cost c) {
  const auto& all = m.options.free;
  REQUIRE(std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.cost == c; }));
  return from.parameter(c);
}

}  // namespace

TEST_CASE("the mechanisms of a node are different rounds, proved by the checker") {
  const auto gpus = GENERATE(1u, 2u, 3u, 8u);
  const auto node = *mi300x(gpus);
  const auto all = mechanisms(node);
  std::set<std::string> ids, files;
  for (const auto& m : all) {
    INFO(m.id());
    CHECK(ids.insert(m.id()).second);
    files.insert(m.file);
    CHECK(m.schedule->gpus == gpus);
    CHECK(m.completions.size() == m.schedule->queues.size());
    CHECK(m.trigger.has_value() == !m.file.starts_with("submit_"));
    if (gpus == 2 || m.file.starts_with("broadcast_")) {
      const auto report = check(*m.schedule, {});
      CHECK(report.proved());
    }
  }
  for (const auto* family : {"submit_fences", "submit_2_queues", "submit_atomic", "copy_gpu0_gpu0", "copy_gpu0_host",
                             "copy_host_gpu0", "engines_gpu0_host_both", "atomic_"})
    CHECK(std::any_of(files.begin(), files.end(), [&](auto& f) { return f.starts_with(family); }));
  CHECK(files.contains("copy_gpu0_gpu1.sdma") == (gpus > 1));
  CHECK(files.contains("swap_gpu0_gpu1.sdma") == (gpus > 1));
  CHECK(files.contains("broadcast_gpu0_gpu1_gpu2.sdma") == (gpus > 2));
  // All pairs but the first, which has all sizes.
  CHECK(std::count_if(all.begin(), all.end(), [](auto& m) { return m.file.starts_with("push_"); }) ==
        2 * (gpus * (gpus - 1) - (gpus > 1 ? 1 : 0)));
  CHECK(std::all_of(all.begin(), all.end(), [](auto& m) { return m.settings.find("128M") == std::string::npos; }));
}

TEST_CASE("a node without engines has no mechanisms") {
  CHECK(mechanisms(Topology{}).empty());
  auto node = *mi300x(1);
  node.gpus[0].dead_engines = ~std::uint64_t{0};
  CHECK(mechanisms(node).empty());
}

TEST_CASE("a schedule is a mechanism if its host submits all, sets one trigger and waits") {
  const auto m = mechanism("t.sdma", round("submit *\nset host.go = 1\nwait host.done >= 1\n",
                                           "poll_mem addr=host.go func=ge reference=epoch\n"));
  REQUIRE(m);
  CHECK(m->trigger == 0);
  CHECK(m->completions == std::vector<std::size_t>{1});
  CHECK(m->id() == "t");
  CHECK(refusal(round("submit *\n")) == "it waits for nothing");
  CHECK(refusal(round("wait host.done >= 1\n")) == "it does not submit each queue once");
  CHECK(refusal(round("submit *\nsubmit *\nwait host.done >= 1\n")) == "it does not submit each queue once");
  CHECK(refusal(round("submit *\nwait host.done == 1\n")) == "it waits for something else than a signal >= 1");
  CHECK(refusal(round("submit *\nset host.go = 2\nwait host.done >= 1\n")) == "it sets more than one trigger");
  CHECK(refusal(round("submit *\nset host.go = 1\nset host.go = 1\nwait host.done >= 1\n")) ==
        "it sets more than one trigger");
  CHECK(refusal(round("set host.go = 1\nsubmit *\nwait host.done >= 1\n")) == "it submits after it has set or waited");
  CHECK(refusal(round("submit *\nrepeat 2\nwait host.done >= 1\nend\n")) == "it repeats");
  CHECK(refusal(round("submit *\nwait host.done >= 1\n") + "host other\nend\n") == "it has more than one host thread");
  const auto bad = mechanism("t.sdma", round("submit *\nwait host.done >= 1\n"), "n");
  REQUIRE(!bad);
  CHECK(bad.error().front().message == "the setting 'n' is not NAME=VALUE");
  CHECK(!mechanism("t.sdma", "no schedule"));
}

TEST_CASE("times of mechanisms on a device") {
  const auto device = SoftDevice::open({.gpus = 2});
  REQUIRE(device);
  auto all = mechanisms((*device)->topology(), {.most_bytes = M});
  all.erase(all.begin() + 12, all.end());
  MeasureOptions o{.source = "here", .judged = 1, .passes = 2, .rounds = 2, .warmups = 0};
  std::size_t called = 0;
  o.progress = [&](const Mechanism& m, std::size_t done, std::size_t of) {
    CHECK(done == called++);
    CHECK(of == 2 * all.size());
    CHECK(m.id() == all[done % all.size()].id());
    return true;
  };
  const auto m = measure(**device, all, o);
  REQUIRE(m);
  CHECK(called == 2 * all.size());
  REQUIRE(m->observations.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(m->observations[i].value > 0);
    CHECK(m->observations[i].schedule == all[i].schedule);
    CHECK((m->observations[i].weight > 0) == (i + 1 < all.size()));
    CHECK(m->observations[i].weight <= 1);
    CHECK(m->rows[i].source == "here");
  }
  o.progress = [&](const Mechanism&, std::size_t done, std::size_t) { return done < 3; };
  const auto stopped = measure(**device, all, o);
  REQUIRE(!stopped);
  CHECK(stopped.error().empty());
  CHECK(!measure(**device, all, {.passes = 0}));
  CHECK(!measure(**device, all, {.rounds = 0}));
}

TEST_CASE("a round that does not end is reported at its timeout") {
  const auto device = SoftDevice::open({.gpus = 1});
  REQUIRE(device);
  const auto m = mechanism("never.sdma",
                           round("submit *\nwait host.done >= 1\n", "poll_mem addr=host.go func=ge reference=epoch\n"));
  REQUIRE(m);
  const auto got = measure(**device, {&*m, 1}, {.passes = 1, .round_limit = 50ms});
  REQUIRE(!got);
  CHECK(got.error().front().where == "never");
  CHECK(got.error().front().message == "a round has not ended at its deadline");
}

TEST_CASE("a machine that is fitted to mechanisms predicts what was not measured", "[long]") {
  auto truth = *mi300x_machine(2);
  for (auto& l : truth.topology.links) l.rate = Rate::gb_per_s(l.type == LinkType::xgmi ? 390 : 55);
  for (const auto& [name, value] : {std::pair{"host.submit_ns", 700.0},
                                    {"host.issue_ns", 900.0},
                                    {"host.doorbell_ns", 100.0},
                                    {"host.build_ns", 40.0},
                                    {"engine.latency_ns", 2900.0},
                                    {"engine.poll_ns", 4100.0},
                                    {"engine.bytes_per_ns", 1500.0},
                                    {"engine.swap_ns", 8000.0},
                                    {"engine.swap_efficiency", 0.2},
                                    {"xgmi.efficiency", 1.0},
                                    {"pcie.efficiency", 1.0},
                                    {"hbm.bytes_per_ns", 1e6},
                                    {"host.memory_bytes_per_ns", 1e5},
                                    {"pcie.flight_ns", 200.0},
                                    {"xgmi.flight_ns", 200.0}})
    REQUIRE(truth.set(name, value) == Errc::ok);
  auto unknown = truth.topology;
  for (auto& l : unknown.links) l.rate = {};
  auto table = simulated(truth);
  const auto device = SoftDevice::open({.gpus = 2});
  REQUIRE(device);
  // The free parameters are those of a measurement of these mechanisms.
  const auto real = measure(**device, mechanisms(unknown, {.most_bytes = M}), {.passes = 1, .rounds = 1, .warmups = 0});
  REQUIRE(real);
  table.options.free = real->options.free;
  std::erase_if(table.options.free,
                [](const auto& p) { return unit(p.cost) == "fraction" && p.cost != Cost::engine_swap; });
  table.start = real->start;
  std::erase_if(table.start,
                [](const auto& p) { return p.first == Cost::xgmi_efficiency || p.first == Cost::pcie_efficiency; });
  const auto start = unfitted(unknown, table);
  for (const auto& l : start.topology.links)
    if (l.from.kind == LinkEnd::Kind::gpu && l.to.kind == LinkEnd::Kind::gpu)
      CHECK_THAT(l.rate.gb_per_s().value(), Catch::Matchers::WithinRel(390.0, 0.01));
  CHECK(start[Cost::xgmi_efficiency] == 1);
  // Several copies at once may be slower than one was, whatever the type of their link; so may collectives.
  for (const auto c : {Cost::pcie_efficiency, Cost::xgmi_efficiency, Cost::nic_efficiency})
    CHECK(start.parameter(c).uncertainty > 0);
  CHECK(real->options.unlike > 0);
  const auto f = fit(table.observations, table.from(start), table.options);
  for (const auto& d : f ? std::vector<Diagnostic>{} : f.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(f);
  CHECK(f->mean_error < 0.03);
  CHECK_THAT(free_of(table, f->machine, Cost::engine_swap_time).value, Catch::Matchers::WithinRel(8000.0, 0.1));
  const std::string exchange =
      "sdma 1\ngpus 2\nbuffer gpu*.a bytes=8M\nbuffer gpu*.b bytes=8M\nsignal host.go value=0\nsignal host.d0 value=0\n"
      "signal host.d1 value=0\nfor i in 0..2\nqueue gpu{i}.q peer=gpu{1-i}\n"
      "poll_mem addr=host.go func=ge reference=1\ncopy_linear bytes=3M src=gpu{i}.a dst=gpu{1-i}.b\n"
      "copy_linear bytes=12K src=gpu{i}.a[4M] dst=gpu{1-i}.b[4M]\nfence addr=host.d{i} value=1\nend\nend\n"
      "host main\nsubmit *\nset host.go = 1\nwait host.d0 >= 1\nwait host.d1 >= 1\nend\n";
  CHECK_THAT(ns_of(exchange, f->machine), Catch::Matchers::WithinRel(ns_of(exchange, truth), 0.1));
}

TEST_CASE("links whose rate the topology states keep it, and their efficiency is fitted", "[long]") {
  const auto device = SoftDevice::open({.gpus = 2});
  REQUIRE(device);
  const auto& node = (*device)->topology();
  auto all = mechanisms(node, {.most_bytes = M});
  const auto m = measure(**device, all, {.passes = 1, .rounds = 1, .warmups = 0});
  REQUIRE(m);
  const auto start = unfitted(node, *m);
  CHECK(start.topology == node);
  (void)free_of(*m, start, Cost::xgmi_efficiency);
  (void)free_of(*m, start, Cost::pcie_efficiency);
  for (const auto& p : m->options.free) {
    CHECK(p.cost != Cost::engine_broadcast);  // two GPUs have none
    CHECK(p.cost != Cost::engine_fetch);
  }
}

TEST_CASE("a table of mechanisms survives its file") {
  auto m = simulated(*mi300x_machine(2), {.most_bytes = M});
  m.options.free = {{.cost = Cost::engine_poll, .low = 1, .high = 100000, .note = "a trigger"}};
  m.start = {{Cost::engine_poll, 1234}};
  m.rows[0].source = "a \"node\", mine";
  m.observations[1].weight = 0;
  const auto all = mechanisms(*mi300x(2), {.most_bytes = M});
  const auto back = measurements_from_csv(to_csv(m, "comment"), "t.csv", [&](const std::string& name) {
    for (const auto& each : all)
      if (each.file == name) return Result<std::string, Diagnostic>(each.text);
    return Result<std::string, Diagnostic>(Diagnostic{.message = "none"});
  });
  REQUIRE(back);
  REQUIRE(back->observations.size() == m.observations.size());
  CHECK(back->start == m.start);
  CHECK(back->options.free.at(0).note == "a trigger");
  CHECK(back->rows[0].source == m.rows[0].source);
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    CHECK_THAT(back->observations[i].value, Catch::Matchers::WithinRel(m.observations[i].value, 1e-4));
    CHECK(back->observations[i].weight == m.observations[i].weight);
    CHECK(*back->observations[i].schedule == *m.observations[i].schedule);
  }
}

TEST_CASE("a trigger finds its queue at the poll: the poll's cost is in the time, the fetch's is not") {
  const auto text =
      round("submit *\nset host.go = 1\nwait host.done >= 1\n", "poll_mem addr=host.go func=ge reference=1\n");
  auto m = *mi300x_machine(1);
  const auto before = ns_of(text, m);
  REQUIRE(m.set("engine.poll_ns", m[Cost::engine_poll] + 1000) == Errc::ok);
  CHECK_THAT(ns_of(text, m), Catch::Matchers::WithinAbs(before + 1000, 0.01));
  REQUIRE(m.set("engine.fetch_ns", 50'000) == Errc::ok);
  CHECK_THAT(ns_of(text, m), Catch::Matchers::WithinAbs(before + 1000, 0.01));
}

TEST_CASE("a trigger does not wait for queues that begin with other work") {
  const auto one = [](const char* head) {
    return std::string(
               "sdma 1\ngpus 1\nbuffer gpu0.a bytes=64M\nbuffer gpu0.b bytes=64M\nsignal host.go value=0\n"
               "signal host.done value=0\nqueue gpu0.q engine=0\n") +
           head +
           "poll_mem addr=host.go func=ge reference=1\nfence addr=host.done value=1\nend\nhost main\nsubmit *\n"
           "set host.go = 1\nwait host.done >= 1\nend\n";
  };
  const auto m = *mi300x_machine(1);
  // The copy is part of the round: the trigger comes long before its end.
  CHECK(ns_of(one("copy_linear bytes=64M src=gpu0.a dst=gpu0.b\n"), m) > 64e6 / 50);
  CHECK(ns_of(one(""), m) < 20'000);
}

TEST_CASE("a doorbell may cost its thread time for each packet, while the engine works") {
  const auto text = [](int fences) {
    std::string q;
    for (int i = 0; i < fences; ++i) q += "fence addr=host.go value=1\n";
    return round("submit *\nwait host.done >= 1\n", q);
  };
  auto m = *mi300x_machine(1);
  const auto before = ns_of(text(4), m);
  REQUIRE(m.set("host.issue_ns", 100) == Errc::ok);
  CHECK(ns_of(text(4), m) == before);  // the engine takes longer
  REQUIRE(m.set("host.issue_ns", 100'000) == Errc::ok);
  CHECK(ns_of(text(4), m) > 500'000);
}

TEST_CASE("a swap may take additional time") {
  const std::string text =
      "sdma 1\ngpus 2\nbuffer gpu*.a bytes=64K\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
      "copy_swap bytes=64K a=gpu0.a b=gpu1.a\nfence addr=host.done value=1\nend\nhost main\nsubmit *\n"
      "wait host.done >= 1\nend\n";
  auto m = *mi300x_machine(2);
  const auto before = ns_of(text, m);
  REQUIRE(m.set("engine.swap_ns", 3000) == Errc::ok);
  CHECK_THAT(ns_of(text, m), Catch::Matchers::WithinAbs(before + 3000, 0.01));
}
