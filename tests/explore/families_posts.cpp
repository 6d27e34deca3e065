// SPDX-License-Identifier: MIT
// Families of schedules whose words are posted to in several ways: by every atomic, in halves, by stores and additions.
#include "families.hpp"

namespace sdma::explore::family {

Schedule atomics(Random& r) {
  Builder b{r, 2};
  const auto n = 2 + b.any(2), how = b.any(8);
  const bool narrow = b.maybe();
  constexpr std::uint64_t kLimits[] = {~std::uint64_t{0}, 64, 3, 2, 1};
  const auto limit = kLimits[b.maybe(4) ? 3 + b.any(2) : b.any(3)];
  // Each bit, one more each time, or one less.
  const bool bits = how == 0 || how == 4, down = how == 3 || how == 7;
  const auto last = bits ? (1u << n) - 1 : down ? 0 : n;
  const auto word = b.signal(down ? n : 0, narrow ? 32 : 64), done = b.signal();
  const auto post = [&](Schedule::Queue& q, std::uint32_t i) {
    const auto op = [&](AtomicOp narrow_op, AtomicOp wide_op) { return narrow ? narrow_op : wide_op; };
    switch (how) {
      case 0:
        return q.put(Atomic{.addr = word,
                            .op = op(AtomicOp::or_rtn_32, AtomicOp::or_rtn_64),
                            .value = 1u << i | (b.maybe(4) ? 1u : 0u)});
      case 1:
        return q.put(Atomic{.addr = word, .op = op(AtomicOp::umax_rtn_32, AtomicOp::umax_rtn_64), .value = i + 1});
      case 2: return q.put(Atomic{.addr = word, .op = op(AtomicOp::inc_rtn_32, AtomicOp::inc_rtn_64), .value = limit});
      case 3: return q.put(Atomic{.addr = word, .op = op(AtomicOp::dec_rtn_32, AtomicOp::dec_rtn_64), .value = limit});
      case 4:
        return q.put(Atomic{.addr = word, .op = op(AtomicOp::xor_rtn_32, AtomicOp::xor_rtn_64), .value = 1u << i});
      case 5:
        return q.put(Atomic{
            .addr = word, .op = op(AtomicOp::cmpswap_rtn_32, AtomicOp::cmpswap_rtn_64), .value = i + 1, .compare = i});
      case 6:
        return q.put(Atomic{.addr = word, .op = op(AtomicOp::swap_rtn_32, AtomicOp::swap_rtn_64), .value = i + 1});
      default:
        return q.put(Atomic{.addr = word, .op = op(AtomicOp::umin_rtn_32, AtomicOp::umin_rtn_64), .value = n - 1 - i});
    }
  };
  const bool turns = !b.maybe(3), counted = b.maybe();
  std::vector<GpuVa> data;
  for (std::uint32_t i = 0; i <= n; ++i) data.push_back(b.buffer(4));
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    const auto before = bits ? (1u << i) - 1 : down ? n - i : i;
    if (turns && i != 0) b.poll(q, word, down ? Compare::le : b.at_least(), before);
    b.copy(q, data[turns ? i : 0], data[i + 1]);
    post(q, i);
    if (counted || b.maybe(4)) b.add(q, done);
  }
  auto h = b.host();
  h.submit_all();
  if (counted) h.wait(done, Compare::ge, n);
  h.wait(word, down ? Compare::le : b.at_least(), last);
  return std::move(b.s);
}

