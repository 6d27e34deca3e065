// SPDX-License-Identifier: MIT
// Submits that wait for room in a ring forever, and those for which room comes.
#include "checked.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/schedule/run.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::said;

namespace {

// 14 dwords per submit: a ring of 256 dwords holds 18 of them.
const std::string kHead =
    "gpus 2\nsignal host.go value=0\nsignal host.other value=0\nsignal host.done value=0\nsignal host.more value=0\n"
    "queue gpu0.p peer=host ring=1K\n  poll_mem addr=host.go func=ge reference=epoch\n"
    "  atomic op=add_rtn_64 addr=host.done value=1\nend\n";
std::string prelaunched(int rounds) {
  const auto n = std::to_string(rounds);
  return kHead + "host main\n  repeat " + n + "\n    submit gpu0.p\n  end\n  repeat " + n +
         "\n    set host.go = epoch\n    wait host.done >= epoch\n  end\nend";
}

/// Does a run on the software device end within this time?
bool ends_within(std::chrono::nanoseconds timeout, const std::string& text) {
  const auto s = parse_schedule("sdma 1\n" + text + "\n");
  REQUIRE(s);
  const auto d = SoftDevice::open({.gpus = 2});
  REQUIRE(d);
  const auto b = bind(*s, **d);
  REQUIRE(b);
  return run(*b, {.time_limit = timeout}).findings.empty();
}

/// A minute is more than any of these runs needs, also on a busy machine.
bool ends(const std::string& text) { return ends_within(std::chrono::minutes(1), text); }
bool stalls(const std::string& text) { return !ends_within(std::chrono::milliseconds(300), text); }

}  // namespace

TEST_CASE("a thread that submits more than the ring holds before it lets the engine go on") {
  CHECK(said(checked(prelaunched(18))) == "");
  CHECK(ends(prelaunched(18)));
  const auto r = checked(prelaunched(19));
  CHECK(said(r) ==
        "ring-full: host main waits forever for room in the ring of gpu0.p: it has 256 dwords, of which 252 are not "
        "read, and with the next packets it would need more than 270\n");
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].diagnostic.where == "case.sdma:13:5");
  CHECK(r.findings[0].diagnostic.severity == Severity::error);
  REQUIRE(r.findings[0].locations.size() == 2);
  CHECK(r.findings[0].locations[0].line == 8);
  CHECK(r.findings[0].locations[1].line == 13);
  CHECK(stalls(prelaunched(19)));
  CHECK(r.findings[0].diagnostic.hint ==
        "declare a larger ring (ring=4K holds all submits), or wait for earlier submits before this one: line 8 (epoch "
        "1) "
        "waits for something that happens only after this submit");
}

TEST_CASE("the ring that the hint suggests is large enough") {
  for (const int rounds : {19, 100, 1000}) {
    auto text = prelaunched(rounds);
    const auto hint = checked(text).findings.at(0).diagnostic.hint;
    const auto at = hint.find("ring=");
    const auto ring = hint.substr(at, hint.find(' ', at) - at);
    text.replace(text.find("ring=1K"), 7, ring);
    INFO(ring);
    CHECK(said(checked(text)) == "");
  }
}

TEST_CASE("a chosen ring has room for four submits and at least 64K, and may be full too") {
  auto text = prelaunched(1000);
  text.replace(text.find(" ring=1K"), 8, "");
  CHECK(said(checked(text)) == "");
  text = prelaunched(2000);
  text.replace(text.find(" ring=1K"), 8, "");
  CHECK(said(checked(text)).starts_with("ring-full: host main waits forever"));
}

TEST_CASE("room comes if another thread lets the engine go on, or if the thread waits in between") {
  const auto another = kHead +
                       "host main\n  repeat 500\n    submit gpu0.p\n  end\n  wait host.done == 500\nend\n"
                       "host other\n  repeat 500\n    set host.go = epoch\n    wait host.done >= epoch\n  end\nend";
  CHECK(said(checked(another)) == "");
  CHECK(ends(another));
  const auto between = kHead +
                       "host main\n  submit gpu0.p\n  repeat 500\n    set host.go = epoch\n"
                       "    wait host.done >= epoch\n    submit gpu0.p\n  end\n  set host.go = 501\n"
                       "  wait host.done == 501\nend";
  CHECK(said(checked(between)) == "");
  const auto ahead =
      kHead + "host main\n  set host.go = 500\n  repeat 500\n    submit gpu0.p\n  end\n  wait host.done == 500\nend";
  CHECK_FALSE(test::has(checked(ahead), "ring-full"));
}

