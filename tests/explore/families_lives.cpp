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

}  // namespace sdma::explore::family
