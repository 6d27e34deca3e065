// SPDX-License-Identifier: MIT
#pragma once
// Writes packets as dwords, one after another, into a span: a slot of a ring, an array, a buffer for a file.
//
//   Writer w{slot.dwords};
//   w.put(PollMem{.addr = go, .func = Compare::ge, .reference = epoch});
//   w.copy({.src = a, .dst = b, .bytes = 5ull << 30});             // six packets: long copies are split
//   w.put(Atomic{.addr = left, .value = ~0ull});
//   ring.publish(slot, w.error() == Errc::ok ? w.position_dwords() : 0);  // one test for all; 0 abandons the slot
//
// Each call returns Errc::ok, bad_packet (check(packet) says why) or no_space, and is transactional: a call that fails
// writes nothing and does not advance, even if it would have split a copy. `error()` is the first error of any call, so
// one test after the last call is enough. Later calls are not affected: a caller that handles an error continues, and
// calls clear_error. Dwords are stored once, in ascending order, so the span may lie in write-combining memory. One
// thread at a time may use a Writer. It never allocates and never waits.
//
// Room: how long must a slot be? One function answers: dwords_of, of packets, requests, and callables that write.
//
//   auto room = ring.reserve(dwords_of(PollMem{}, Writer::Copy{.src = a, .dst = b, .bytes = 5ull << 30}, Atomic{}));
//   constexpr auto fixed = dwords_of<PollMem, Fence>();                               // types are enough: a constant
//   auto exact = dwords_of(ring.generation(), [&](auto& w) { acquire(w, go, 1); });   // as long as what this writes
//
// Where the length of a recipe depends on values, an AtMost is its bound: dwords_of(hsa::kCompleteAtMost).
//
// Generations: a Writer writes packets of 4.4.2. BasicWriter does so for any generation (packets/generation.hpp):
//
//   WriterOf<Generation::v6_0> w{slot.dwords};                     // known when you compile: costs what 4.4.2 costs
//   AnyWriter v{slot.dwords, {topology.gpus[0].generation()}};     // known at run time: one branch for each packet
//
// All of them take the same requests, and recipes take any of them. A packet, or a field, that the generation lacks is
// a bad_packet. The default chunk is kChunk22 where a packet's length has 22 bits.
//
// Splitting: the default chunk is kChunk, the largest multiple of 64 bytes below the 2^30 that the field holds, so each
// packet is as aligned as the first. kChunk22 is for stacks that keep to the 22 bits of older engines. A request that
// runs past the end of the 64-bit address space is a bad_packet, because no engine could execute it.
//
// Indirect buffers: `put(Indirect{..})` writes the packet, but Linux never enables them for a queue of KFD, so an
// engine may not execute the buffer (docs/packets.md, "In user queues"). Write its packets into the ring.
//
// Fills: the field of a packet that repeats a dword may hold the number of bytes less one, or the offset of the last
// dword (bytes less four). Engines ignore its low two bits [inferred], so both are the same fill. ROCr writes the
// second; FillCount::last_dword does so for a stream that must equal ROCr's.
#include "sdma/core/compiler.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/write.hpp"

