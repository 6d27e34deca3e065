// SPDX-License-Identifier: MIT
#include "sdma/schedule/bind.hpp"

#include "sdma/sync/wait.hpp"
#include "support.hpp"

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

const std::string kPair =
    "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=64K align=64K\n"
    "buffer gpu1.tail bytes=4K at=gpu1.out[60K]\nsignal host.go value=0\nsignal gpu1.flag value=3 bits=32\n"
    "signal gpu1.word value=5 bits=32 at=gpu1.out[12]\n"
    "queue gpu0.q peer=gpu1\n  poll_mem addr=host.go func=ge reference=epoch\n"
    "  copy_linear bytes=4K src=gpu0.in[4K] dst=gpu1.tail\n  fence addr=gpu1.flag value=2*epoch+1\n"
    "  fence addr=gpu1.word[0] value=9\n  fence addr=0x1000 value=1\nend\nqueue gpu0.constant peer=host\n  nop\nend\n";

template <Packet P> P packet(const Bound& b, std::size_t q, std::size_t index) {
  Reader r{b.packets(q)};
  auto v = r.next();
  for (; index > 0; --index) v = r.next();
  REQUIRE(v.is<P>());
  return decode<P>(v.dwords);
}

std::string refused(const Schedule& s, Device& d, const BindOptions& o = {}) {
  const auto b = bind(s, d, o);
  return b ? "" : lines(b.error());
}

}  // namespace

TEST_CASE("every address field is moved, and what is no symbol stays") {
  const auto d = node();
  const auto s = parse(kPair);
  const auto b = link(s, *d);
  const auto in = b.address(link_buffer(0)), out = b.address(link_buffer(1));
  CHECK(out.value % (64 << 10) == 0);
  CHECK(b.address(link_buffer(2)) == out + (60 << 10));
  CHECK(b.address(link_buffer(0) + 5) == in + 5);
  CHECK(b.address(GpuVa{0x1000}) == GpuVa{0x1000});
  CHECK(packet<PollMem>(b, 0, 0).addr == b.signal(0).va);
  CHECK(packet<CopyLinear>(b, 0, 1).src == in + 4096);
  CHECK(packet<CopyLinear>(b, 0, 1).dst == out + (60 << 10));
  CHECK(packet<Fence>(b, 0, 2).addr == b.signal(1).va);
  CHECK(packet<Fence>(b, 0, 3).addr == out + 12);
  CHECK(packet<Fence>(b, 0, 4).addr == GpuVa{0x1000});
  CHECK(b.name(out + (60 << 10) + 8) == "gpu1.tail[8]");
  CHECK(b.name(b.signal(0).va + 4) == "host.go[4]");
  CHECK(b.name(GpuVa{0x1000}) == "");
  CHECK(b.value(1) == 3);
  CHECK(b.bytes({link_buffer(2), 16}).data() == b.bytes({link_buffer(1), 64 << 10}).data() + (60 << 10));
}

TEST_CASE("engines are those that the node recommends, for the GPUs that were given") {
  const auto d = node();
  const auto s = parse(kPair);
  const auto& t = d->topology();
  const auto plain = link(s, *d);
  CHECK(plain.queue(0).gpu() == GpuId{0});
  CHECK(plain.queue(0).engine() == *t.engine_for(GpuId{0}, GpuId{1}));
  CHECK(plain.queue(1).engine() == *t.engine_for(GpuId{0}, HostDirection::to_host));
  const auto renamed = link(s, *d, {.gpus = {GpuId{5}, GpuId{2}}});
  CHECK(renamed.queue(0).gpu() == GpuId{5});
  CHECK(renamed.queue(0).engine() == *t.engine_for(GpuId{5}, GpuId{2}));
}

TEST_CASE("each direction between a GPU and its host has an engine of its own") {
  const auto s = parse("sdma 1\ngpus 1\nqueue gpu0.down peer=host\nend\nqueue gpu0.up from=host\nend\n");
  const auto d = node(1);
  const auto b = link(s, *d);
  CHECK(b.queue(0).engine() == EngineId{0});
  CHECK(b.queue(1).engine() == EngineId{1});
  auto one = *mi300x(1);
  one.gpus[0].dead_engines = 2;
  auto only = SoftDevice::open({.topology = one});
  REQUIRE(only);
  const auto shared = link(s, **only);
  CHECK(shared.queue(1).engine() == EngineId{0});
}

