// SPDX-License-Identifier: MIT
// Schedules that really hang on the software device: the queues are read while they hang, and each has its answer.
#include "../schedule/support.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <fmt/format.h>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;
using doctor::HangClass;

namespace {

/// A schedule of these signals and queue bodies, whose host submits everything and waits for `done`.
std::string schedule(const std::vector<std::string>& bodies, const std::string& host = "") {
  std::string text = "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=64K\n";
  for (const auto* signal : {"a", "b", "c", "done"}) text += fmt::format("signal host.{} value=0\n", signal);
  for (std::size_t i = 0; i < bodies.size(); ++i)
    text += fmt::format("queue gpu{}.q{} engine={}\n{}\nend\n", i % 2, i, 2 + i, bodies[i]);
  return text + "host main\n  submit *\n" + host + "  wait host.done == 9\nend\n";
}
std::string cycle(std::size_t n) {
  std::string text = "sdma 1\ngpus 2\nsignal host.done value=0\n";
  for (std::size_t i = 0; i < n; ++i) text += fmt::format("signal host.s{} value=0\n", i);
  for (std::size_t i = 0; i < n; ++i)
    text += fmt::format(
        "queue gpu{}.q{} engine={}\n  poll_mem addr=host.s{} func=ge reference=1\n  fence addr=host.s{} value=1\nend\n",
        i % 2, i, 2 + i, i, (i + 1) % n);
  return text + "host main\n  submit *\n  wait host.done == 9\nend\n";
}

const std::string kPost = "  copy_linear bytes=4K src=gpu0.in dst=gpu1.out\n";

struct Hang {
  HangClass what;
  std::string text;
};
const std::vector<Hang> kHangs{
    {HangClass::never_written, schedule({"  poll_mem addr=host.a func=ge reference=1\n" + kPost})},
    {HangClass::never_written,
     schedule({kPost + "  fence addr=host.b value=1\n  poll_mem addr=host.a func=eq reference=3\n" + kPost})},
    {HangClass::wrong_value,
     schedule({"  poll_mem addr=host.a func=eq reference=2\n" + kPost, kPost + "  fence addr=host.a value=1"})},
    {HangClass::wrong_half, schedule({"  poll_mem addr=host.a[4] func=eq reference=1\n" + kPost,
                                      "  atomic op=add_rtn_64 addr=host.a value=1"})},
    {HangClass::beyond_mask, schedule({"  poll_mem addr=host.a func=eq reference=511 mask=0xff\n" + kPost})},
    {HangClass::stale_epoch,
     schedule({"  poll_mem addr=host.a func=ge reference=1\n  poll_mem addr=host.a func=ge reference=2\n" + kPost,
               "  fence addr=host.a value=1\n  fence addr=host.a value=1"})},
    {HangClass::stale_epoch,
     schedule({"  poll_mem addr=host.c func=eq reference=1\n  poll_mem addr=host.a func=eq reference=1\n" + kPost,
               "  fence addr=host.a value=1\n  fence addr=host.a value=2\n  fence addr=host.c value=1"})},
    {HangClass::cycle, cycle(2)},
    {HangClass::cycle, cycle(3)},
    {HangClass::cycle, cycle(8)},
    {HangClass::one_engine,
     schedule({"  poll_mem addr=host.a func=eq reference=1\n" + kPost + "  fence addr=host.a value=1"})},
    {HangClass::poll_expired, schedule({"  poll_mem addr=host.a func=eq reference=1 retry=10\n" + kPost})},
    {HangClass::unknown_opcode, schedule({kPost + "  .dword 0x000000ee\n  fence addr=host.a value=1"})},
    {HangClass::fault, schedule({kPost + "  copy_linear bytes=4K src=0x123456789000 dst=gpu1.out"})},
};

}  // namespace

TEST_CASE("queues that hang on the software device are named") {
  std::size_t right = 0;
  for (const auto& h : kHangs) {
    const auto diagnosed = [&](std::chrono::milliseconds after) {
      const auto d = node(2);
      const auto b = link(parse(h.text), *d);
      CHECK(!run(b, {.time_limit = after}));
      return doctor::diagnose(doctor::snapshot_of(b));
    };
    auto diagnosis = diagnosed(50ms);
    // The engines of a busy machine may need longer to get where they hang.
    if (diagnosis.findings.front().what != h.what) diagnosis = diagnosed(10s);
    INFO(h.text << to_text(diagnosis));
    CHECK(doctor::name(diagnosis.findings.front().what) == doctor::name(h.what));
    CHECK(diagnosis.verdict() == doctor::Verdict::hung);
    right += diagnosis.findings.front().what == h.what;
  }
  CHECK(right == kHangs.size());
}

TEST_CASE("queues that have finished, and queues that still copy, are not accused") {
  const auto d = node(2);
  const auto b = link(parse(schedule({kPost + "  fence addr=host.a value=9\n  fence addr=host.done value=9"})), *d);
  CHECK(run(b, {.time_limit = 10s}));
  CHECK(diagnose(doctor::snapshot_of(b)).verdict() == doctor::Verdict::healthy);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(b.submit(0, Deadline::in(1s)));
    CHECK(diagnose(doctor::snapshot_of(b, 0ns)).verdict() != doctor::Verdict::hung);
  }
}
