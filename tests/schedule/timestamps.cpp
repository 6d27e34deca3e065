// SPDX-License-Identifier: MIT
#include "sdma/schedule/timestamps.hpp"

#include "sdma/schedule/run.hpp"
#include "sdma/stream/text.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/trace/write.hpp"
#include "support.hpp"

#include <array>
#include <map>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

constexpr std::array kOrderings{Ordering::strict, Ordering::rocr, Ordering::adversarial};

struct Bar {
  std::uint64_t position, begin, end;
  std::string packet;
};
/// By lane.
std::map<std::string, std::vector<Bar>> bars(const trace::Trace& t) {
  std::map<std::string, std::vector<Bar>> out;
  for (const auto& e : t.events) {
    auto& lane = out[t.lanes[e.lane.value].group + " " + t.lanes[e.lane.value].name];
    if (e.kind == trace::Kind::packet_begin)
      lane.push_back(
          {e.position, e.ns, 0, disassemble(std::span(e.dwords).first(std::min<std::size_t>(e.length, 16)))});
    for (auto& b : lane)
      if (e.kind == trace::Kind::packet_end && b.position == e.position) b.end = e.ns;
  }
  return out;
}

const std::string kTwo =
    "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=64K init=zero\n"
    "signal host.go value=0 bits=32\nsignal host.done value=0\n"
    "queue gpu0.q engine=3\n  poll_mem addr=host.go func=ge reference=epoch\n"
    "  copy_linear bytes=64K src=gpu0.in dst=gpu1.out\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n";

/// A driver that does not give the rate of a GPU's clock.
class WithoutRate final : public ForwardingDevice {
 public:
  explicit WithoutRate(Device& to) : ForwardingDevice(to) {}
  Result<Clock> clock(GpuId) const noexcept override { return Errc::unknown; }
};

}  // namespace

TEST_CASE("a bar for each packet, in its lane, one after another, and the schedule does what it did") {
  for (const auto order : kOrderings) {
    const auto d = node(2, order, 7);
    const auto timed = with_timestamps(parse(kTwo + "host main\n  submit *\n  set host.go = 1\n  wait host.done == 1\n"
                                                    "end\nexpect gpu1.out == old gpu0.in\n"));
    const auto b = link(timed.schedule, *d);
    const auto before = Deadline::Clock::now().time_since_epoch();
    CHECK(lines(run(b).findings) == "");
    trace::Recorder r;
    REQUIRE(record_timestamps(timed, b, r, Deadline::in(10s)) == Errc::ok);
    const auto after = Deadline::Clock::now().time_since_epoch();
    const auto all = bars(r.snapshot());
    REQUIRE(all.size() == 1);
    REQUIRE(all.begin()->first == "gpu0 engine 3 q");
    const auto& q = all.begin()->second;
    REQUIRE(q.size() == 3);
    CHECK(q[0].packet.starts_with("poll_mem"));
    CHECK(q[1].packet.starts_with("copy_linear bytes=64K"));
    CHECK(q[2].packet.starts_with("atomic"));
    CHECK(q[0].position == 0);
    CHECK(q[2].position == 4 * (dwords_of<PollMem>() + dwords_of<CopyLinear>()));
    // 100 MHz: a tick is 10 ns.
    CHECK(q[0].begin + 20 >= static_cast<std::uint64_t>(std::chrono::nanoseconds(before).count()));
    CHECK(q[2].end <= static_cast<std::uint64_t>(std::chrono::nanoseconds(after).count()) + 20);
    for (std::size_t i = 0; i < q.size(); ++i) {
      CHECK(q[i].begin <= q[i].end);
      if (i > 0) CHECK(q[i - 1].end == q[i].begin);
    }
  }
}

TEST_CASE("of several rounds the last is recorded, and values with an epoch move along") {
  const auto d = node();
  const auto timed = with_timestamps(parse(kTwo + "host main\n  repeat 3\n    submit *\n    set host.go = epoch\n"
                                                  "    wait host.done == epoch\n  end\nend\n"));
  const auto b = link(timed.schedule, *d);
  CHECK(lines(run(b).findings) == "");
  trace::Recorder r;
  REQUIRE(record_timestamps(timed, b, r, Deadline::in(10s)) == Errc::ok);
  const auto q = bars(r.snapshot()).at("gpu0 engine 3 q");
  REQUIRE(q.size() == 3);
  CHECK(q[0].packet.find("reference=3") != std::string::npos);
  const auto t = r.snapshot();
  CHECK(std::count_if(t.events.begin(), t.events.end(), [](const auto& e) {
          return e.kind == trace::Kind::epoch && e.value == 3 && e.position == 0;
        }) == 1);
  CHECK(trace::to_text(t).find(" addr=host.go ") != std::string::npos);
  CHECK(trace::to_text(t).find(" src=gpu0.in dst=gpu1.out\n") != std::string::npos);
}

TEST_CASE("a queue that stands: its poll has begun, and has no end") {
  const auto d = node();
  const auto timed = with_timestamps(parse(kTwo + "host main\n  submit *\n  wait host.done == 1\nend\n"));
  const auto b = link(timed.schedule, *d);
  CHECK(!run(b, {.time_limit = 1s}).findings.empty());
  trace::Recorder r;
  CHECK(record_timestamps(timed, b, r, Deadline::in(10ms)) == Errc::timed_out);
  const auto t = r.snapshot();
  REQUIRE(t.events.size() == 2);  // the epoch and the beginning of the poll
  CHECK(bars(t).at("gpu0 engine 3 q")[0].packet.starts_with("poll_mem"));
  b.set(0, 1);
  CHECK(record_timestamps(timed, b, r, Deadline::in(10s)) == Errc::ok);
}

TEST_CASE("timestamps of a clock whose rate is unknown are no times: nothing is recorded") {
  const auto d = node();
  WithoutRate without(*d);
  const auto timed =
      with_timestamps(parse(kTwo + "host main\n  submit *\n  set host.go = 1\n  wait host.done == 1\nend\n"));
  const auto b = link(timed.schedule, without);
  CHECK(lines(run(b).findings) == "");
  trace::Recorder r;
  CHECK(record_timestamps(timed, b, r, Deadline::in(10s)) == Errc::unknown);
  CHECK(r.snapshot().events.empty());
}

TEST_CASE("what a packet may skip stays behind it") {
  const auto timed = with_timestamps(
      parse("sdma 1\ngpus 1\nbuffer gpu0.a bytes=4K\nsignal host.s value=0 bits=32\nsignal host.done value=0\n"
            "queue gpu0.q engine=0\n  cond_exec addr=host.s reference=1 dwords=11\n"
            "  copy_linear bytes=64 src=gpu0.a dst=gpu0.a[64]\n  fence addr=host.s value=2\n"
            "  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit *\n  wait host.done == 1\nend\n"));
  REQUIRE(timed.queues.size() == 1);
  const auto& bars = timed.queues[0].bars;
  REQUIRE(bars.size() == 2);
  CHECK(bars[0].dwords == dwords_of<CondExec>() + 11);
  CHECK(bars[1].timed_begin == bars[1].begin + 2 * dwords_of<Timestamp>());
  const auto d = node();
  const auto b = link(timed.schedule, *d);
  CHECK(lines(run(b).findings) == "");
  trace::Recorder r;
  CHECK(record_timestamps(timed, b, r, Deadline::in(10s)) == Errc::ok);
}
