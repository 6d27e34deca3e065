// SPDX-License-Identifier: MIT
// What is proved, and what is not: schedules that were once proved although
// an execution breaks them, each with the assumption under which it breaks.
#include "cases.hpp"
#include "checked.hpp"

using namespace sdma;
using test::checked, test::has, test::said;

namespace {

struct Broken {
  const char* why;
  const char* assume;  ///< "" for the default profile
  const char* rule;    ///< a finding that says so
  Verdict verdict;
  const char* text;
};

// clang-format off
constexpr Broken kBroken[] = {
{"two polls hold two engines, and each needs a queue that stands after the other", "", "engine-wait", Verdict::refuted, R"(gpus 1
signal host.x value=0 bits=32
signal host.z value=0 bits=32
signal host.d value=0
queue gpu0.a engine=2
  poll_mem addr=host.x func=eq reference=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.b engine=2
  fence addr=host.z value=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.c engine=3
  poll_mem addr=host.z func=eq reference=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.e engine=3
  fence addr=host.x value=1
  atomic op=add_rtn_64 addr=host.d value=1
end
host main
  submit *
  wait host.d == 4
end)"},
{"three polls on three engines", "", "engine-wait", Verdict::refuted, R"(gpus 1
signal host.x value=0 bits=32
signal host.y value=0 bits=32
signal host.z value=0 bits=32
signal host.d value=0
queue gpu0.a engine=2
  poll_mem addr=host.x func=eq reference=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.a2 engine=2
  fence addr=host.y value=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.b engine=3
  poll_mem addr=host.y func=eq reference=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.b2 engine=3
  fence addr=host.z value=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.c engine=4
  poll_mem addr=host.z func=eq reference=1
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu0.c2 engine=4
  fence addr=host.x value=1
  atomic op=add_rtn_64 addr=host.d value=1
end
host main
  submit *
  wait host.d == 6
end)"},
{"two hosts submit one queue, and one waits for what the other sets later", "", "deadlock", Verdict::refuted, R"(gpus 1
signal host.x value=0 bits=32
signal host.y value=0 bits=32
queue gpu0.q engine=2
  poll_mem addr=host.x func=ge reference=1
  atomic op=add_rtn_32 addr=host.y value=1
end
host one
  submit gpu0.q
  wait host.y == 2
  set host.x = 1
end
host two
  submit gpu0.q
  wait host.y == 2
end)"},
{"a sample of a word that a copy stores to", "", "unknown-sample", Verdict::unproved, R"(gpus 1
buffer host.w bytes=64 init=zero
signal host.n value=0 at=host.w
signal host.y value=0
queue gpu0.q engine=2
  write dst=host.w data=[3]
  fence addr=host.y value=1
end
host main
  submit *
  wait host.y == 1
  sample n = host.n
  set host.y = n + 2
  wait host.y == n + 2
end)"},
{"a WRITE stores what a wait needs, relative to a sample", "", "data-as-flag", Verdict::refuted, R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.b bytes=4K
signal host.n value=5 bits=32
signal host.f value=0 bits=32
queue gpu0.q engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  write dst=host.f data=[6]
end
host main
  sample n = host.n
  submit *
  wait host.f == n + 1
end)"},
{"a condition on a word that a thread sets to what it has sampled", "", "cond-exec-assumed", Verdict::unproved, R"(gpus 1
signal host.n value=5 bits=32
signal host.c value=4 bits=32
signal host.y value=0 bits=32
queue gpu0.q engine=2
  poll_mem addr=host.n func=eq reference=6
  cond_exec addr=host.c reference=4 dwords=4
  fence addr=host.y value=1
end
host main
  sample n = host.n
  set host.c = n + 4
  set host.n = 6
  submit *
  wait host.y == 1
end)"},
{"the flag is in a buffer of random bytes", "", "unknown-value", Verdict::refuted, R"(gpus 2
buffer gpu*.a bytes=4K init=zero
buffer host.w bytes=4K init=random
signal host.d value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=host.w value=1
end
queue gpu1.q peer=gpu0
  poll_mem addr=host.w func=eq reference=1
  copy_linear bytes=4K src=gpu1.a dst=gpu0.a
  fence addr=host.d value=1
end
host main
  submit *
  wait host.d == 1
end)"},
{"an alias gives the flag its value", "", "stale-wait", Verdict::refuted, R"(gpus 2
buffer gpu*.a bytes=4K init=zero
buffer host.w bytes=4K init=zero
signal host.f value=1 bits=32 at=host.w[16]
signal host.d value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=host.f value=1
end
queue gpu1.q peer=gpu0
  poll_mem addr=host.w[16] func=eq reference=1
  copy_linear bytes=4K src=gpu1.a dst=gpu0.a
  fence addr=host.d value=1
end
host main
  submit *
  wait host.d == 1
end)"},
{"the packets of a condition need not execute", "", "cond-exec-assumed", Verdict::unproved, R"(gpus 1
buffer host.w bytes=4K init=random
signal host.y value=0 bits=32
queue gpu0.q engine=2
  cond_exec addr=host.w reference=1 dwords=4
  fence addr=host.y value=1
end
host main
  submit gpu0.q
  wait host.y == 1
end)"},
{"a fence of one epoch lands after that of the next", "fences=unordered", "fence-race", Verdict::refuted, R"(gpus 1
signal host.x value=0 bits=32
signal host.y value=0 bits=32
queue gpu0.q engine=2
  fence addr=host.x value=epoch
  fence addr=host.y value=epoch
end
host main
  repeat 2
    submit gpu0.q
    wait host.y >= epoch
  end
  wait host.x >= 2
end)"},
{"a poll holds the engine of a fence, although a later fence of that queue has landed", "fences=unordered", "engine-wait",
 Verdict::refuted, R"(gpus 1
signal host.x value=0 bits=32
signal host.y value=0 bits=32
signal host.z value=0 bits=32
signal host.d value=0
queue gpu0.a engine=2
  poll_mem addr=host.x func=eq reference=1
  fence addr=host.y value=1
end
queue gpu0.b engine=3
  fence addr=host.x value=1
  fence addr=host.z value=1
end
queue gpu0.c engine=3
  poll_mem addr=host.y func=eq reference=1
  fence addr=host.d value=1
end
host main
  submit gpu0.a gpu0.b
  wait host.z == 1
  submit gpu0.c
  wait host.d == 1
end)"},
{"no fence covers the write", "fence_covers=copies", "unawaited", Verdict::refuted, R"(gpus 1
buffer gpu0.a bytes=4K init=zero
signal host.y value=0 bits=32
queue gpu0.q engine=2
  write dst=gpu0.a data=[1]
  fence addr=host.y value=1
end
host main
  submit gpu0.q
  wait host.y == 1
end)"},
};
// clang-format on

}  // namespace

