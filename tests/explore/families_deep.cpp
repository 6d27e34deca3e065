// SPDX-License-Identifier: MIT
// Families of schedules with longer chains of dependences.
#include "families.hpp"

namespace sdma::explore::family {

Schedule pipeline(Random& r) {
  Builder b{r, 2};
  const auto slots = 1 + b.any(2), chunks = slots + 1 + b.any(2);
  std::vector<GpuVa> slot;
  for (std::uint32_t i = 0; i < slots; ++i) slot.push_back(b.buffer());
  const auto full = b.signal(), empty = b.signal(), done = b.signal();
  auto& p = b.queue(0);
  auto& c = b.queue(1);
  const bool counts = b.maybe();
  for (std::uint32_t k = 0; k < chunks; ++k) {
    if (k >= slots) b.poll(p, empty, Compare::ge, k + 1 - slots);
    b.copy(p, b.buffer(4), slot[k % slots]);
    if (counts) b.add(p, full);
    else b.fence(p, full, k + 1);
    b.poll(c, full, Compare::ge, k + 1);
    b.copy(c, slot[k % slots], b.buffer(4));
    if (counts) b.add(c, empty);
    else b.fence(c, empty, k + 1);
  }
  b.fence(c, done, 1);
  auto h = b.host();
  if (b.maybe()) h.submit_all();
  else h.submit(c).submit(p);
  h.wait(done, Compare::ge, 1);
  return std::move(b.s);
}

Schedule tree(Random& r) {
  Builder b{r, 2};
  const auto leaves = 2 + b.any(2), rounds = 1 + b.any(2);
  const auto up = b.signal(), down = b.signal(), done = b.signal();
  const auto sum = b.buffer(16), all = b.buffer(16);
  auto& root = b.queue(0);
  b.poll(root, up, b.at_least(), EpochValue{leaves, 0});
  b.copy(root, sum, all, 16);
  b.fence(root, down, kEpoch);
  for (std::uint32_t i = 0; i < leaves; ++i) {
    auto& q = b.queue(i + 1);
    b.copy(q, b.buffer(4), sum + 4 * i);
    b.add(q, up);
    b.poll(q, down, Compare::ge, kEpoch);
    b.copy(q, all, b.buffer(16), 16);
    b.add(q, done);
  }
  auto h = b.host();
  h.repeat(rounds, [&](Schedule::Script& s) { s.submit_all().wait(done, Compare::ge, EpochValue{leaves, 0}); });
  return std::move(b.s);
}

Schedule ahead(Random& r) {
  Builder b{r, 2};
  const auto n = 1 + b.any(2), depth = 1 + b.any(2), rounds = 1 + b.any(3);
  const auto done = b.signal(), word = b.signal();
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    const auto x = b.buffer(4), y = b.buffer(4);
    // The next round writes the same bytes: it must not start before this one is complete.
    b.copy(q, x, y);
    const auto mine = i == 0 ? word : b.signal();
    if (b.maybe()) b.drain(q, mine, kEpoch);
    else b.poll(q, done, Compare::ge, EpochValue{n, -static_cast<std::int64_t>(n)});
    if (b.maybe()) b.copy(q, y, b.buffer(4));
    b.add(q, done);
    if (b.maybe()) b.poll(q, done, Compare::ge, EpochValue{n, 0});
  }
  auto h = b.host();
  for (std::uint32_t i = 0; i < depth; ++i) h.submit_all();
  h.repeat(rounds, [&](Schedule::Script& s) { s.wait(done, Compare::ge, EpochValue{n, 0}).submit_all(); });
  h.wait(done, Compare::ge, n * (rounds + depth));
  return std::move(b.s);
}

}  // namespace sdma::explore::family
