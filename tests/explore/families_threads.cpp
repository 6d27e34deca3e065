// SPDX-License-Identifier: MIT
// Families of schedules in which threads and kernels do more than to wait: they access bytes, add, sample and sum.
#include "families.hpp"

namespace sdma::explore::family {

Schedule bytes(Random& r) {
  Builder b{r, 1};
  const auto in = b.buffer(8, Init::random, Place::host()), out = b.buffer(8, Init::random, Place::host());
  const auto done = b.signal(), turn = b.signal();
  auto& q = b.queue(0);
  if (b.maybe(4)) b.poll(q, turn, Compare::ge, kEpoch);
  b.copy(q, in, out, b.maybe() ? 4 : 8);
  if (b.maybe()) b.add(q, done);
  else b.fence(q, done, kEpoch);
  const auto rounds = 1 + b.any(2);
  const bool two = b.maybe(3), compares = b.maybe();
  b.host().repeat(rounds, [&](Schedule::Script& s) {
    if (two && rounds > 1) s.wait(turn, Compare::ge, kEpoch - 1);
    if (!b.maybe(4)) s.store({in, 8}, b.maybe() ? std::optional<std::uint8_t>(7) : std::nullopt);
    s.submit(q).wait(done, b.at_least(), kEpoch);
    if (!two && !b.maybe(4)) s.load({out, 4});
    if (compares) s.expect_equal({out, 4}, {in, 4});
    if (b.maybe(4)) s.add(turn, 1);
  });
  if (two)
    b.host().repeat(rounds, [&](Schedule::Script& s) {
      s.wait(done, Compare::ge, kEpoch).load({out, b.maybe() ? 4u : 8u});
      if (b.maybe(4)) s.store({out, 4}, std::uint8_t{1});
      s.set(turn, kEpoch);
    });
  return std::move(b.s);
}

Schedule samples(Random& r) {
  Builder b{r, 1};
  const auto done = b.signal(b.any(3)), go = b.signal();
  const auto x = b.buffer(4), y = b.buffer(4), z = b.buffer(4);
  auto& q = b.queue(0);
  b.copy(q, x, y);
  b.add(q, done);
  auto& c = b.queue(0);
  b.poll(c, go, Compare::ge, kEpoch);
  b.copy(c, y, z);
  b.add(c, done);
  const auto order = b.any(4);
  b.host().repeat(1 + b.any(2), [&](Schedule::Script& s) {
    if (order == 0) s.submit(q);
    s.sample("n", done);
    if (order != 0) s.submit(q);
    if (b.maybe(4)) s.submit(c);
    s.wait(done, b.at_least(), sampled("n") + 1);
    if (b.maybe(3)) s.sample("n", done);
    s.set(go, kEpoch).submit(c);
    s.wait(done, b.at_least(), sampled("n") + (order == 3 ? 1 : 2));
  });
  return std::move(b.s);
}

Schedule kernel(Random& r) {
  Builder b{r, 2};
  const auto in = b.buffer(4), mid = b.buffer(4), sum = b.buffer(4), out = b.buffer(4);
  const auto arrived = b.signal(), ready = b.signal(), done = b.signal();
  const auto rounds = 1 + b.any(2);
  auto& p = b.queue(0);
  b.copy(p, in, mid);
  if (b.maybe()) b.fence(p, arrived, kEpoch);
  else b.add(p, arrived);
  auto& c = b.queue(1);
  b.poll(c, ready, b.at_least(), kEpoch);
  b.copy(c, sum, out);
  b.fence(c, done, kEpoch);
  const auto how = b.any(4);
  auto k = b.kernel(b.any(2));
  k.repeat(rounds, [&](Schedule::Script& s) {
    s.wait(arrived, b.at_least(), kEpoch);
    if (how == 0) s.load({mid, 4}).store({sum, 4}, std::uint8_t{3});
    else s.store({sum, 4}, Schedule::Sum{.type = Schedule::Sum::Type::i32, .parts = {{mid, 4}, {in, 4}}});
    if (b.maybe()) s.set(ready, kEpoch);
    else s.add(ready, 1);
    if (b.maybe(4)) s.submit(c);
  });
  const bool own = b.s.kernels[0].actions[0].body.back().kind == Schedule::Action::Kind::submit;
  b.host().repeat(rounds, [&](Schedule::Script& s) {
    s.submit(p);
    if (!own) s.submit(c);
    s.wait(done, Compare::ge, kEpoch);
  });
  if (how != 0 && b.maybe())
    b.s.expect_sum({out, 4}, {.type = Schedule::Sum::Type::i32, .parts = {{in, 4}, {b.maybe(4) ? mid : in, 4}}});
  return std::move(b.s);
}

Schedule sums(Random& r) {
  Builder b{r, 2};
  const GpuVa in[] = {b.buffer(4), b.buffer(4), b.buffer(4, b.maybe(6) ? Init::zero : Init::random)};
  const auto first = b.buffer(4), second = b.buffer(4, Init::zero), out = b.buffer(4);
  const auto arrived = b.signal(), half = b.signal(), ready = b.signal(), done = b.signal();
  const auto common = static_cast<Schedule::Sum::Type>(b.any(3));
  const auto sum = [&](std::vector<GpuVa> of) {
    const auto last = b.maybe() ? of.size() - 1 : 0;
    if (b.maybe(3)) std::swap(of[0], of[last]);
    Schedule::Sum s{.type = b.maybe(8) ? static_cast<Schedule::Sum::Type>(b.any(3)) : common, .any_order = b.maybe(8)};
    for (const auto p : of) s.parts.push_back({p, 4});
    return s;
  };
  auto& p = b.queue(0);
  b.copy(p, in[0], first);
  b.fence(p, arrived, 1);
  auto one = b.kernel(0);
  if (!b.maybe(8)) one.wait(arrived, b.at_least(), 1);
  const bool three = b.maybe();
  one.store({second, 4}, sum(three ? std::vector{first, in[1], in[2]} : std::vector{first, in[1]}));
  if (b.maybe()) one.store({first, 4}, sum({second, b.maybe() ? first : in[2]}));
  one.set(half, 1);
  auto two = b.kernel(b.any(2));
  if (!b.maybe(8)) two.wait(half, b.at_least(), 1);
  const auto more = sum({second, b.maybe(3) ? first : in[2]});
  const bool in_place = b.maybe();
  two.store({in_place ? second : out, 4}, more);
  two.set(ready, 1);
  auto& c = b.queue(1);
  b.poll(c, ready, b.at_least(), 1);
  if (in_place) b.copy(c, second, out);
  b.fence(c, done, 1);
  b.host().submit(p).submit(c).wait(done, Compare::ge, 1);
  const auto end = three ? std::vector{in[0], in[1], in[2], in[2]} : std::vector{in[0], in[1], in[2]};
  if (b.maybe()) b.s.expect_sum({b.maybe(4) ? second : out, 4}, sum(end));
  if (b.maybe()) b.s.expect_sum({second, 4}, sum(three ? std::vector{in[0], in[1], in[2]} : std::vector{in[0], in[1]}));
  return std::move(b.s);
}

Schedule scopes(Random& r) {
  Builder b{r, 2};
  const auto x = b.buffer(4), y = b.buffer(4), z = b.buffer(4);
  const auto go = b.signal(), inner = b.signal(), done = b.signal();
  const auto gpu = b.any(2), other = b.maybe(6) ? 1 - gpu : gpu;
  auto& p = b.queue(0);
  b.copy(p, x, y);
  b.fence(p, go, 1);
  const auto agent = [&](std::uint32_t k) { b.s.kernels[k].actions.back().system_scope = b.maybe(4); };
  auto one = b.kernel(gpu);
  if (!b.maybe(6)) one.wait(go, b.at_least(), 1);
  if (b.maybe()) one.load({y, 4});
  one.store({z, 4}, std::uint8_t{5});
  if (b.maybe()) one.set(inner, 1);
  else one.add(inner, 1);
  agent(0);
  auto two = b.kernel(other);
  two.wait(inner, b.at_least(), 1);
  agent(1);
  if (b.maybe()) two.load({z, 4});
  if (b.maybe(3)) two.load({y, 4});
  if (b.maybe(3)) two.store({x, 4}, std::uint8_t{6});
  two.set(done, 1);
  auto h = b.host();
  h.submit(p).wait(done, Compare::ge, 1);
  if (b.maybe(3)) h.load({z, 4});
  if (b.maybe(4)) h.wait(inner, Compare::ge, 1);
  return std::move(b.s);
}

}  // namespace sdma::explore::family
