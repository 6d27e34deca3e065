// SPDX-License-Identifier: MIT
// The writer is transactional: a call stores all its packets, or not a bit. Long requests become several packets.
#include "sdma/stream/writer.hpp"

#include <functional>

#include "packets/generic.hpp"
#include "sdma/stream/reader.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

constexpr std::uint32_t kUntouched = 0xa5a5a5a5;

/// `n`, of which the compiler knows nothing: where GCC 12 sees how small a buffer
/// is, it warns of the very stores that the writer's look at its room prevents.
std::size_t opaque(std::size_t n) {
  const volatile std::size_t hidden = n;
  return hidden;
}

using Call = std::function<Errc(Writer&)>;

/// A call that must fail, and leave a buffer of `size` dwords between guards untouched.
Errc without_effect(std::size_t size, const Call& call) {
  const auto room = opaque(size);
  std::vector<std::uint32_t> d(room + 2, kUntouched);
  Writer w{std::span(d).subspan(1, room)};
  const auto e = call(w);
  CHECK(e != Errc::ok);
  CHECK(w.room() == room);
  CHECK(w.written().empty());
  CHECK(std::count(d.begin(), d.end(), kUntouched) == static_cast<std::ptrdiff_t>(d.size()));
  return e;
}

/// The packets of type P that a call makes of a request, in a buffer with room for just so many.
template <Packet P> std::vector<P> packets_of(std::size_t packets, const Call& call) {
  const auto room = packets * grammar::layout<P>.length.fixed;
  std::vector<std::uint32_t> d(room + 2, kUntouched);
  Writer w{std::span(d).subspan(1, room)};
  REQUIRE(call(w) == Errc::ok);  // exactly enough room ...
  CHECK(w.room() == 0);
  CHECK(d.front() == kUntouched);
  CHECK(d.back() == kUntouched);
  if (room) CHECK(without_effect(room - 1, call) == Errc::no_space);  // ... and one dword short
  std::vector<P> out;
  for (Reader r{w.written()}; r;) {
    const auto v = r.next();
    REQUIRE(v.is<P>());
    out.push_back(decode<P>(v.dwords));
  }
  CHECK(out.size() == packets);
  return out;
}

constexpr GpuVa kSrc{0x7f0000001040}, kDst{0x7e0000002080}, kDst2{0x7d00000020a0};

/// The pieces of a request lie one behind another and are `bytes` together; all but the last are a chunk.
template <Packet P, class At>
void contiguous(const std::vector<P>& pieces, std::uint64_t bytes, std::uint32_t chunk, At at) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    at(pieces[i], sum);
    CHECK(fits(pieces[i]));
    if (i + 1 < pieces.size()) CHECK(pieces[i].bytes == chunk);
    sum += pieces[i].bytes;
  }
  CHECK(sum == bytes);
}

TEST_CASE("a copy becomes as many packets as it needs, at every boundary") {
  struct {
    std::uint64_t bytes;
    std::size_t packets;
  } const cases[] = {{1, 1},
                     {64, 1},
                     {kChunk - 1, 1},
                     {kChunk, 1},
                     {kChunk + 1ull, 2},
                     {1ull << 30, 2},
                     {2ull * kChunk - 1, 2},
                     {2ull * kChunk, 2},
                     {2ull * kChunk + 1, 3},
                     {1ull << 32, 5},
                     {(1ull << 32) + 1, 5},
                     {5ull << 30, 6},
                     {1ull << 40, 1025}};
  for (const auto& c : cases) {
    INFO(c.bytes);
    const auto pieces = packets_of<CopyLinear>(
        c.packets, [&](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = c.bytes}); });
    contiguous(pieces, c.bytes, kChunk, [](const CopyLinear& p, std::uint64_t at) {
      CHECK(p.src == kSrc + at);
      CHECK(p.dst == kDst + at);
    });
  }
}

