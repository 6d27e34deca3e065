// SPDX-License-Identifier: MIT
// Each mechanism of the model, alone: where a time comes from can be calculated by hand.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>

using namespace sdma;

namespace {

MachineDescription machine() { return *mi300x_machine(); }
double ns(Cost c) { return machine()[c]; }
/// Of a link between two GPUs; an engine is a little faster.
double rate() { return 64 * ns(Cost::xgmi_efficiency); }

Simulation run(std::string_view text, const SimulateOptions& o = {}, const MachineDescription& m = machine()) {
  const auto s = parse_schedule(text, "t.sdma");
  for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  auto t = simulate(*s, m, o);
  for (const auto& e : t ? std::vector<Diagnostic>{} : t.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(t);
  return std::move(*t);
}
std::string why_not(std::string_view text) {
  const auto t = simulate(*parse_schedule(text, "t.sdma"), machine());
  REQUIRE_FALSE(t);
  std::string all;
  for (const auto& e : t.error()) all += to_string(e) + "\n";
  return all;
}

/// A queue of these packets of gpu0, to gpu1; `host` is what the host does.
std::string schedule(const std::string& packets, const std::string& host = "submit *\nwait host.done == 1",
                     const std::string& more = "") {
  return "sdma 1\ngpus 4\nbuffer gpu0.in bytes=1M init=random\nbuffer gpu*.out bytes=1M\nsignal host.done value=0\n"
         "signal host.go value=0\n" +
         more + "queue gpu0.q peer=gpu1\n" + packets + "\nend\nhost main\n" + host + "\nend\n";
}
const std::string kDone = "\natomic op=add_rtn_64 addr=host.done value=1";
std::string copy(const std::string& bytes, const std::string& src, const std::string& dst) {
  return "\ncopy_linear bytes=" + bytes + " src=" + src + " dst=" + dst;
}

/// Of a queue of one copy and a completion, all but what the bytes take.
double around() {
  return 2 * ns(Cost::host_build) + ns(Cost::host_submit) + ns(Cost::host_doorbell) + 3 * ns(Cost::pcie_flight) +
         ns(Cost::engine_fetch) + ns(Cost::engine_packet) + ns(Cost::engine_latency) + ns(Cost::engine_release) +
         ns(Cost::pcie_flight) + ns(Cost::host_atomic) + ns(Cost::host_poll);
}

}  // namespace

TEST_CASE("one copy is the sum of its parts") {
  const auto t = run(schedule(copy("48000", "gpu0.in", "gpu1.out") + kDone));
  CHECK(t.ns == Approx(around() + 48000 / rate()));
  CHECK(t.packets == 2);
  CHECK(t.bytes == 48000);
  CHECK(t.doorbells == 1);
  CHECK(t.phase_ns[0] == Approx(2 * ns(Cost::host_build) + ns(Cost::host_submit)));
  CHECK(t.path.front().begin_ns == 0);
  CHECK(t.path.back().end_ns == Approx(t.ns));
  for (std::size_t i = 1; i < t.path.size(); ++i) CHECK(t.path[i].begin_ns == Approx(t.path[i - 1].end_ns));
}

TEST_CASE("copies that fit in the window together overlap; one that fills it runs alone") {
  auto m = machine();
  REQUIRE(m.set("engine.window_bytes", 65536) == Errc::ok);
  const auto two = [&](const std::string& bytes) {
    return run(schedule(copy(bytes, "gpu0.in", "gpu1.out") + copy(bytes, "gpu0.in", "gpu2.out") + kDone), {}, m).ns;
  };
  const auto build = ns(Cost::host_build), front = ns(Cost::engine_packet);
  // 480 bytes take 10 ns, so the second lands a front end's time behind the first.
  CHECK(two("480") == Approx(around() + build + front + 480 / rate()));
  const double bytes = 65536 / rate();
  CHECK(two("64K") == Approx(around() + build + 2 * bytes + ns(Cost::engine_latency)));
}

TEST_CASE("two engines that write to one GPU over two links do not meet; on one link they share it") {
  const auto both = [](const std::string& second) {
    return run("sdma 1\ngpus 4\nbuffer gpu0.in bytes=480M\nbuffer gpu*.out bytes=960M\nsignal host.done value=0\n"
               "queue gpu0.a engine=14\ncopy_linear bytes=480M src=gpu0.in dst=gpu1.out" +
               kDone +
               "\nend\nqueue gpu0.b engine=12\n"
               "copy_linear bytes=480M src=gpu0.in dst=" +
               second + kDone + "\nend\nhost main\nsubmit *\nwait host.done == 2\nend\n")
        .ns;
  };
  const double alone = 480.0 * 1024 * 1024 / rate();
  CHECK(both("gpu2.out") == Approx(alone).epsilon(0.01));
  CHECK(both("gpu1.out[480M]") == Approx(2 * alone).epsilon(0.01));
}

TEST_CASE("copies to the host and from it use two engines") {
  const auto text = [](const std::string& second) {
    return "sdma 1\ngpus 1\nbuffer gpu0.a bytes=1M\nbuffer gpu0.d bytes=1M\nbuffer host.b bytes=1M\nbuffer host.c "
           "bytes=1M\n"
           "signal host.x value=0\nsignal host.y value=0\n"
           "queue gpu0.down peer=host\n  copy_linear bytes=1M src=gpu0.a dst=host.b\n  fence addr=host.x value=1\nend\n"
           "queue gpu0.up " +
           second +
           "\n  copy_linear bytes=1M src=host.c dst=gpu0.d\n  fence addr=host.y value=1\nend\n"
           "host main\n  submit *\n  wait host.x == 1\n  wait host.y == 1\nend\n";
  };
  const auto engines = [](const Simulation& t) {
    return std::count_if(t.busy.begin(), t.busy.end(), [](const Busy& b) { return b.kind == Busy::Kind::engine; });
  };
  const auto apart = run(text("from=host")), together = run(text("peer=host"));
  CHECK(engines(apart) == 2);
  CHECK(engines(together) == 1);
  CHECK(together.ns > 1.5 * apart.ns);
}

TEST_CASE("a broadcast's two destinations share the engine; the same bytes are read once") {
  const auto t = run(schedule("copy_broadcast bytes=1M src=gpu0.in dst1=gpu1.out dst2=gpu2.out" + kDone));
  const auto bytes = 2 * 1048576 / (ns(Cost::engine_rate) * ns(Cost::engine_broadcast));
  CHECK(t.ns == Approx(around() + bytes));
  for (const auto& b : t.busy)
    if (b.name == "gpu0 memory") CHECK(b.bytes == 1048576);
}

TEST_CASE("a round is timed from its trigger, the engine's look behind it") {
  // Looks at what is true already: time in which the engine comes to its poll.
  const auto t = run(schedule("poll_mem addr=host.go func=ge reference=1" + copy("480", "gpu0.in", "gpu1.out") + kDone,
                              "submit *\nrepeat 40\nwait host.go == 0\nend\nset host.go = 1\nwait host.done == 1"));
  REQUIRE(t.rounds.size() == 2);
  CHECK(t.ns == Approx(ns(Cost::host_store) + ns(Cost::engine_poll) + ns(Cost::pcie_flight) + ns(Cost::engine_packet) +
                       10 + ns(Cost::engine_latency) + ns(Cost::engine_release) + ns(Cost::pcie_flight) +
                       ns(Cost::host_atomic) + ns(Cost::host_poll)));
}

TEST_CASE("epochs: each round publishes anew, and is timed alone") {
  const auto t =
      run(schedule("poll_mem addr=host.go func=ge reference=epoch" + copy("480", "gpu0.in", "gpu1.out") + kDone,
                   "submit *\nrepeat 3\nset host.go = epoch\nwait host.done >= epoch\nsubmit *\nend"));
  REQUIRE(t.rounds.size() == 4);  // the last one is a submit that nobody lets go
  CHECK(t.packets == 9);
  CHECK(t.rounds[2].end_ns - t.rounds[2].begin_ns == Approx(t.rounds[1].end_ns - t.rounds[1].begin_ns));
}

TEST_CASE("completions on one word of the host take turns") {
  const auto one = [](bool apart) {
    std::string s =
        "sdma 1\ngpus 4\nbuffer gpu*.b bytes=4K\nsignal host.go value=0\nsignal host.d0 value=0\nsignal host.d1 "
        "value=0\n";
    for (int i = 0; i < 2; ++i)
      s += "queue gpu" + std::to_string(i) +
           ".q peer=gpu3\npoll_mem addr=host.go func=eq reference=1\ncopy_linear bytes=4K src=gpu" + std::to_string(i) +
           ".b dst=gpu3.b\natomic op=add_rtn_64 addr=host.d" + std::to_string(apart ? i : 0) + " value=1\nend\n";
    return run(s + "host main\nsubmit *\nrepeat 40\nwait host.go == 0\nend\nset host.go = 1\nwait host.d0 == " +
               (apart ? "1\nwait host.d1 == 1" : "2") + "\nend\n")
        .ns;
  };
  CHECK(one(false) - one(true) == Approx(ns(Cost::host_atomic) - ns(Cost::host_poll)).margin(1e-6));
}

TEST_CASE("packets really happen: contents, conditions, indirect buffers, times") {
  const auto t = run(schedule(copy("4K", "gpu0.in", "gpu1.out") +
                                  "\nfence addr=host.go value=7\npoll_mem addr=host.go func=eq reference=7" +
                                  copy("4K", "gpu1.out", "gpu2.out") + "\ntimestamp addr=gpu0.out" + kDone,
                              "submit *\nwait host.done == 1", "") +
                         "expect gpu2.out[0..4K] == old gpu0.in[0..4K]\nexpect host.go == 7\n",
                     {.contents = true, .seed = 5});
  CHECK(t.findings.empty());
  const auto wrong =
      run(schedule(copy("4K", "gpu0.in", "gpu1.out") + kDone) + "expect gpu2.out[0..4K] == old gpu0.in[0..4K]\n",
          {.contents = true});
  REQUIRE(wrong.findings.size() == 1);
  CHECK(wrong.findings[0].message.find("gpu2.out[0") != std::string::npos);
}

TEST_CASE("a copied word that is polled wakes its poller") {
  const auto t =
      run("sdma 1\ngpus 2\nbuffer gpu0.in bytes=4K init=zero\nbuffer gpu1.flag bytes=4K\nsignal host.done value=0\n"
          "queue gpu0.a peer=gpu1\ncopy_linear bytes=4K src=gpu0.in dst=gpu1.flag\nend\n"
          "queue gpu1.b peer=gpu0\npoll_mem addr=gpu1.flag[64] func=eq reference=0" +
              kDone + "\nend\nhost main\nsubmit gpu1.b gpu0.a\nwait host.done == 1\nend\n",
          {.contents = true});
  CHECK(t.ns > ns(Cost::engine_poll));
}

TEST_CASE("what never ends says who waits for what") {
  const auto why = why_not(schedule("poll_mem addr=host.go func=eq reference=1" + kDone));
  CHECK(why.find("host main: error: waits forever for host.done == 1: its value is 0") != std::string::npos);
  CHECK(why.find("queue gpu0.q: error: its engine is stalled at a poll of host.go") != std::string::npos);
}

TEST_CASE("an event of an earlier flight does not end a later one") {
  // The rate of a flow changes while others come and go, and each change leaves an event behind that no longer counts.
  // Every byte crosses the link exactly once.
  const std::string begin =
      "sdma 1\ngpus 2\nsignal host.done value=0\nbuffer gpu0.in bytes=4M\nbuffer gpu1.out bytes=4M\n";
  const auto queue = [](const std::string& name, const std::string& engine, std::initializer_list<const char*> sizes) {
    std::string out = "queue gpu0." + name + " engine=" + engine;
    for (const auto* bytes : sizes) out += copy(bytes, "gpu0.in", "gpu1.out");
    return out + kDone + "\nend\n";
  };
  const auto t =
      run(begin + queue("a", "6", {"1M", "64K", "4K"}) + queue("b", "12", {"300000", "3M", "4K", "3M", "3M"}) +
          "host main\nsubmit *\nwait host.done == 2\nend\n");
  constexpr std::uint64_t kAll = 10 * 1048576 + 65536 + 2 * 4096 + 300000;
  CHECK(t.bytes == kAll);
  for (const auto& b : t.busy)
    if (b.kind == Busy::Kind::link) CHECK(b.bytes == kAll);
  CHECK(t.ns > static_cast<double>(kAll) / (machine()[Cost::xgmi_efficiency] * 64));
}

TEST_CASE("a simulation takes a limited number of steps, and says where it was") {
  const auto text = schedule("nop" + kDone, "repeat 1000000000\nend\nwait host.done == 0");
  SourceMap map;
  const auto s = parse_schedule(text, "t.sdma", {.map = &map});
  REQUIRE(s);
  const auto why = [&](const Schedule& of, const SimulateOptions& o) {
    const auto t = simulate(of, machine(), o);
    return t ? "" : t.error()[0].where + ": " + t.error()[0].message;
  };
  CHECK(why(*s, {}) == "host main: the simulation takes more than 8388608 steps");
  CHECK(why(*s, {.max_steps = 1000, .map = &map}) == "host main, line 12: the simulation takes more than 1000 steps");
  // Engines count, too: this host has ended long before.
  const auto busy = parse_schedule(schedule("nop times=1000" + kDone, "submit *"), "t.sdma");
  CHECK(why(*busy, {.max_steps = 900}) == "simulate: the simulation takes more than 900 steps");
  const auto whole = simulate(*busy, machine());
  REQUIRE(whole);
  CHECK(why(*busy, {.max_steps = whole->steps}) == "");
  CHECK(why(*busy, {.max_steps = whole->steps - 1}) != "");
  // Many parameters matter to a copy, and each simulation of others takes as many steps.
  const auto moves = parse_schedule(schedule(copy("4K", "gpu0.in", "gpu1.out") + "\nnop times=1000" + kDone), "t.sdma");
  const auto m = *mi300x_machine(4);
  const auto steps = simulate(*moves, m)->steps;
  CHECK(sensitivity(*moves, m, {.max_steps = 2 * steps}));
  CHECK_FALSE(sensitivity(*moves, m, {.max_steps = steps - 1}));
}

TEST_CASE("a simulation ends soon after it is asked to, and what is made of several does") {
  const auto s = parse_schedule(schedule(copy("4K", "gpu0.in", "gpu1.out") + "\nnop times=1000" + kDone), "t.sdma");
  REQUIRE(s);
  std::uint64_t asked = 0;
  const auto after = [&](std::uint64_t n) {
    asked = 0;
    return SimulateOptions{.stop = [&asked, n] { return ++asked > n; }};
  };
  const auto whole = simulate(*s, machine());
  REQUIRE(whole);
  const auto asks = simulate(*s, machine(), after(~std::uint64_t{}));
  REQUIRE(asks);
  CHECK(asks->ns == whole->ns);
  CHECK(asked * 100 >= whole->steps);
  const auto once = asked;
  const auto early = simulate(*s, machine(), after(2));
  REQUIRE_FALSE(early);
  CHECK(early.error()[0].message == "the simulation was stopped before its end");
  CHECK(asked == 3);
  // The first simulation is whole, and the next one is the last.
  const auto many = sensitivity(*s, machine(), after(once + 2));
  REQUIRE_FALSE(many);
  CHECK(many.error()[0].message == "the simulation was stopped before its end");
  CHECK(asked == once + 3);
  CHECK_FALSE(spread(*s, machine(), after(once + 2)));
  CHECK(asked == once + 3);
  CHECK(spread(*s, machine(), after(~std::uint64_t{})));
}

TEST_CASE("what the machine does not have is refused") {
  const auto s = parse_schedule(schedule(copy("4K", "gpu0.in", "gpu1.out") + kDone), "t.sdma");
  CHECK(simulate(*s, *mi300x_machine(2)).error()[0].message == "this node has no GPU 2");
  CHECK(why_not("sdma 1\ngpus 2\nsignal host.d value=0\nqueue gpu0.q engine=20\natomic op=add_rtn_64 addr=host.d "
                "value=1\nend\n"
                "host main\nsubmit *\nwait host.d == 1\nend\n")
            .find("gpu0 has no engine 20") != std::string::npos);
  auto crippled = *mi300x_machine(4);
  crippled.topology.gpus[0].dead_engines = 1 << 14;
  CHECK(simulate(*s, crippled));  // peer= avoids it
  auto exact = *s;
  exact.queues[0].peer = {};
  exact.queues[0].engine = 14;
  CHECK(simulate(exact, machine()));
  CHECK(simulate(exact, crippled).error()[0].message == "engine 14 of gpu0 is dead: nothing would execute the queue");
  auto large = *s;
  large.queues[0].ring_bytes = 1024;
  large.queues[0].put(Nop{.dwords = 200});
  CHECK(simulate(large, machine()).error()[0].message == "a packet of 200 dwords is more than half the ring");
}

TEST_CASE("a packet that the engine refuses is named") {
  Schedule s{.gpus = 2};
  const auto a = s.add_buffer({.place = Place::gpu(0), .name = "a", .bytes = 4096, .map = {Place::gpu(0)}});
  const auto b = s.add_buffer({.place = Place::gpu(1), .name = "b", .bytes = 4096});
  auto& q = s.add_queue({.place = Place::gpu(1), .name = "q", .peer = Place::gpu(0)});
  q.copy({.src = a, .dst = b, .bytes = 64});
  s.add_host("main").submit(q);
  const auto t = simulate(s, machine());
  REQUIRE_FALSE(t);
  CHECK(t.error()[0].message.find("copy_linear") != std::string::npos);
  CHECK(t.error()[0].message.find("gpu0.a") != std::string::npos);
}

TEST_CASE("kernels: compute, a release, an acquire") {
  Schedule s{.gpus = 2};
  const auto a = s.add_buffer({.place = Place::gpu(0), .name = "a", .bytes = 4096});
  const auto b = s.add_buffer({.place = Place::gpu(1), .name = "b", .bytes = 4096});
  const auto ready = s.add_signal({.place = Place::gpu(0), .name = "ready"}),
             done = s.add_signal({.place = Place::gpu(1), .name = "done"});
  auto& q = s.add_queue({.place = Place::gpu(0), .name = "q", .peer = Place::gpu(1)});
  q.put(PollMem{.addr = ready, .func = Compare::ge, .reference = 1})
      .copy({.src = a, .dst = b, .bytes = 480})
      .put(Fence{.addr = done, .value = 1});
  s.add_host("main").submit(q);
  s.add_kernel(Place::gpu(0), "producer").compute(20000).set(ready, 1);
  s.add_kernel(Place::gpu(1), "consumer").wait(done, Compare::ge, 1).compute(500);
  const auto t = simulate(s, machine());
  REQUIRE(t);
  CHECK(t->ns == Approx(20000 + ns(Cost::kernel_release) + ns(Cost::engine_poll) + ns(Cost::engine_packet) + 10 +
                        ns(Cost::engine_latency) + ns(Cost::engine_release) + ns(Cost::xgmi_flight) +
                        ns(Cost::kernel_poll) + 500));
  CHECK(t->phase_ns[static_cast<std::size_t>(Phase::compute)] == Approx(20500));
}

TEST_CASE("a kernel that submits does not pay the flight of the doorbell") {
  const auto by = [](const std::string& head, const std::string& more = "") {
    return run(
        "sdma 1\ngpus 2\nbuffer gpu0.a bytes=480\nbuffer gpu1.b bytes=480\nsignal host.done value=0\n"
        "queue gpu0.q peer=gpu1\n  copy_linear bytes=480 src=gpu0.a dst=gpu1.b\n  fence addr=host.done value=1\nend\n" +
        head + "\n  submit gpu0.q\n  wait host.done == 1\nend\n" + more);
  };
  const auto host = by("host main").ns, here = by("kernel gpu0.k").ns, there = by("kernel gpu1.k").ns;
  const auto polls = ns(Cost::kernel_poll) - ns(Cost::host_poll) + ns(Cost::pcie_flight);
  CHECK(here - host == Approx(polls + ns(Cost::kernel_release) - ns(Cost::host_submit) - ns(Cost::host_doorbell) -
                              ns(Cost::pcie_flight)));
  CHECK(there - here == Approx(ns(Cost::xgmi_flight)));
  // The engine does not know who has submitted: with a kernel beside it, the whole run is one round.
  const auto t = by("host main", "kernel gpu1.other\n  wait host.done == 1\n  compute ns=7000\nend\n");
  CHECK(t.rounds.size() == 1);
  CHECK(t.ns == Approx(host - ns(Cost::host_poll) + ns(Cost::kernel_poll) + ns(Cost::pcie_flight) + 7000));
}

TEST_CASE("a sample takes a look, and is what the word held when it began") {
  const auto with = [](const std::string& lines, const SimulateOptions& o = {}) {
    return run(
        "sdma 1\ngpus 1\nsignal host.x value=5\nsignal gpu0.y value=0\nqueue gpu0.q engine=2\n"
        "  atomic op=add_rtn_64 addr=host.x value=1\nend\nkernel gpu0.k\n" +
            lines + "\nend\nhost main\n  sample n = host.x\n  submit *\n  wait host.x == n + 1\nend\n",
        o);
  };
  const auto before = with("  compute ns=1000000");
  CHECK(with("  sample n = gpu0.y\n  compute ns=1000000").total_ns - before.total_ns == Approx(ns(Cost::kernel_poll)));
  CHECK(with("  sample n = host.x\n  compute ns=1000000").total_ns - before.total_ns ==
        Approx(ns(Cost::kernel_poll) + ns(Cost::pcie_flight)));
  CHECK(with("  compute ns=1000000\n  sample n = host.x\n  wait host.x == n").findings.empty());
  // The value is that of the moment: after the submit, it is the new one.
  const auto late = simulate(
      *parse_schedule("sdma 1\ngpus 1\nsignal host.x value=5\nkernel gpu0.k\n  add host.x += 1\n  compute ns=1000000\n"
                      "  sample n = host.x\n  wait host.x == n + 1\nend\n",
                      "t.sdma"),
      machine());
  REQUIRE_FALSE(late);
  CHECK(late.error()[0].message == "waits forever for host.x == 7: its value is 6");
}

TEST_CASE("threads and kernels load and store at the rate of memory, and add") {
  const auto with = [](const std::string& line, const SimulateOptions& o = {}) {
    return run(
        "sdma 1\ngpus 1\nbuffer host.a bytes=1M init=zero\nbuffer gpu0.b bytes=1M init=zero\nsignal host.x value=0\n"
        "kernel gpu0.k\n  " +
            line + "\nend\nhost main\n  wait host.x >= 0\nend\nexpect host.a == gpu0.b\nexpect host.x == 0\n",
        o);
  };
  const auto bytes = static_cast<double>(1 << 20);
  CHECK(with("store gpu0.b = random").total_ns == Approx(bytes / ns(Cost::hbm_rate)));
  CHECK(with("load host.a").total_ns == Approx(bytes / std::min(ns(Cost::hbm_rate), ns(Cost::host_memory))));
  CHECK(with("load host.a", {.contents = true}).findings.empty());
  CHECK(with("store gpu0.b = 0x41", {.contents = true}).findings.size() == 1);
  CHECK(with("store gpu0.b = zero", {.contents = true}).findings.empty());
  CHECK(with("expect gpu0.b == old gpu0.b").total_ns == Approx(bytes / ns(Cost::hbm_rate)));
  CHECK(with("expect gpu0.b == host.a").total_ns ==
        Approx(bytes / ns(Cost::hbm_rate) + bytes / std::min(ns(Cost::hbm_rate), ns(Cost::host_memory))));
  const auto changed = "store gpu0.b = 1\n  expect gpu0.b == old gpu0.b\n  store gpu0.b = zero";
  REQUIRE(with(changed, {.contents = true}).findings.size() == 1);
  CHECK(with(changed, {.contents = true}).findings[0].where == "kernel gpu0.k");
  CHECK(with("expect gpu0.b == host.a", {.contents = true}).findings.empty());
  REQUIRE(with("add host.x += 3", {.contents = true}).findings.size() == 1);
  CHECK(with("repeat 2\n    add host.x += 3\n  end", {.contents = true}).findings[0].message == "host.x is 6, not 0");
}

TEST_CASE("a mechanism that is on or off is an alternative with a name, and not part of the interval") {
  const auto copies =
      parse_schedule(schedule("for i in 0..64" + copy("4K", "gpu0.in", "gpu1.out") + "\nend" + kDone), "t.sdma");
  REQUIRE(copies);
  const auto m = machine();
  const auto h = *sensitivity(*copies, m);
  const auto found = std::find_if(h.alternatives.begin(), h.alternatives.end(),
                                  [](const auto& a) { return a.cost == Cost::engine_peer_copies; });
  REQUIRE(found != h.alternatives.end());
  auto one = m;
  REQUIRE(one.set("engine.copies_to_a_peer", 1) == Errc::ok);
  CHECK(found->ns == simulate(*copies, one)->ns);
  CHECK(found->ns > 3 * h.ns);
  CHECK(h.ns + h.uncertainty_ns < found->ns / 2);
  const auto t = to_table(*simulate(*copies, m), &h);
  CHECK(t.find(" if an engine has one copy to a peer in flight") != t.npos);
  // What is set is certain, and what changes nothing is not said.
  const auto set = *sensitivity(*copies, one);
  for (const auto& a : set.alternatives) CHECK(a.cost != Cost::engine_peer_copies);
  const auto single = parse_schedule(schedule(copy("4K", "gpu0.in", "gpu1.out") + kDone), "t.sdma");
  const auto few = *sensitivity(*single, m);
  for (const auto& a : few.alternatives) CHECK(a.cost == Cost::engine_occupied);
  const auto alone = spread(*copies, m)->alternatives;
  REQUIRE(alone.size() == h.alternatives.size());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].ns == h.alternatives[i].ns);
}

