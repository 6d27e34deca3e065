// SPDX-License-Identifier: MIT
// Families of schedules for what is rare: several hosts, shared engines, aliases, conditions, odd words.
#include "families.hpp"

namespace sdma::explore::family {

Schedule hosts(Random& r) {
  Builder b{r, 2};
  const auto n = 2 + b.any(2), rounds = 1 + b.any(2);
  std::vector<GpuVa> flags, turns, data;
  for (std::uint32_t i = 0; i < n; ++i) {
    flags.push_back(b.signal());
    turns.push_back(b.signal());
    data.push_back(b.buffer());
  }
  data.push_back(b.buffer());
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    b.copy(q, data[i], data[i + 1]);
    b.fence(q, flags[i], kEpoch);
  }
  // Each host waits for the one before it, and sets its own turn, or the next host sees the queue's flag itself.
  const bool direct = b.maybe(), back = b.maybe() || rounds > 1;
  for (std::uint32_t i = 0; i < n; ++i)
    b.host().repeat(rounds, [&](Schedule::Script& s) {
      if (i != 0) s.wait(direct ? flags[i - 1] : turns[i - 1], Compare::ge, kEpoch);
      else if (back) s.wait(turns[n - 1], Compare::ge, kEpoch - 1);
      s.submit(b.s.queues[i]).wait(flags[i], Compare::ge, kEpoch).set(turns[i], kEpoch);
    });
  return std::move(b.s);
}

Schedule shared(Random& r) {
  Builder b{r, 1};
  const auto done = b.signal(), turn = b.signal(), go = b.signal(), ready = b.signal(), word = b.signal();
  const auto x = b.buffer(), y = b.buffer();
  auto& q = b.queue(0);
  const bool gated = b.maybe(3), prepared = b.maybe(3);
  if (gated) b.poll(q, go, Compare::ge, kEpoch);
  if (b.maybe()) b.drain(q, word, kEpoch);
  b.copy(q, x, y);
  b.fence(q, done, kEpoch);
  const bool ordered = b.maybe(4) ? false : true;
  auto first = b.host();
  if (prepared) {
    auto& p = b.queue(0);
    b.copy(p, b.buffer(), x);
    b.fence(p, ready, 1);
    first.submit(p).wait(ready, Compare::ge, 1);
  }
  if (gated) first.set(go, 1);
  first.submit(q).wait(done, Compare::ge, 1);
  if (ordered) first.set(turn, 1);
  if (b.maybe(3)) first.wait(done, Compare::ge, 2);
  auto second = b.host();
  if (ordered) second.wait(turn, Compare::ge, 1);
  if (gated) second.set(go, 2);
  second.submit(q).wait(done, Compare::ge, ordered || b.maybe() ? 2 : 1);
  return std::move(b.s);
}

Schedule engine(Random& r) {
  Builder b{r, 1};
  const auto engines = 1 + b.any(2), n = 2 + b.any(3);
  std::vector<GpuVa> flags;
  const auto go = b.signal();
  for (std::uint32_t i = 0; i < n; ++i) flags.push_back(b.signal());
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(0, static_cast<int>(2 + b.any(engines)));
    if (b.maybe(3)) b.poll(q, go, Compare::ge, 1);
    else if (i != 0 && b.maybe()) b.poll(q, flags[b.any(i)], Compare::ge, 1);
    else if (b.maybe(6)) b.poll(q, flags[b.any(n)], Compare::ge, 1);
    if (b.maybe()) b.copy(q, b.buffer(4), b.buffer(4));
    b.fence(q, flags[i], 1);
  }
  auto h = b.host();
  const bool late = b.maybe();
  if (!late) h.set(go, 1);
  for (std::uint32_t i = 0; i < n; ++i) {
    h.submit(b.s.queues[i]);
    if (b.maybe(3)) h.wait(flags[i], Compare::ge, 1);
  }
  if (late) h.set(go, 1);
  for (const auto f : flags) h.wait(f, Compare::ge, 1);
  return std::move(b.s);
}

