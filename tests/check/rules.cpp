// SPDX-License-Identifier: MIT
// Every rule of the checker, broken once, and beside it what is right (cases.hpp).
#include "cases.hpp"
#include "checked.hpp"

#include <fstream>
#include <set>
#include <sstream>

using namespace sdma;

using sdma::test::checked;
using sdma::test::has;
using sdma::test::kCases;

TEST_CASE("each rule finds what it is for, and no other error") {
  for (const auto& c : kCases) {
    INFO(c.text);
    const auto r = checked(c.text);
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    if (*c.rule) CHECK(has(r, c.rule));
    else CHECK(r.findings.empty());
    for (const auto& f : r.findings)
      if (f.diagnostic.severity == Severity::error) CHECK(f.diagnostic.rule == c.rule);
  }
}

TEST_CASE("a finding names both packets, the bytes, the rules and what is missing") {
  const auto r = checked(kCases[0].text);
  REQUIRE(r.findings.size() == 1);
  const auto& f = r.findings[0];
  REQUIRE(f.locations.size() == 2);
  CHECK(f.locations[0].agent == "gpu0.p");
  CHECK(f.locations[0].line == 7);
  CHECK(f.locations[1].agent == "gpu1.q");
  CHECK(f.locations[1].line == 11);
  CHECK(f.overlap == "gpu1.a[2K..+2K]");
  REQUIRE(f.rests_on.size() == 1);
  CHECK(f.rests_on[0]->id == "X3");
  CHECK(f.diagnostic.where == "case.sdma:11:3");
  CHECK(f.diagnostic.hint == "line 8 announces it; before line 11 add: poll_mem addr=host.x func=eq reference=1");
}

TEST_CASE("an option relaxes the rule that it names") {
  const auto fence_then_copy = kCases[2].text;
  CHECK(has(checked(fence_then_copy), "race"));
  for (const char* option : {"fence=full", "copies=inorder"}) {
    CheckOptions o;
    REQUIRE(o.profile.set(option));
    INFO(option);
    CHECK(checked(fence_then_copy, o).errors() == 0);
  }
  CHECK(checked(fence_then_copy, {.profile = Profile::rocr()}).errors() == 0);
  CHECK(checked(fence_then_copy, {.profile = Profile::strict()}).errors() == 0);
  CHECK(checked(fence_then_copy, {.profile = Profile::cuda()}).errors() == 0);
  Profile p;
  CHECK_FALSE(p.set("fence=perhaps"));
  for (const auto option : profile_options()) CHECK(p.set(option));
}

TEST_CASE("atomics to the host's memory need a link that completes them") {
  const auto text = R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)";
  CHECK(checked(text).findings.empty());
  CheckOptions o;
  o.profile.pcie_atomics = false;
  CHECK(has(checked(text, o), "no-pcie-atomics"));
  auto node = *mi300x(1);
  for (auto& l : node.links) l.atomics_64 = false;
  CHECK(has(checked(text, {.topology = &node}), "no-pcie-atomics"));
}

TEST_CASE("kernels release and acquire at system scope") {
  Schedule s{.gpus = 2};
  const auto in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = 4096});
  const auto out = s.add_buffer({.place = Place::gpu(1), .name = "out", .bytes = 4096});
  const auto tile = s.add_signal({.name = "tile"}), done = s.add_signal({.name = "done"});
  auto& q = s.add_queue({.place = Place::gpu(0), .name = "q", .peer = Place::gpu(1)});
  q.put(PollMem{.addr = tile, .func = Compare::ge, .reference = 1}).copy({.src = in, .dst = out, .bytes = 4096});
  q.put(Atomic{.addr = done, .value = 1});
  s.add_host("main").submit(q).wait(done, Compare::eq, 1);
  s.add_kernel(Place::gpu(0), "gemm").store({in, 4096}).add(tile, 1);
  s.add_kernel(Place::gpu(1), "use").wait(done, Compare::eq, 1).load({out, 4096});
  const auto good = check(s);
  for (const auto& f : good.findings) UNSCOPED_INFO(to_string(f.diagnostic));
  CHECK(good.findings.empty());
  CHECK(good.proved());
  auto& gemm = s.kernels[0].actions;
  auto& use = s.kernels[1].actions;
  gemm[1].system_scope = false;
  CHECK(has(check(s), "kernel-scope"));
  gemm[1].system_scope = true;
  use[0].system_scope = false;
  CHECK(has(check(s), "kernel-scope"));
  // Without the wait it is a race.
  use.erase(use.begin());
  CHECK(has(check(s), "race"));
}

TEST_CASE("a kernel that submits a queue releases its stores to it") {
  const auto with = [](const std::string& kernel) {
    return checked(R"(gpus 2
buffer gpu0.tile bytes=4K
buffer gpu1.tile bytes=4K
signal host.done value=0
queue gpu0.push peer=gpu1
  copy_linear bytes=4K src=gpu0.tile dst=gpu1.tile
  atomic op=add_rtn_64 addr=host.done value=1
end
kernel gpu0.gemm
)" + kernel + R"(
end
host main
  wait host.done == 1
end)");
  };
  const auto good = with("store gpu0.tile = random\nsubmit gpu0.push");
  for (const auto& f : good.findings) UNSCOPED_INFO(to_string(f.diagnostic));
  CHECK(good.proved());
  CHECK(has(with("submit gpu0.push\nstore gpu0.tile = random"), "race"));
  CHECK(has(with("compute ns=5"), "never-met"));
  CHECK(has(with("compute ns=5"), "never-submitted"));
  // A wait in a repeat of a kernel is checked in each round, and named with its line.
  const auto rounds = with("store gpu0.tile = random\nrepeat 2\nsubmit gpu0.push\nend");
  CHECK_FALSE(rounds.proved());
}