TEST_CASE("an engine's row says what it moved, at the rate that it has with these packets") {
  const auto engine = [](const std::string& packets) {
    const auto t =
        *simulate(*parse_schedule(
                      schedule(packets + kDone, "submit *\nwait host.done == 1", "buffer host.a bytes=1M\n"), "t.sdma"),
                  machine());
    const auto at = std::find_if(t.busy.begin(), t.busy.end(),
                                 [](const auto& b) { return b.kind == Busy::Kind::engine && b.bytes != 0; });
    return at == t.busy.end() ? Busy{} : *at;
  };
  const auto m = machine();
  const auto plain = engine(copy("1M", "gpu0.in", "gpu1.out"));
  CHECK(plain.bytes == 1 << 20);
  CHECK(plain.rate == Approx(m[Cost::engine_rate]));
  const auto host = engine(copy("1M", "gpu0.in", "host.a"));
  CHECK(host.bytes == 1 << 20);
  CHECK(host.rate == Approx(m[Cost::engine_host_rate] * m[Cost::engine_far_down]));
  const auto broadcast = engine("copy_broadcast bytes=1M src=gpu0.in dst1=gpu1.out dst2=gpu2.out");
  CHECK(broadcast.bytes == 1 << 20);
  CHECK(broadcast.rate == Approx(m[Cost::engine_rate] * m[Cost::engine_broadcast] / 2));
}

TEST_CASE("a result hangs on what it waits for: half of one engine's rate, twice the time") {
  const auto s = parse_schedule(schedule(copy("1M", "gpu0.in", "gpu1.out") + kDone), "t.sdma");
  const auto h = sensitivity(*s, machine());
  REQUIRE(h);
  CHECK(h->uncertainty_ns > 0);
  CHECK(h->uncertainty_ns < h->ns);
  REQUIRE_FALSE(h->rows.empty());
  CHECK(std::none_of(h->rows.begin(), h->rows.end(), [](const auto& r) { return r.cost == Cost::engine_poll; }));
  const auto t = to_table(*simulate(*s, machine()), &*h);
  CHECK(t.find("time depends on") != std::string::npos);
}