TEST_CASE("the chunk of older engines, and one of one's own") {
  for (const std::uint64_t bytes : {kChunk22 - 1ull, kChunk22 + 0ull, kChunk22 + 1ull, 1ull << 22, 1ull << 30}) {
    INFO(bytes);
    const auto pieces = packets_of<CopyLinear>((bytes - 1) / kChunk22 + 1, [&](Writer& w) {
      return w.copy({.src = kSrc, .dst = kDst, .bytes = bytes, .chunk = kChunk22});
    });
    for (const auto& p : pieces) CHECK(p.bytes <= 1u << 22);
  }
  const auto pieces =
      packets_of<CopyLinear>(4, [&](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = 10, .chunk = 3}); });
  contiguous(pieces, 10, 3, [](const CopyLinear& p, std::uint64_t at) { CHECK(p.dst == kDst + at); });
}

TEST_CASE("the second piece begins as aligned as the first") {
  STATIC_REQUIRE(kChunk % 64 == 0);
  STATIC_REQUIRE(kChunk22 % 64 == 0);
  STATIC_REQUIRE((1ull << 30) - kChunk == 64);
  STATIC_REQUIRE((1ull << 22) - kChunk22 == 64);
  const auto pieces =
      packets_of<CopySwap>(6, [](Writer& w) { return w.swap({.a = kSrc, .b = kDst, .bytes = 5ull << 30}); });
  contiguous(pieces, 5ull << 30, kChunk, [](const CopySwap& p, std::uint64_t at) {
    CHECK(p.a == kSrc + at);
    CHECK(p.b == kDst + at);
    CHECK(p.a.value % 64 == 0);
  });
}

TEST_CASE("a broadcast keeps its destinations equal modulo 32, whatever the chunk") {
  for (const std::uint32_t chunk : {kChunk, kChunk22, 4096u, 48u, 1u << 30}) {
    const std::uint64_t bytes = 2ull * chunk + 7;
    const auto pieces = packets_of<CopyBroadcast>(3, [&](Writer& w) {
      return w.broadcast({.src = kSrc, .dst1 = kDst, .dst2 = kDst2, .bytes = bytes, .chunk = chunk});
    });
    contiguous(pieces, bytes, chunk, [](const CopyBroadcast& p, std::uint64_t at) {
      CHECK(p.src == kSrc + at);
      CHECK(p.dst1 == kDst + at);
      CHECK(p.dst2 == kDst2 + at);
    });
  }
}

TEST_CASE("a fill covers whole units in every piece") {
  const auto pieces =
      packets_of<Fill>(2, [](Writer& w) { return w.fill({.dst = kDst, .data = 0x1234, .bytes = kChunk + 4ull}); });
  contiguous(pieces, kChunk + 4ull, kChunk, [](const Fill& p, std::uint64_t at) {
    CHECK(p.dst == kDst + at);
    CHECK(p.data == 0x1234);
    CHECK(p.unit == FillUnit::dword);
    CHECK(bytes_written(p) == p.bytes);
  });
  const auto bytes = packets_of<Fill>(
      3, [](Writer& w) { return w.fill({.dst = kDst + 1, .bytes = 7, .unit = FillUnit::byte, .chunk = 3}); });
  CHECK(bytes.back().bytes == 1);
}