TEST_CASE("what cannot be bound says why") {
  const auto d = node(2);
  auto s = parse(kPair);
  CHECK(refused(s, *d, {.gpus = {GpuId{0}}}) == "gpus: the schedule has 2 GPUs; GPUs chosen: 1");
  CHECK(refused(s, *d, {.gpus = {GpuId{0}, GpuId{7}}}) == "gpu1: this node has no GPU 7");
  CHECK(refused(s, *d, {.gpus = {GpuId{1}, GpuId{1}}}).find("GPU 1 is chosen for two") != std::string::npos);
  s.buffers[2].alignment = 8192;
  CHECK(refused(s, *d).starts_with("buffer gpu1.tail: it must be aligned to 8K bytes, but its address is 0x"));
  CHECK(refused(parse("sdma 1\nbuffer host.x bytes=4K at=0x7f0000000000\n"), *d) ==
        "host.x: it has the fixed address 0x7f0000000000, which no device can provide");
  CHECK(refused(parse("sdma 1\ngpus 1\nqueue gpu0.q engine=40\n  nop\nend\n"), *d).find("has no engine 40") !=
        std::string::npos);
  auto large = parse("sdma 1\ngpus 1\nqueue gpu0.q engine=0 ring=2K\n  nop payload=[0*200]\nend\n");
  large.queues[0].ring_bytes = 1024;
  CHECK(refused(large, *d) == "queue gpu0.q: a packet of 201 dwords is more than half the ring");
  CHECK(refused(parse("sdma 1\nbuffer host.b bytes=64\nbuffer host.odd bytes=8 at=host.b[2]\ngpus 1\n"
                      "queue gpu0.q engine=0\n  fence addr=host.odd value=1\nend\n"),
                *d) ==
        "queue gpu0.q at dword 0: fence addr: the rule 'alignment' does not hold at the addresses of its buffers");
  Schedule bad{.gpus = 1};
  bad.add_buffer({.name = "x"});
  CHECK(refused(bad, *d).find("1 to 2^40 bytes") != std::string::npos);
}

TEST_CASE("rounds are published ahead, each polls its own epoch, and one store lets all of them go") {
  const auto d = node(2);
  const auto b = link(parse("sdma 1\ngpus 2\nsignal host.go value=0\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
                            "  poll_mem addr=host.go func=ge reference=epoch\n"
                            "  atomic op=add_rtn_64 addr=host.done value=1\nend\n"),
                      *d);
  const auto deadline = Deadline::in(20s);
  for (std::uint64_t e = 1; e <= 3; ++e) CHECK(b.submit(0, deadline).value_or(0) == e);
  CHECK(packet<PollMem>(b, 0, 0).reference == 3);
  b.set(0, 1);
  CHECK(wait(b.signal(1), Compare::ge, 1, deadline, b.ring(0)));
  CHECK(b.value(1) == 1);
  b.set(0, 3);
  CHECK(wait(b.signal(1), Compare::eq, 3, deadline, b.ring(0)));
  for (std::uint64_t e = 4; e <= 10000; ++e) {
    REQUIRE(b.submit(0, deadline));
    b.set(0, e);
    if (e % 100 == 0) REQUIRE(wait(b.signal(1), Compare::eq, e, deadline, b.ring(0)));
  }
}

TEST_CASE("an epoch that 32 bits do not hold is refused, and a restart begins again") {
  const auto d = node(2);
  const auto b =
      link(parse("sdma 1\ngpus 2\nsignal host.go value=0xffffffff\nsignal host.done value=0\n"
                 "queue gpu0.q peer=gpu1\n  poll_mem addr=host.go func=ge reference=epoch\n"
                 "  atomic op=add_rtn_64 addr=host.done value=1\nend\nqueue gpu1.constant engine=0\n  nop\nend\n"),
           *d);
  const auto deadline = Deadline::in(20s);
  b.set_epoch(0, 0xffffffff - 2);
  CHECK(b.submit(0, deadline).value_or(0) == 0xffffffff - 1);
  CHECK(b.submit(0, deadline).value_or(0) == 0xffffffff);
  const auto past = b.submit(0, deadline);
  REQUIRE_FALSE(past);
  CHECK(past.error() == Errc::epoch_overflow);
  CHECK(b.epoch(0) == 0xffffffff);
  CHECK(packet<PollMem>(b, 0, 0).reference == 0xffffffff);
  CHECK(wait(b.signal(1), Compare::eq, 2, deadline, b.ring(0)));
  // Constant packets know no wrap.
  b.set_epoch(1, 0xffffffff);
  CHECK(b.submit(1, deadline).value_or(0) == std::uint64_t{1} << 32);

  CHECK(b.restart(deadline) == Errc::ok);
  CHECK(b.value(1) == 0);
  CHECK(b.submit(0, deadline).value_or(0) == 1);
  CHECK(packet<PollMem>(b, 0, 0).reference == 1);
  CHECK(wait(b.signal(1), Compare::eq, 1, deadline, b.ring(0)));
}

