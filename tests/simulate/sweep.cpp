// SPDX-License-Identifier: MIT
// Sweeps: their texts, the parameters that they set, and the parameter that caps another.
#include "sdma/simulate/sweep.hpp"

#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

std::string texts(const std::string& text) {
  const auto a = sweep_axis(text);
  if (const auto* why = std::get_if<std::string>(&a)) return "! " + *why;
  const auto& axis = std::get<SweepAxis>(a);
  auto all = axis.name + ":";
  for (const auto v : axis.values) all += " " + axis.text(v);
  return all;
}

/// One GPU copies to another.
Schedule copy(const std::string& bytes) {
  auto s = parse_schedule(
      "sdma 1\ngpus 2\nbuffer gpu0.in bytes=" + bytes + " init=random\nbuffer gpu1.out bytes=" + bytes +
      "\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n  copy_linear bytes=" + bytes +
      " src=gpu0.in dst=gpu1.out\n  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit *\n"
      "  wait host.done == 1\nend\n");
  REQUIRE(s);
  return *std::move(s);
}

double time(const Schedule& s, const MachineDescription& m) {
  const auto r = simulate(s, m);
  REQUIRE(r);
  return r->ns;
}

}  // namespace

TEST_CASE("an axis is a range or a list") {
  CHECK(texts("chunk=4K..16K") == "chunk: 4K 8K 16K");
  CHECK(texts("chunk=3..100*5") == "chunk: 3 15 75");
  CHECK(texts("N=2,3,8") == "N: 2 3 8");
  CHECK(texts("root=0") == "root: 0");
  CHECK(texts("engine.window_bytes=16K..256K*4") == "engine.window_bytes: 16K 64K 256K");
  CHECK(texts("xgmi.rate=48,61.5,100") == "xgmi.rate: 48 61.5 100");
  CHECK(texts("xgmi.efficiency=0.1..0.8*2") == "xgmi.efficiency: 0.1 0.2 0.4 0.8");
  CHECK(texts("engine.packet_ns=100..200*1.5") == "engine.packet_ns: 100 150");
  CHECK(texts("engine.poll_ns=0,1000") == "engine.poll_ns: 0 1000");
  for (const auto* bad : {"chunk", "=1..2", "chunk="}) CHECK(texts(bad) == "! this is not NAME=A..B");
  CHECK(texts("chunk=1k..4K") == "! '1k' is not a size");
  CHECK(texts("chunk=1,,2") == "! '' is not a size");
  CHECK(texts("chunk=1,2.5") == "! '2.5' is not a size");
  CHECK(texts("chunk=0..4") == "! '0' is not a size");
  CHECK(texts("chunk=4K..1K") == "! 4K is greater than 1K");
  CHECK(texts("chunk=1..4*1") == "! '*1' is not a factor of at least 2");
  CHECK(texts("xgmi.rate=1..4*1") == "! '*1' is not a factor above 1");
  CHECK(texts("xgmi.rate=1..4*1.0001") == "! there are more than 10000 values");
  CHECK(texts("xgmi.rate=nan") == "! this is not NAME=A..B");
}

TEST_CASE("values of a list may be computed") {
  CHECK(texts("N=2*4,16") == "N: 8 16");
  CHECK(texts("N=1<<3,(2+2)*4") == "N: 8 16");
  CHECK(texts("chunk=4*1K,16K/2") == "chunk: 4K 8K");
  CHECK(texts("N=2-4,8").starts_with("! '2-4' is not"));
  CHECK(texts("N=M/2,8") == "! 'M/2' is not a size");
  CHECK(texts("N=2*,8") == "! '2*' is not a size");
  CHECK(texts("N=1/0,8") == "! '1/0' is not a size");
}

TEST_CASE("rates of links are parameters like any other") {
  auto m = *mi300x_machine(2);
  const auto s = copy("16M");
  const auto before = time(s, m);
  CHECK(m.set("xgmi.rate", 16) == Errc::ok);
  CHECK(time(s, m) > 2 * before);
  CHECK(m.set("pcie.rate", 1) == Errc::ok);
  CHECK(m.set("engine.poll_ns", 5) == Errc::ok);
  CHECK(m[Cost::engine_poll] == 5);
  CHECK(m.set("xgmi.rate", 0) == Errc::bad_argument);
  CHECK(m.set("xgmi.rates", 1) == Errc::bad_argument);
  m.topology.links.clear();
  CHECK(m.set("xgmi.rate", 1) == Errc::bad_argument);
}

TEST_CASE("a parameter that changes nothing has a cap, which is found by trial") {
  auto m = *mi300x_machine(2);
  const auto s = copy("64M");
  REQUIRE(m.set("engine.bytes_per_ns", 20) == Errc::ok);
  auto fast = m, faster = m;
  REQUIRE(fast.set("xgmi.rate", 64) == Errc::ok);
  REQUIRE(faster.set("xgmi.rate", 128) == Errc::ok);
  REQUIRE(same_time(time(s, fast), time(s, faster)));
  const auto caps = caps_of(s, m, "xgmi.rate", 64, 128);
  REQUIRE(caps);
  CHECK(*caps == std::vector<std::string>{"engine.bytes_per_ns"});
  // What the schedule does not use is not capped.
  const auto none = caps_of(s, m, "kernel.poll_ns", 1, 1000);
  REQUIRE(none);
  CHECK(none->empty());
  CHECK_FALSE(same_time(1000, 1000.1));
}
