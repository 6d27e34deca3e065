// SPDX-License-Identifier: MIT
// Where a proof ends: kinds of schedules that look alike, of which one is proved and the other is not.
#include "checked.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/schedule/run.hpp"

using namespace sdma;
using sdma::test::checked, sdma::test::has, sdma::test::said;

namespace {

struct Kind {
  const char* why;
  Verdict verdict;
  const char* rule;  ///< "" if it is proved
  std::string text;
};

/// Two queues of one GPU post to the word s; the host waits for both completions, and then for s.
std::string two_posts(const std::string& signal, const std::string& one, const std::string& two,
                      const std::string& wait) {
  return "gpus 1\nsignal host.s " + signal + "\nsignal host.done value=0\nqueue gpu0.x engine=2\n  " + one +
         "\n  atomic op=add_rtn_64 addr=host.done value=1\nend\nqueue gpu0.y engine=3\n  " + two +
         "\n  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit *\n  wait host.done == 2\n  wait " +
         wait + "\nend";
}
/// The same, but the second queue is submitted once the first one is complete.
std::string one_after_the_other(const std::string& signal, const std::string& one, const std::string& two,
                                const std::string& wait) {
  auto text = two_posts(signal, one, two, wait);
  return text.replace(text.find("submit *"), 8, "submit gpu0.x\n  wait host.done == 1\n  submit gpu0.y");
}
/// A kernel hands a flag to a queue, or a queue to a kernel.
std::string hand_over(const std::string& kernel, const std::string& queue) {
  return "gpus 2\nbuffer gpu0.a bytes=4K init=random\nbuffer gpu1.b bytes=4K\nsignal gpu0.f value=0\nsignal host.done "
         "value=0\nqueue gpu0.q peer=gpu1\n  " +
         queue + "\nend\nkernel gpu0.k\n  " + kernel + "\nend\nhost main\n  submit *\n  wait host.done == 1\nend";
}

const std::string kAdd = "atomic op=add_64 addr=host.s value=1", kSwap = "atomic op=swap_64 addr=host.s value=0",
                  kFence = "fence addr=host.s value=0", kDone = "atomic op=add_rtn_64 addr=host.done value=1";

const Kind kKinds[] = {
    {"a swap and an add have no order", Verdict::refuted, "fence-race",
     two_posts("value=0", kSwap, kAdd, "host.s == 1")},
    {"a fence and an add have no order", Verdict::refuted, "fence-race",
     two_posts("value=0 bits=32", kFence, "atomic op=add_32 addr=host.s value=1", "host.s == 1")},
    {"two swaps have no order", Verdict::refuted, "fence-race",
     two_posts("value=0", kSwap, "atomic op=swap_64 addr=host.s value=1", "host.s == 1")},
    {"a swap, then an add", Verdict::proved, "", one_after_the_other("value=9", kSwap, kAdd, "host.s == 1")},
    {"an or and an add have no order", Verdict::refuted, "fence-race",
     two_posts("value=0", "atomic op=or_64 addr=host.s value=1", kAdd, "host.s >= 1")},
    {"adds of different widths, with a carry", Verdict::refuted, "fence-race",
     two_posts("value=0xffffffff", kAdd, "atomic op=add_32 addr=host.s value=1", "host.s >= 0x100000000")},
    {"adds of different widths that cannot carry", Verdict::proved, "",
     two_posts("value=7", kAdd, "atomic op=add_32 addr=host.s value=1", "host.s == 9")},
    {"adds of different widths, one after the other", Verdict::proved, "",
     one_after_the_other("value=0xffffffff", kAdd, "atomic op=add_32 addr=host.s value=1", "host.s == 0x100000001")},
    {"or of different bits", Verdict::proved, "",
     two_posts("value=0", "atomic op=or_64 addr=host.s value=1", "atomic op=or_64 addr=host.s value=2", "host.s == 3")},
    {"or of the same bit", Verdict::unproved, "unknown-value",
     two_posts("value=0", "atomic op=or_64 addr=host.s value=1", "atomic op=or_64 addr=host.s value=3", "host.s == 3")},
    {"inc up to the largest value is an addition", Verdict::proved, "",
     two_posts("value=0", "atomic op=inc_64 addr=host.s value=0xffffffffffffffff", kAdd, "host.s == 2")},
    {"inc up to a limit, beside an addition", Verdict::refuted, "fence-race",
     two_posts("value=0", "atomic op=inc_64 addr=host.s value=1", kAdd, "host.s >= 1")},
    {"inc of two queues below the limit", Verdict::proved, "",
     two_posts("value=0", "atomic op=inc_64 addr=host.s value=2", "atomic op=inc_64 addr=host.s value=2",
               "host.s == 2")},
    {"inc of two queues that reach the limit", Verdict::refuted, "fence-race",
     two_posts("value=0", "atomic op=inc_64 addr=host.s value=1", "atomic op=inc_64 addr=host.s value=1",
               "host.s == 0")},
    {"dec of two queues", Verdict::proved, "",
     two_posts("value=2", "atomic op=dec_64 addr=host.s value=2", "atomic op=dec_64 addr=host.s value=9",
               "host.s == 0")},
    {"the largest of two values", Verdict::proved, "",
     two_posts("value=0", "atomic op=umax_64 addr=host.s value=3", "atomic op=umax_64 addr=host.s value=2",
               "host.s == 3")},
    {"the least of two values", Verdict::proved, "",
     two_posts("value=9", "atomic op=umin_64 addr=host.s value=3", "atomic op=umin_64 addr=host.s value=2",
               "host.s <= 2")},
    {"a max and an add have no order", Verdict::refuted, "fence-race",
     two_posts("value=0", "atomic op=umax_64 addr=host.s value=3", kAdd, "host.s >= 3")},
    {"a max of one queue satisfies a wait that is meant for the other", Verdict::refuted, "unawaited", R"(gpus 2
buffer gpu0.a bytes=4K init=random
buffer gpu1.b bytes=4K
signal host.s value=0
queue gpu0.x peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  atomic op=umax_64 addr=host.s value=1
end
queue gpu0.y engine=2
  atomic op=umax_64 addr=host.s value=2
end
host main
  submit *
  wait host.s == 2
end)"},
    {"both halves of a word by one queue", Verdict::proved, "",
     two_posts("value=0", "fence addr=host.s[4] value=1\n  fence addr=host.s value=7", "nop", "host.s == 0x100000007")},
    {"the halves of a word by two queues", Verdict::unproved, "unknown-value",
     two_posts("value=0", "fence addr=host.s[4] value=1", "fence addr=host.s value=7", "host.s == 0x100000007")},
    {"a fence resets the high half while a thread may still wait for it", Verdict::refuted, "missed-value", R"(gpus 1
signal host.s value=0
signal host.done value=0
signal host.end value=0
queue gpu0.q engine=2
  fence addr=host.s[4] value=0
  atomic op=add_rtn_64 addr=host.done value=1
end
host slow
  wait host.s >= 0x100000000
  set host.end = 1
end
host main
  set host.s = 0x100000000
  submit *
  wait host.done == 1
  wait host.end == 1
end)"},
    {"the word grows, but its low half goes back", Verdict::refuted, "reset-while-polled", R"(gpus 1
signal host.s value=0
signal host.done value=0
queue gpu0.q engine=2
  poll_mem addr=host.s func=ge reference=4
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  set host.s = 4
  set host.s = 0x100000001
  wait host.done == 1
end)"},
    {"a queue polls a flag that a kernel sets for its own GPU", Verdict::refuted, "kernel-scope",
     hand_over("set gpu0.f = 1 scope=agent", "poll_mem addr=gpu0.f func=ge reference=1\n  " + kDone)},
    {"the same at system scope", Verdict::proved, "",
     hand_over("set gpu0.f = 1", "poll_mem addr=gpu0.f func=ge reference=1\n  " + kDone)},
    {"a kernel waits at its own GPU's scope for a queue", Verdict::refuted, "kernel-scope",
     hand_over("wait gpu0.f == 1 scope=agent\n  set host.done = 1", "atomic op=add_rtn_64 addr=gpu0.f value=1")},
    {"a queue and a kernel add to one word, the kernel for its GPU alone", Verdict::refuted, "kernel-scope",
     hand_over("add gpu0.f += 1 scope=agent\n  wait gpu0.f == 2\n  set host.done = 1",
               "atomic op=add_rtn_64 addr=gpu0.f value=1")},
    {"a kernel passes on at system scope what another has released for their GPU only", Verdict::refuted,
     "kernel-scope",
     hand_over("store gpu0.a = random\n  set gpu0.f = 1 scope=agent\nend\nkernel gpu0.next\n  wait gpu0.f == 1 "
               "scope=agent\n  set host.go = 1\nend\nsignal host.go value=0\nkernel gpu0.idle",
               "poll_mem addr=host.go func=ge reference=1\n  copy_linear bytes=4K src=gpu0.a dst=gpu1.b\n  " + kDone)},
    {"a stamp in host memory is announced by a fence in VRAM", Verdict::refuted, "vram-fence",
     R"(gpus 1
buffer host.t bytes=64 align=8
signal gpu0.f value=0 bits=32
signal host.done value=0 bits=32
queue gpu0.q engine=2
  timestamp addr=host.t
  fence addr=gpu0.f value=1
end
queue gpu0.r engine=3
  poll_mem addr=gpu0.f func=eq reference=1
  fence addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
  load host.t[0..+8]
end)"},
};

std::string relay(const std::string& post) {
  return "gpus 2\nbuffer gpu0.a bytes=4K init=random\nbuffer gpu1.b bytes=4K\nsignal gpu1.n value=0 bits=32\nsignal "
         "host.done value=0\nqueue gpu0.q peer=gpu1\n  copy_linear bytes=4K src=gpu0.a dst=gpu1.b\n  " +
         post +
         "\nend\nqueue gpu1.r engine=1\n  poll_mem addr=gpu1.n func=ge reference=1\n  fence addr=host.done "
         "value=1\nend\nhost main\n  submit *\n  wait host.done == 1\nend";
}

std::string bound_error(const std::string& text) {
  const auto s = parse_schedule("sdma 1\n" + text + "\n");
  REQUIRE(s);
  const auto d = SoftDevice::open({.gpus = 2});
  REQUIRE(d);
  const auto b = bind(*s, **d);
  return b ? "" : b.error().at(0).message;
}

}  // namespace

