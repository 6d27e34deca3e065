// SPDX-License-Identifier: MIT
// The stream rules about polls, in schedules: the checker knows epochs and what other agents store.
#include "checked.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::has;
using sdma::test::said;

namespace {

std::string schedule(const std::string& packets, const std::string& actions) {
  return "gpus 1\nsignal host.x value=0\nsignal host.done value=0\nqueue gpu0.q peer=host\n  " + packets +
         "\n  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit *\n  " + actions + "\nend";
}
const std::string kWait = "wait host.done == 1";

}  // namespace

TEST_CASE("a poll that no value satisfies is one error") {
  const std::string poll = "poll_mem addr=host.x func=eq reference=0x10000 mask=0xffff";
  const auto r = checked(schedule(poll, "set host.x = 0x10000\n  " + kWait));
  CHECK(has(r, "never-met"));
  CHECK_FALSE(has(r, "poll-never"));
  // A counter that has all the posts that it gets is not the reason.
  const auto counted = "atomic op=add_rtn_64 addr=host.x value=0x10000\n  " + poll;
  const auto never = checked(schedule(counted, kWait));
  REQUIRE(has(never, "never-met"));
  CHECK_FALSE(has(never, "unreachable-count"));
  CHECK(said(never).find("(host.x & 0xffff) eq 0x10000, which no value satisfies") != std::string::npos);
  const auto reached =
      "atomic op=add_rtn_64 addr=host.x value=0x10000\n  "
      "poll_mem addr=host.x func=eq reference=0x1234 mask=0xffff";
  CHECK(has(checked(schedule(reached, kWait)), "unreachable-count"));
  // The checker assumes that a poll that may expire does.
  CHECK(has(checked(schedule(poll + " retry=9", "set host.x = 0x10000\n  " + kWait)), "poll-never"));
}

TEST_CASE("a reference that depends on the epoch is not 0") {
  const auto r = checked(schedule("poll_mem addr=host.x func=ge reference=epoch", "set host.x = 1\n  " + kWait));
  CHECK(r.findings.empty());
  CHECK(
      has(checked(schedule("poll_mem addr=host.x func=ge reference=0", "set host.x = 1\n  " + kWait)), "poll-always"));
  const auto twice = "poll_mem addr=host.x func=ge reference=epoch\n  poll_mem addr=host.x func=ge reference=epoch+1";
  CHECK(checked(schedule(twice, "set host.x = 2\n  " + kWait)).findings.empty());
}

TEST_CASE("a second poll for the same condition gets a note, unless the word may go back") {
  const auto twice = "poll_mem addr=host.x func=ge reference=1\n  poll_mem addr=host.x func=ge reference=1";
  const auto r = checked(schedule(twice, "set host.x = 1\n  " + kWait));
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].diagnostic.rule == "poll-repeated");
  CHECK(r.findings[0].diagnostic.severity == Severity::note);
  CHECK(has(checked(schedule(twice, "set host.x = 1\n  set host.x = 2\n  " + kWait)), "poll-repeated"));
  CHECK_FALSE(has(checked(schedule(twice, "set host.x = 1\n  set host.x = 0\n  " + kWait)), "poll-repeated"));
  const auto equal = "poll_mem addr=host.x func=eq reference=1\n  poll_mem addr=host.x func=eq reference=1";
  CHECK_FALSE(has(checked(schedule(equal, "set host.x = 1\n  set host.x = 2\n  " + kWait)), "poll-repeated"));
}
