// SPDX-License-Identifier: MIT
// Paths that several links share: a switch with less than full bandwidth, one receiver of many, a PCIe switch, the
// messages that a NIC takes. The right answers are computed here by hand, from the rates alone: everything else takes
// the same time in both schedules that a test compares.
#include "sdma/device/topology.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

using namespace sdma;

namespace {

constexpr double kBytes = 1 << 28;

/// The time until every pair (from, to) has exchanged 256 MiB; "host" is a place, too.
double copies(const MachineDescription& m, const std::vector<std::pair<std::string, std::string>>& pairs) {
  auto text = fmt::format(
      "sdma 1\ngpus {}\nbuffer gpu*.buf bytes=512M\nbuffer host.buf bytes=512M\n"
      "signal host.done value=0\n",
      m.topology.gpus.size());
  std::size_t n = 0;
  for (const auto& [from, to] : pairs) {
    const auto& gpu = from == "host" ? to : from;
    text += fmt::format(
        "queue {}.q{} {}\n  copy_linear bytes=256M src={}.buf dst={}.buf[256M]\n"
        "  atomic op=add_rtn_64 addr=host.done value=1\nend\n",
        gpu, n++, from == "host" ? "from=host" : "peer=" + to, from, to);
  }
  text += fmt::format("host main\n  submit *\n  wait host.done == {}\nend\n", n);
  const auto s = parse_schedule(text, "copies.sdma");
  REQUIRE(s);
  const auto r = simulate(*s, m);
  for (const auto& e : r ? std::vector<Diagnostic>{} : r.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(r);
  return r->ns;
}

/// All links from one of the first four GPUs to one of the others, or back, cross the path as well.
void between_leaves(Topology& t, SharedPath up, SharedPath down) {
  const auto first = static_cast<std::uint32_t>(t.shared.size());
  t.shared.push_back(std::move(up));
  t.shared.push_back(std::move(down));
  for (auto& l : t.links)
    if (l.from.kind == LinkEnd::Kind::gpu && l.to.kind == LinkEnd::Kind::gpu && l.from.index / 4 != l.to.index / 4)
      l.shares.push_back(first + (l.from.index < 4 ? 0 : 1));
}

/// The time of queues of the network from gpu0, of so many messages of 8 bytes each.
double messages(const MachineDescription& m, int queues, int each) {
  std::string text = "sdma 1\ngpus 8\nbuffer gpu0.buf bytes=4K\nbuffer gpu4.buf bytes=4K\n";
  for (int q = 0; q < queues; ++q) text += fmt::format("signal host.done{} value=0\n", q);
  for (int q = 0; q < queues; ++q)
    text += fmt::format(
        "queue gpu0.q{0} peer=gpu4 network=1\n  copy_linear bytes=8 src=gpu0.buf dst=gpu4.buf "
        "times={1}\n  atomic op=add_rtn_64 addr=host.done{0} value=1\nend\n",
        q, each);
  text += "host main\n  submit *\n";
  for (int q = 0; q < queues; ++q) text += fmt::format("  wait host.done{} == 1\n", q);
  const auto s = parse_schedule(text + "end\n", "messages.sdma");
  for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  const auto r = simulate(*s, m);
  for (const auto& e : r ? std::vector<Diagnostic>{} : r.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(r);
  return r->ns;
}

MachineDescription machine(const std::string& layout) { return *layout_machine(layout); }

}  // namespace

TEST_CASE("an oversubscribed switch: four ports of 50 GB/s share an uplink of 100 GB/s") {
  auto m = machine("switch:8x400G");
  const std::vector<std::pair<std::string, std::string>> across{
      {"gpu0", "gpu4"}, {"gpu1", "gpu5"}, {"gpu2", "gpu6"}, {"gpu3", "gpu7"}};
  const auto full = copies(m, across);
  between_leaves(m.topology, {"leaf 0 up", Rate::gb_per_s(100)}, {"leaf 0 down", Rate::gb_per_s(100)});
  const auto half = copies(m, across);
  // 47.5 GB/s each through the ports alone; a quarter of 95 GB/s through the uplink.
  CHECK(half - full == Approx(kBytes / (95.0 / 4) - kBytes / 47.5).epsilon(0.001));
  // Within a leaf, and in the other direction at the same time, nothing changes.
  CHECK(copies(m, {{"gpu0", "gpu1"}, {"gpu2", "gpu3"}}) ==
        copies(machine("switch:8x400G"), {{"gpu0", "gpu1"}, {"gpu2", "gpu3"}}));
  CHECK(copies(m, {{"gpu0", "gpu4"}, {"gpu5", "gpu1"}}) == Approx(copies(m, {{"gpu0", "gpu4"}})).epsilon(0.001));
}

TEST_CASE("incast: seven senders share the port of their receiver") {
  const auto m = machine("switch:8x400G");
  std::vector<std::pair<std::string, std::string>> all;
  for (int g = 1; g < 8; ++g) all.emplace_back(fmt::format("gpu{}", g), "gpu0");
  CHECK(copies(m, all) - copies(m, {{"gpu1", "gpu0"}}) == Approx(6 * kBytes / 47.5).epsilon(0.001));
}

TEST_CASE("two GPUs behind one PCIe switch share its link to the host") {
  auto m = machine("mi300x:2");
  REQUIRE(m.set("pcie.efficiency", 0.5) == Errc::ok);  // 32 GB/s for data, so that engines are no limit
  const std::vector<std::pair<std::string, std::string>> both{{"gpu0", "host"}, {"gpu1", "host"}};
  const auto apart = m;
  const auto alone = copies(apart, both);
  m.topology.shared.push_back({.name = "PCIe switch 0 up", .rate = Rate::gb_per_s(64), .type = LinkType::pcie});
  for (auto& l : m.topology.links)
    if (l.to.kind == LinkEnd::Kind::cpu) l.shares.push_back(0);
  CHECK(copies(m, both) - alone == Approx(kBytes / 16 - kBytes / 32).epsilon(0.001));
  const std::vector<std::pair<std::string, std::string>> other_way{{"host", "gpu0"}, {"host", "gpu1"}};
  CHECK(copies(m, other_way) == copies(apart, other_way));
  // The rate of a path of the network has another efficiency: 0.95 of 64 GB/s are no limit for two times 32.
  m.topology.shared[0].type = LinkType::other;
  CHECK(copies(m, both) - alone == Approx(kBytes / 30.4 - kBytes / 32).epsilon(0.001));
}

TEST_CASE("a message costs the thread of its queue time, and a NIC takes one message at a time") {
  auto m = machine("nodes:2x4");
  CHECK(m[Cost::nic_message] == m[Cost::engine_packet]);  // assumed, until it is known
  REQUIRE(m.set("host.build_ns", 0) == Errc::ok);         // a thread builds all packets before it rings the doorbell
  REQUIRE(m.set("nic.message_ns", 200) == Errc::ok);
  const auto one = messages(m, 1, 1);
  CHECK(messages(m, 1, 101) - one == Approx(100 * 200).epsilon(0.001));
  REQUIRE(m.set("nic.message_ns", 500) == Errc::ok);
  CHECK(messages(m, 1, 101) - messages(m, 1, 1) == Approx(100 * 500).epsilon(0.001));

  // Two messages per us, from all queues of the GPU together.
  REQUIRE(m.set("nic.message_ns", 200) == Errc::ok);
  for (auto& p : m.topology.shared)
    if (p.name == "gpu0 NIC out") p.message_ns = 500;
  CHECK(messages(m, 1, 101) - messages(m, 1, 1) == Approx(100 * 500).epsilon(0.001));
  const auto two = messages(m, 2, 101) - messages(m, 2, 1);
  CHECK(two == Approx(200 * 500).epsilon(0.01));
  // The NIC is not slower than the thread that feeds it.
  for (auto& p : m.topology.shared) p.message_ns = 100;
  CHECK(messages(m, 1, 101) - messages(m, 1, 1) == Approx(100 * 200).epsilon(0.001));
  // Messages of other GPUs have NICs of their own; that of the receiver takes turns, too.
  for (auto& p : m.topology.shared) p.message_ns = p.name == "gpu4 NIC in" ? 500 : 0;
  CHECK(messages(m, 1, 101) - messages(m, 1, 1) == Approx(100 * 500).epsilon(0.001));
}

TEST_CASE("a file keeps what a path is and what a message takes, and refuses what it cannot be") {
  auto t = machine("nodes:2x4").topology;
  t.shared[0].message_ns = 500;
  t.shared[1].type = LinkType::pcie;
  const auto text = to_json(t);
  CHECK(*topology_from_json(text) == t);
  CHECK(text.find("\"mb_per_s\":50000,\"message_ns\":500") != text.npos);
  const auto with = [&](const std::string& from, const std::string& to) {
    auto changed = text;
    const auto at = changed.find(from);
    REQUIRE(at != changed.npos);
    const auto r = topology_from_json(changed.replace(at, from.size(), to), "t.json");
    return r ? std::string() : to_string(r.error());
  };
  CHECK(with("\"message_ns\":500", "\"message_ns\":-1").find("message_ns") != text.npos);
  CHECK(with("\"message_ns\":500", "\"message_ns\":2000000000").find("at most 1000000000 ns") != text.npos);
  CHECK(with("\"message_ns\":500", "\"message_rate\":500").find("message_rate") != text.npos);
  CHECK(with("\"mb_per_s\":50000,\"type\":\"pcie\"", "\"mb_per_s\":50000,\"type\":\"pci\"")
            .find("write pcie, xgmi or other") != std::string::npos);
}