TEST_CASE("of two schedules that look alike, the checker proves the one that is right") {
  for (const auto& k : kKinds) {
    const auto r = checked(k.text);
    INFO(k.why);
    INFO(said(r));
    CHECK(name(r.verdict()) == name(k.verdict));
    CHECK((*k.rule == 0 || has(r, k.rule)));
  }
}

TEST_CASE("links decide what engines reach, and whether they add there") {
  const auto atomic = relay("atomic op=add_rtn_32 addr=gpu1.n value=1"), fence = relay("fence addr=gpu1.n value=1");
  auto node = *mi300x(2);
  CHECK(checked(atomic, {.topology = &node}).proved());
  for (auto& l : node.links) l.atomics_64 = false;
  CHECK(has(checked(atomic, {.topology = &node}), "no-pcie-atomics"));
  CHECK(checked(fence, {.topology = &node}).proved());
  std::erase_if(node.links, [](const Link& l) { return l.from.kind == l.to.kind; });
  CHECK(has(checked(fence, {.topology = &node}), "no-link"));
  const auto kernel =
      "gpus 2\nsignal gpu1.n value=0\nkernel gpu0.k\n  add gpu1.n += 1\nend\nhost main\n  wait gpu1.n == 1\nend";
  CHECK(has(checked(kernel, {.topology = &node}), "no-link"));
  // A condition reads its word, whatever its outcome.
  const auto condition = [](const std::string& word) {
    return "gpus 2\nsignal " + word +
           " value=0 bits=32\nsignal host.done value=0\nqueue gpu0.q engine=2\n  cond_exec addr=" + word +
           " reference=0 dwords=8\n  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit gpu0.q\n" +
           "  wait host.done == 1\nend";
  };
  CHECK(checked(condition("host.n")).proved());
  CHECK(checked(condition("gpu1.n")).proved());
  CHECK(has(checked(condition("gpu1.n"), {.topology = &node}), "no-link"));
}