TEST_CASE("a store of bytes to a word that is waited for is data, not a flag") {
  const auto r = checked(R"(gpus 1
buffer host.b bytes=64 init=zero
signal host.w value=0 bits=32 at=host.b[16]
signal host.x value=0
queue gpu0.q engine=0
  poll_mem addr=host.w func=eq reference=0x41414141
  fence addr=host.x value=1
end
host main
  submit *
  store host.b[8..+16] = 0x41
  wait host.x == 1
end)");
  CHECK(has(r, "data-as-flag"));
  CHECK_FALSE(r.proved());
}

TEST_CASE("what a host loads and stores races with copies that nothing orders") {
  const auto with = [](const std::string& host) {
    return checked(R"(gpus 1
buffer host.in bytes=4K
buffer gpu0.out bytes=4K
signal host.x value=0
queue gpu0.q from=host
  copy_linear bytes=4K src=host.in dst=gpu0.out
  fence addr=host.x value=1
end
host main
  )" + host + "\nend");
  };
  CHECK(with("store host.in = random\nsubmit *\nwait host.x == 1\nload gpu0.out").proved());
  const auto late = with("submit *\nstore host.in[2K..+1K] = random\nwait host.x == 1");
  REQUIRE(has(late, "race"));
  CHECK(late.findings[0].diagnostic.message.find("host.in[2K..+1K]") != std::string::npos);
  CHECK(late.findings[0].diagnostic.excerpt.find("writes host.in[2K..+1K]") != std::string::npos);
  CHECK(has(with("submit *\nload gpu0.out\nwait host.x == 1"), "race"));
  CHECK(with("submit *\nload host.in\nwait host.x == 1").proved());
  CHECK(with("submit *\nwait host.x == 1\nexpect gpu0.out == host.in").proved());
  CHECK(has(with("store host.in = zero\nsubmit *\nwait host.x == 1\nexpect gpu0.out == old host.in"), "wrong-result"));
  const auto early = with("submit *\nexpect host.in == gpu0.out\nwait host.x == 1");
  REQUIRE(has(early, "race"));
  CHECK(early.findings[0].diagnostic.excerpt.find("reads gpu0.out") != std::string::npos);
  CHECK(has(with("submit *\nexpect gpu0.out == old host.in\nwait host.x == 1"), "race"));
}

TEST_CASE("what a kernel does has a line, and its rounds are counted") {
  const auto r = checked(R"(gpus 1
signal host.x value=0
kernel gpu0.k
  repeat 2
    set host.x = epoch
    wait host.x == 1
  end
end
host main
  wait host.x == 2
end)");
  const auto found = std::find_if(r.findings.begin(), r.findings.end(),
                                  [](const auto& f) { return f.diagnostic.severity == Severity::error; });
  REQUIRE(found != r.findings.end());
  const auto text = to_string(found->diagnostic);
  INFO(text);
  CHECK(text.find("kernel gpu0.k") != std::string::npos);
  CHECK(text.find("(round 2)") != std::string::npos);
  CHECK(text.find("wait host.x == 1") != std::string::npos);
}

TEST_CASE("a packet that runs out of its buffer is found in a schedule out of C++") {
  Schedule s{.gpus = 1};
  const auto in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = 4096});
  const auto out = s.add_buffer({.place = Place::gpu(0), .name = "out", .bytes = 4096});
  s.add_queue({.place = Place::gpu(0), .name = "q", .peer = Place::gpu(0)})
      .copy({.src = in, .dst = out + 64, .bytes = 4096});
  CHECK(has(check(s), "outside"));
}

TEST_CASE("a set of dumps: what the rings say to each other, and no word of what nobody knows") {
  const auto dump_of = [](std::uint32_t gpu, auto fill) {
    RingDump d{.gpu = GpuId{gpu}};
    d.dwords.resize(256);
    Writer w{d.dwords};
    fill(w);
    d.wptr = d.committed = d.reserved = d.doorbell = w.written().size() * 4;
    return d;
  };
  const GpuVa a{0x10000}, b{0x20000}, c{0x30000}, flag{0x40000}, other{0x50000};
  const auto first = [&](Writer& w) {
    REQUIRE(w.put(CopyLinear{.src = a, .dst = b, .bytes = 4096}) == Errc::ok);
    REQUIRE(w.put(Fence{.addr = flag, .value = 1}) == Errc::ok);
  };
  for (const bool wait : {false, true}) {
    const std::vector<RingDump> dumps{dump_of(0, first), dump_of(1, [&](Writer& w) {
                                        // Somebody outside says go, and what he says is his business.
                                        REQUIRE(w.put(PollMem{.addr = other, .reference = 1}) == Errc::ok);
                                        if (wait) REQUIRE(w.put(PollMem{.addr = flag, .reference = 1}) == Errc::ok);
                                        REQUIRE(w.put(CopyLinear{.src = b, .dst = c, .bytes = 4096}) == Errc::ok);
                                        REQUIRE(w.put(Fence{.addr = flag + 4, .value = 1}) == Errc::ok);
                                      })};
    const auto s = schedule_of(dumps);
    REQUIRE(s);
    const auto r = check(*s, {.open = true});
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(has(r, "race") == !wait);
    CHECK(r.errors() == (wait ? 0 : 1));
  }
}

TEST_CASE("rules are sorted, and each has a section in docs/rules.md") {
  std::ifstream file(SDMA_SOURCE_ROOT "/docs/rules.md");
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(file);
  for (const auto& r : schedule_rules()) {
    INFO(r.id);
    CHECK(text.str().find("\n### " + std::string(r.id) + "\n") != std::string::npos);
  }
}
