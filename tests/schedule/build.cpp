// SPDX-License-Identifier: MIT
#include "sdma/schedule/schedule.hpp"

#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

constexpr std::uint64_t kBytes = 64 << 10;

Schedule copy_there() {
  Schedule s{.gpus = 2};
  const auto in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = kBytes, .init = Init::random});
  const auto out = s.add_buffer({.place = Place::gpu(1), .name = "out", .bytes = kBytes});
  const auto done = s.add_signal({.name = "done"});
  auto& q = s.add_queue({.place = Place::gpu(0), .name = "push", .peer = Place::gpu(1)});
  q.put<&PollMem::reference>({.addr = done, .func = Compare::ge}, 2 * kEpoch - 1)
      .copy({.src = in, .dst = out, .bytes = kBytes})
      .put(Atomic{.addr = done, .value = 1});
  s.add_host("main")
      .submit(q)
      .repeat(3, [&](auto& r) { r.submit_all().set(done, kEpoch + 4); })
      .wait(done, Compare::eq, 1);
  s.expect_equal({out, kBytes}, {in, kBytes});
  s.expect_old({out + 16, 16}, {in, 16});
  s.expect_value(done, 1);
  return s;
}

std::string first(const Schedule& s) {
  const auto p = problems(s);
  return p.empty() ? "" : p[0].where + ": " + p[0].message;
}

}  // namespace

TEST_CASE("what is built in C++ is what its text says") {
  const auto s = copy_there();
  CHECK(problems(s).empty());
  const std::string text =
      "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=64K\nsignal host.done value=0\n"
      "queue gpu0.push peer=gpu1\n  poll_mem addr=host.done func=ge reference=2*epoch-1\n"
      "  copy_linear bytes=64K src=gpu0.in dst=gpu1.out\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "host main\n  submit gpu0.push\n  repeat 3\n    submit gpu0.push\n    set host.done = epoch+4\n  end\n"
      "  wait host.done == 1\nend\nexpect gpu1.out == gpu0.in\nexpect gpu1.out[16..+16] == old gpu0.in[0..+16]\n"
      "expect host.done == 1\n";
  CHECK(to_text(s) == text);
  const auto again = parse_schedule(text);
  REQUIRE(again);
  CHECK(*again == s);
  auto other = s;
  other.queues[0].epochs[0].value.constant = 7;
  CHECK_FALSE(other == s);
}

TEST_CASE("link space: a symbol for each stride") {
  const auto s = copy_there();
  CHECK(link_buffer(0).value == std::uint64_t{1} << 40);
  CHECK(name_of(s, link_buffer(1) + 4096) == "gpu1.out[4K]");
  CHECK(name_of(s, link_buffer(1) + kBytes) == "gpu1.out[64K]");
  CHECK(name_of(s, link_buffer(1) + kBytes + 1) == "");
  CHECK(name_of(s, link_buffer(2)) == "");
  CHECK(name_of(s, link_signal(0) + 4) == "host.done[4]");
  CHECK(name_of(s, GpuVa{0x1000}) == "");
  CHECK(name_of(s, GpuVa{~std::uint64_t{}}) == "");
}

TEST_CASE("long copies become several packets, and what no engine takes is a problem") {
  auto s = copy_there();
  s.buffers[0].bytes = s.buffers[1].bytes = std::uint64_t{5} << 30;
  auto& q = s.queues[0];
  q.dwords.clear();
  q.epochs.clear();
  q.copy({.src = link_buffer(0), .dst = link_buffer(1), .bytes = std::uint64_t{5} << 30});
  CHECK(q.dwords.size() == 6 * grammar::layout<CopyLinear>.length.fixed);
  q.fill({.dst = link_buffer(1), .data = 1, .bytes = 8}).swap({.a = link_buffer(0), .b = link_buffer(1), .bytes = 64});
  q.broadcast({.src = link_buffer(0), .dst1 = link_buffer(1), .dst2 = link_buffer(1) + 64, .bytes = 64});
  CHECK(first(s) == "");
  q.put(Fence{.addr = GpuVa{2}});
  CHECK(first(s).starts_with("queue gpu0.push: a packet was refused: fence at dword"));
}

