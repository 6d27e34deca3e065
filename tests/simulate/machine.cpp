// SPDX-License-Identifier: MIT
#include "sdma/simulate/machine.hpp"

#include "support/catch.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

using namespace sdma;

namespace {
std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  REQUIRE(at != text.npos);
  std::string out(text.substr(0, at));
  out += by;
  out += text.substr(at + what.size());
  return out;
}
std::string text_of(const std::string& path) {
  std::ifstream in(SDMA_SOURCE_ROOT + path);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string_view file() { return mi300x_machine_json(); }
std::string error(const std::string& text) {
  const auto m = machine_from_json(text, "m.json");
  REQUIRE_FALSE(m);
  return to_string(m.error());
}
}  // namespace

TEST_CASE("the library carries the file that is shipped") { CHECK(text_of("/share/machines/mi300x.json") == file()); }

TEST_CASE("the file that is shipped has the form that calibrate writes") {
  const auto m = machine_from_json(file());
  REQUIRE(m);
  CHECK(to_json(*m) == file());
  auto other = *m;
  other.topology.links[0].rate = Rate::gb_per_s(32);
  CHECK(to_json(other).find("\"mi300x\": 8") == std::string::npos);
  CHECK(*machine_from_json(to_json(other)) == other);
}

TEST_CASE("a machine goes through JSON and comes back, topology and all") {
  const auto m = mi300x_machine();
  REQUIRE(m);
  CHECK(m->topology == *mi300x());
  const auto again = machine_from_json(to_json(*m));
  REQUIRE(again);
  CHECK(*again == *m);
  CHECK(mi300x_machine(3)->topology.gpus.size() == 3);
  CHECK_FALSE(mi300x_machine(0));
}

TEST_CASE("a covariance goes through JSON and comes back, and a parameter that is set leaves it") {
  auto m = *mi300x_machine();
  m.covariance = {{Cost::engine_poll, Cost::xgmi_flight, Cost::engine_latency}, {4, 1, -2.5, 1, 9, 0, -2.5, 0, 16}};
  CHECK(*machine_from_json(to_json(m)) == m);
  REQUIRE(m.set("xgmi.flight_ns", 300) == Errc::ok);
  CHECK(m.covariance == Covariance{{Cost::engine_poll, Cost::engine_latency}, {4, -2.5, -2.5, 16}});
  REQUIRE(m.set("engine.release_ns", 300) == Errc::ok);
  CHECK(m.covariance.of.size() == 2);
}

TEST_CASE("a covariance that is none is refused") {
  const auto with = [](const std::string& parameters, const std::string& rows) {
    auto m = *mi300x_machine();
    m.covariance = {};
    return error(
        replaced(to_json(m), "\"model_error\"",
                 "\"covariance\": {\"parameters\": " + parameters + ", \"rows\": " + rows + "}, \"model_error\""));
  };
  const std::string two = R"(["engine.poll_ns", "xgmi.flight_ns"])";
  const auto* const rows = "these are not the rows of a covariance";
  for (const auto* wrong :
       {"[[4]]", "[[4, 1], [1, 9]]", "[[4], [7, 9]]", "[[-4], [1, 9]]", "[[4], [\"1\", 9]]", "[4, 9]"})
    CHECK(with(two, wrong).find(rows) != std::string::npos);
  CHECK(with(R"(["engine.poll_ns", "engine.poll_ns"])", "[[4], [1, 9]]").find("twice") != std::string::npos);
  CHECK(with(R"(["engine.pole_ns"])", "[[4]]").find("\"engine.pole_ns\" is not a parameter") != std::string::npos);
}

TEST_CASE("every parameter has a name, a unit, a source") {
  const auto m = *mi300x_machine();
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto c = static_cast<Cost>(i);
    CHECK(cost_named(name(c)) == i);
    CHECK_FALSE(unit(c).empty());
    CHECK_FALSE(m.parameter(c).source.empty());
    CHECK(to_table(m).find(name(c)) != std::string::npos);
  }
  CHECK(cost_named("engine.pol_ns") == kCosts);
}

TEST_CASE("set: a question to the machine") {
  auto m = *mi300x_machine();
  CHECK(m.set("engine.poll_ns", 1000) == Errc::ok);
  CHECK(m[Cost::engine_poll] == 1000);
  CHECK(m.set("engine.pol_ns", 1000) == Errc::bad_argument);
  CHECK(m.set("engine.poll_ns", -1) == Errc::bad_argument);
  CHECK(m.set("engine.bytes_per_ns", 0) == Errc::bad_argument);
  CHECK(m.set("pcie.efficiency", 1.5) == Errc::bad_argument);
  CHECK(m[Cost::pcie_efficiency] < 1);
}