Schedule halves(Random& r) {
  Builder b{r, 2};
  const std::uint64_t first = b.any(3) == 0 ? 0x1'0000'0000 : 0;
  const auto word = b.signal(first, 64), done = b.signal();
  const auto x = b.buffer(4), y = b.buffer(4), z = b.buffer(4);
  // A queue that may see the high half before anything changes it.
  const bool early = b.maybe(4);
  if (early) {
    auto& e = b.queue(1);
    b.poll(e, word + 4, b.at_least(), first >> 32);
    b.add(e, done);
  }
  auto& p = b.queue(0);
  b.copy(p, x, y);
  const auto low = 1 + b.any(2), high = b.any(3);
  const bool high_first = b.maybe();
  if (high_first && b.maybe()) b.fence(p, word + 4, high);
  if (b.maybe(3)) p.put(Atomic{.addr = word, .op = AtomicOp::add_rtn_32, .value = low});
  else b.fence(p, word, low);
  if (!high_first && b.maybe()) b.fence(p, word + 4, high);
  b.add(p, done);
  auto& c = b.queue(1);
  if (b.maybe(3)) b.poll(c, word + 4, b.at_least(), b.maybe(4) ? first >> 32 : high);
  const bool apart = b.maybe(4);
  if (!apart) b.poll(c, word, b.at_least(), low);
  if (!apart) b.copy(c, y, z);
  if (apart || b.maybe(3)) b.fence(c, b.maybe(4) ? word + 4 : word, low + 1);
  b.add(c, done);
  auto h = b.host();
  h.submit_all();
  if (b.maybe()) h.wait(word, b.at_least(), static_cast<std::int64_t>(std::uint64_t{high} << 32 | low));
  h.wait(done, Compare::ge, early ? 3 : 2);
  return std::move(b.s);
}

Schedule mixed(Random& r) {
  Builder b{r, 2};
  const auto n = 2 + b.any(2);
  const auto word = b.signal(b.maybe(4) ? 1 : 0), done = b.signal();
  std::int64_t value = static_cast<std::int64_t>(b.s.signals[0].value);
  std::vector<GpuVa> data;
  for (std::uint32_t i = 0; i <= n; ++i) data.push_back(b.buffer(4));
  if (b.maybe()) {  // a reset, then additions
    const auto rounds = 1 + b.any(2);
    for (std::uint32_t i = 0; i < n; ++i) {
      auto& q = b.queue(i);
      b.copy(q, b.buffer(4), data[i]);
      b.add(q, word);
    }
    b.host().repeat(rounds, [&](Schedule::Script& s) { s.set(word, 0).submit_all().wait(word, b.at_least(), n); });
    return std::move(b.s);
  }
  for (std::uint32_t i = 0; i < n; ++i) {  // each in its turn
    auto& q = b.queue(i);
    if (i != 0) b.poll(q, word, b.at_least(), value);
    b.copy(q, data[i], data[i + 1]);
    if (b.maybe()) {
      b.add(q, word);
      ++value;
    } else {
      value = b.maybe(6) ? b.any(3) : value + 1 + b.any(2);
      b.fence(q, word, value);
    }
  }
  if (b.maybe(3)) b.fence(b.s.queues[0], done, 1);
  b.host().submit_all().wait(word, b.at_least(), value);
  return std::move(b.s);
}

Schedule compare(Random& r) {
  Builder b{r, 2};
  const auto func = static_cast<Compare>(1 + b.any(6));
  const bool down = func == Compare::le || func == Compare::lt, masked = b.maybe(4);
  const auto first = 3 + b.any(3), by = 1 + b.any(2), last = down ? first - by : first + by;
  const auto word = b.signal(first), done = b.signal();
  const auto between = by == 2 && b.maybe() ? 1u : 0u;
  const auto value = func == Compare::gt   ? last - 1
                     : func == Compare::lt ? last + 1
                     : func == Compare::ge ? last - between
                     : func == Compare::le ? last + between
                     : func == Compare::ne ? first
                                           : last;
  const auto x = b.buffer(4), y = b.buffer(4), z = b.buffer(4);
  auto& p = b.queue(0);
  // Perhaps a value between both, which satisfies the wait before the data is there, or does not.
  if (b.maybe(4)) b.fence(p, word, down ? first - 1 : first + 1);
  b.copy(p, x, y);
  const auto how = masked ? 1 + b.any(2) : b.any(4);
  const bool narrow = b.s.signals[0].bits == 32;
  if (how == 0) b.add(p, word, static_cast<std::int64_t>(last) - first);
  else if (how == 1) b.fence(p, word, last);
  else if (how == 2)
    p.put(Atomic{.addr = word, .op = narrow ? AtomicOp::swap_rtn_32 : AtomicOp::swap_rtn_64, .value = last});
  else if (b.maybe(3))
    p.put(Atomic{.addr = word, .op = narrow ? AtomicOp::xor_rtn_32 : AtomicOp::xor_rtn_64, .value = first ^ last});
  else
    p.put(Atomic{.addr = word,
                 .op = down ? (narrow ? AtomicOp::umin_rtn_32 : AtomicOp::umin_rtn_64)
                            : (narrow ? AtomicOp::umax_rtn_32 : AtomicOp::umax_rtn_64),
                 .value = last});
  auto& c = b.queue(1);
  PollMem poll{.addr = word, .func = func, .reference = value};
  if (masked) poll.mask = 7;
  c.put(poll);
  if (b.maybe(6)) b.poll(c, word, Compare::always, 0);
  b.copy(c, y, z);
  b.add(c, done);
  auto h = b.host();
  h.submit_all();
  if (b.maybe()) h.wait(word, func, value);
  h.wait(done, Compare::ge, 1);
  return std::move(b.s);
}

