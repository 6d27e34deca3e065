// Mechanisms that a machine may not have: each is off until its parameter is set, and then acts where it should and nowhere else.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;

namespace {

MachineDescription off() {
  auto m = *mi300x_machine(4);
  REQUIRE(m.set("engine.host_bytes_per_ns", m[Cost::engine_rate]) == Errc::ok);
  REQUIRE(m.set("engine.first_to_host_efficiency", 1) == Errc::ok);
  for (const auto* p : {"engine.broadcast_ns", "engine.copies_to_a_peer", "engine.occupied_ns"})
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

TEST_CASE("an engine has a rate of its own towards the host, and the first host engine less of it in one direction") {
  auto m = off();
  REQUIRE(m.set("pcie.efficiency", 1) == Errc::ok);
  const auto peer = ns(m, copy(1, "4M")), down = ns(m, kDown, "engine=1"), up = ns(m, kUp, "engine=0");
  REQUIRE(m.set("engine.host_bytes_per_ns", 2 * m[Cost::engine_rate] / 3) == Errc::ok);
  const auto bytes = 4194304 / m[Cost::engine_rate];
  CHECK(ns(m, copy(1, "4M")) == peer);
  CHECK(ns(m, kDown, "engine=1") - down == Approx(bytes / 2));
  CHECK(ns(m, kDown, "engine=0") - down == Approx(bytes / 2));
  CHECK(ns(m, kUp, "engine=0") - up == Approx(bytes / 2));
  REQUIRE(m.set("engine.first_to_host_efficiency", 0.75) == Errc::ok);
  CHECK(ns(m, kDown, "engine=1") - down == Approx(bytes / 2));
  CHECK(ns(m, kDown, "engine=0") - down == Approx(bytes));
  CHECK(ns(m, kUp, "engine=0") - up == Approx(bytes / 2));
  // Where the first engine is dead, the next one is the first.
  for (auto& g : m.topology.gpus) g.dead_engines = 1;
  CHECK(ns(m, kDown, "engine=1") - down == Approx(bytes));
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

TEST_CASE("a file that does not have these parameters has the mechanisms off") {
  auto text = to_json(with("engine.bytes_per_ns", 33));
  for (const auto* p : {"engine.host_bytes_per_ns", "engine.first_to_host_efficiency", "engine.broadcast_ns",
                        "engine.copies_to_a_peer", "engine.occupied_ns"}) {
    const auto at = text.find("\n    \"" + std::string(p));
    REQUIRE(at != text.npos);
    text.erase(at, text.find('\n', at + 1) - at);
  }
  const auto m = machine_from_json(text, "old.json");
  REQUIRE(m);
  CHECK((*m)[Cost::engine_host_rate] == 33);
  CHECK((*m)[Cost::engine_first_down] == 1);
  for (const auto c : {Cost::engine_broadcast_time, Cost::engine_peer_copies, Cost::engine_occupied})
    CHECK((*m)[c] == 0);
  CHECK(*machine_from_json(to_json(*m), "new.json") == *m);
  CHECK(off().set("engine.copies_to_a_peer", 1.5) == Errc::bad_argument);
}
