// SPDX-License-Identifier: MIT
// Families of schedules whose memory comes and goes.
#include "families.hpp"

namespace sdma::explore::family {

Schedule lifetimes(Random& r) {
  Builder b{r, 2};
  const auto home = b.maybe(3) ? Place::host() : Place::gpu(b.any(2));
  const auto in = b.buffer(4), stage = b.buffer(4, Init::random, home), out = b.buffer(4);
  const auto filled = b.signal(), done = b.signal(), freed = b.signal();
  auto& p = b.queue(0);
  b.copy(p, in, stage);
  b.fence(p, filled, kEpoch);
  auto& c = b.queue(1);
  b.poll(c, filled, b.at_least(), kEpoch);
  b.copy(c, stage, out);
  if (b.maybe()) b.fence(c, done, kEpoch);
  else b.add(c, done);
  const auto rounds = 1 + b.any(2);
  const bool alloc = !b.maybe(3), maps = b.maybe(), exports = b.maybe(), frees = !b.maybe(3), other = b.maybe(4);
  const auto user = Place::gpu(b.any(2));
  const auto begin = [&](Schedule::Script& s) {
    if (alloc) s.alloc(stage);
    if (maps && !b.maybe(6)) s.map(stage, user);
    if (exports) s.export_handle(stage);
  };
  const auto end = [&](Schedule::Script& s) {
    if (exports && !b.maybe(6)) s.close_handle(stage);
    if (maps && b.maybe()) s.unmap(stage, user);
    if (frees) s.free(stage);
  };
  const bool early = b.maybe();
  auto h = b.host();
  if (early) begin(h);
  h.repeat(rounds, [&](Schedule::Script& s) {
    if (!early) begin(s);
    s.submit(p);
    if (b.maybe(6)) s.wait(filled, Compare::ge, kEpoch);
    s.submit(c);
    if (!b.maybe(6)) s.wait(b.maybe(4) ? filled : done, Compare::ge, kEpoch);
    if (!early) end(s);
  });
  if (early && !other) end(h);
  if (early && other) {
    auto o = b.host();
    if (!b.maybe(4)) o.wait(done, Compare::ge, rounds);
    end(o);
    o.set(freed, 1);
    if (b.maybe()) h.wait(freed, Compare::eq, 1);
  }
  h.wait(done, Compare::ge, rounds);
  if (b.maybe(4)) h.load({stage, 4});
  return std::move(b.s);
}

Schedule pool(Random& r) {
  Builder b{r, 2};
  const auto in = b.buffer(4), out = b.buffer(4), whole = b.buffer(16, Init::random, Place::gpu(b.any(2)));
  const auto part = [&](const char* name, std::uint64_t at, std::uint64_t bytes) {
    return b.s.add_buffer({.place = b.s.buffers[2].place, .name = name, .bytes = bytes, .at = whole + at});
  };
  const bool apart = b.maybe();
  const auto one = part("one", 0, 4), two = part("two", apart ? 4 : 0, 4), words = part("words", 8, 8);
  const auto flag = b.s.add_signal({.place = b.s.buffers[2].place, .name = "flag", .bits = 64, .at = words});
  const auto done = b.signal();
  const auto word = b.maybe() ? flag : done;
  auto& p = b.queue(0);
  b.copy(p, in, one);
  b.fence(p, word, 1);
  auto& c = b.queue(1);
  if (!b.maybe(4)) b.poll(c, word, b.at_least(), 1);
  b.copy(c, b.maybe(4) ? two : one, out);
  b.fence(c, done, 2);
  auto h = b.host();
  const bool pooled = b.maybe(3), lives = b.maybe();
  if (pooled) h.alloc(whole);
  if (lives) h.alloc(one);
  h.submit(p);
  if (b.maybe()) h.wait(word, Compare::ge, 1);
  if (b.maybe(4)) h.free(one).alloc(two);
  h.submit(c);
  if (!b.maybe(6)) h.wait(done, Compare::ge, 2);
  if (b.maybe()) h.free(b.maybe() ? one : words);
  if (pooled) h.free(whole);
  if (b.maybe(4)) h.wait(done, Compare::ge, 2);
  return std::move(b.s);
}

Schedule lent(Random& r) {
  Builder b{r, 2};
  const auto home = b.maybe(3) ? Place::host() : Place::gpu(b.any(2));
  const auto in = b.buffer(4), data = b.buffer(4, Init::random, home), out = b.buffer(4);
  const auto words = b.buffer(16, Init::zero, b.maybe() ? home : Place::gpu(0));
  const auto inner = b.s.add_signal({.place = b.s.buffers[3].place, .name = "inner", .bits = 64, .at = words + 8});
  const auto filled = b.signal(), half = b.signal(), done = b.signal();
  const auto gpu = b.any(2);
  auto& p = b.queue(0);
  b.copy(p, in, data);
  b.fence(p, filled, 1);
  const auto agent = [&](std::uint32_t k) { b.s.kernels[k].actions.back().system_scope = b.maybe(3); };
  auto one = b.kernel(gpu);
  if (!b.maybe(6)) one.wait(filled, b.at_least(), 1);
  if (b.maybe()) one.load({data, 4});
  if (b.maybe()) one.store({b.maybe() ? data : out, 4}, std::uint8_t{5});
  const bool two_kernels = b.maybe();
  one.set(inner, 1);
  agent(0);
  if (!two_kernels || b.maybe()) one.set(half, 1);
  if (two_kernels) {
    auto two = b.kernel(gpu);
    two.wait(inner, b.at_least(), 1);
    agent(1);
    if (b.maybe()) two.load({data, 4});
    if (b.maybe()) two.wait(half, b.at_least(), 1);
    two.set(done, 1);
  }
  const bool alloc = b.maybe(), maps = b.maybe(4), exports = b.maybe(4);
  const auto lives = b.maybe() ? data : words;
  auto h = b.host();
  if (alloc) h.alloc(lives);
  if (maps && !b.maybe(6)) h.map(lives, Place::gpu(gpu));
  if (exports) h.export_handle(lives);
  h.submit(p);
  if (!b.maybe(6)) h.wait(two_kernels ? done : half, Compare::ge, 1);
  else h.wait(filled, Compare::ge, 1);
  if (exports && !b.maybe(6)) h.close_handle(lives);
  if (maps && b.maybe()) h.unmap(lives, Place::gpu(gpu));
  if (!b.maybe(3)) h.free(lives);
  return std::move(b.s);
}

Schedule gates(Random& r) {
  Builder b{r, 2};
  const auto home = b.maybe(3) ? Place::host() : Place::gpu(b.any(2));
  const auto in = b.buffer(4), out = b.buffer(4), whole = b.buffer(8, b.maybe(6) ? Init::random : Init::zero, home);
  // The word is in memory of its own, or in a block of a pool.
  const bool pooled = b.maybe(3);
  const auto block = pooled ? b.s.add_buffer({.place = home, .name = "block", .bytes = 4, .at = whole + 4}) : whole;
  const auto gate = b.s.add_signal({.place = home, .name = "gate", .bits = 32, .at = block});
  const auto done = b.signal(), ready = b.signal();
  const std::uint32_t user = b.any(2);
  auto& q = b.queue(user);
  if (b.maybe(3)) b.poll(q, ready, Compare::ge, 1);
  if (b.maybe(4)) b.fence(q, gate, b.any(2));
  if (b.maybe(4)) b.drain(q, done, 1);
  const auto what = b.any(4);
  const auto gated = [&](std::uint16_t dwords) {
    q.put(CondExec{.addr = gate, .reference = b.any(3) == 0 ? 1u : 0u, .dwords = dwords});
  };
  if (what == 0) b.poll(q, gate, b.maybe() ? Compare::always : Compare::ge, 0);
  if (what == 1) gated(7), b.copy(q, in, out);
  if (what == 2) gated(11), b.copy(q, in, out), b.fence(q, done, 1);
  if (what == 3) gated(4), b.fence(q, done, 1);
  if (b.maybe(4)) b.copy(q, in, out);
  b.fence(q, done, 2);
  const bool alloc = b.maybe(), maps = !pooled && b.maybe(3), exports = !pooled && b.maybe(3), frees = !b.maybe(3);
  const auto end = [&](Schedule::Script& s) {
    if (exports && !b.maybe(6)) s.close_handle(whole);
    if (maps && b.maybe()) s.unmap(whole, Place::gpu(user));
    if (frees) s.free(block);
  };
  auto h = b.host();
  if (alloc) h.alloc(block);
  if (maps && !b.maybe(6)) h.map(whole, Place::gpu(user));
  if (exports) h.export_handle(whole);
  if (b.maybe(4)) h.set(gate, b.any(2));
  const bool early = b.maybe(4);
  if (early) end(h);
  h.submit(q).set(ready, 1);
  if (!b.maybe(6)) h.wait(done, Compare::ge, b.maybe(4) ? 1 : 2);
  if (early && b.maybe(3)) h.alloc(block);
  if (!early) end(h);
  h.wait(done, Compare::ge, 2);
  return std::move(b.s);
}

}  // namespace sdma::explore::family