TEST_CASE("epochs are stored where they fit, all or none") {
  Schedule::Queue q;
  q.put<&Fence::value>({.addr = GpuVa{64}}, kEpoch).put<&Atomic::value>({.addr = GpuVa{64}}, -1 * kEpoch + 1);
  REQUIRE(q.epochs.size() == 2);
  auto d = q.dwords;
  CHECK(d == q.dwords);
  CHECK(store_epoch(q, 5, d) == nullptr);
  CHECK(decode<Fence>(d).value == 5);
  CHECK(decode<Atomic>(std::span(d).subspan(4)).value == ~std::uint64_t{} - 3);
  CHECK(store_epoch(q, 0xffffffff, d) == nullptr);
  CHECK(decode<Fence>(d).value == 0xffffffff);
  const auto before = d;
  CHECK(store_epoch(q, std::uint64_t{1} << 32, d) == &q.epochs[0]);
  CHECK(d == before);
  // A number is no epoch.
  Schedule::Queue constant;
  constant.put<&Fence::value>({.addr = GpuVa{64}}, 9);
  CHECK(constant.epochs.empty());
  CHECK(decode<Fence>(constant.dwords).value == 9);
}

TEST_CASE("problems name what contradicts itself") {
  const auto with = [](auto change) {
    auto s = copy_there();
    change(s);
    return first(s);
  };
  CHECK(with([](auto& s) { s.gpus = 1025; }) == "gpus: a schedule can have at most 1024 GPUs, not 1025");
  CHECK(with([](auto& s) { s.gpus = 1; }) == "buffer gpu1.out: gpu1 is not in this schedule: gpus 1");
  CHECK(with([](auto& s) { s.buffers[0].name = "1st"; }) == "buffer gpu0.1st: '1st' is not a valid name");
  CHECK(with([](auto& s) { s.signals[0] = {.place = Place::gpu(0), .name = "in"}; }) ==
        "signal gpu0.in: the name is already used");
  CHECK(with([](auto& s) { s.buffers[0].bytes = 0; }) == "buffer gpu0.in: a buffer must have 1 to 2^40 bytes, not 0");
  CHECK(with([](auto& s) { s.buffers[0].alignment = 3; }).ends_with("power of two up to 1G, not 3"));
  CHECK(with([](auto& s) { s.buffers[0].at = link_buffer(0); }) == "buffer gpu0.in: this alias leads back to itself");
  CHECK(with([](auto& s) { s.buffers[0].at = link_buffer(1) + 1; }).ends_with("end beyond that buffer or signal"));
  CHECK(with([](auto& s) { s.buffers[0].map = {Place::gpu(9)}; }).ends_with("gpu9 is not in this schedule"));
  CHECK(with([](auto& s) { s.signals[0].bits = 16; }).ends_with("32 or 64 bits, not 16"));
  CHECK(with([](auto& s) { s.queues[0].place = {}; }) == "queue host.push: a queue belongs to a GPU");
  CHECK(with([](auto& s) { s.queues[0].engine = 3; }).find("a peer and an engine") != std::string::npos);
  CHECK(with([](auto& s) { s.queues[0].ring_bytes = 3000; }).find("from 1K to 1G") != std::string::npos);
  CHECK(with([](auto& s) {
          s.queues[0].ring_bytes = 1024;
          s.queues[0].put(Nop{.dwords = 200});
        }) == "queue gpu0.push: a packet of 200 dwords is more than half the ring");
  CHECK(with([](auto& s) { s.buffers[1].bytes = 4096; }) ==
        "queue gpu0.push at dword 6: copy_linear accesses 64K bytes at gpu1.out, but gpu1.out has 4K");
  CHECK(with([](auto& s) { s.queues[0].epochs[0].packet = 1; }).ends_with("'reference' at dword 1 is not in a packet"));
  CHECK(with([](auto& s) { s.queues[0].epochs[0].field = "mask"; }).ends_with("'mask' cannot depend on the epoch"));
  CHECK(with([](auto& s) {
          s.hosts[0].actions[0].queues = {7};
        }).ends_with("submits a queue that is not in this schedule"));
  CHECK(with([](auto& s) {
          s.hosts[0].actions[2].signal = link_buffer(0);
        }).ends_with("sets, adds to, waits for or samples something that is not a signal"));
  CHECK(with([](auto& s) { s.hosts[0].actions[2].value = kEpoch; }).ends_with("'epoch' is allowed only in a repeat"));
  CHECK(with([](auto& s) { s.expectations[0].right.bytes = 4; }) == "expect: 64K bytes are compared with 4");
  CHECK(with([](auto& s) {
          s.expectations[2].left.va = link_buffer(0);
        }).ends_with("compared with something that is not a signal"));
}