TEST_CASE("what cannot be is a bad packet, and nothing is written") {
  const auto bad = [](const Call& call) { CHECK(without_effect(64, call) == Errc::bad_packet); };
  // No bytes, no chunk.
  bad([](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = 0}); });
  bad([](Writer& w) { return w.broadcast({.src = kSrc, .dst1 = kDst, .dst2 = kDst2}); });
  bad([](Writer& w) { return w.swap({.a = kSrc, .b = kDst}); });
  bad([](Writer& w) { return w.fill({.dst = kDst}); });
  bad([](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = 1, .chunk = 0}); });
  bad([](Writer& w) { return w.fill({.dst = kDst, .bytes = 4, .chunk = 0}); });
  // A chunk that the field does not hold, where it would be used.
  bad([](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = 2ull << 30, .chunk = (1u << 30) + 1}); });
  bad([](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = 1ull << 33, .chunk = ~0u}); });
  // Alignment of the first piece, of the second, of the last.
  bad([](Writer& w) { return w.swap({.a = kSrc + 32, .b = kDst, .bytes = 64}); });
  bad([](Writer& w) { return w.swap({.a = kSrc, .b = kDst, .bytes = 128, .chunk = 96}); });
  bad([](Writer& w) { return w.swap({.a = kSrc, .b = kDst, .bytes = 3ull << 30, .chunk = (1u << 30) - 32}); });
  bad([](Writer& w) { return w.broadcast({.src = kSrc, .dst1 = kDst, .dst2 = kDst2 + 16, .bytes = 64}); });
  bad([](Writer& w) { return w.fill({.dst = kDst, .bytes = 64, .chunk = 6}); });
  bad([](Writer& w) { return w.fill({.dst = kDst, .bytes = 62}); });
  bad([](Writer& w) { return w.fill({.dst = kDst + 2, .bytes = 64}); });
  bad([](Writer& w) { return w.fill({.dst = kDst, .bytes = 63, .unit = FillUnit::half}); });
  bad([](Writer& w) { return w.fill({.dst = kDst, .bytes = 64, .unit = static_cast<FillUnit>(3)}); });
  bad([](Writer& w) { return w.fill({.dst = kDst, .bytes = 64, .unit = static_cast<FillUnit>(9)}); });
}

TEST_CASE("a request that runs past the last address is a bad packet; one that ends there is not") {
  static constexpr std::uint64_t n = 1ull << 31;
  static constexpr GpuVa last{0 - n}, past{64 - n};
  const auto bad = [](const Call& call) { CHECK(without_effect(64, call) == Errc::bad_packet); };
  bad([](Writer& w) { return w.copy({.src = past, .dst = kDst, .bytes = n}); });
  bad([](Writer& w) { return w.copy({.src = kSrc, .dst = past, .bytes = n}); });
  bad([](Writer& w) { return w.copy({.src = GpuVa{~0ull}, .dst = kDst, .bytes = 2}); });
  bad([](Writer& w) { return w.copy({.src = kSrc, .dst = kDst, .bytes = ~0ull}); });
  bad([](Writer& w) { return w.broadcast({.src = past, .dst1 = kDst, .dst2 = kDst2, .bytes = n}); });
  bad([](Writer& w) { return w.broadcast({.src = kSrc, .dst1 = past, .dst2 = kDst, .bytes = n}); });
  bad([](Writer& w) { return w.broadcast({.src = kSrc, .dst1 = kDst, .dst2 = past, .bytes = n}); });
  bad([](Writer& w) { return w.swap({.a = past, .b = kDst, .bytes = n}); });
  bad([](Writer& w) { return w.swap({.a = kSrc, .b = past, .bytes = n}); });
  bad([](Writer& w) { return w.fill({.dst = past, .bytes = n}); });

  const auto pieces =
      packets_of<CopyLinear>(3, [](Writer& w) { return w.copy({.src = last, .dst = kDst, .bytes = n}); });
  contiguous(pieces, n, kChunk, [](const CopyLinear& p, std::uint64_t at) { CHECK(p.src == last + at); });
  packets_of<CopyLinear>(1, [](Writer& w) { return w.copy({.src = GpuVa{~0ull}, .dst = kDst, .bytes = 1}); });
  packets_of<Fill>(3, [](Writer& w) { return w.fill({.dst = last, .bytes = n}); });
}

