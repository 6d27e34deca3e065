// SPDX-License-Identifier: MIT
#include "sdma/trace/compare.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <memory>

using namespace sdma;

namespace {

using Dwords = std::vector<std::uint32_t>;
template <class P> Dwords dwords(const P& p) {
  const auto d = encode(p);
  return {d.begin(), d.end()};
}
Dwords copy(std::uint64_t to = 0x20000) {
  return dwords(CopyLinear{.src = GpuVa{0x10000}, .dst = GpuVa{to}, .bytes = 4096});
}
Dwords fence() { return dwords(Fence{.addr = GpuVa{0x2000}, .value = 1}); }
Dwords poll() { return dwords(PollMem{.addr = GpuVa{0x1000}, .func = Compare::ge, .reference = 5}); }

/// A trace that a test writes event by event.
struct Story {
  std::unique_ptr<trace::Recorder> recorder = std::make_unique<trace::Recorder>(256, "test");
  trace::LaneId queue(std::string_view name = "engine 14 queue 0", std::string_view gpu = "gpu0") {
    return recorder->lane(gpu, name);
  }
  trace::LaneId host() { return recorder->lane("host", "main"); }
  void packet(trace::LaneId l, std::uint64_t position, std::uint64_t from, std::uint64_t to, const Dwords& d) {
    recorder->packet_begin(l, from, position, d);
    recorder->packet_end(l, to, position);
  }
  /// What a simulated host thread records when it submits packets.
  void submit(std::uint64_t ns, std::uint64_t position, const std::vector<Dwords>& packets) {
    Dwords all;
    for (const auto& p : packets) all.insert(all.end(), p.begin(), p.end());
    packet(host(), position, ns - 10, ns - 5, all);
    recorder->doorbell(host(), ns, position + all.size() * 4);
  }
  trace::Trace trace() const { return recorder->snapshot(); }
};

Result<trace::Comparison, Diagnostic> compare(const trace::Trace& a, const trace::Trace& b) {
  return trace::compare({"run", a}, {"model", b});
}
trace::Comparison compared(const Story& a, const Story& b) {
  auto c = compare(a.trace(), b.trace());
  REQUIRE(c);
  return *std::move(c);
}
trace::TimePair phase(const trace::Comparison& c, trace::QueuePhase p, std::size_t queue = 0) {
  return c.queues.at(queue).phases[static_cast<std::size_t>(p)];
}
std::vector<std::string> differences(const trace::Comparison& c) {
  std::vector<std::string> all;
  for (const auto& d : c.differences) {
    CHECK(d.severity == Severity::warning);
    all.push_back(d.where + ": " + d.message);
  }
  return all;
}
using Strings = std::vector<std::string>;
using trace::Origin, trace::QueuePhase, trace::TimePair;

/// A copy and a fence, from a doorbell at `zero`.
Story simple(std::uint64_t zero, std::uint64_t scale) {
  Story s;
  const auto q = s.queue();
  s.recorder->doorbell(q, zero, 44);
  s.packet(q, 0, zero + 10 * scale, zero + 40 * scale, copy());
  s.packet(q, 28, zero + 50 * scale, zero + 60 * scale, fence());
  return s;
}

}  // namespace

TEST_CASE("an error is in percent of the measured time") {
  CHECK(TimePair{200, 250}.error() == 25.0);
  CHECK(TimePair{200, 150}.error() == -25.0);
  CHECK(TimePair{-200, -150}.error() == 25.0);
  CHECK(TimePair{0, 0}.error() == 0.0);
  CHECK_FALSE(TimePair{0, 1}.error());
}