TEST_CASE("a proof holds for the GPUs that it names") {
  const std::string text = R"(gpus 2
buffer gpu0.a bytes=4K init=random
buffer gpu1.b bytes=4K
signal host.go value=0
signal host.done value=0
queue gpu0.waits peer=gpu1
  poll_mem addr=host.go func=ge reference=1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu0.starts engine=2
  atomic op=add_rtn_64 addr=host.go value=1
end
host main
  submit *
  wait host.done == 1
end)";
  CHECK(checked(text).proved());
  // The engine for gpu3 is the one on which the other queue is.
  CHECK(has(checked(text, {.gpus = {GpuId{0}, GpuId{3}}}), "engine-wait"));
  CHECK(has(checked(text, {.gpus = {GpuId{0}, GpuId{9}}}), "no-such-gpu"));
  CHECK(has(checked(text, {.gpus = {GpuId{0}, GpuId{0}}}), "no-such-gpu"));
  CHECK(has(checked(text, {.gpus = {GpuId{0}}}), "no-such-gpu"));
}

TEST_CASE("GPUs that the node does not have are an error, with a node that has them") {
  const std::string text =
      "gpus 9\nsignal host.done value=0\nqueue gpu8.q engine=2\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "host main\n  submit *\n  wait host.done == 1\nend";
  const auto r = checked(text);
  REQUIRE(has(r, "no-such-gpu"));
  CHECK(r.findings[0].diagnostic.hint.find("--topology=mesh:16") != std::string::npos);
  const auto mesh = *layout("mesh:16");
  CHECK(checked(text, {.topology = &mesh}).proved());
}