TEST_CASE("more packets than any buffer has room for is no_space, not a loop") {
  CHECK(without_effect(64, [](Writer& w) {
          return w.copy({.src = GpuVa{}, .dst = GpuVa{}, .bytes = ~0ull, .chunk = 1});
        }) == Errc::no_space);
  CHECK(without_effect(0, [](Writer& w) { return w.copy({.bytes = 1}); }) == Errc::no_space);
}

void in_all_rooms(std::string_view name, const std::vector<std::uint32_t>& words, const Call& put) {
  INFO(name);
  const auto n = words.size();
  CHECK(without_effect(n - 1, put) == Errc::no_space);
  CHECK(without_effect(0, put) == Errc::no_space);
  std::vector<std::uint32_t> d(opaque(n) + 1, kUntouched);
  Writer w{std::span(d).first(n)};
  CHECK(put(w) == Errc::ok);
  CHECK(w.room() == 0);
  CHECK(d.back() == kUntouched);
  CHECK(std::vector(w.written().begin(), w.written().end()) == words);
}

TEST_CASE("one packet of each kind: exactly enough room, one dword short, none") {
  Dice dice{1};
  each_packet([&]<class P>() {
    const auto p = dice.packet<P>();
    in_all_rooms(packet_info<P>.name, words_of(p), [&](Writer& w) { return w.put(p); });
  });
}

TEST_CASE("a packet that does not fit its fields is refused before anything else") {
  CHECK(without_effect(0, [](Writer& w) { return w.put(CopyLinear{.bytes = 0}); }) == Errc::bad_packet);
  CHECK(without_effect(64, [](Writer& w) { return w.put(Fence{.addr = GpuVa{2}}); }) == Errc::bad_packet);
  CHECK(without_effect(64, [](Writer& w) { return w.put(Write{.dst = GpuVa{0x1000}}); }) == Errc::bad_packet);
  CHECK(without_effect(64, [](Writer& w) { return w.put(Nop{.dwords = 0}); }) == Errc::bad_packet);
}

TEST_CASE("a failure in the middle keeps what was written before it, and the writer goes on") {
  std::vector<std::uint32_t> d(4 + 7 + 4, kUntouched);
  Writer w{d};
  REQUIRE(w.put(Fence{.addr = GpuVa{0x1000}, .value = 1}) == Errc::ok);
  const std::vector before(d);
  CHECK(w.copy({.src = kSrc, .dst = kDst, .bytes = 1ull << 31}) == Errc::no_space);
  CHECK(w.put(CopyLinear{}) == Errc::bad_packet);
  CHECK(d == before);
  CHECK(w.room() == 11);
  CHECK(w.copy({.src = kSrc, .dst = kDst, .bytes = 4096}) == Errc::ok);
  CHECK(w.put(Fence{.addr = GpuVa{0x1000}, .value = 2}) == Errc::ok);
  CHECK(w.room() == 0);
  CHECK(w.written().data() == d.data());
  CHECK(w.written().size() == d.size());
}

constexpr std::size_t dwords_of_a_long_copy() {
  std::array<std::uint32_t, 64> d{};
  Writer w{d};
  return w.copy({.src = kSrc, .dst = kDst, .bytes = 5ull << 30}) == Errc::ok ? w.written().size() : 0;
}
static_assert(dwords_of_a_long_copy() == 6 * 7);

TEST_CASE("append copies dwords as they are, or none of them") {
  std::uint32_t d[6]{};
  Writer w{d};
  const std::uint32_t words[]{1, 2, 3, 4};
  CHECK(w.append({}) == Errc::ok);
  CHECK(w.append(words) == Errc::ok);
  CHECK((w.position_dwords() == 4 && w.room() == 2));
  CHECK(w.append(std::span(words).first(opaque(3))) == Errc::no_space);
  CHECK((d[4] == 0 && d[5] == 0));
  CHECK(w.append(std::span(words).first(2)) == Errc::ok);
  CHECK((w.position_dwords() == 6 && w.written().size() == 6));
  CHECK(std::vector(std::begin(d), std::end(d)) == std::vector<std::uint32_t>{1, 2, 3, 4, 1, 2});
}

