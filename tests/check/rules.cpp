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
  using K = KernelAgent::Step::Kind;
  KernelAgent gemm{.place = Place::gpu(0), .name = "gemm"};
  gemm.steps = {{.kind = K::write, .range = {in, 4096}}, {.kind = K::add, .signal = tile, .value = 1}};
  KernelAgent use{.place = Place::gpu(1), .name = "use"};
  use.steps = {{.kind = K::wait, .signal = done, .func = Compare::eq, .value = 1},
               {.kind = K::read, .range = {out, 4096}}};
  CheckOptions o{.kernels = {gemm, use}};
  const auto good = check(s, o);
  for (const auto& f : good.findings) UNSCOPED_INFO(to_string(f.diagnostic));
  CHECK(good.findings.empty());
  o.kernels[0].steps[1].system_scope = false;
  CHECK(has(check(s, o), "kernel-scope"));
  o.kernels[0].steps[1].system_scope = true;
  o.kernels[1].steps[0].system_scope = false;
  CHECK(has(check(s, o), "kernel-scope"));
  // Without the wait it is a race.
  o.kernels[1].steps.erase(o.kernels[1].steps.begin());
  CHECK(has(check(s, o), "race"));
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