TEST_CASE("what an execution breaks is not proved, and a finding says why") {
  for (const auto& b : kBroken) {
    CheckOptions o;
    if (*b.assume) REQUIRE(o.profile.set(b.assume));
    const auto r = checked(b.text, o);
    INFO(b.why);
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(has(r, b.rule));
    CHECK(name(r.verdict()) == name(b.verdict));
    CHECK_FALSE(r.proved());
  }
}

TEST_CASE("without the assumption that breaks it, it is proved") {
  for (const auto& b : kBroken) {
    CheckOptions o;
    if (std::string_view(b.rule) == "engine-wait") REQUIRE(o.profile.set("poll_yields=yes"));
    else if (!*b.assume) continue;
    INFO(b.why);
    const auto r = checked(b.text, o);
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(r.verdict() == Verdict::proved);
  }
}

static constexpr const char* kHundredRounds = R"(gpus 1
signal host.y value=0 bits=32
queue gpu0.q engine=2
  fence addr=host.y value=epoch
end
host main
  repeat 100
    submit gpu0.q
    wait host.y >= epoch
  end
end)";

TEST_CASE("a model that is cut short proves nothing") {
  CHECK(checked(kHundredRounds).proved());
  const auto cut = checked(kHundredRounds, {.max_packets = 50});
  CHECK(cut.verdict() == Verdict::unproved);
  REQUIRE(cut.findings.size() == 1);
  CHECK(cut.findings[0].diagnostic.rule == "not-all-rounds");
}