TEST_CASE("the first error of any call is kept until it is cleared") {
  std::uint32_t d[16]{};
  Writer w{d};
  CHECK(w.error() == Errc::ok);
  CHECK(w.put(Fence{.addr = GpuVa{0x1000}}) == Errc::ok);
  CHECK(w.error() == Errc::ok);
  const auto fails = [&](Errc e, auto call) {
    const auto position = w.position_dwords();
    CHECK(call() == e);
    CHECK((w.error() == e && w.position_dwords() == position));
    CHECK(w.put(Nop{1}) == Errc::ok);
    CHECK(w.error() == e);
    CHECK((e == Errc::bad_packet ? w.append(std::vector<std::uint32_t>(99)) : w.put(Nop{0})) != Errc::ok);
    CHECK(w.error() == e);
    w.clear_error();
    CHECK(w.error() == Errc::ok);
  };
  fails(Errc::bad_packet, [&] { return w.put(Fence{.addr = GpuVa{2}}); });
  fails(Errc::no_space, [&] { return w.put(Nop{100}); });
  fails(Errc::no_space, [&] { return w.append(std::vector<std::uint32_t>(100)); });
  fails(Errc::bad_packet, [&] { return w.copy({.src = kSrc, .dst = kDst, .bytes = 0}); });
  fails(Errc::no_space, [&] { return w.copy({.src = kSrc, .dst = kDst, .bytes = 1ull << 32}); });
  fails(Errc::bad_packet, [&] { return w.broadcast({.src = GpuVa{~0ull}, .dst1 = kDst, .dst2 = kDst2, .bytes = 2}); });
  fails(Errc::bad_packet, [&] { return w.swap({.a = GpuVa{~0ull}, .b = kDst, .bytes = 2}); });
  fails(Errc::bad_packet, [&] { return w.fill({.dst = kDst, .bytes = 3}); });
}

TEST_CASE("the length of a request is what the call writes") {
  std::vector<std::uint32_t> d(4096);
  const auto same = [&](const auto& c, auto call) {
    Writer w{d};
    REQUIRE((w.*call)(c) == Errc::ok);
    CHECK(dwords_of(c) == w.position_dwords());
  };
  for (const std::uint64_t bytes : std::initializer_list<std::uint64_t>{4, 64, 6400, 6404, 64000, kChunk + 4ull}) {
    const std::uint32_t chunk = bytes > 64000 ? kChunk : 6400;
    same(Writer::Copy{kSrc, kDst, bytes, chunk}, &Writer::copy);
    same(Writer::Broadcast{kSrc, kDst, kDst2, bytes, chunk}, &Writer::broadcast);
    same(Writer::Fill{kDst, 7, bytes, FillUnit::dword, chunk}, &Writer::fill);
    if (bytes % 64 == 0) same(Writer::Swap{kSrc, kDst, bytes, chunk}, &Writer::swap);
  }
  // Of several things together: packets, requests, callables, maxima.
  const Writer::Copy copy{kSrc, kDst, 64000, 6400};
  const auto both = [&](auto& w) { return w.put(Nop{3}), w.copy(copy); };
  CHECK(dwords_of(copy, Fence{}, both, AtMost{5}) == 70 + 4 + 73 + 5);
  STATIC_REQUIRE(dwords_of(Generation::v5_0, Writer::Copy{.bytes = 8 << 20}, Nop{2}) == 23);
  STATIC_REQUIRE(dwords_of<Fence, CopyLinear, Atomic>() == 4 + 7 + 8);
  // As many packets as no program could count one by one.
  CHECK(dwords_of([](auto& w) { w.copy({.bytes = ~0ull, .chunk = 64}); }) == 7ull << 58);
  CHECK(dwords_of(Writer::Copy{}) == 0);
  CHECK(dwords_of(Writer::Copy{.bytes = 64, .chunk = 0}) == 0);
}

