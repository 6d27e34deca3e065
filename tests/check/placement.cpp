// SPDX-License-Identifier: MIT
// Engines that do not exist, are dead, serve another link, or are shared.
#include "checked.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::said;

namespace {

/// A queue of gpu0 that copies between two buffers, and a host that waits for it.
std::string queue(const std::string& name, const std::string& where, const std::string& src, const std::string& dst) {
  return "queue gpu0." + name + " " + where + "\n  copy_linear bytes=4K src=" + src + " dst=" + dst +
         "\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n";
}
std::string schedule(const std::string& queues, int count = 1) {
  return "gpus 3\nbuffer gpu0.a bytes=4K\nbuffer gpu0.b bytes=4K\nbuffer gpu1.c bytes=4K\nbuffer gpu2.d bytes=4K\n"
         "buffer host.in bytes=4K\nbuffer host.out bytes=4K\nsignal host.done value=0\n" +
         queues + "host main\n  submit *\n  wait host.done == " + std::to_string(count) + "\nend";
}
std::string said_of(const std::string& where, const std::string& src, const std::string& dst, CheckOptions o = {}) {
  return said(checked(schedule(queue("q", where, src, dst)), o));
}

}  // namespace

TEST_CASE("an engine that the GPU does not have is an error") {
  CHECK(said_of("engine=15", "gpu0.a", "gpu0.b") == "");
  const auto r = checked(schedule(queue("q", "engine=17", "gpu0.a", "gpu1.c")));
  CHECK(said(r) == "engine-refused: gpu0.q: gpu0 has no engine 17\n");
  CHECK(r.findings[0].diagnostic.where == "case.sdma:11:3");
  CHECK(r.errors() == 1);
}

TEST_CASE("a dead engine is an error, and peer= avoids it") {
  auto node = *mi300x(3);
  node.gpus[0].dead_engines = std::uint64_t{1} << 14 | 1;
  const CheckOptions o{.topology = &node};
  CHECK(said_of("engine=14", "gpu0.a", "gpu1.c", o) ==
        "engine-refused: gpu0.q: engine 14 of gpu0 is dead: nothing would execute the queue\n");
  CHECK(said_of("engine=0", "gpu0.a", "host.out", o).find("engine 0 of gpu0 is dead") != std::string::npos);
  CHECK(said_of("peer=gpu1", "gpu0.a", "gpu1.c", o) == "");
  CHECK(said_of("peer=host", "gpu0.a", "host.out", o) == "");
  node.gpus[0].dead_engines = ~std::uint64_t{0};
  CHECK(said_of("peer=gpu1", "gpu0.a", "gpu1.c", o) ==
        "engine-refused: gpu0.q: the node recommends no engine for gpu1\n");
}

TEST_CASE("a GPU that the node does not have is an error, also if the node is the default one") {
  const auto two = *mi300x(1);
  const std::string text =
      "gpus 9\nsignal host.x value=0\nqueue gpu8.q engine=40\n  fence addr=host.x value=1\nend\n"
      "host main\n  submit *\n  wait host.x == 1\nend";
  CHECK(said(checked(text)) == "no-such-gpu: gpu8: this node has no GPU 8\n");
  CHECK(said(checked(text, {.topology = &two})) == "no-such-gpu: gpu1: this node has no GPU 1\n");
}

TEST_CASE("an engine that serves another link is advice") {
  const std::string host = "engine-choice: gpu0.q: copies to gpu1, but engine 0 faces the host\n";
  CHECK(said_of("engine=0", "gpu0.a", "gpu1.c") == host);
  CHECK(said_of("engine=0", "host.in", "gpu1.c") == host);
  CHECK(said_of("engine=1", "gpu1.c", "gpu0.a") ==
        "engine-choice: gpu0.q: copies from gpu1, but engine 1 faces the host\n");
  CHECK(said_of("engine=12", "gpu0.a", "gpu1.c") ==
        "engine-choice: gpu0.q: copies to gpu1, but the node recommends engine 12 for gpu2\n");
  CHECK(said_of("engine=12", "host.in", "gpu0.a") ==
        "engine-choice: gpu0.q: copies from host, but the node recommends engine 12 for gpu2\n");
  const auto r = checked(schedule(queue("q", "engine=12", "gpu0.a", "gpu1.c")));
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].diagnostic.severity == Severity::note);
  CHECK(r.proved());
  CHECK(r.findings[0].diagnostic.hint ==
        "write peer=gpu1 instead of engine=12: it selects the engine that the node recommends");
}