Schedule reads(Random& r) {
  Builder b{r, 2};
  const auto done = b.signal(), go = b.signal(), after = b.signal();
  const auto x = b.buffer(4), y = b.buffer(4), z = b.buffer(4);
  auto& p = b.queue(0);
  const auto gate = b.any(6);  // 0: before the copy, 1: at the end
  if (gate == 0) b.poll(p, go, Compare::ge, kEpoch);
  b.copy(p, x, y);
  if (b.maybe(3)) b.drain(p, done, kEpoch);
  else b.fence(p, done, kEpoch);
  if (gate == 1) b.poll(p, go, Compare::ge, kEpoch);
  auto& c = b.queue(1);
  b.copy(c, b.maybe() ? y : b.buffer(4), z);
  b.add(c, after);
  const auto order = b.any(3);
  const bool waits = !b.maybe(4), again = b.maybe(3);
  auto h = b.host();
  h.repeat(1 + b.any(2), [&](Schedule::Script& s) {
    s.submit(p);
    if (gate < 2 && !b.maybe(6)) s.set(go, kEpoch);
    if (order == 0) s.wait_rptr(p);
    if (waits) s.wait(done, Compare::ge, kEpoch);
    if (order == 1) s.wait_rptr(p);
    s.submit(c);
    if (order == 2) s.wait_rptr(c);
    if (!waits) s.wait(done, Compare::ge, kEpoch);
    s.wait(after, Compare::ge, kEpoch);
    if (again) s.wait_rptr(p);
  });
  return std::move(b.s);
}

Schedule packets(Random& r) {
  Builder b{r, 2};
  const auto done = b.signal(), word = b.signal();
  const auto mailbox = b.signal(0, 32);
  const auto x = b.buffer(64), y = b.buffer(64), z = b.buffer(64);
  for (auto& buffer : b.s.buffers) buffer.alignment = 64;
  const auto n = 1 + b.any(2);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& q = b.queue(i);
    if (i != 0 && b.maybe()) b.poll(q, done, Compare::ge, 1);
    if (b.maybe(3)) b.poll(q, word, Compare::always, 0);
    for (auto k = 1 + b.any(2); k-- > 0;) switch (b.any(5)) {
        case 0: q.put(CopySwap{.a = b.maybe() ? x : y, .b = z, .bytes = 64}); break;
        case 1: q.put(CopyBroadcast{.src = x, .dst1 = y, .dst2 = b.maybe(4) ? y + 4 : z, .bytes = 4}); break;
        case 2: q.put(Fill{.dst = y, .data = 7, .bytes = 4}); break;
        case 3: b.copy(q, x + 4, z + 4); break;
        default: q.put(HdpFlush{});
      }
    if (b.maybe(3)) b.drain(q, word, i + 1);
    if (b.maybe(3)) q.put(Timestamp{.addr = b.maybe(3) ? y : z + 8});
    if (b.maybe(4)) q.put(Nop{.dwords = 1});
    if (b.maybe(4)) {
      b.fence(q, mailbox, 5);
      q.put(Trap{.context = 5});
    }
    b.add(q, done);
  }
  b.host().submit_all().wait(done, Compare::ge, n);
  return std::move(b.s);
}

}  // namespace sdma::explore::family
