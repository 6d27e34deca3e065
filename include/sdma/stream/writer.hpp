#pragma once
// Writes packets as dwords, one after another, into a span: a slot of a ring, an array, a buffer for a file.
//
//   Writer w{slot.dwords};
//   w.put(PollMem{.addr = go, .func = Compare::ge, .reference = epoch});
//   w.copy({.src = a, .dst = b, .bytes = 5ull << 30});             // six packets: long copies are split
//   w.put(Atomic{.addr = left, .value = ~0ull});
//   ring.publish(slot, w.written().size());
//
// Each call returns Errc::ok, bad_packet (check(packet) says why) or no_space, and is transactional: a call that fails
// writes nothing and does not advance, even if it would have split a copy. Dwords are stored once, in ascending order,
// so the span may lie in write-combining memory. One thread at a time may use a Writer. It never allocates and never
// waits.
//
// Splitting: the default chunk is kChunk, the largest multiple of 64 bytes below the 2^30 that the field holds, so each
// packet is as aligned as the first. kChunk22 is for stacks that keep to the 22 bits of older engines. A request that
// runs past the end of the 64-bit address space is a bad_packet, because no engine could execute it.
#include "sdma/core/compiler.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/write.hpp"

namespace sdma::inline v0 {

inline constexpr std::uint32_t kChunk = 0x3fffffc0;    ///< bytes: the largest multiple of 64 below 2^30
inline constexpr std::uint32_t kChunk22 = 0x003fffc0;  ///< bytes: the largest multiple of 64 below 2^22

class Writer {
  // Declared before its callers; otherwise clang 14 cannot evaluate them in constant expressions.
  /// Does any of these ranges run past the end of the address space?
  static constexpr bool wraps(std::uint64_t bytes, GpuVa a, GpuVa b = {}, GpuVa c = {}) noexcept {
    return bytes != 0 && (bytes - 1 > ~a.value || bytes - 1 > ~b.value || bytes - 1 > ~c.value);
  }
  /// Writes all chunks of one request, or none.
  template <Packet P, class Make> constexpr Errc split(std::uint64_t bytes, std::uint32_t chunk, Make make) noexcept {
    if (bytes == 0 || chunk == 0) return Errc::bad_packet;
    const auto packets = (bytes - 1) / chunk + 1;
    // If the first two chunks fit, all do: each later one begins a multiple of `chunk` further on, and none is longer.
    const auto last = (packets - 1) * chunk;
    if (!fits(make(0, static_cast<std::uint32_t>(packets > 1 ? chunk : bytes)))) return Errc::bad_packet;
    if (packets > 1 && !fits(make(chunk, static_cast<std::uint32_t>(packets > 2 ? chunk : bytes - last))))
      return Errc::bad_packet;
    if (packets > room() / grammar::layout<P>.length.fixed) return Errc::no_space;
    for (std::uint64_t at = 0; at < bytes; at += chunk)
      at_ = encode_to(make(at, static_cast<std::uint32_t>(bytes - at < chunk ? bytes - at : chunk)), at_);
    return Errc::ok;
  }

 public:
  struct Copy {
    GpuVa src{}, dst{};
    std::uint64_t bytes{};
    std::uint32_t chunk = kChunk;
  };
  struct Broadcast {
    GpuVa src{}, dst1{}, dst2{};
    std::uint64_t bytes{};
    std::uint32_t chunk = kChunk;
  };
  struct Swap {
    GpuVa a{}, b{};
    std::uint64_t bytes{};
    std::uint32_t chunk = kChunk;
  };
  struct Fill {
    GpuVa dst{};
    std::uint32_t data{};
    std::uint64_t bytes{};
    FillUnit unit = FillUnit::dword;
    std::uint32_t chunk = kChunk;
  };

  constexpr explicit Writer(std::span<std::uint32_t> out) noexcept
      : begin_(out.data()), at_(out.data()), end_(out.data() + out.size()) {}

  /// Writes one packet.
  template <Packet P> SDMA_ALWAYS_INLINE constexpr Errc put(const P& p) noexcept {
    if (!fits(p)) return Errc::bad_packet;
    if (length(p) > room()) return Errc::no_space;
    at_ = encode_to(p, at_);
    return Errc::ok;
  }

  /// Writes as many CopyLinear packets as `bytes` needs.
  constexpr Errc copy(const Copy& c) noexcept {
    if (wraps(c.bytes, c.src, c.dst)) return Errc::bad_packet;
    return split<CopyLinear>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return CopyLinear{.src = c.src + at, .dst = c.dst + at, .bytes = n};
    });
  }
  /// Writes as many CopyBroadcast packets as `bytes` needs. With any chunk, destinations that are equal modulo 32 stay
  /// so.
  constexpr Errc broadcast(const Broadcast& c) noexcept {
    if (wraps(c.bytes, c.src, c.dst1, c.dst2)) return Errc::bad_packet;
    return split<CopyBroadcast>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return CopyBroadcast{.src = c.src + at, .dst1 = c.dst1 + at, .dst2 = c.dst2 + at, .bytes = n};
    });
  }
  /// Writes as many CopySwap packets as `bytes` needs. If there are several, the chunk must be a multiple of 64.
  constexpr Errc swap(const Swap& c) noexcept {
    if (wraps(c.bytes, c.a, c.b)) return Errc::bad_packet;
    return split<CopySwap>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return CopySwap{.a = c.a + at, .b = c.b + at, .bytes = n};
    });
  }
  /// Writes as many Fill packets as `bytes` needs. `bytes` and the chunk must be multiples of the unit, so that exactly
  /// `bytes` bytes are filled.
  constexpr Errc fill(const Fill& c) noexcept {
    const auto unit = std::uint64_t{1} << (static_cast<unsigned>(c.unit) & 3);
    if (c.unit > FillUnit::dword || c.bytes % unit != 0 || c.chunk % unit != 0 || wraps(c.bytes, c.dst))
      return Errc::bad_packet;
    return split<sdma::Fill>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return sdma::Fill{.dst = c.dst + at, .data = c.data, .bytes = n, .unit = c.unit};
    });
  }

  /// How many dwords are still free.
  constexpr std::size_t room() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  /// All dwords written so far.
  constexpr std::span<std::uint32_t> written() const noexcept { return {begin_, at_}; }

 private:
  std::uint32_t *begin_, *at_, *end_;
};

}  // namespace sdma::inline v0