Schedule alias(Random& r) {
  Builder b{r, 2};
  const auto base = b.buffer(32, b.maybe() ? Init::zero : Init::random);
  const auto at = [&](std::uint64_t bytes, std::uint32_t offset, Init init) {
    return b.s.add_buffer({.place = Place::gpu(0),
                           .name = "a" + std::to_string(b.s.buffers.size()),
                           .bytes = bytes,
                           .at = base + offset,
                           .init = init});
  };
  const auto low = at(8, 4 * b.any(3), Init::poison),
             high = at(8, 12 + 4 * b.any(3), b.maybe(3) ? Init::zero : Init::poison);
  const auto done = b.signal();
  const auto word = b.s.add_signal({.name = "w", .value = b.maybe(3) ? 1u : 0u, .bits = 32, .at = base + 24});
  const auto same =
      b.maybe() ? word : b.s.add_signal({.name = "v", .value = b.maybe(3) ? 1u : 0u, .bits = 32, .at = word});
  const auto out = b.buffer(8);
  auto& p = b.queue(0);
  b.copy(p, b.buffer(8), low, 8);
  b.fence(p, b.maybe() ? base + 24 : word, kEpoch);
  b.add(p, done);
  auto& c = b.queue(1);
  if (!b.maybe(4)) b.poll(c, same, b.at_least(), kEpoch);
  b.copy(c, b.maybe() ? low : high, out, 4 + 4 * b.any(2));
  b.add(c, done);
  b.host().submit_all().wait(done, Compare::ge, 2);
  return std::move(b.s);
}

Schedule unknown(Random& r) {
  Builder b{r, 2};
  const auto flags = b.buffer(8, static_cast<Init>(b.any(3)));
  const auto done = b.signal(), ready = b.signal();
  const auto x = b.buffer(), y = b.buffer(), z = b.buffer();
  const bool cleared = b.maybe();
  auto& p = b.queue(0);
  auto& c = b.queue(1);
  if (cleared) {
    auto& i = b.queue(0);
    if (b.maybe()) {
      i.put(Fill{.dst = flags, .data = 0, .bytes = 8});
      b.fence(i, ready, 1);
    } else {
      b.fence(i, flags, 0);
      b.fence(i, ready, 1);
    }
  }
  b.copy(p, x, y);
  b.fence(p, b.maybe(6) ? flags + 4 : flags, kEpoch);
  b.poll(c, flags, b.at_least(), kEpoch);
  b.copy(c, y, z);
  b.fence(c, done, kEpoch);
  auto h = b.host();
  if (cleared) {
    h.submit(b.s.queues[2]);
    if (!b.maybe(4)) h.wait(ready, Compare::ge, 1);
  }
  h.submit(p).submit(c).wait(done, Compare::ge, 1);
  return std::move(b.s);
}

Schedule condition(Random& r) {
  Builder b{r, 2};
  const auto word = b.signal(b.any(2), 32), done = b.signal(), other = b.signal();
  const auto x = b.buffer(), y = b.buffer();
  auto& q = b.queue(0);
  const auto value = 1 + b.any(2);
  if (b.maybe()) {
    if (b.maybe(3)) b.fence(q, word, value);
    else b.drain(q, word, value);
  }
  const auto what = b.any(4);
  const auto dwords = static_cast<std::uint16_t>(what == 0 ? 4 : what == 1 ? 7 : what == 2 ? 11 : 6);
  if (b.maybe(4)) q.put(PreExec{.dwords = dwords, .devices = 1});
  else q.put(CondExec{.addr = word, .reference = 1, .dwords = dwords});
  if (what == 1 || what == 2) b.copy(q, x, y);
  if (what == 0 || what == 2) b.fence(q, b.maybe() ? done : other, 1);
  if (what == 3) b.poll(q, other, Compare::ge, 1);
  if (b.maybe()) b.copy(q, b.buffer(), b.buffer());
  if (!b.maybe(4)) b.fence(q, done, 2);
  auto h = b.host();
  if (b.maybe(3)) h.set(word, b.any(2));
  if (b.maybe(3)) h.set(other, 1);
  h.submit(q).wait(done, Compare::ge, b.maybe(4) ? 1 : 2);
  return std::move(b.s);
}