TEST_CASE("times count from the doorbell, and each phase has its time") {
  const auto c = compared(simple(1000, 1), simple(70'000, 2));
  CHECK(c.origin == Origin::doorbell);
  CHECK(c.run == TimePair{60, 120});
  REQUIRE(c.queues.size() == 1);
  CHECK(c.queues[0].packets == 2);
  CHECK(c.queues[0].measured == trace::Lane{"gpu0", "engine 14 queue 0"});
  CHECK(c.queues[0].begin == TimePair{10, 20});
  CHECK(c.queues[0].end == TimePair{60, 120});
  CHECK(phase(c, QueuePhase::schedule) == TimePair{10, 20});
  CHECK(phase(c, QueuePhase::copy) == TimePair{30, 60});
  CHECK(phase(c, QueuePhase::sync) == TimePair{10, 20});
  CHECK(phase(c, QueuePhase::wait) == TimePair{0, 0});
  CHECK(phase(c, QueuePhase::rest) == TimePair{10, 20});
  CHECK(c.differences.empty());
}

TEST_CASE("a doorbell that repeats a position publishes nothing") {
  const auto s = simple(1000, 1);
  s.recorder->doorbell(trace::LaneId{0}, 1005, 44);
  CHECK(compared(s, s).queues.at(0).packets == 2);
}

TEST_CASE("each moment belongs to one phase: copy before sync, sync before wait") {
  Story s;
  const auto q = s.queue();
  s.recorder->doorbell(q, 0, 100);
  s.packet(q, 0, 0, 100, poll());
  s.packet(q, 24, 20, 60, copy());
  s.packet(q, 52, 30, 50, copy());
  s.packet(q, 80, 40, 80, fence());
  const auto c = compared(s, s);
  CHECK(phase(c, QueuePhase::copy).measured == 40);
  CHECK(phase(c, QueuePhase::sync).measured == 20);
  CHECK(phase(c, QueuePhase::wait).measured == 40);
  CHECK(phase(c, QueuePhase::rest).measured == 0);
}

TEST_CASE("only the last round of a queue is compared, however its doorbells are recorded") {
  Story run;
  const auto q = run.queue();
  run.recorder->doorbell(q, 100, 28);
  run.packet(q, 0, 110, 120, copy());
  run.recorder->doorbell(q, 200, 56);
  run.packet(q, 28, 207, 220, copy());
  Story model;
  const auto m = model.queue("engine 14 push");
  for (std::uint64_t round = 0; round < 3; ++round) {
    model.submit(1000 + 100 * round, 28 * round, {copy()});
    model.packet(m, 28 * round, 1005 + 100 * round, 1030 + 100 * round, copy());
  }
  const auto c = compared(run, model);
  CHECK(c.queues.at(0).packets == 1);
  CHECK(c.queues[0].other.name == "engine 14 push");
  CHECK(c.queues[0].begin == TimePair{7, 5});
  CHECK(c.run == TimePair{20, 30});
  CHECK(c.differences.empty());
}

TEST_CASE("a round that one trace published piece by piece is compared as a whole") {
  // The run has two rounds of three copies. The model rings for each copy, and hardware records no doorbells.
  const auto story = [](std::uint64_t per_doorbell, std::uint64_t first) {
    Story s;
    const auto q = s.queue();
    for (std::uint64_t i = first; i < 6; ++i) {
      if (per_doorbell != 0 && i % per_doorbell == 0) s.recorder->doorbell(q, 100 * i, 28 * (i + per_doorbell));
      s.packet(q, 28 * i, 100 * i + 10, 100 * i + 20, copy());
    }
    return s;
  };
  const auto run = story(3, 0), model = story(1, 0), hardware = story(0, 3);
  for (const auto& [a, b] : {std::pair{&run, &model}, {&model, &run}, {&hardware, &model}, {&model, &hardware}}) {
    const auto c = compared(*a, *b);
    CHECK(c.queues.at(0).packets == 3);
    CHECK(c.differences.empty());
    CHECK(c.run == (a == &hardware || b == &hardware ? TimePair{210, 210} : TimePair{220, 220}));
  }
  const auto c = compared(story(0, 2), run);  // never equal: 4 packets, and 3 or 6
  CHECK(differences(c) ==
        Strings{"run: gpu0 engine 14 queue 0: its packet copy_linear @140 has no counterpart in model"});
}

TEST_CASE("a host thread's doorbell belongs to the queue that runs the submitted packets") {
  // The rounds of both queues have boundaries that are also boundaries of packets in the other queue.
  const auto story = [](bool simulated) {
    Story s;
    const auto a = s.queue(simulated ? "engine 2 a" : "engine 2 queue 0"), b = s.queue("engine 3 queue 0");
    const auto submit = [&](trace::LaneId l, std::uint64_t ns, std::uint64_t position, std::uint64_t to) {
      if (simulated) s.submit(ns, position, {poll(), copy(to)});
      else s.recorder->doorbell(l, ns, position + 52);
    };
    submit(a, 100, 0, 0x30000);
    s.packet(a, 0, 110, 120, poll());
    s.packet(a, 24, 120, 130, copy(0x30000));
    submit(a, 200, 52, 0x30000);
    s.packet(a, 52, 210, 220, poll());
    s.packet(a, 76, 220, 230, copy(0x30000));
    submit(b, 50, 0, 0x40000);
    s.packet(b, 0, 160, 170, poll());
    s.packet(b, 24, 170, 180, copy(0x40000));
    s.packet(b, 52, 180, 190, poll());  // not a round: its doorbell came from elsewhere
    s.packet(b, 76, 190, 195, copy(0x40000));
    return s;
  };
  const auto c = compared(story(false), story(true));
  REQUIRE(c.queues.size() == 2);
  CHECK(c.queues[0].packets == 2);
  CHECK(c.queues[1].packets == 4);
  CHECK(c.queues[0].begin == TimePair{160, 160});  // from the doorbell of b, which is the earlier one
  CHECK(c.differences.empty());
}

TEST_CASE("times count from the trigger if both traces have one, and a queue may begin before it") {
  const auto story = [](std::uint64_t trigger) {
    Story s;
    const auto q = s.queue();
    s.recorder->signal(s.host(), 50, GpuVa{0x1000}, 0);  // before the doorbell: resets the signal
    s.recorder->doorbell(q, 100, 52);
    s.recorder->signal(q, 120, GpuVa{0x2000}, 1);  // from an engine
    if (trigger != 0) s.recorder->signal(s.host(), trigger, GpuVa{0x1000}, 5);
    s.packet(q, 0, 110, 160, poll());
    s.packet(q, 24, 160, 200, copy());
    s.recorder->signal(s.host(), 300, GpuVa{0x1000}, 0);  // after the round
    return s;
  };
  const auto c = compared(story(140), story(150));
  CHECK(c.origin == Origin::trigger);
  CHECK(c.run == TimePair{60, 50});
  CHECK(c.queues.at(0).begin == TimePair{-30, -40});
  CHECK(phase(c, QueuePhase::schedule) == TimePair{0, 0});
  CHECK(phase(c, QueuePhase::wait) == TimePair{20, 10});
  const auto d = compared(story(140), story(0));
  CHECK(d.origin == Origin::doorbell);
  CHECK(d.run == TimePair{100, 100});
}

TEST_CASE("without doorbells in one trace, times count from the first packet") {
  Story hardware;
  const auto q = hardware.queue();
  hardware.packet(q, 0, 1000, 1040, copy());
  hardware.packet(q, 28, 1040, 1060, fence());
  const auto c = compared(hardware, simple(500, 1));
  CHECK(c.origin == Origin::packet);
  CHECK(c.run == TimePair{60, 50});
  CHECK(phase(c, QueuePhase::schedule) == TimePair{0, 0});
  CHECK(compared(simple(500, 1), hardware).origin == Origin::packet);
}

TEST_CASE("queues of equal names are compared, and the others by their order on the engine") {
  Story run, model;
  for (const auto* name : {"engine 14 queue 0", "engine 14 same", "engine 14 queue 1", "engine 1 queue 0"})
    run.packet(run.queue(name), 0, 10, 20, copy());
  for (const auto* name : {"engine 14 first", "engine 14 second", "engine 14 same", "engine 14 third"})
    model.packet(model.queue(name), 0, 10, 30, copy());
  model.packet(model.recorder->lane("links", "gpu0->gpu1"), 0, 10, 30, copy());
  const auto c = compared(run, model);
  Strings pairs;
  for (const auto& q : c.queues) pairs.push_back(q.measured.name + "=" + q.other.name);
  CHECK(pairs == Strings{"engine 14 queue 0=engine 14 first", "engine 14 same=engine 14 same",
                         "engine 14 queue 1=engine 14 second"});
  CHECK(differences(c) == Strings{"run: gpu0 engine 1 queue 0 has no counterpart in model",
                                  "model: gpu0 engine 14 third has no counterpart in run"});
}

TEST_CASE("packets without a counterpart are listed, and those around them compared") {
  Story run, model;
  const auto q = run.queue(), m = model.queue();
  run.packet(q, 0, 0, 10, poll());
  run.packet(q, 24, 10, 20, fence());
  run.packet(q, 40, 20, 30, fence());
  model.packet(m, 0, 0, 10, poll());
  model.packet(m, 24, 10, 20, copy());
  model.packet(m, 52, 20, 30, copy());
  model.packet(m, 80, 30, 45, fence());
  const auto c = compared(run, model);
  CHECK(c.queues.at(0).packets == 2);
  CHECK(c.run == TimePair{30, 45});
  CHECK(phase(c, QueuePhase::copy) == TimePair{0, 0});
  CHECK(differences(c) ==
        Strings{"run: gpu0 engine 14 queue 0: its packet fence @24 has no counterpart in model",
                "model: gpu0 engine 14 queue 0: 2 of its packets, copy_linear @24 to copy_linear @52, have no "
                "counterpart in run"});
}

TEST_CASE("packets without an end and lost events are listed") {
  auto run = simple(0, 1);
  run.recorder->packet_begin(run.queue(), 70, 44, poll());
  auto t = run.trace();
  t.lost = 3;
  const auto c = compare(t, simple(0, 1).trace());
  REQUIRE(c);
  CHECK(c->run == TimePair{60, 60});
  CHECK(differences(*c) ==
        Strings{"run: 3 events were lost during recording, so packets may be missing",
                "run: gpu0 engine 14 queue 0: 1 of its packets began but did not end, so they are not compared"});
}

TEST_CASE("NOPs and the packets of an indirect buffer are not compared") {
  Story run, model;
  const auto indirect = dwords(Indirect{.base = GpuVa{0x8000}, .dwords = 8});
  const auto q = run.queue(), m = model.queue();
  run.packet(q, 0, 0, 10, indirect);
  run.packet(q, 24, 10, 20, fence());
  run.packet(q, 40, 20, 90, Dwords{0});
  model.packet(m, 0, 0, 4, indirect);
  model.packet(m, 0, 4, 10, copy());
  model.packet(m, 24, 10, 20, fence());
  const auto c = compared(run, model);
  CHECK(c.queues.at(0).packets == 2);
  CHECK(c.run == TimePair{20, 20});
  CHECK(c.differences.empty());
}

TEST_CASE("a packet that is too long to keep is data") {
  Story s;
  const Dwords data(40, 7);
  const Write packet{.dst = GpuVa{0x8000}, .data = data};
  Dwords write(length(packet));
  encode_to(packet, write.data());
  s.packet(s.queue(), 0, 0, 10, write);
  CHECK(phase(compared(s, s), QueuePhase::copy).measured == 10);
}

TEST_CASE("a trace without packets and a trace of another schedule are errors that name the trace") {
  const auto good = simple(0, 1).trace();
  const auto none = compare(good, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().where == "model");
  CHECK(none.error().message == "no queue of this trace has run a packet");
  CHECK_FALSE(none.error().hint.empty());
  Story other;
  other.packet(other.queue("engine 3 queue 0"), 0, 0, 10, copy());
  const auto foreign = compare(good, other.trace());
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().where == "run");
  CHECK(foreign.error().message == "no queue of this trace has run the same packets as one of model");
  Story kinds;
  kinds.packet(kinds.queue(), 0, 0, 10, poll());
  CHECK_FALSE(compare(good, kinds.trace()));
}

TEST_CASE("a comparison as a table and as JSON") {
  Story run = simple(1000, 1), model;
  const auto m = model.queue("engine 14 \"push\"");
  model.recorder->doorbell(m, 0, 44);
  model.packet(m, 0, 0, 40, copy());
  model.packet(m, 28, 40, 45, fence());
  auto c = compared(run, model);
  c.differences.push_back({.where = "run", .message = "said"});
  CHECK(to_table(c) ==
        "the run, from the first doorbell\n"
        "                   measured      simulated      error\n"
        "  time             0.060 us       0.045 us    -25.0 %\n"
        "\n"
        "gpu0 engine 14 queue 0 (engine 14 \"push\"), packets: 2\n"
        "  begin            0.010 us       0.000 us   -100.0 %\n"
        "  end              0.060 us       0.045 us    -25.0 %\n"
        "  schedule         0.010 us       0.000 us   -100.0 %\n"
        "  copy             0.030 us       0.040 us    +33.3 %\n"
        "  sync             0.010 us       0.005 us    -50.0 %\n"
        "  rest             0.010 us       0.000 us   -100.0 %\n");
  CHECK(to_table(c, "other").find("measured          other      error\n") != std::string::npos);
  const auto json = to_json(c, "other");
  CHECK(json.find("\"origin\": \"doorbell\"") != std::string::npos);
  CHECK(json.find("\"other\": \"engine 14 \\\"push\\\"\"") != std::string::npos);
  CHECK(json.find("\"copy\": {\n          \"measured_ns\": 30.0,\n          \"other_ns\": 40.0,") != std::string::npos);
  CHECK(json.find("\"differences\": [\n    {\n      \"trace\": \"run\",\n      \"message\": \"said\"\n") !=
        std::string::npos);
}

TEST_CASE("the last round of a simulated, prelaunched schedule counts from its trigger, and its phases add up") {
  const auto s = parse_schedule(
      "sdma 1\ngpus 2\nbuffer gpu0.in bytes=4K\nbuffer gpu1.out bytes=4K\nsignal host.go value=0\n"
      "signal host.done value=0\nqueue gpu0.push peer=gpu1\n  poll_mem addr=host.go func=ge reference=epoch\n"
      "  copy_linear bytes=4K src=gpu0.in dst=gpu1.out\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "host main\n  submit *\n  set host.go = 1\n  wait host.done == 1\n  submit *\n  set host.go = 2\n"
      "  wait host.done == 2\nend\n",
      "push.sdma");
  REQUIRE(s);
  trace::Recorder recorder(1024, "virtual");
  const auto machine = mi300x_machine();
  REQUIRE(machine);
  const auto r = simulate(*s, *machine, {.recorder = &recorder});
  REQUIRE(r);
  const auto t = recorder.snapshot();
  const auto c = compare(t, t);
  REQUIRE(c);
  CHECK(c->origin == Origin::trigger);
  CHECK(c->queues.at(0).packets == 3);
  CHECK(c->differences.empty());
  // The simulation also counts the time until the host notices the completion.
  CHECK(c->run.measured > 0.5 * r->ns);
  CHECK(c->run.measured <= r->ns + 1);
  double sum = 0;
  for (const auto& p : c->queues[0].phases) sum += p.measured;
  CHECK(sum == c->queues[0].end.measured);
}
