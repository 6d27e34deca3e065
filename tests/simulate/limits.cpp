// SPDX-License-Identifier: MIT
// Mechanisms that a machine may not have: each is off until its
// parameter is set, and then acts where it should and nowhere else.
#include "sdma/device/topology.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>

using namespace sdma;

namespace {

MachineDescription off() {
  auto m = *mi300x_machine(4);
  REQUIRE(m.set("engine.host_bytes_per_ns", m[Cost::engine_rate]) == Errc::ok);
  REQUIRE(m.set("engine.second_to_host_efficiency", 1) == Errc::ok);
  REQUIRE(m.set("engine.far_to_host_efficiency", 1) == Errc::ok);
  for (const auto* p :
       {"engine.broadcast_ns", "engine.copies_to_a_peer", "engine.occupied_ns", "engine.doorbell_ns", "engine.page_ns"})
    REQUIRE(m.set(p, 0) == Errc::ok);
  return m;
}
MachineDescription with(std::string_view parameter, double value) {
  auto m = off();
  REQUIRE(m.set(parameter, value) == Errc::ok);
  return m;
}
/// The time of a queue of gpu0 with these packets and a completion.
double ns(const MachineDescription& m, const std::string& packets, const std::string& queue = "peer=gpu1") {
  const auto s = parse_schedule(
      "sdma 1\ngpus 4\nbuffer gpu0.in bytes=4M\nbuffer gpu*.out bytes=4M\nbuffer host.out bytes=4M\n"
      "signal host.done value=0\nsignal gpu0.word value=0\nqueue gpu0.q " +
          queue + "\n" + packets + "fence addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n",
      "t.sdma");
  for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  const auto t = simulate(*s, m);
  for (const auto& e : t ? std::vector<Diagnostic>{} : t.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(t);
  return t->ns;
}
std::string copy(int to, const std::string& bytes = "480") {
  return "copy_linear bytes=" + bytes + " src=gpu0.in dst=gpu" + std::to_string(to) + ".out\n";
}
const std::string kDown = "copy_linear bytes=4M src=gpu0.in dst=host.out\n",
                  kUp = "copy_linear bytes=4M src=host.out dst=gpu0.in\n",
                  kBroadcast = "copy_broadcast bytes=480 src=gpu0.in dst1=gpu1.out dst2=gpu2.out\n",
                  kAtomic = "atomic op=add_rtn_64 addr=gpu0.word value=1\n";

}  // namespace

TEST_CASE("an engine has a rate of its own towards the host, and the second host engine less of it in one direction") {
  auto m = off();
  REQUIRE(m.set("pcie.efficiency", 1) == Errc::ok);
  const auto peer = ns(m, copy(1, "4M")), down = ns(m, kDown, "engine=1"), up = ns(m, kUp, "engine=0");
  REQUIRE(m.set("engine.host_bytes_per_ns", 2 * m[Cost::engine_rate] / 3) == Errc::ok);
  const auto bytes = 4194304 / m[Cost::engine_rate];
  CHECK(ns(m, copy(1, "4M")) == peer);
  CHECK(ns(m, kDown, "engine=1") - down == Approx(bytes / 2));
  CHECK(ns(m, kDown, "engine=0") - down == Approx(bytes / 2));
  CHECK(ns(m, kUp, "engine=0") - up == Approx(bytes / 2));
  REQUIRE(m.set("engine.second_to_host_efficiency", 0.75) == Errc::ok);
  CHECK(ns(m, kDown, "engine=0") - down == Approx(bytes / 2));
  CHECK(ns(m, kDown, "engine=1") - down == Approx(bytes));
  CHECK(ns(m, kUp, "engine=1") - up == Approx(bytes / 2));
  // Engines from 8 on, in one direction.
  REQUIRE(m.set("engine.far_to_host_efficiency", 0.5) == Errc::ok);
  CHECK(ns(m, kDown, "engine=7") - down == Approx(bytes / 2));
  CHECK(ns(m, kDown, "engine=8") - down == Approx(2 * bytes));
  CHECK(ns(m, kDown, "engine=15") - down == Approx(2 * bytes));
  CHECK(ns(m, kUp, "engine=8") - up == Approx(bytes / 2));
  // Where the first engine is dead, the next one is the first.
  for (auto& g : m.topology.gpus) g.dead_engines = 1;
  CHECK(ns(m, kDown, "engine=1") - down == Approx(bytes / 2));
}

TEST_CASE("a broadcast needs the front end for longer") {
  CHECK(ns(with("engine.broadcast_ns", 700), kBroadcast) - ns(off(), kBroadcast) == Approx(700));
  CHECK(ns(with("engine.broadcast_ns", 700), copy(1)) == ns(off(), copy(1)));
}

TEST_CASE("an engine has so many copies in flight to one peer, and the next one begins when one has landed") {
  const auto one = with("engine.copies_to_a_peer", 1), two = with("engine.copies_to_a_peer", 2);
  const auto alone = ns(off(), copy(1));
  const auto serial = one[Cost::host_build] + one[Cost::engine_packet] + 480 / (64 * one[Cost::xgmi_efficiency]) +
                      one[Cost::engine_latency];
  CHECK(ns(one, copy(1)) == alone);
  CHECK(ns(one, copy(1) + copy(1)) - alone == Approx(serial).epsilon(1e-3));
  CHECK(ns(two, copy(1) + copy(1)) == ns(off(), copy(1) + copy(1)));
  CHECK(ns(two, copy(1) + copy(1) + copy(1)) > ns(off(), copy(1) + copy(1) + copy(1)) + 500);
  // To other peers, and to two at once, nothing changes.
  CHECK(ns(one, copy(1) + copy(2)) == ns(off(), copy(1) + copy(2)));
  CHECK(ns(one, copy(1) + kBroadcast) == ns(off(), copy(1) + kBroadcast));
}

TEST_CASE("a fence or an atomic occupies the front end") {
  const auto m = with("engine.occupied_ns", 1500);
  CHECK(ns(m, copy(1)) == ns(off(), copy(1)));  // nothing comes after it
  CHECK(ns(m, copy(1) + kAtomic + copy(2)) - ns(off(), copy(1) + kAtomic + copy(2)) == Approx(1500));
  // Another queue of the engine waits, too.
  const auto both = [&](const MachineDescription& with) {
    const auto s = parse_schedule(
        "sdma 1\ngpus 4\nbuffer gpu0.in bytes=4K\nbuffer gpu*.out bytes=4K\nsignal gpu0.word value=0\n"
        "signal host.done value=0\nqueue gpu0.first peer=gpu1\n" +
            kAtomic + "end\nqueue gpu0.second peer=gpu1\n" + copy(1) +
            "fence addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n",
        "t.sdma");
    REQUIRE(s);
    return simulate(*s, with)->ns;
  };
  CHECK(both(m) > both(off()) + 500);
}

TEST_CASE("a doorbell for each copy: the front end needs longer for each that arrives while it works") {
  const auto three = copy(1, "1M") + copy(1, "1M") + copy(1, "1M");
  const std::string each = "peer=gpu1 doorbell=each";
  auto one = off(), slow = with("engine.doorbell_ns", 900);
  for (auto* m : {&one, &slow}) REQUIRE(m->set("engine.copies_to_a_peer", 1) == Errc::ok);
  // The first doorbell finds an idle engine; the fence comes with the last copy.
  CHECK(ns(slow, three, each) - ns(one, three, each) == Approx(2 * 900));
  CHECK(ns(slow, three) == ns(one, three));
  CHECK(ns(slow, copy(1, "1M"), each) == ns(one, copy(1, "1M"), each));
}

TEST_CASE("a kernel shares its GPU's memory with copies") {
  const auto us = [](const MachineDescription& m, const std::string& compute, const std::string& bytes) {
    const auto s =
        parse_schedule("sdma 1\ngpus 2\nbuffer gpu*.buf bytes=64M\nqueue gpu0.q peer=gpu1\ncopy_linear bytes=" + bytes +
                           " src=gpu0.buf dst=gpu1.buf\nend\nkernel gpu0.k\n  compute " + compute +
                           "\nend\nhost main\nsubmit *\nend\n",
                       "t.sdma");
    for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
    REQUIRE(s);
    const auto t = simulate(*s, m);
    REQUIRE(t);
    const auto kernel =
        std::find_if(t->busy.begin(), t->busy.end(), [](auto& b) { return b.kind == Busy::Kind::agent; });
    REQUIRE(kernel != t->busy.end());
    return kernel->busy_ns / 1e3;
  };
  auto m = off();
  CHECK(us(m, "ns=1000000", "32M") == Approx(1000));
  CHECK(us(m, "ns=1000000 hbm=1M", "32M") == Approx(1000));
  // 100 GB/s of memory: the kernel needs 80 % of it, and the copy 48 while it lasts.
  REQUIRE(m.set("hbm.bytes_per_ns", 100) == Errc::ok);
  CHECK(us(m, "ns=1000000 hbm=80000000", "4") == Approx(1000).epsilon(1e-3));
  const auto beside = us(m, "ns=1000000 hbm=80000000", "32M");
  CHECK(beside > 1150);
  CHECK(beside < 1250);
  // Alone it would need the memory for 800 us, so it never takes longer than both one after the other.
  REQUIRE(m.set("hbm.bytes_per_ns", 40) == Errc::ok);
  CHECK(us(m, "ns=1000000 hbm=80000000", "4") == Approx(2000).epsilon(1e-3));
}

TEST_CASE("the first access to a page takes longer, once for each GPU") {
  const auto m = with("engine.page_ns", 300);
  REQUIRE(m[Cost::engine_page_size] == 2 << 20);
  // A page of gpu0, and one of gpu1; then none that is new.
  CHECK(ns(m, copy(1)) - ns(off(), copy(1)) == Approx(600));
  // The second copy overlaps what the first one waits for.
  CHECK(ns(m, copy(1) + copy(1)) - ns(off(), copy(1) + copy(1)) == Approx(600 - m[Cost::engine_packet]));
  CHECK(ns(m, copy(1, "4M")) - ns(off(), copy(1, "4M")) == Approx(1200));
  auto small = m;
  REQUIRE(small.set("engine.page_bytes", 1 << 20) == Errc::ok);
  CHECK(ns(small, copy(1, "4M")) - ns(off(), copy(1, "4M")) == Approx(2400));
  CHECK(small.set("engine.page_bytes", 2048) == Errc::bad_argument);
}

TEST_CASE("links may share a path, and sockets one link") {
  const auto both = [](const MachineDescription& m, const std::string& from, const std::string& to) {
    const auto s = parse_schedule(
        "sdma 1\ngpus 4\nbuffer gpu*.buf bytes=16M\nbuffer host.buf bytes=32M\nsignal host.done value=0\n"
        "queue gpu1.q engine=1\ncopy_linear bytes=8M src=" +
            from + "[0] dst=" + to +
            "[0]\natomic op=add_rtn_64 addr=host.done value=1\nend\nqueue gpu2.q engine=1\ncopy_linear bytes=8M src=" +
            from + "[8M] dst=" + to +
            "[8M]\natomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\n"
            "wait host.done == 2\nend\n",
        "t.sdma");
    REQUIRE(s);
    const auto t = simulate(*s, m);
    for (const auto& e : t ? std::vector<Diagnostic>{} : t.error()) UNSCOPED_INFO(to_string(e));
    REQUIRE(t);
    return t->ns;
  };
  // Two engines write to gpu0: over two links, and through its one port of the same rate.
  auto apart = off();
  const auto mesh = both(apart, "gpu3.buf", "gpu0.buf");
  apart.topology.shared = {{"gpu0 in", Rate::gb_per_s(64)}, {"gpu3 out", Rate::gb_per_s(640)}};
  for (auto& l : apart.topology.links)
    if (l.to == LinkEnd::gpu(0)) l.shares = {0};
  REQUIRE(apart.set("nic.efficiency", apart[Cost::xgmi_efficiency]) == Errc::ok);
  const auto bytes = 8388608 / apart[Cost::engine_rate];
  CHECK(both(apart, "gpu3.buf", "gpu0.buf") - mesh > 0.9 * bytes);
  const auto again = topology_from_json(to_json(apart.topology));
  REQUIRE(again);
  CHECK(*again == apart.topology);
  // gpu1 on the second socket: what it writes to the host crosses the link between the sockets.
  auto sockets = off();
  const auto near = both(sockets, "gpu3.buf", "host.buf");
  sockets.topology.cpus.resize(2, sockets.topology.cpus[0]);
  for (auto& l : sockets.topology.links)
    for (auto* e : {&l.from, &l.to})
      if (e->kind == LinkEnd::Kind::cpu && (l.from == LinkEnd::gpu(1) || l.to == LinkEnd::gpu(1))) e->index = 1;
  CHECK(both(sockets, "gpu3.buf", "host.buf") == near);  // there is no link between both
  for (const auto& [a, b] : {std::pair{0u, 1u}, std::pair{1u, 0u}})
    sockets.topology.links.push_back({.from = LinkEnd::cpu(a), .to = LinkEnd::cpu(b), .rate = Rate::gb_per_s(8)});
  CHECK(both(sockets, "gpu3.buf", "host.buf") - near == Approx(8388608 / 8.0 - bytes).epsilon(0.05));
}

TEST_CASE("a link through a switch has its own latency and efficiency") {
  const auto m = *layout_machine("switch:4x512G");
  const auto mesh = *mi300x_machine(4);
  CHECK(ns(m, copy(1, "4M"), "engine=2") - ns(mesh, copy(1, "4M"), "engine=2") <
        0);  // 0.95 of the rate, capped by the engine
  auto slow = m;
  REQUIRE(slow.set("nic.rate", 6.4) == Errc::ok);
  CHECK(ns(slow, copy(1, "4M"), "engine=2") > 5 * ns(m, copy(1, "4M"), "engine=2"));
  const std::string far = "fence addr=gpu1.out value=1\n" + copy(2);
  auto later = m;
  REQUIRE(later.set("nic.flight_ns", m[Cost::nic_flight] + 1000) == Errc::ok);
  CHECK(ns(later, "poll_mem addr=gpu1.out func=ge reference=0\n", "engine=2") -
            ns(m, "poll_mem addr=gpu1.out func=ge reference=0\n", "engine=2") ==
        Approx(2000));
}

TEST_CASE("a file that does not have these parameters has the mechanisms off") {
  auto text = to_json(with("engine.bytes_per_ns", 33));
  for (const auto* p : {"engine.host_bytes_per_ns", "engine.second_to_host_efficiency", "engine.far_to_host_efficiency",
                        "engine.broadcast_ns", "engine.copies_to_a_peer", "engine.occupied_ns", "engine.doorbell_ns",
                        "engine.page_ns", "engine.page_bytes", "nic.flight_ns", "nic.efficiency"}) {
    const auto at = text.find("\n    \"" + std::string(p));
    REQUIRE(at != text.npos);
    text.erase(at, text.find('\n', at + 1) - at);
  }
  const auto m = machine_from_json(text, "old.json");
  REQUIRE(m);
  CHECK((*m)[Cost::engine_host_rate] == 33);
  CHECK((*m)[Cost::engine_second_down] == 1);
  CHECK((*m)[Cost::engine_far_down] == 1);
  for (const auto c : {Cost::engine_broadcast_time, Cost::engine_peer_copies, Cost::engine_occupied,
                       Cost::engine_doorbell, Cost::engine_page})
    CHECK((*m)[c] == 0);
  CHECK((*m)[Cost::nic_flight] == (*m)[Cost::xgmi_flight]);
  CHECK((*m)[Cost::nic_efficiency] == (*m)[Cost::xgmi_efficiency]);
  CHECK(*machine_from_json(to_json(*m), "new.json") == *m);
  CHECK(off().set("engine.copies_to_a_peer", 1.5) == Errc::bad_argument);
}

TEST_CASE("a machine's file of 0.2 has another name for the slow engine towards the host") {
  auto text = to_json(with("engine.second_to_host_efficiency", 0.75));
  const std::string now = "engine.second_to_host_efficiency", former = "engine.first_to_host_efficiency";
  text.replace(text.find(now), now.size(), former);
  const auto m = machine_from_json(text, "old.json");
  REQUIRE(m);
  CHECK((*m)[Cost::engine_second_down] == 0.75);
  CHECK(to_json(*m).find(former) == std::string::npos);
  CHECK(off().set(former, 0.5) == Errc::ok);

  text.insert(text.find('"' + former), '"' + now + R"(": {"value": 1, "uncertainty": 0, "source": "mine"}, )");
  const auto twice = machine_from_json(text, "both.json");
  REQUIRE_FALSE(twice);
  CHECK(to_string(twice.error()).find('"' + now + "\" is given twice") != std::string::npos);
}