Schedule flag(Random& r) {
  Builder b{r, 2};
  const auto word = b.signal(), full = b.signal(), done = b.signal();
  const auto x = b.buffer(), y = b.buffer(), z = b.buffer();
  const auto ones = b.buffer(8, Init::zero);
  const std::uint32_t one = 1;
  auto& p = b.queue(0);
  b.copy(p, x, y);
  const auto how = b.any(3);
  if (how == 0) b.drain(p, full, 1);
  if (how == 1) b.fence(p, full, 1);
  if (b.maybe(3)) {
    p.put(Write{.dst = ones, .data = {&one, 1}});
    b.drain(p, full, 2);
    b.copy(p, ones, word);
  } else {
    p.put(Write{.dst = word, .data = {&one, 1}});
  }
  if (b.maybe()) b.fence(p, full, 3);
  auto& c = b.queue(1);
  b.poll(c, word, b.at_least(), 1);
  b.copy(c, y, z);
  b.fence(c, done, 1);
  auto h = b.host();
  h.submit_all().wait(done, Compare::ge, 1);
  if (b.maybe()) h.wait(full, Compare::ge, 1 + b.any(3));
  return std::move(b.s);
}

Schedule box(Random& r) {
  Builder b{r, 1};
  const auto m = b.buffer(64), v = b.buffer(64), done = b.signal(), word = b.signal();
  const auto piece = [&] {
    return CopySubwindow{.src = b.maybe(4) ? v : m,
                         .dst = b.maybe(4) ? m : v,
                         .element_log2 = 2,
                         .src_pitch = 4,
                         .dst_pitch = 4,
                         .src_slice = 8,
                         .dst_slice = 8,
                         .x = 1 + b.any(2),
                         .y = 1 + b.any(2),
                         .z = 1 + b.any(2),
                         .src_x = static_cast<std::uint16_t>(b.any(3)),
                         .src_y = static_cast<std::uint16_t>(b.any(2)),
                         .dst_x = static_cast<std::uint16_t>(b.any(3)),
                         .dst_y = static_cast<std::uint16_t>(b.any(2))};
  };
  auto& q = b.queue(0);
  for (auto n = 1 + b.any(3); n-- > 0;) {
    q.put(piece());
    if (b.maybe(3)) b.drain(q, word, n + 1);
  }
  if (b.maybe()) {
    auto& p = b.queue(0);
    p.put(piece());
    b.add(p, done);
  } else {
    b.add(q, done);
  }
  b.add(q, done);
  b.host().submit_all().wait(done, Compare::ge, 2);
  return std::move(b.s);
}

Schedule vram(Random& r) {
  Builder b{r, 2};
  const auto word = b.signal(0, 0, Place::gpu(b.any(2))), seen = b.signal(), done = b.signal();
  const auto data = [&] { return b.buffer(4, Init::random, b.maybe() ? Place::host() : Place::gpu(b.any(2))); };
  const auto x = data(), y = data(), z = data();
  auto& p = b.queue(0);
  b.copy(p, x, y);
  const auto first = b.any(4);
  if (first == 0) b.fence(p, seen, kEpoch);
  if (first == 1) b.drain(p, seen, kEpoch);
  if (b.maybe()) b.fence(p, word, kEpoch);
  else b.add(p, word);
  auto& c = b.queue(1);
  b.poll(c, word, b.at_least(), kEpoch);
  b.copy(c, b.maybe(4) ? x : y, z);
  b.fence(c, done, kEpoch);
  b.host().repeat(1 + b.any(2), [&](Schedule::Script& s) { s.submit_all().wait(done, Compare::ge, kEpoch); });
  return std::move(b.s);
}