namespace sdma { inline namespace v0_3 {

inline constexpr std::uint32_t kChunk = 0x3fffffc0;    ///< bytes: the largest multiple of 64 below 2^30
inline constexpr std::uint32_t kChunk22 = 0x003fffc0;  ///< bytes: the largest multiple of 64 below 2^22

/// What a fill with dwords stores as its length: the number of bytes less one, or the offset of the last dword.
/// `last_byte` is the former, `last_dword` the latter.
enum class FillCount : std::uint8_t { last_byte, last_dword };

/// A generation that is known when you compile.
template <Generation G> struct FixedGeneration {
  using Cursor = std::uint32_t*;  ///< where the next dword goes
  /// The generation.
  static constexpr Generation value() noexcept { return G; }
  /// Does this generation have the packet, and room for its values?
  template <Packet P> SDMA_ALWAYS_INLINE static constexpr bool fits(const P& p) noexcept { return sdma::fits<G>(p); }
  /// How many dwords the packet has.
  template <Packet P> SDMA_ALWAYS_INLINE static constexpr std::size_t length(const P& p) noexcept {
    return sdma::length<G>(p);
  }
  /// Stores the packet at `out`, which must have room, and returns the end of its dwords.
  template <Packet P>
  SDMA_ALWAYS_INLINE static constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out) noexcept {
    return sdma::encode_to<G>(p, out);
  }
};
/// A generation that is known at run time.
struct AnyGeneration {
  using Cursor = std::uint32_t*;               ///< where the next dword goes
  Generation generation = kDefaultGeneration;  ///< the one to encode for
  /// The generation.
  constexpr Generation value() const noexcept { return generation; }
  /// Does this generation have the packet, and room for its values?
  template <Packet P> SDMA_ALWAYS_INLINE constexpr bool fits(const P& p) const noexcept {
    return sdma::fits(p, generation);
  }
  /// How many dwords the packet has.
  template <Packet P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const P& p) const noexcept {
    return sdma::length(p, generation);
  }
  /// Stores the packet at `out`, which must have room, and returns the end of its dwords.
  template <Packet P>
  SDMA_ALWAYS_INLINE constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out) const noexcept {
    return sdma::encode_to(p, out, generation);
  }
};

namespace detail {
/// Does a packet have an aligned field, or a rule?
template <class P>
inline constexpr bool kAlignmentMatters = [] {
  bool any = !grammar::layout<P>.rules.empty();
  for (const auto& f : grammar::layout<P>.fields) any = any || f.alignment != 1;
  return any;
}();
}  // namespace detail

/// A packet of `put_all` that is left out unless `there`: a recipe that has options is one call all the same.
template <Packet P> struct When {
  bool there{};  ///< is it written?
  P packet{};    ///< what is written
};
template <Packet P> When(bool, P) -> When<P>;

/// What a Writer can be asked for beside packets.
struct WriterRequests {
  /// A copy of any length.
  struct Copy {
    GpuVa src{}, dst{};            ///< the first addresses
    std::uint64_t bytes{};         ///< its length
    std::uint32_t chunk = kChunk;  ///< the most bytes of one packet; see chunk_for
  };
  /// A copy to two destinations, of any length.
  struct Broadcast {
    GpuVa src{}, dst1{}, dst2{};   ///< the first addresses
    std::uint64_t bytes{};         ///< its length
    std::uint32_t chunk = kChunk;  ///< the most bytes of one packet; see chunk_for
  };
  /// An exchange of any length.
  struct Swap {
    GpuVa a{}, b{};                ///< the first addresses
    std::uint64_t bytes{};         ///< its length
    std::uint32_t chunk = kChunk;  ///< the most bytes of one packet; see chunk_for
  };
  /// A fill of any length.
  struct Fill {
    GpuVa dst{};
    std::uint32_t data{};
    std::uint64_t bytes{};
    FillUnit unit = FillUnit::dword;
    std::uint32_t chunk = kChunk;            ///< the most bytes of one packet; see chunk_for
    FillCount count = FillCount::last_byte;  ///< last_dword: for fills with dwords only
  };
};

namespace detail {
/// How many packets a request takes; 0 if it is empty or has no chunk.
constexpr std::uint64_t pieces(std::uint64_t bytes, std::uint32_t chunk) noexcept {
  return bytes == 0 || chunk == 0 ? 0 : (bytes - 1) / chunk + 1;
}
template <Packet P> constexpr std::uint32_t chunk_of(std::uint32_t wanted, Generation g) noexcept {
  return wanted == kChunk && max_bytes<P>(g) < kChunk ? kChunk22 : wanted;
}
template <Packet P, class Request> constexpr std::size_t pieces_dwords(Generation g, const Request& c) noexcept {
  return static_cast<std::size_t>(pieces(c.bytes, chunk_of<P>(c.chunk, g)) * grammar::layout<P>.length.fixed);
}
constexpr std::size_t dwords(Generation g, const WriterRequests::Copy& c) noexcept {
  return pieces_dwords<CopyLinear>(g, c);
}
constexpr std::size_t dwords(Generation g, const WriterRequests::Broadcast& c) noexcept {
  return pieces_dwords<CopyBroadcast>(g, c);
}
constexpr std::size_t dwords(Generation g, const WriterRequests::Swap& c) noexcept {
  return pieces_dwords<CopySwap>(g, c);
}
constexpr std::size_t dwords(Generation g, const WriterRequests::Fill& c) noexcept {
  return pieces_dwords<sdma::Fill>(g, c);
}
}  // namespace detail