TEST_CASE("a limit that is exceeded is no error, and names the limit that would do") {
  struct {
    const char *rule, *text;
  } const schedules[] = {{"not-all-rounds", kHundredRounds},
                         // Threads share a queue: each submit is compared with each other one.
                         {"not-all-rounds", R"(gpus 1
signal host.y value=0
signal host.go value=0
queue gpu0.q engine=2 ring=64K
  atomic op=add_rtn_64 addr=host.y value=1
end
host a
  repeat 20
    submit gpu0.q
  end
  set host.go = 1
end
host b
  wait host.go == 1
  repeat 20
    submit gpu0.q
  end
  wait host.y >= 40
end)"},
                         {"not-all-accesses", R"(gpus 1
buffer gpu0.a bytes=64K
buffer gpu0.b bytes=64K
signal host.y value=0
queue gpu0.q engine=2
  copy_subwindow element_log2=0 src=gpu0.a src_pitch=64 dst=gpu0.b dst_pitch=64 x=8 y=100
  atomic op=add_rtn_64 addr=host.y value=1
end
host main
  submit gpu0.q
  wait host.y == 1
end)"}};
  for (const auto& [rule, text] : schedules) {
    INFO(text);
    CHECK(checked(text).verdict() == Verdict::proved);
    const auto cut = checked(text, {.max_packets = 60});
    INFO(said(cut));
    CHECK(cut.verdict() == Verdict::unproved);
    REQUIRE(has(cut, rule));
    const std::string option = "--max-packets=";
    const auto hint = cut.findings.front().diagnostic.hint;
    REQUIRE(hint.find(option) != hint.npos);
    const auto enough = std::stoul(hint.substr(hint.find(option) + option.size()));
    CHECK(checked(text, {.max_packets = enough}).verdict() == Verdict::proved);
    CHECK(checked(text, {.max_packets = enough - 1}).verdict() == Verdict::unproved);
  }
}

TEST_CASE("stores and additions to one word are proved if they are in order") {
  const std::string text = R"(gpus 3
buffer gpu0.a bytes=4K
buffer gpu1.b bytes=4K
buffer gpu2.c bytes=4K
signal host.x value=0
queue gpu0.first engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=host.x value=5
end
queue gpu1.second engine=2
  poll_mem addr=host.x func=ge reference=5
  copy_linear bytes=4K src=gpu1.b dst=gpu2.c
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  submit *
  wait host.x == 6
end
expect gpu2.c == old gpu0.a)";
  const auto r = checked(text);
  INFO(said(r));
  CHECK(r.proved());
  // Without the wait, the fence may come after the addition, and hides it.
  auto unordered = text;
  const std::string wait = "  poll_mem addr=host.x func=ge reference=5\n";
  unordered.erase(unordered.find(wait), wait.size());
  CHECK(checked(unordered).verdict() == Verdict::refuted);
  // A word in order beside one whose additions have no order.
  auto reset = text;
  reset.replace(reset.find("signal host.x"), 0, "signal host.n value=7\n");
  reset.replace(reset.find("  fence addr"), 0, "  atomic op=add_rtn_64 addr=host.n value=1\n");
  reset.replace(reset.find("  submit *"), 0, "  set host.n = 0\n");
  const auto both = checked(reset);
  INFO(said(both));
  CHECK(both.proved());
}

TEST_CASE("a ring that has been read is not complete") {
  const std::string text = R"(gpus 2
buffer gpu0.a bytes=4K
buffer gpu1.b bytes=4K
buffer gpu0.c bytes=4K
signal host.copied value=0
signal host.done value=0
queue gpu0.copy peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=host.copied value=1
end
queue gpu0.reuse engine=7
  copy_linear bytes=4K src=gpu0.c dst=gpu0.a
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu0.copy
  wait gpu0.copy.rptr == all
  submit gpu0.reuse
  wait host.copied == 1
  wait host.done == 1
end)";
  const auto shown = [](const CheckReport& r) {
    std::string out;
    for (const auto& f : r.findings) out += to_string(f.diagnostic) + "\n";
    return out;
  };
  const auto r = checked(text);
  INFO(shown(r));
  CHECK(r.verdict() == Verdict::refuted);
  CHECK(has(r, "race"));
  CHECK(shown(r).find("(H8)") != std::string::npos);
  auto waits = text;
  waits.replace(waits.find("  submit gpu0.reuse"), 0, "  wait host.copied == 1\n");
  CHECK(checked(waits).proved());
  // rptr stays at a poll (or passes it): nobody knows, so what only this wait would release may never happen.
  auto stuck = text;
  stuck.replace(stuck.find("  copy_linear"), 0, "  poll_mem addr=host.go func=eq reference=1\n");
  stuck.replace(stuck.find("signal host.done"), 0, "signal host.go value=0 bits=32\n");
  stuck.replace(stuck.find("  submit gpu0.reuse"), 0, "  set host.go = 1\n");
  const auto s = checked(stuck);
  INFO(shown(s));
  CHECK(has(s, "deadlock"));
  CHECK(shown(s).find("gpu0.copy.rptr") != std::string::npos);
  // What another thread submits, and when, is not in the model.
  auto other = waits;
  other += R"(
host other
  wait gpu0.copy.rptr == all
