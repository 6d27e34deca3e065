// SPDX-License-Identifier: MIT
// Families of schedules about agents and places that others leave out: the network, mappings and links, large values.
#include "families.hpp"

namespace sdma::explore::family {

Schedule network(Random& r) {
  Builder b{r, 4};
  const auto x = b.buffer(8, Init::random, Place::gpu(0)), y = b.buffer(8, Init::random, Place::gpu(2)),
             z = b.buffer(8, Init::random, Place::gpu(3));
  const auto there = b.signal(0, 0, Place::gpu(2)), sent = b.signal(), back = b.signal(), done = b.signal();
  const auto rounds = 1 + (b.maybe(4) ? 1u : 0u);
  auto& out = b.queue(0);
  out.network = true;
  out.peer = Place::gpu(2);
  out.engine = 0;
  const auto add = [&](Schedule::Queue& q, GpuVa to) {
    q.put(Atomic{.addr = to, .op = AtomicOp::add_rtn_64, .value = 1});
  };
  const auto wide = [&](GpuVa s) { return b.s.signals[find_symbol(b.s, s)->index].bits == 64; };
  const auto post = [&](Schedule::Queue& q, GpuVa to, EpochValue v) {
    if (b.maybe() && wide(to)) add(q, to);
    else b.fence(q, to, v);
  };
  for (auto n = 2 + b.any(3); n-- > 0;) switch (b.any(5)) {
      case 0:
      case 1: b.copy(out, x, b.maybe(3) ? y + 4 : y); break;
      case 2: post(out, sent, kEpoch); break;
      default: post(out, there, kEpoch);
    }
  if (b.maybe()) post(out, there, kEpoch);
  // Node 1 passes the bytes on, and answers.
  auto& on = b.queue(2);
  b.poll(on, there, b.at_least(), kEpoch);
  b.copy(on, y, z);
  b.fence(on, done, kEpoch);
  const bool answers = b.maybe(3) == false;
  if (answers) {
    auto& answer = b.queue(3);
    answer.network = true;
    answer.peer = Place::gpu(1);
    answer.engine = 0;
    if (b.maybe()) b.poll(answer, there, Compare::ge, kEpoch);
    else b.poll(answer, done, Compare::ge, kEpoch);
    b.fence(answer, back, kEpoch);
  }
  b.host().repeat(rounds, [&](Schedule::Script& s) {
    s.submit(b.s.queues[0]);
    if (answers) s.wait(back, Compare::ge, kEpoch);
    else s.wait(sent, Compare::ge, kEpoch);
    if (b.maybe()) s.set(sent, b.maybe() ? EpochValue{0} : kEpoch);
    if (b.maybe(4)) s.wait(sent, b.at_least(), kEpoch);
  });
  b.host().repeat(rounds, [&](Schedule::Script& s) {
    s.submit(b.s.queues[1]);
    if (answers) s.submit(b.s.queues[2]);
    s.wait(done, Compare::ge, kEpoch);
  });
  return std::move(b.s);
}

Schedule places(Random& r) {
  Builder b{r, 4};
  std::vector<GpuVa> all;
  for (std::uint32_t i = 0; i < 4; ++i) {
    all.push_back(b.buffer(4, static_cast<Init>(b.any(3)), b.maybe(4) ? Place::host() : Place::gpu(b.any(4))));
    auto& map = b.s.buffers.back().map;
    for (std::uint32_t g = 0; b.maybe(3) && g < 4; ++g)
      if (!b.maybe(4)) map.push_back(Place::gpu(g));
  }
  const auto any = [&] { return all[b.any(4)]; };
  const auto ready = b.signal(0, 0, b.maybe(3) ? Place::gpu(b.any(4)) : Place::host()), done = b.signal();
  const auto gpu = b.any(4);
  auto k = b.kernel(gpu);
  if (b.maybe()) k.load({any(), 4});
  if (b.maybe()) k.store({any(), 4}, std::uint8_t{3});
  else k.store({any(), 4}, Schedule::Sum{.type = Schedule::Sum::Type::i32, .parts = {{any(), 4}, {any(), 4}}});
  if (b.maybe()) k.add(ready, 1);
  else k.set(ready, 1);
  auto& q = b.queue(b.any(4));
  q.doorbell_each = b.maybe(3);
  b.poll(q, ready, Compare::ge, 1);
  b.copy(q, any(), any());
  b.fence(q, done, 1);
  b.host().submit(q).wait(done, Compare::ge, 1);
  return std::move(b.s);
}

Schedule values(Random& r) {
  Builder b{r, 1};
  const auto bits = b.maybe(4) ? 64u : 32u;
  const std::uint64_t least = 0xffffffff - b.any(4);
  const auto count = b.signal(b.maybe() ? least : b.any(3), bits), go = b.signal(0, bits), done = b.signal();
  const auto x = b.buffer(4), y = b.buffer(4);
  auto& q = b.queue(0);
  b.copy(q, x, y);
  b.add(q, count);
  b.fence(q, done, kEpoch);
  const auto large = static_cast<std::int64_t>(b.maybe() ? 0x80000000u : 0x7fffffffu);
  const auto how = b.any(5);
  const bool kernel = b.maybe();
  const auto act = [&](Schedule::Script& s) {
    if (how == 0) s.set(go, kEpoch * large);
    if (how == 1) s.add(go, kEpoch * large);
    if (how == 2) s.wait(go, Compare::le, kEpoch * large);
  };
  const auto rounds = 1 + b.any(3);
  if (kernel) b.kernel(0).repeat(rounds, act);
  b.host().repeat(rounds, [&](Schedule::Script& s) {
    if (!kernel) act(s);
    if (how >= 3) s.sample("n", count);
    s.submit(q);
    if (how >= 3) s.wait(count, b.at_least(), sampled("n") + (how == 3 ? 1 : 2));
    s.wait(done, Compare::ge, kEpoch);
  });
  return std::move(b.s);
}

Schedule results(Random& r) {
  Builder b{r, 2};
  const auto at = [&](Init i) { return b.buffer(8, i); };
  const auto x = at(Init::random), y = at(Init::zero), z = b.buffer(16, Init::poison);
  const auto done = b.signal(0, 64);
  auto& q = b.queue(0);
  b.copy(q, x, b.maybe() ? y : z, 8);
  b.add(q, done);
  auto h = b.host();
  h.submit(q).wait(done, Compare::ge, 1);
  const auto parts = std::vector<Schedule::Range>{{b.maybe(4) ? z + 4 * b.any(3) : x, 8}, {y, 8}};
  if (b.maybe()) {
    auto k = b.kernel(0);
    if (!b.maybe(3)) k.wait(done, Compare::ge, 1);
    k.compute(10).store({z + 4 * b.any(3), 8}, Schedule::Sum{.type = Schedule::Sum::Type::i32, .parts = parts});
    k.add(done, 1);
    h.wait(done, Compare::ge, 2);
  }
  if (b.maybe()) h.expect_equal({y, 4}, {b.maybe(3) ? z : x, 4});
  if (b.maybe()) b.s.expect_old({b.maybe() ? y : z, 8}, {x, 8});
  if (b.maybe()) b.s.expect_sum({z, 8}, {.type = Schedule::Sum::Type::i32, .parts = parts});
  if (b.maybe()) b.s.expect_value(done, 1 + b.any(2));
  return std::move(b.s);
}

}  // namespace sdma::explore::family