template <class Target> class BasicWriter : public WriterRequests {
  using Cursor = typename Target::Cursor;
  // Declared before their callers; otherwise clang 14 cannot evaluate them in constant expressions.
  /// Does any of these ranges run past the end of the address space? An empty request, which is refused, may.
  static constexpr bool wraps(std::uint64_t bytes, GpuVa a, GpuVa b = {}, GpuVa c = {}) noexcept {
    return bytes - 1 > ~a.value || bytes - 1 > ~b.value || bytes - 1 > ~c.value;
  }
  template <Packet P> SDMA_ALWAYS_INLINE constexpr bool fits(const P& p) const noexcept { return target_.fits(p); }
  template <Packet P> SDMA_ALWAYS_INLINE constexpr bool fits(const When<P>& w) const noexcept {
    return !w.there || target_.fits(w.packet);
  }
  template <Packet P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const P& p) const noexcept {
    return target_.length(p);
  }
  template <Packet P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const When<P>& w) const noexcept {
    return w.there ? target_.length(w.packet) : 0;
  }
  template <Packet P> SDMA_ALWAYS_INLINE constexpr void encode(const P& p) noexcept { at_ = target_.encode_to(p, at_); }
  template <Packet P> SDMA_ALWAYS_INLINE constexpr void encode(const When<P>& w) noexcept {
    if (w.there) encode(w.packet);
  }
  /// Writes all chunks of one request, or none.
  template <Packet P, class Make> constexpr Errc split(std::uint64_t bytes, std::uint32_t wanted, Make make) noexcept {
    const auto chunk = detail::chunk_of<P>(wanted, target_.value());
    const auto packets = detail::pieces(bytes, chunk);
    if (packets == 0) return fail(Errc::bad_packet);
    // If the first two chunks fit, all do: each later one begins a multiple of `chunk` further on, and none is longer.
    // A shorter one fits, too, unless something has to be aligned or to obey a rule.
    if (!target_.fits(make(0, static_cast<std::uint32_t>(packets > 1 ? chunk : bytes)))) return fail(Errc::bad_packet);
    if constexpr (detail::kAlignmentMatters<P>) {
      const auto last = (packets - 1) * chunk;
      if (packets > 1 && !target_.fits(make(chunk, static_cast<std::uint32_t>(packets > 2 ? chunk : bytes - last))))
        return fail(Errc::bad_packet);
    }
    if (packets > room() || packets * grammar::layout<P>.length.fixed > room()) return fail(Errc::no_space);
    if constexpr (!std::is_pointer_v<Cursor>) return at_ += packets * grammar::layout<P>.length.fixed, Errc::ok;
    for (std::uint64_t at = 0; at < bytes; at += chunk)
      at_ = target_.encode_to(make(at, static_cast<std::uint32_t>(bytes - at < chunk ? bytes - at : chunk)), at_);
    return Errc::ok;
  }

 public:
  constexpr explicit BasicWriter(std::span<std::uint32_t> out, Target target = {}) noexcept
      : begin_(out.data()), at_(out.data()), end_(out.data() + out.size()), target_(target) {}
  /// Counts dwords, and stores none: for a target whose cursor is a number (Measured, stream/frame.hpp).
  constexpr explicit BasicWriter(Target target) noexcept requires std::is_same_v<Cursor, std::size_t>
      : begin_(0), at_(0), end_(~std::size_t{}), target_(target) {}

  /// The generation for which it encodes.
  [[nodiscard]] constexpr Generation generation() const noexcept { return target_.value(); }

  /// Writes one packet.
  template <Packet P> SDMA_ALWAYS_INLINE constexpr Errc put(const P& p) noexcept {
    if (!target_.fits(p)) return fail(Errc::bad_packet);
    if (target_.length(p) > room()) return fail(Errc::no_space);
    at_ = target_.encode_to(p, at_);
    return Errc::ok;
  }

  /// Writes all of these packets, or none. Each is a packet, or When{condition, packet}.
  template <class... P> SDMA_ALWAYS_INLINE constexpr Errc put_all(const P&... p) noexcept {
    if (!(fits(p) && ...)) return fail(Errc::bad_packet);
    if ((length(p) + ...) > room()) return fail(Errc::no_space);
    (encode(p), ...);
    return Errc::ok;
  }

  /// Writes as many CopyLinear packets as `bytes` needs.
  constexpr Errc copy(const Copy& c) noexcept {
    if (wraps(c.bytes, c.src, c.dst)) return fail(Errc::bad_packet);
    return split<CopyLinear>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return CopyLinear{.src = c.src + at, .dst = c.dst + at, .bytes = n};
    });
  }
  /// Writes as many CopyBroadcast packets as `bytes` needs. With any chunk, destinations that are equal modulo 32 stay
  /// so.
  constexpr Errc broadcast(const Broadcast& c) noexcept {
    if (wraps(c.bytes, c.src, c.dst1, c.dst2)) return fail(Errc::bad_packet);
    return split<CopyBroadcast>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return CopyBroadcast{.src = c.src + at, .dst1 = c.dst1 + at, .dst2 = c.dst2 + at, .bytes = n};
    });
  }
  /// Writes as many CopySwap packets as `bytes` needs. If there are several, the chunk must be a multiple of 64.
  constexpr Errc swap(const Swap& c) noexcept {
    if (wraps(c.bytes, c.a, c.b)) return fail(Errc::bad_packet);
    return split<CopySwap>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return CopySwap{.a = c.a + at, .b = c.b + at, .bytes = n};
    });
  }
  /// Writes as many Fill packets as `bytes` needs. `bytes` and the chunk must be multiples of the unit, so that exactly
  /// `bytes` bytes are filled.
  constexpr Errc fill(const Fill& c) noexcept {
    const auto unit = std::uint64_t{1} << (static_cast<unsigned>(c.unit) & 3);
    if (c.unit > FillUnit::dword || c.bytes % unit != 0 || c.chunk % unit != 0 || wraps(c.bytes, c.dst))
      return fail(Errc::bad_packet);
    if (c.count == FillCount::last_dword && c.unit != FillUnit::dword) return fail(Errc::bad_packet);
    const std::uint32_t less = c.count == FillCount::last_dword ? 3 : 0;
    return split<sdma::Fill>(c.bytes, c.chunk, [&](std::uint64_t at, std::uint32_t n) {
      return sdma::Fill{.dst = c.dst + at, .data = c.data, .bytes = n - less, .unit = c.unit};
    });
  }

  /// Copies dwords that are packets already: recorded earlier, or encoded elsewhere. They are not checked.
  constexpr Errc append(std::span<const std::uint32_t> dwords) noexcept {
    if (dwords.size() > room()) return fail(Errc::no_space);
    if constexpr (!std::is_pointer_v<Cursor>) {
    } else if (std::is_constant_evaluated()) {
      for (std::size_t i = 0; i < dwords.size(); ++i) at_[i] = dwords[i];
    } else if (!dwords.empty()) {
      SDMA_COPY_BYTES(at_, dwords.data(), dwords.size_bytes());
    }
    at_ += dwords.size();
    return Errc::ok;
  }

  /// Deprecated: the function dwords_of below, which takes packets and callables, too.
  [[deprecated("use sdma::dwords_of(generation, request)")]] static constexpr std::size_t dwords_of(
      const Copy& c, Generation g = Target{}.value()) noexcept {
    return detail::dwords(g, c);
  }
  /// Deprecated, too.
  [[deprecated("use sdma::dwords_of(generation, request)")]] static constexpr std::size_t dwords_of(
      const Broadcast& c, Generation g = Target{}.value()) noexcept {
    return detail::dwords(g, c);
  }
  /// Deprecated, too.
  [[deprecated("use sdma::dwords_of(generation, request)")]] static constexpr std::size_t dwords_of(
      const Swap& c, Generation g = Target{}.value()) noexcept {
    return detail::dwords(g, c);
  }
  /// Deprecated, too.
  [[deprecated("use sdma::dwords_of(generation, request)")]] static constexpr std::size_t dwords_of(
      const Fill& c, Generation g = Target{}.value()) noexcept {
    return detail::dwords(g, c);
  }

  /// The chunk of a request for packets of type P: the default one is shorter if the generation's packets are.
  template <Packet P> [[nodiscard]] constexpr std::uint32_t chunk_for(std::uint32_t wanted) const noexcept {
    return detail::chunk_of<P>(wanted, target_.value());
  }

  /// The first error of any call since the Writer was made, or since clear_error.
  [[nodiscard]] constexpr Errc error() const noexcept { return error_; }
  /// Sets error() to ok.
  constexpr void clear_error() noexcept { error_ = Errc::ok; }
  /// Records the error of a call that is built on this Writer, and returns it.
  constexpr Errc fail(Errc e) noexcept {
    if (error_ == Errc::ok) error_ = e;
    return e;
  }

  /// How many dwords are written.
  [[nodiscard]] constexpr std::size_t position_dwords() const noexcept {
    return static_cast<std::size_t>(at_ - begin_);
  }
  /// Deprecated: position_dwords().
  [[deprecated("use position_dwords()")]] constexpr std::size_t position() const noexcept { return position_dwords(); }
  /// How many dwords are still free.
  [[nodiscard]] constexpr std::size_t room() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  /// All dwords written so far.
  [[nodiscard]] constexpr std::span<std::uint32_t> written() const noexcept requires std::is_pointer_v<Cursor> {
    return {begin_, at_};
  }

 private:
  Cursor begin_, at_, end_;
  Errc error_ = Errc::ok;
  SDMA_NO_UNIQUE_ADDRESS Target target_;
};