Schedule words(Random& r) {
  Builder b{r, 2};
  const auto word = b.signal(b.any(3)), done = b.signal();
  const auto n = 1 + b.any(2);
  const auto x = b.buffer(), y = b.buffer();
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    if (b.maybe()) b.copy(q, x, i == 0 ? y : b.buffer());
    for (auto k = 1 + b.any(2); k-- > 0;) {
      if (b.maybe(3)) b.fence(q, word, 1 + b.any(3));
      else b.add(q, word, b.maybe(3) ? -1 : 1 + b.any(2));
    }
    b.add(q, done);
  }
  auto& c = b.queue(1);
  PollMem poll{.addr = word, .func = static_cast<Compare>(1 + b.any(6)), .reference = b.any(4)};
  if (b.maybe(4)) poll.mask = 1 + b.any(3);
  if (b.maybe(8)) poll.retry = 4;
  c.put(poll);
  b.copy(c, y, b.buffer());
  b.add(c, done);
  auto h = b.host();
  h.submit_all();
  if (b.maybe(3)) h.wait(word, static_cast<Compare>(1 + b.any(6)), b.any(4));
  h.wait(done, Compare::ge, n + 1);
  return std::move(b.s);
}

Schedule wide(Random& r) {
  Builder b{r, 2};
  const std::uint64_t first = b.maybe() ? 0 : b.maybe() ? 0xffffffff : 0x100000000;
  const auto word = b.signal(first, 64), done = b.signal();
  const auto x = b.buffer(), y = b.buffer(), z = b.buffer();
  auto& p = b.queue(0);
  b.copy(p, x, y);
  const std::int64_t steps[] = {1, -1, 0x100000000, 2};
  const auto step = steps[b.any(4)];
  b.add(p, word, step);
  const auto last = first + static_cast<std::uint64_t>(step);
  auto& c = b.queue(1);
  if (b.maybe(4) == false) b.poll(c, word + 4, b.at_least(), last >> 32);
  b.poll(c, word, b.at_least(), static_cast<std::uint32_t>(last));
  b.copy(c, y, z);
  b.fence(c, done, 1);
  // The low half wraps.
  const bool wraps = b.maybe(4);
  if (wraps) b.add(b.queue(0), word, 0xffffffff);
  auto h = b.host();
  h.submit_all().wait(done, Compare::ge, 1);
  if (b.maybe()) h.wait(word, Compare::eq, static_cast<std::int64_t>(last + (wraps ? 0xffffffff : 0)));
  return std::move(b.s);
}

Schedule noise(Random& r) {
  Builder b{r, 2};
  std::vector<GpuVa> data, flags;
  for (int i = 0; i < 3; ++i) data.push_back(b.buffer(16, Init::zero));
  for (int i = 0; i < 3; ++i) flags.push_back(b.signal(b.any(8) == 0, 32));
  const auto word = [&] { return flags[b.any(3)]; };
  const auto queues = 1 + b.any(3);
  for (std::uint32_t q = 0; q < queues; ++q) {
    auto& queue = b.queue(q, b.maybe(4) ? 2 : -1);
    bool poll = b.maybe();
    for (auto n = 1 + b.any(3); n-- > 0;) {
      const std::uint32_t value = 1 + b.any(2);
      if (poll) b.poll(queue, b.any(3) ? flags[2] : word(), b.maybe() ? Compare::ge : Compare::eq, 1 + b.any(4) / 3);
      else if (b.any(8) == 0)
        queue.put(Write{.dst = b.any(4) ? data[b.any(3)] + 4 * b.any(2) : word(), .data = {&value, 1}});
      else b.copy(queue, data[b.any(4) ? 2 : (q + 1) % 3] + 8, data[b.any(3) ? q : b.any(3)] + 4 * b.any(2));
      poll = b.any(3) == 0;
    }
    if (b.any(8)) {
      if (b.maybe()) b.fence(queue, b.any(3) ? flags[q] : word(), 1 + b.any(8) / 7);
      else b.add(queue, b.any(3) ? flags[q] : word());
    }
  }
  for (std::uint32_t n = 1 + (b.any(4) == 0); n-- > 0;) {
    auto h = b.host();
    for (std::uint32_t q = 0; q < queues; ++q)
      if (n == 0 || b.maybe()) h.submit(b.s.queues[q]);
    if (b.any(4)) h.set(b.any(4) ? flags[2] : word(), 1 + b.any(3) / 2);
    for (std::uint32_t q = 0; q < queues; ++q)
      if (b.any(12)) h.wait(b.any(8) ? flags[q] : word(), b.any(3) ? Compare::ge : Compare::eq, 1 + b.any(12) / 11);
  }
  return std::move(b.s);
}

}  // namespace sdma::explore::family