TEST_CASE("packets that are more than half a ring are published in pieces") {
  const auto d = node(2);
  const auto b = link(parse("sdma 1\ngpus 1\nsignal host.done value=0\nqueue gpu0.q engine=0 ring=1K\n"
                            "  atomic op=add_rtn_64 addr=host.done value=1 times=100\nend\n"),
                      *d);
  const auto deadline = Deadline::in(20s);
  for (std::uint64_t e = 1; e <= 5; ++e) CHECK(b.submit(0, deadline).value_or(0) == e);
  CHECK(wait(b.signal(0), Compare::eq, 500, deadline, b.ring(0)));
}

TEST_CASE("a ring without room is no wait without end, and a queue that stands is no restart") {
  const auto d = node(2);
  const auto b = link(parse("sdma 1\ngpus 1\nsignal host.go value=0\nqueue gpu0.q engine=0 ring=1K\n"
                            "  poll_mem addr=host.go func=eq reference=1\n  nop times=80\nend\n"),
                      *d);
  REQUIRE(b.submit(0, Deadline::in(1s)));
  REQUIRE(b.submit(0, Deadline::in(1s)));
  const auto full = b.submit(0, Deadline::in(1ms));
  REQUIRE_FALSE(full);
  CHECK(full.error() == Errc::timed_out);
  CHECK(b.epoch(0) == 2);
  CHECK(b.restart(Deadline::in(1ms)) == Errc::timed_out);
  b.set(0, 1);
  CHECK(b.submit(0, Deadline::in(20s)).value_or(0) == 3);
}

TEST_CASE("map= keeps a GPU out") {
  const auto d = node(3);
  const auto b = link(parse("sdma 1\ngpus 3\nbuffer host.b bytes=4K map=gpu0,gpu1\nqueue gpu2.q engine=0\n"
                            "  fence addr=host.b value=1\nend\n"),
                      *d);
  REQUIRE(b.submit(0, Deadline::in(1s)));
  const auto f = d->wait_fault(Deadline::in(20s));
  REQUIRE(f);
  CHECK(f->kind == FaultKind::unmapped);
}

TEST_CASE("a fixed address is memory that the caller gives") {
  const auto d = node(2);
  auto mine = d->allocate({.where = GpuId{1}, .bytes = 8192});
  REQUIRE(mine);
  mine->host()[4096] = std::byte{0x11};
  auto s = parse(
      "sdma 1\ngpus 2\nbuffer gpu0.in bytes=4K init=random\nbuffer gpu1.mine bytes=4K\n"
      "buffer gpu1.end bytes=96 at=gpu1.mine[4000]\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
      "  copy_linear bytes=96 src=gpu0.in dst=gpu1.end\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "host main\n  submit *\n  wait host.done == 1\nend\nexpect gpu1.end == gpu0.in[0..96]\n"
      "expect gpu1.mine[0..4000] == old gpu1.mine[0..4000]\n");
  s.buffers[1].at = mine->va() + 4096;
  CHECK(refused(s, *d).find("has the fixed address 0x") != std::string::npos);
  CHECK(refused(s, *d, {.external = {{mine->va(), mine->host().first(8191)}}}).find("gpu1.mine") != std::string::npos);
  const auto b = link(s, *d, {.external = {{mine->va(), mine->host()}}});
  CHECK(b.address(link_buffer(2)) == mine->va() + 4096 + 4000);
  CHECK(b.bytes({link_buffer(1), 4096}).data() == mine->host().data() + 4096);
  CHECK(lines(run(b, {.time_limit = 60s}).findings) == "");
  // Its bytes are the caller's: nobody has filled it.
  CHECK(mine->host()[4096] == std::byte{0x11});
}