/// Writes packets of 4.4.2.
using Writer = BasicWriter<FixedGeneration<kDefaultGeneration>>;
template <Generation G> using WriterOf = BasicWriter<FixedGeneration<G>>;
using AnyWriter = BasicWriter<AnyGeneration>;

/// A target that counts dwords and stores none.
struct Measured : AnyGeneration {
  using Cursor = std::size_t;  ///< the number of dwords so far
  /// The end of the packet.
  template <Packet P> constexpr std::size_t encode_to(const P& p, std::size_t at) const noexcept {
    return at + length(p);
  }
};

/// The most dwords that something may write, where its length depends on values: an argument of dwords_of.
struct AtMost {
  std::size_t dwords{};  ///< the bound
};

namespace detail {
constexpr std::size_t dwords(Generation, AtMost most) noexcept { return most.dwords; }
template <Packet P> constexpr std::size_t dwords(Generation g, const P& p) noexcept { return length(p, g); }
template <class T>
concept NoGeneration = !std::is_same_v<T, Generation>;
template <class W>
concept Writes = requires(W& write, BasicWriter<Measured>& w) {
  write(w);
};
template <Writes W> constexpr std::size_t dwords(Generation g, W& write) noexcept {
  BasicWriter<Measured> w{Measured{{g}}};
  write(w);
  return w.position_dwords();
}
}  // namespace detail

/// How many dwords these write together, for Ring::reserve. Each is a packet, a request (Writer::Copy, Broadcast, Swap,
/// Fill), an AtMost, or a callable that takes a writer of any kind and writes packets, requests and recipes. Nothing is
/// checked: what a Writer would refuse is refused when it is written, and what a callable does not write counts
/// nothing. Zero dwords are Errc::bad_argument in `reserve`.
template <class... What> constexpr std::size_t dwords_of(Generation g, const What&... what) noexcept {
  return (detail::dwords(g, what) + ...);
}
/// The same for 4.4.2.
template <detail::NoGeneration First, class... What>
constexpr std::size_t dwords_of(const First& first, const What&... what) noexcept {
  return dwords_of(kDefaultGeneration, first, what...);
}
/// Packets of fixed length: their types are enough.
template <Packet... P>
requires(sizeof...(P) != 0) constexpr std::size_t dwords_of() noexcept {
  return (grammar::layout<P>.length.fixed + ...);
}

}}  // namespace sdma::v0_3