TEST_CASE("a fill may store the offset of its last dword, as ROCr does, and is the same fill") {
  constexpr std::uint64_t bytes = (1ull << 22) + 64;
  const auto fills = [](FillCount count) {
    return packets_of<Fill>(2, [count](Writer& w) {
      return w.fill({.dst = kDst, .data = 5, .bytes = bytes, .chunk = 1u << 22, .count = count});
    });
  };
  const auto usual = fills(FillCount::last_byte), rocr = fills(FillCount::last_dword);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(rocr[i].bytes == usual[i].bytes - 3);
    CHECK((rocr[i].dst == usual[i].dst && bytes_written(rocr[i]) == bytes_written(usual[i])));
  }
  // (dwords - 1) * 4
  CHECK(words_of(rocr[0])[4] == (1u << 22) - 4);
  const auto unit = GENERATE(FillUnit::byte, FillUnit::half);
  CHECK(without_effect(64, [&](Writer& w) {
          return w.fill({.dst = kDst, .bytes = 64, .unit = unit, .count = FillCount::last_dword});
        }) == Errc::bad_packet);
}

}  // namespace

TEST_CASE("a writer of another generation writes its packets, and refuses what it lacks") {
  std::array<std::uint32_t, 64> d{};
  const auto check_writer = [&](auto w, Generation g) {
    REQUIRE(w.generation() == g);
    // A copy of 8 MiB is one packet with lengths of 30 bits, and three with 22.
    const bool short_lengths = max_bytes<CopyLinear>(g) < kChunk;
    const Writer::Copy copy{.src = kSrc, .dst = kDst, .bytes = 8 << 20};
    REQUIRE(w.copy(copy) == Errc::ok);
    CHECK(w.position_dwords() == (short_lengths ? 21u : 7u));
    CHECK(dwords_of(g, copy) == w.position_dwords());
    CHECK(decode<CopyLinear>(w.written().first(7), g).bytes == (short_lengths ? kChunk22 : 8u << 20));
    const auto before = w.position_dwords();
    CHECK(w.put(Fence{.addr = kDst, .value = 9, .mtype = 3}) == (g >= Generation::v5_0 ? Errc::ok : Errc::bad_packet));
    CHECK(w.put_all(Gcr{.gl2_writeback = true}) == (g >= Generation::v5_0 ? Errc::ok : Errc::bad_packet));
    if (g >= Generation::v5_0) {
      const auto fence = decode<Fence>(w.written().subspan(before), g);
      CHECK((fence.mtype == 3 && fence.value == 9));
    } else {
      CHECK(w.position_dwords() == before);
    }
    w.clear_error();
    CHECK(w.copy({.src = kSrc, .dst = kDst, .bytes = 1ull << 30, .chunk = 1u << 30}) ==
          (short_lengths ? Errc::bad_packet : Errc::ok));
  };
  for (const auto g :
       {Generation::v4_0, Generation::v4_4_2, Generation::v5_0, Generation::v5_2, Generation::v6_0, Generation::v7_0})
    check_writer(AnyWriter{d, {g}}, g);
  check_writer(WriterOf<Generation::v4_2>{d}, Generation::v4_2);
  check_writer(WriterOf<Generation::v6_0>{d}, Generation::v6_0);
  check_writer(Writer{d}, Generation::v4_4_2);
}

TEST_CASE("one test after the last call finds the first error") {
  std::array<std::uint32_t, 16> d{};
  Writer w{d};
  w.put(Nop{});
  w.copy({.src = kSrc, .dst = kDst, .bytes = 0});
  w.put(Fence{.addr = kDst, .value = 1});
  w.append(std::vector<std::uint32_t>(100));
  CHECK(w.error() == Errc::bad_packet);
  CHECK(w.position_dwords() == 5);
}