TEST_CASE("two threads whose full rings wait for each other") {
  const auto text = [](int rounds) {
    const auto n = std::to_string(rounds);
    return "gpus 2\nsignal host.a value=0\nsignal host.b value=0\nsignal host.x value=0\nsignal host.y value=0\n"
           "queue gpu0.p peer=host ring=1K\n  poll_mem addr=host.a func=ge reference=1\n"
           "  atomic op=add_rtn_64 addr=host.x value=1\nend\n"
           "queue gpu1.q peer=host ring=1K\n  poll_mem addr=host.b func=ge reference=1\n"
           "  atomic op=add_rtn_64 addr=host.y value=1\nend\n"
           "host one\n  repeat " +
           n + "\n    submit gpu0.p\n  end\n  set host.b = 1\n  wait host.x == " + n + "\nend\nhost two\n  repeat " +
           n + "\n    submit gpu1.q\n  end\n  set host.a = 1\n  wait host.y == " + n + "\nend";
  };
  CHECK(said(checked(text(18))) == "");
  const auto r = checked(text(19));
  CHECK(r.errors() == 2);
  CHECK(said(r).find("ring-full: host one waits") != std::string::npos);
  CHECK(said(r).find("ring-full: host two waits") != std::string::npos);
  CHECK(stalls(text(19)));
}

TEST_CASE("a submit that is larger than its ring goes in pieces") {
  const auto text = [](const std::string& first, const std::string& last) {
    std::string packets;
    for (int i = 0; i < 40; ++i) packets += "  atomic op=add_rtn_64 addr=host.done value=1\n";
    return "gpus 1\nsignal host.go value=0\nsignal host.done value=0\nqueue gpu0.p peer=host ring=1K\n" + first +
           packets + last + "end\nhost main\n  submit *\n  set host.go = 1\n  wait host.done == 40\nend";
  };
  const std::string poll = "  poll_mem addr=host.go func=ge reference=1\n";
  CHECK_FALSE(test::has(checked(text("", "")), "ring-full"));
  CHECK(ends(text("", "")));
  CHECK(test::has(checked(text(poll, "")), "ring-full"));
  CHECK(stalls(text(poll, "")));
  CHECK_FALSE(test::has(checked(text("", poll)), "ring-full"));
  CHECK(ends(text("", poll)));
}

TEST_CASE("threads that share a queue may take each other's room, whichever is declared first") {
  const auto loop = [](int n) { return "\n  repeat " + std::to_string(n) + "\n    submit gpu0.p\n  end\n"; };
  const auto texts = [&](int n) {
    const auto one = "host one" + loop(10) + "  wait host.done == " + std::to_string(10 + n) + "\nend";
    const auto two =
        "host two" + loop(n) + "  set host.go = 1000\n  wait host.done == " + std::to_string(10 + n) + "\nend";
    return std::vector{kHead + one + "\n" + two, kHead + two + "\n" + one};
  };
  for (const auto& text : texts(8)) CHECK_FALSE(test::has(checked(text), "ring-full"));
  for (const auto& text : texts(9))
    CHECK(said(checked(text)).find("ring-full: host two may wait") != std::string::npos);
}

TEST_CASE("several threads share a queue without waking each other forever") {
  const auto threads = [](const std::string& rounds) {
    const auto loop = "\n  repeat " + rounds + "\n    submit gpu0.p\n  end\n";
    return kHead + "host one" + loop + "  set host.other = 1\nend\nhost two" + loop + "  wait host.other == 1\n" +
           "  set host.go = 1000\n  wait host.done == 2*" + rounds + "\nend";
  };
  CHECK_FALSE(test::has(checked(threads("9")), "ring-full"));
  CHECK(test::has(checked(threads("10")), "ring-full"));
}