TEST_CASE("errors name the file, the key, and what to do") {
  CHECK(error("[1").starts_with("m.json:1:2: error: this is not JSON\n  hint: sdma simulate --show-machine"));
  CHECK(error("{}").find("not a machine description of version 1") != std::string::npos);
  CHECK(error(replaced(file(), "\"engine.poll_ns\"", "\"engine.pol_ns\"")).find("did you mean 'engine.poll_ns'?") !=
        std::string::npos);
  CHECK(error(replaced(file(), "\"notes\"", "\"nots\"")).find("unknown key \"nots\"") != std::string::npos);
  CHECK(error(replaced(file(), "{\"value\": 0.89", "{\"value\": 1.89"))
            .find("pcie.efficiency: error: \"value\" is more than 1") != std::string::npos);
  CHECK(error(replaced(file(), "{\"value\": 0.89", "{\"valu\": 0.89")).find("unknown key \"valu\"") !=
        std::string::npos);
  CHECK(error(replaced(file(), "\"source\": \"5.3 TB/s peak\"", "\"source\": \"\""))
            .find("\"source\" is missing or empty") != std::string::npos);
  CHECK(error(replaced(file(), "{\"mi300x\": 8}", "{\"mi300x\": 9}")).find("m.json") == std::string::npos);
  CHECK(error(replaced(file(), "{\"mi300x\": 8}", "{\"gpu\": 8}")).find("topology") != std::string::npos);
}

TEST_CASE("the machine of MI355X is that of MI300X with its own rates, and nothing is fitted to it") {
  const auto m = machine_from_json(text_of("/share/machines/mi355x.json"), "mi355x.json");
  REQUIRE(m);
  CHECK(to_json(*m) == text_of("/share/machines/mi355x.json"));
  const auto known = *mi300x_machine();
  std::vector<std::string> own;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto &here = m->parameters[i], &there = known.parameters[i];
    CHECK_FALSE(here.fitted());
    if (there.fitted()) CHECK(here.source == "of MI300X, " + there.source);
    if (here.value != there.value || here.uncertainty != there.uncertainty)
      own.emplace_back(name(static_cast<Cost>(i)));
  }
  CHECK(own == std::vector<std::string>{"xgmi.efficiency", "hbm.bytes_per_ns", "engine.doorbell_ns",
                                        "engine.bytes_per_ns", "engine.host_bytes_per_ns", "engine.copies_to_a_peer",
                                        "engine.occupied_ns"});
  for (const auto& l : m->topology.links)
    if (l.type == LinkType::xgmi) CHECK(l.rate == Rate::gb_per_s(76.8));
}

TEST_CASE("the machine of two nodes has the parameters of MI300X") {
  const auto m = machine_from_json(text_of("/share/machines/2x8_mi300x.json"), "2x8_mi300x.json");
  REQUIRE(m);
  CHECK(to_json(*m) == text_of("/share/machines/2x8_mi300x.json"));
  CHECK(m->parameters == mi300x_machine()->parameters);
  CHECK(m->topology == layout_machine("nodes:2x8x400G")->topology);
}

TEST_CASE("a layout is a machine with the parameters of its GPUs") {
  CHECK(layout_machine("mi300x:8")->topology == mi300x_machine()->topology);
  CHECK(layout_machine("mesh:16")->parameters == mi300x_machine()->parameters);
  CHECK(layout_machine("mesh:16")->topology.gpus.size() == 16);
  const auto newer = machine_from_json(text_of("/share/machines/mi355x.json"));
  CHECK(layout_machine("mi355x:8")->parameters == newer->parameters);
  CHECK(layout_machine("mi355x:8")->topology == newer->topology);
  CHECK(layout_machine("mi350x:2")->parameters == newer->parameters);
  for (const auto* name : {"ring:8", "switch:4x400G", "nodes:2x2", "mi308x:8"}) {
    const auto m = layout_machine(name);
    REQUIRE(m);
    CHECK(to_json(*m).find("\"topology\": \"" + std::string(name) + "\"") != std::string::npos);
    CHECK(*machine_from_json(to_json(*m)) == *m);
  }
  CHECK(to_string(layout_machine("ring:1025").error()).find("1025 are more than 1024 GPUs") != std::string::npos);
  CHECK(error(replaced(file(), "{\"mi300x\": 8}", "\"rings:8\"")).find("'rings:8': error: there is no such layout") !=
        std::string::npos);
}