TEST_CASE("an engine that serves this link, no link, or the queue's only GPU is right") {
  CHECK(said_of("engine=14", "gpu0.a", "gpu1.c") == "");
  CHECK(said_of("engine=14", "gpu1.c", "gpu0.a") == "");
  CHECK(said_of("engine=3", "gpu0.a", "gpu1.c") == "");
  CHECK(said_of("engine=1", "gpu0.a", "host.out") == "");
  CHECK(said_of("engine=0", "gpu0.a", "gpu0.b") == "");
  CHECK(said_of("engine=12", "gpu0.a", "gpu0.b") == "");
  CHECK(said_of("peer=gpu2", "gpu0.a", "gpu1.c") == "");  // the author has chosen the link
  auto node = *mi300x(3);
  for (auto& l : node.links) l.engine_mask = ~0u;
  CHECK(said_of("engine=0", "gpu0.a", "gpu1.c", {.topology = &node}) == "");
}

TEST_CASE("queues of two directions or peers on one engine get a note") {
  const auto both = [&](const std::string& a, const std::string& b) { return said(checked(schedule(a + b, 2))); };
  CHECK(both(queue("out", "engine=1", "gpu0.a", "host.out"), queue("in", "engine=1", "host.in", "gpu0.b")) ==
        "shared-engine: gpu0.out (to host) and gpu0.in (from host) share engine 1\n");
  CHECK(both(queue("out", "engine=0", "gpu0.a", "host.out"), queue("in", "engine=1", "host.in", "gpu0.b")) == "");
  CHECK(both(queue("out", "peer=host", "gpu0.a", "host.out"), queue("in", "peer=host", "host.in", "gpu0.b")) ==
        "shared-engine: gpu0.out (to host) and gpu0.in (from host) share engine 0\n");
  CHECK(both(queue("out", "peer=host", "gpu0.a", "host.out"), queue("in", "from=host", "host.in", "gpu0.b")) == "");
  CHECK(both(queue("one", "engine=3", "gpu0.a", "gpu1.c"), queue("two", "engine=3", "gpu0.b", "gpu2.d")) ==
        "shared-engine: gpu0.one (to gpu1) and gpu0.two (to gpu2) share engine 3\n");
  const auto r =
      checked(schedule(queue("one", "engine=3", "gpu0.a", "gpu1.c") + queue("two", "engine=3", "gpu0.b", "gpu2.d"), 2));
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].diagnostic.severity == Severity::note);
}

TEST_CASE("the engines of dumps are those of their node, if it is given") {
  RingDump d{.gpu = GpuId{0}, .engine = EngineId{20}};
  d.dwords.resize(256);
  Writer w{d.dwords};
  REQUIRE(w.put(Fence{.addr = GpuVa{0x1000}, .value = 1}) == Errc::ok);
  d.wptr = d.committed = d.reserved = d.doorbell = w.written().size() * 4;
  const auto s = schedule_of(std::vector{d});
  REQUIRE(s);
  CHECK(said(check(*s, {.open = true})).find("engine") == std::string::npos);
  const auto node = *mi300x();
  CHECK(said(check(*s, {.topology = &node, .open = true})).find("gpu0 has no engine 20") != std::string::npos);
}

TEST_CASE("a copy between the host and another GPU is advice") {
  const auto text = [](const std::string& queue) {
    return "gpus 2\nbuffer host.in bytes=64K init=random\nbuffer gpu1.dst bytes=64K\nsignal host.done value=0\nqueue " +
           queue +
           "\n  copy_linear bytes=64K src=host.in dst=gpu1.dst\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
           "host main\n  submit *\n  wait host.done == 1\nend";
  };
  const auto r = sdma::test::checked(text("gpu0.h2d from=host"));
  CHECK(r.proved());
  CHECK(sdma::test::said(r) == "engine-choice: gpu0.h2d: copies between the host and gpu1, with an engine of gpu0\n");
  CHECK(sdma::test::said(sdma::test::checked(text("gpu1.h2d from=host"))).empty());
}
