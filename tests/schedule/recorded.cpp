// SPDX-License-Identifier: MIT
// What a recording of a run calls things: its buffers, its queues and their epochs, and what each host thread does.
#include "sdma/device/soft.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/trace/write.hpp"
#include "support.hpp"

#include <algorithm>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

trace::Trace record(const std::string& text, std::chrono::nanoseconds timeout = 10s, const BindOptions& options = {},
                    std::uint32_t gpus = 2) {
  trace::Recorder r;
  const auto d = SoftDevice::open({.gpus = gpus, .trace = &r});
  REQUIRE(d);
  {
    auto b = bind(parse(text), **d, options);
    REQUIRE(b);
    static_cast<void>(run(*b, {.time_limit = timeout, .recorder = &r}));
  }
  return r.snapshot();
}

/// What a lane did, in order, without times: "builds 2 packets for gpu0.push, epoch 1", "ends".
std::vector<std::string> said(const trace::Trace& t, const std::string& group, const std::string& name) {
  std::vector<std::string> out;
  for (const auto& e : t.events) {
    if (t.lanes[e.lane.value] != trace::Lane{group, name}) continue;
    auto line = trace::to_line(t, e, e.ns);
    constexpr std::size_t kPrefix = 14 + 5 + 5 + 1 + 20 + 1;
    out.push_back(line.substr(kPrefix, line.size() - kPrefix - 1));
  }
  return out;
}

const std::string kPush =
    "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=128K init=zero\n"
    "signal host.go value=0 bits=32\nsignal host.done value=0\n"
    "queue gpu0.push engine=3\n  poll_mem addr=host.go func=ge reference=epoch\n"
    "  copy_linear bytes=64K src=gpu0.in dst=gpu1.out[64K]\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n";

}  // namespace

TEST_CASE("a recording of a run has the names of the schedule: buffers, signals, queues, epochs") {
  const auto t =
      record(kPush +
             "host main\n  repeat 2\n    submit *\n    set host.go = epoch\n    wait host.done == epoch\n  end\nend\n");
  const auto queue = said(t, "gpu0", "engine 3 push");
  const auto has = [&](const std::string& line) { return std::count(queue.begin(), queue.end(), line); };
  CHECK(has("@24 copy_linear bytes=64K src=gpu0.in dst=gpu1.out[64K]") == 1);
  CHECK(std::count_if(queue.begin(), queue.end(),
                      [](const auto& l) { return l.ends_with(" atomic op=add_rtn_64 addr=host.done value=1"); }) == 2);
  CHECK(std::count_if(queue.begin(), queue.end(), [](const auto& l) { return l.starts_with("signal host.done = "); }) ==
        2);
  CHECK(has("@0 epoch 1") == 1);
  CHECK(std::count_if(queue.begin(), queue.end(), [](const auto& l) { return l.ends_with(" epoch 2"); }) == 1);
  // An epoch is known before its packets begin.
  const auto first = [&](auto matches) {
    return std::find_if(t.events.begin(), t.events.end(), matches) - t.events.begin();
  };
  CHECK(first([](const auto& e) { return e.kind == trace::Kind::epoch; }) <
        first([](const auto& e) { return e.kind == trace::Kind::packet_begin; }));
}

TEST_CASE("the lane of a host thread says what it does") {
  const auto t =
      record(kPush +
             "host main\n  repeat 2\n    submit *\n    set host.go = epoch\n    wait host.done >= epoch\n  end\nend\n");
  CHECK(said(t, "host", "main") ==
        std::vector<std::string>{"builds 3 packets for gpu0.push, epoch 1", "ends", "rings gpu0.push", "ends",
                                 "sets host.go = 1", "ends", "signal host.go = 0x1", "waits for host.done >= 1", "ends",
                                 "builds 3 packets for gpu0.push, epoch 2", "ends", "rings gpu0.push", "ends",
                                 "sets host.go = 2", "ends", "signal host.go = 0x2", "waits for host.done >= 2",
                                 "ends"});
  // A text for each action of the schedule, not for each round.
  CHECK(t.texts.size() == 5);
}

TEST_CASE("each host thread has a lane, and a wait that is given up has no end") {
  const auto text =
      kPush + "host first\n  submit *\n  wait host.done == 1\nend\nhost second\n  wait host.go == 9\nend\n";
  CHECK(with_patience(100ms, [&](auto limit) {
    const auto t = record(text, limit);
    const auto first = said(t, "host", "first");
    return !first.empty() && first.back() == "waits for host.done == 1" &&
           said(t, "host", "second") == std::vector<std::string>{"waits for host.go == 9"};
  }));
}

TEST_CASE("a submit that needs room in its ring says so") {
  // The engine waits for a trigger, and the trigger for a large copy of another queue. Meanwhile, the ring has room for
  // three submits.
  std::string text =
      "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K\nbuffer gpu1.large bytes=16M\nsignal host.go value=0\n"
      "signal host.done value=0\nsignal host.copied value=0\nqueue gpu1.slow engine=3\n"
      "  copy_linear bytes=8M src=gpu1.large dst=gpu1.large[8M]\n  atomic op=add_rtn_64 addr=host.copied value=1\nend\n"
      "queue gpu0.q engine=3 ring=1K\n  poll_mem addr=host.go func=ge reference=1\n";
  for (int i = 0; i < 16; ++i) text += "  fence addr=gpu0.in value=1\n";
  text += "  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n";
  for (int i = 0; i < 4; ++i) text += "  submit gpu0.q\n";
  text +=
      "  wait host.done == 4\nend\nhost trigger\n  submit gpu1.slow\n  wait host.copied == 1\n  set host.go = 1\nend\n";
  bool waited = false;
  for (int i = 0; i < 20 && !waited; ++i) {
    const auto lines = said(record(text), "host", "main");
    waited = std::find(lines.begin(), lines.end(), "waits for room in the ring of gpu0.q") != lines.end();
    CHECK(std::count(lines.begin(), lines.end(), "rings gpu0.q") >= 4);
  }
  CHECK(waited);
}

TEST_CASE("GPUs of a node keep the schedule's names for what is on them") {
  const auto t = record(kPush + "host main\n  submit *\n  set host.go = 1\n  wait host.done == 1\nend\n", 10s,
                        {.gpus = {GpuId{3}, GpuId{1}}}, 4);
  const auto lines = said(t, "gpu3", "engine 3 push");
  CHECK(std::find(lines.begin(), lines.end(), "@24 copy_linear bytes=64K src=gpu0.in dst=gpu1.out[64K]") !=
        lines.end());
}

TEST_CASE("a recording of a run survives its file, names and all") {
  const auto t = record(kPush + "host main\n  submit *\n  set host.go = 1\n  wait host.done == 1\nend\n");
  CHECK(t.names.ranges().size() == 4);
  const auto back = trace::from_json_lines(trace::to_json_lines(t));
  REQUIRE(back);
  CHECK(*back == t);
}