end)";
  CHECK(has(checked(other), "not-covered"));
}

TEST_CASE("rounds without actions cost nothing") {
  const auto r = checked(R"(gpus 1
signal host.y value=0 bits=32
queue gpu0.q engine=2
  fence addr=host.y value=1
end
host main
  repeat 1000000000
    repeat 1000000000
    end
  end
  submit gpu0.q
  wait host.y == 1
end)");
  CHECK(r.proved());
  CHECK(r.packets == 1);
}

TEST_CASE("a write is a flag after a full barrier only") {
  const auto relay = [](const std::string& barrier) {
    return checked(R"(gpus 2
buffer gpu*.a bytes=4K init=zero
signal host.s value=0 bits=32
signal host.f value=0 bits=32
signal host.d value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
)" + barrier + R"(
  write dst=host.f data=[1]
  atomic op=add_rtn_64 addr=host.d value=1
end
queue gpu1.q peer=gpu0
  poll_mem addr=host.f func=eq reference=1
  copy_linear bytes=4K src=gpu1.a dst=gpu0.a
  atomic op=add_rtn_64 addr=host.d value=1
end
host main
  submit *
  wait host.d == 2
  wait host.s >= 0
end)");
  };
  CHECK(relay("  fence addr=host.s value=1\n  poll_mem addr=host.s func=eq reference=1").proved());
  CHECK(relay("").verdict() == Verdict::refuted);
  CHECK(relay("  fence addr=host.s value=1").verdict() == Verdict::refuted);
  CHECK(relay("  fence addr=host.s value=2\n  poll_mem addr=host.s func=ge reference=1").verdict() == Verdict::refuted);
}

TEST_CASE("advice changes no verdict, and is an error for whoever asks for that") {
  const auto relay = [](const std::string& more, const CheckOptions& o = {}) {
    return checked("gpus 2\nbuffer gpu*.a bytes=4K init=zero\nsignal host.d value=0\nsignal host.extra value=0\n" +
                       more +
                       "queue gpu0.p peer=gpu1\n  copy_linear bytes=4K src=gpu0.a dst=gpu1.a\n"
                       "  fence addr=host.extra value=1\n  fence addr=host.d value=1\nend\n"
                       "host main\n  submit *\n  wait host.d == 1\nend",
                   o);
  };
  const auto r = relay("");
  INFO(said(r));
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].diagnostic.rule == "unused-signal");
  CHECK(r.findings[0].diagnostic.severity == Severity::note);
  CHECK(r.verdict() == Verdict::proved);
  const auto strict = relay("", {.strict = true});
  REQUIRE(strict.findings.size() == 1);
  CHECK(strict.verdict() == Verdict::refuted);
}

TEST_CASE("the class of a rule is the severity of its findings, and decides the verdict") {
  CHECK(rule_class(Severity::error) == "refutes");
  CHECK(rule_class(Severity::warning) == "leaves unproved");
  CHECK(rule_class(Severity::note) == "advice");
  CHECK(verdict_of(1, 1) == Verdict::refuted);
  CHECK(verdict_of(0, 1) == Verdict::unproved);
  CHECK(verdict_of(0, 0) == Verdict::proved);
  for (const auto& c : test::kCases) {
    if (!*c.rule) continue;
    const auto r = checked(c.text);
    for (const auto& f : r.findings) {
      const auto rule = std::find_if(schedule_rules().begin(), schedule_rules().end(),
                                     [&](const auto& s) { return s.id == f.diagnostic.rule; });
      if (rule == schedule_rules().end()) continue;
      INFO(rule->id);
      CHECK(f.diagnostic.severity == rule->severity);
    }
  }
}

TEST_CASE("a text that leaves choices open is not proved") {
  const std::string text = R"(gpus 1
buffer gpu0.a bytes=8K init=random
buffer gpu0.b bytes=8K
signal host.done value=0
choose pieces in [1, 2]
queue gpu0.q engine=2
  for i in 0..pieces
    copy_linear bytes=8K/pieces src=gpu0.a[i*8K/pieces] dst=gpu0.b[i*8K/pieces]
  end
  fence addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end)";
  const auto r = checked(text);
  CHECK(r.verdict() == Verdict::unproved);
  CHECK(has(r, "not-all-choices"));
  SourceMap map;
  const auto set = parse_schedule("sdma 1\n" + text + "\n", "case.sdma", {.set = {{"pieces", "2"}}, .map = &map});
  REQUIRE(set);
  CHECK(check(*set, {.map = &map}).proved());
}
