// SPDX-License-Identifier: MIT
// Families of schedules with one host and one counter or flag per step: collectives as people write them.
#include "families.hpp"

namespace sdma::explore::family {

Schedule ring(Random& r) {
  Builder b{r, 2};
  const auto n = 2 + b.any(2), rounds = 1 + b.any(2);
  std::vector<GpuVa> data, flags;
  for (std::uint32_t i = 0; i <= n; ++i) data.push_back(b.buffer());
  for (std::uint32_t i = 0; i < n; ++i) flags.push_back(b.signal());
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    if (i != 0) b.poll(q, flags[i - 1], Compare::ge, kEpoch);
    b.copy(q, data[i], data[i + 1]);
    if (b.maybe()) b.copy(q, data[i] + 4, data[i + 1] + 4);
    b.fence(q, flags[i], kEpoch);
  }
  auto h = b.host();
  h.repeat(rounds, [&](Schedule::Script& s) { s.submit_all().wait(flags[n - 1], Compare::ge, kEpoch); });
  return std::move(b.s);
}

Schedule counter(Random& r) {
  Builder b{r, 2};
  const auto n = 2 + b.any(3), rounds = 1 + b.any(3);
  const auto down = b.maybe(3);
  const auto done = b.signal(down ? n * rounds : 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto from = b.buffer(), to = b.buffer();
    auto& q = b.queue(i);
    b.copy(q, from, to, 8);
    if (b.maybe(3)) b.copy(q, from, b.buffer(), 4);
    b.add(q, done, down ? -1 : 1);
  }
  auto h = b.host();
  h.repeat(rounds, [&](Schedule::Script& s) {
    s.submit_all();
    if (down)
      s.wait(done, Compare::le, EpochValue{-static_cast<std::int64_t>(n), static_cast<std::int64_t>(n * rounds)});
    else s.wait(done, b.at_least(), EpochValue{static_cast<std::int64_t>(n), 0});
  });
  return std::move(b.s);
}

Schedule barrier(Random& r) {
  Builder b{r, 2};
  const auto n = 2 + b.any(2), phases = 2 + b.any(2), rounds = phases == 2 ? 1 + b.any(2) : 1;
  const auto bar = b.signal(), done = b.signal();
  std::vector<GpuVa> x, y;
  for (std::uint32_t i = 0; i < n; ++i) {
    x.push_back(b.buffer());
    y.push_back(b.buffer());
  }
  const auto total = static_cast<std::int64_t>(n * (phases - 1));
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    for (std::uint32_t k = 0; k < phases; ++k) {
      const auto next = (i + 1) % n;
      b.copy(q, k % 2 ? y[i] : x[i], k % 2 ? x[next] : y[next]);
      if (k + 1 == phases) break;
      b.add(q, bar);
      b.poll(q, bar, Compare::ge, EpochValue{total, static_cast<std::int64_t>(n * (k + 1)) - total});
    }
    b.add(q, done);
  }
  auto h = b.host();
  h.repeat(rounds, [&](Schedule::Script& s) {
    s.submit_all().wait(done, Compare::ge, EpochValue{static_cast<std::int64_t>(n), 0});
  });
  return std::move(b.s);
}

Schedule prelaunch(Random& r) {
  Builder b{r, 2};
  const auto n = 1 + b.any(2);
  const auto rounds = 1 + b.any(3);
  const auto go = b.signal(), done = b.signal();
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    b.poll(q, go, Compare::ge, kEpoch);
    const auto x = b.buffer(), y = b.buffer();
    b.copy(q, x, y);
    if (b.maybe()) b.copy(q, x + 4, y + 4);
    b.add(q, done);
  }
  auto h = b.host();
  h.submit_all();
  const auto all = EpochValue{static_cast<std::int64_t>(n), 0};
  h.repeat(rounds, [&](Schedule::Script& s) {
    s.set(go, kEpoch);
    s.wait(done, Compare::ge, all);
    s.submit_all();
  });
  h.set(go, rounds + 1);
  h.wait(done, Compare::ge, n * (rounds + 1));
  return std::move(b.s);
}

Schedule pingpong(Random& r) {
  Builder b{r, 1};
  const auto rounds = 1 + b.any(3);
  const auto go = b.signal(), done = b.signal(), word = b.signal();
  const auto x = b.buffer(), y = b.buffer();
  auto& q = b.queue(0);
  const bool reset = b.maybe(4);
  b.poll(q, go, reset ? Compare::eq : b.at_least(), reset ? EpochValue{1} : kEpoch);
  b.copy(q, x, y);
  if (b.maybe()) b.drain(q, word, kEpoch);
  else b.fence(q, word, kEpoch);
  if (b.maybe()) b.copy(q, y, b.buffer());
  b.fence(q, done, reset ? EpochValue{1} : kEpoch);
  auto h = b.host();
  h.repeat(rounds, [&](Schedule::Script& s) {
    s.submit(q).set(go, reset ? EpochValue{1} : kEpoch).wait(done, b.at_least(), reset ? EpochValue{1} : kEpoch);
    if (reset) s.set(go, 0).set(done, 0);
  });
  return std::move(b.s);
}

Schedule capacity(Random& r) {
  Builder b{r, 1};
  const auto go = b.signal(), done = b.signal();
  const auto x = b.buffer(), y = b.buffer();
  const auto ahead = 1 + b.any(4);
  auto& q = b.queue(0);
  q.ring_bytes = 1024;
  b.poll(q, go, Compare::ge, kEpoch);
  q.put(Nop{.dwords = 20 + b.any(60)});
  if (b.maybe(3)) q.put(Nop{.dwords = 60 + b.any(40)});
  b.copy(q, x, y);
  b.fence(q, done, kEpoch);
  auto h = b.host();
  if (b.maybe()) {
    for (std::uint32_t i = 0; i < ahead; ++i) h.submit(q);
    for (std::uint32_t i = 1; i <= ahead; ++i) h.set(go, i).wait(done, Compare::ge, i);
  } else {
    h.repeat(ahead, [&](Schedule::Script& s) { s.submit(q).set(go, kEpoch).wait(done, Compare::ge, kEpoch); });
  }
  return std::move(b.s);
}

Schedule credit(Random& r) {
  Builder b{r, 2};
  const auto rounds = 1 + b.any(3);
  const auto full = b.signal(), empty = b.signal(b.maybe() ? 1 : 0), done = b.signal();
  const auto x = b.buffer(), slot = b.buffer(), y = b.buffer();
  const bool one = b.s.signals[1].value == 1;
  auto& p = b.queue(0);
  b.poll(p, empty, Compare::ge, one ? kEpoch : kEpoch - 1);
  b.copy(p, x, slot);
  b.fence(p, full, kEpoch);
  auto& c = b.queue(1);
  b.poll(c, full, b.at_least(), kEpoch);
  b.copy(c, slot, y);
  b.fence(c, empty, one ? kEpoch + 1 : kEpoch);
  if (b.maybe()) b.fence(c, done, kEpoch);
  else b.add(c, done);
  auto h = b.host();
  if (b.maybe()) {
    for (std::uint32_t i = 0; i < rounds; ++i) h.submit_all();
    h.wait(done, Compare::ge, rounds);
  } else {
    h.repeat(rounds, [&](Schedule::Script& s) { s.submit_all().wait(done, Compare::ge, kEpoch); });
  }
  return std::move(b.s);
}

}  // namespace sdma::explore::family