TEST_CASE("what bind refuses is not proved, and for the same reason") {
  const std::string queues =
      "gpus 1\nsignal host.done value=0\nfor i in 0..9\n  queue gpu0.q{i} engine=2\n    atomic op=add_rtn_64 "
      "addr=host.done value=1\n  end\nend\nhost main\n  submit *\n  wait host.done == 9\nend";
  const std::string word =
      "gpus 1\nbuffer host.m bytes=64 init=zero\nsignal host.w value=0 bits=32 at=host.m[2]\nhost main\n  set host.w = "
      "1\n  wait host.w == 1\nend";
  for (const auto& text : {queues, word}) {
    const auto r = checked(text);
    REQUIRE(r.verdict() == Verdict::refuted);
    const auto why = bound_error(text);
    INFO(why);
    CHECK(!why.empty());
    CHECK(r.findings[0].diagnostic.message.find(why) != std::string::npos);
  }
}

TEST_CASE("a condition stays in one piece with what it may skip") {
  // 8 + 5 + 7 dwords; the copies would have doorbells of their own, and 12 rounds end in the middle of the ring.
  const std::string text = R"(gpus 2
buffer gpu0.a bytes=4K init=random
buffer gpu1.b bytes=4K
buffer gpu1.c bytes=4K init=zero
buffer gpu1.z bytes=4K init=zero
signal host.w value=0
signal host.done value=0
queue gpu0.q peer=gpu1 ring=1K doorbell=each
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  cond_exec addr=host.w reference=1 dwords=7
  copy_linear bytes=4K src=gpu0.a dst=gpu1.c
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  repeat 12
    submit *
    wait host.done >= epoch
  end
end
expect gpu1.b == gpu0.a
expect gpu1.c == gpu1.z)";
  CHECK(checked(text).proved());
  const auto s = parse_schedule("sdma 1\n" + text + "\n");
  REQUIRE(s);
  const auto d = SoftDevice::open({.gpus = 2});
  REQUIRE(d);
  const auto b = bind(*s, **d);
  REQUIRE(b);
  const auto r = run(*b, {.time_limit = std::chrono::minutes(1)});
  CHECK(r.findings.empty());
}

TEST_CASE("a limit that is exceeded is no error") {
  const auto shared = [](int rounds) {
    return "gpus 1\nbuffer gpu0.a bytes=4K\nbuffer gpu0.b bytes=4K\nsignal host.go value=0\nsignal host.done "
           "value=0\nqueue gpu0.q engine=2\n  copy_linear bytes=4K src=gpu0.a dst=gpu0.b\n  atomic op=add_rtn_64 "
           "addr=host.done value=1\nend\nhost main\n  store gpu0.a = random\n  set host.go = 1\n  wait host.done == " +
           std::to_string(2 * rounds) + "\nend\nhost one\n  wait host.go == 1\n  repeat " + std::to_string(rounds) +
           "\n    submit gpu0.q\n  end\nend\nhost two\n  wait host.go == 1\n  repeat " + std::to_string(rounds) +
           "\n    submit gpu0.q\n  end\nend";
  };
  CHECK_FALSE(has(checked(shared(140)), "not-all-order"));
  const auto r = checked(shared(1100));
  CHECK(r.errors() == 0);
  REQUIRE(has(r, "not-all-order"));
  CHECK(said(r).find("2200") != std::string::npos);
}

TEST_CASE("every way to take the choices of a text is checked") {
  const std::string text = R"(sdma 1
gpus 1
choose early in [0, 1]
buffer gpu0.a bytes=4K init=random
buffer gpu0.b bytes=4K
signal host.s value=0 bits=32
queue gpu0.q engine=2
  if early == 1
    fence addr=host.s value=1
  end
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  if early == 0
    fence addr=host.s value=1
  end
end
host main
  submit *
  wait host.s >= 1
end
)";
  const auto all = check_text(text, "case.sdma");
  REQUIRE(all);
  CHECK(all->alternatives == 2);
  CHECK(all->report.verdict() == Verdict::refuted);
  CHECK(all->report.findings[0].diagnostic.message.find("(with early=1)") != std::string::npos);
  const auto one = check_text(text, "case.sdma", {.set = {{"early", "0"}}});
  REQUIRE(one);
  CHECK(one->report.proved());
  const auto few = check_text(text, "case.sdma", {}, {.max_alternatives = 1});
  REQUIRE(few);
  CHECK(has(few->report, "not-all-choices"));
  CHECK_FALSE(check_text("sdma 1\nnonsense\n", "case.sdma"));
}
