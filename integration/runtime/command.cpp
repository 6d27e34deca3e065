// SPDX-License-Identifier: MIT
#include "command.hpp"

#include "sdma/packets/cache.hpp"

namespace runtime {
namespace {

using namespace sdma;

Writer::Copy request(const Engine& e, const LinearCopy& c) noexcept {
  return {.src = c.src, .dst = c.dst, .bytes = c.bytes, .chunk = e.longest_copy};
}
Writer::Fill request(const Engine& e, const LinearFill& f) noexcept {
  return {
      .dst = f.dst, .data = f.value, .bytes = f.dwords * 4, .chunk = e.longest_fill, .count = FillCount::last_dword};
}

/// The waits and posts of an operation take at most two packets.
constexpr std::size_t kOperationPart = sdma::dwords_of<PollMem, PollMem>();

Errc wait(AnyWriter& w, const Operation::Wait& x) noexcept {
  if (x.word == GpuVa{}) return Errc::ok;
  const bool both = high_half(x.mask) != 0 && low_half(x.mask) != 0;
  if (x.word.value % 8 != 0 || (x.value & ~x.mask) != 0 || x.mask == 0 || (both && x.func != Compare::eq))
    return w.fail(Errc::bad_packet);
  const auto half = [&](std::uint64_t at, std::uint32_t value, std::uint32_t mask) {
    if (mask != 0) w.put(PollMem{.addr = x.word + at, .func = x.func, .reference = value, .mask = mask});
  };
  half(4, high_half(x.value), high_half(x.mask));
  half(0, low_half(x.value), low_half(x.mask));
  return w.error();
}

Errc post(AnyWriter& w, const Operation::Post& x, bool atomics) noexcept {
  using How = Operation::Post::How;
  if (x.word == GpuVa{}) return Errc::ok;
  if (x.how == How::write) return complete_with_two_fences(w, x.word, x.value);
  if (!atomics) return w.fail(Errc::bad_packet);
  return complete_with_atomic(w, x.word, x.how == How::add ? x.value : 0 - x.value);
}

/// Calls `f` with the request that moves the bytes of an operation.
template <class F> auto with_request(const Engine& e, const Operation& o, F f) noexcept {
  using Kind = Operation::Kind;
  if (o.kind == Kind::broadcast)
    return f(Writer::Broadcast{.src = o.src, .dst1 = o.dst, .dst2 = o.dst2, .bytes = o.bytes, .chunk = e.longest_copy});
  if (o.kind == Kind::swap)
    return f(Writer::Swap{.a = o.src, .b = o.dst, .bytes = o.bytes, .chunk = e.longest_copy / 64 * 64});
  return f(request(e, LinearCopy{o.src, o.dst, o.bytes}));
}
void write(AnyWriter& w, const Writer::Copy& c) noexcept { w.copy(c); }
void write(AnyWriter& w, const Writer::Broadcast& c) noexcept { w.broadcast(c); }
void write(AnyWriter& w, const Writer::Swap& c) noexcept { w.swap(c); }

/// What the work of a command is made of: its bytes, its dwords, its packets.
struct Bytes {
  std::uint64_t operator()(std::span<const LinearCopy> all) const noexcept {
    std::uint64_t sum = 0;
    for (const auto& c : all) sum += c.bytes;
    return sum;
  }
  std::uint64_t operator()(const LinearFill& f) const noexcept { return f.dwords * 4; }
  std::uint64_t operator()(const Box& b) const noexcept { return b.bytes(); }
  std::uint64_t operator()(std::span<const Operation> all) const noexcept {
    std::uint64_t sum = 0;
    for (const auto& o : all) sum += o.bytes;
    return sum;
  }
};

struct Measure {
  const Engine& e;
  Result<std::size_t> operator()(std::span<const LinearCopy> all) const noexcept {
    std::size_t sum = 0;
    for (const auto& c : all) {
      const auto n = sdma::dwords_of(e.generation, request(e, c));
      if (n == 0) return Errc::bad_argument;
      if ((sum += n) > kMostDwords) return Errc::too_large;
    }
    return sum;
  }
  Result<std::size_t> operator()(const LinearFill& f) const noexcept {
    if (f.dwords >> 61 != 0) return Errc::bad_argument;
    return sdma::dwords_of(e.generation, request(e, f));
  }
  Result<std::size_t> operator()(const Box& b) const noexcept {
    if (const auto bad = check(b); bad != Errc::ok) return bad;
    std::size_t sum = 0;
    const auto error = each_tile(b, e.generation, [&](const CopySubwindow& p) {
      return (sum += length(p, e.generation)) > kMostDwords ? Errc::too_large : Errc::ok;
    });
    if (error != Errc::ok) return error;
    return sum;
  }
  Result<std::size_t> operator()(std::span<const Operation> all) const noexcept {
    std::size_t sum = 0;
    for (const auto& o : all) {
      const auto n = with_request(e, o, [&](const auto& r) { return sdma::dwords_of(e.generation, r); });
      if (n == 0) return Errc::bad_argument;
      std::uint32_t room[2 * kOperationPart];
      AnyWriter w{room, {e.generation}};
      wait(w, o.wait);
      if (const auto bad = post(w, o.post, e.atomics); bad != Errc::ok || w.error() != Errc::ok) return w.error();
      if ((sum += n + w.position_dwords()) > kMostDwords) return Errc::too_large;
    }
    return sum;
  }
};

struct Encode {
  AnyWriter& w;
  const Engine& e;
  void operator()(std::span<const LinearCopy> all) const noexcept {
    for (const auto& c : all) w.copy(request(e, c));
  }
  void operator()(const LinearFill& f) const noexcept { w.fill(request(e, f)); }
  void operator()(const Box& b) const noexcept {
    each_tile(b, e.generation, [&](const CopySubwindow& p) { return w.put(p); });
  }
  void operator()(std::span<const Operation> all) const noexcept {
    for (const auto& o : all) {
      wait(w, o.wait);
      with_request(e, o, [&](const auto& r) { write(w, r); });
      post(w, o.post, e.atomics);
    }
  }
};

/// The packets before the work, and those after it, in parts of at most kPart dwords: to write them, and to measure
/// them.
constexpr std::size_t kPart = hsa::kDependTwiceAtMost.dwords;
static_assert(kPart >= hsa::kCompleteAtMost.dwords && kPart >= hsa::kJoinAtMost.dwords &&
              kPart >= sdma::dwords_of<Timestamp, HdpFlush>());

template <class Run> void before(const Engine& e, const Command& c, Run run) noexcept {
  for (const auto& s : c.after)
    run([&](AnyWriter& w) { hsa::depend(w, s, {.halves = hsa::Halves::by_value, .twice = e.poll_twice}); });
  run([&](AnyWriter& w) {
    if (c.stamps && c.out.start_stamp != GpuVa{}) hsa::stamp_start(w, c.out);
    if (e.hdp_flush) w.put(HdpFlush{});
  });
  if (exists<Gcr>(e.generation))
    run([&](AnyWriter& w) {
      w.put(Gcr{.gl2_writeback = true,
                .gl2_invalidate = true,
                .gl1_invalidate = true,
                .glv_invalidate = true,
                .glk_invalidate = true,
                .glk_writeback = true});
    });
}

template <class Run> void after(const Engine& e, const Command& c, Run run) noexcept {
  if (exists<Gcr>(e.generation)) run([](AnyWriter& w) { w.put(Gcr{.gl2_writeback = true, .glk_writeback = true}); });
  if (c.stamps && c.out.end_stamp != GpuVa{}) run([&](AnyWriter& w) { hsa::stamp(w, end_stamp_va(c.out)); });
  for (const auto& m : c.members) run([&](AnyWriter& w) { hsa::join(w, m, e.atomics); });
  if (c.count.word != GpuVa{}) run([&](AnyWriter& w) { complete_with_fence(w, c.count.word, c.count.value); });
  if (c.out.value_word != GpuVa{})
    run([&](AnyWriter& w) { hsa::complete_signal(w, c.out, {.atomics = e.atomics, .fences = hsa::Halves::by_value}); });
}

}  // namespace

std::uint64_t bytes_of(const Command& c) noexcept { return std::visit(Bytes{}, c.work); }

Result<std::size_t> dwords_of(const Engine& e, const Command& c) noexcept {
  const auto work = std::visit(Measure{e}, c.work);
  if (!work) return work;
  if (*work == 0) return Errc::bad_argument;
  auto sum = *work;
  auto error = Errc::ok;
  const auto measure = [&](auto part) {
    std::uint32_t room[kPart];
    AnyWriter w{room, {e.generation}};
    part(w);
    sum += w.position_dwords();
    if (error == Errc::ok) error = w.error();
  };
  before(e, c, measure);
  after(e, c, measure);
  if (error != Errc::ok) return error;
  return sum;
}

Errc encode(AnyWriter& w, const Engine& e, const Command& c) noexcept {
  const auto write = [&](auto part) { part(w); };
  before(e, c, write);
  std::visit(Encode{w, e}, c.work);
  after(e, c, write);
  return w.error();
}

}  // namespace runtime
