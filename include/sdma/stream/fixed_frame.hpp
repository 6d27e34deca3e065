// SPDX-License-Identifier: MIT
#pragma once
// A frame whose packets are known when you compile: nothing is left of it but the stores of its dwords.
//
//   struct Step {                                                   // what Frame takes, as a function
//     static constexpr void build(auto& frame) {
//       frame.template bind<&PollMem::reference>(0);                // 1 + parameter 0
//       (void)acquire(frame.writer(), parameter(1), 1);
//       (void)frame.writer().copy({.src = parameter(2), .dst = parameter(3) + 64, .bytes = 4096});
//       (void)complete_with_atomic(frame.writer(), parameter(4));
//     }
//   };
//
// Where it is sent:
//
//   const std::uint64_t values[] = {epoch, go.va.value, a.value, b.value, left.va.value};
//   if (auto e = FixedFrame<Step>::submit(ring, values); e != Errc::ok) return e;
//
// The compiler runs `build` once, with a Frame (stream/frame.hpp) for generation G: parameters, bind and errors mean
// the same. What varies is a parameter; everything else is a constant. Values are checked before anything is reserved;
// where a packet that changes has rules of its own (a 64-bit atomic's alignment), it is written on the stack first.
// There is no object: any threads may submit at once. Dwords are stored once, in ascending order, so the ring may be
// write-combining memory. Nothing allocates or waits.
//
// Compile errors: `build` fails (an error of the writer, a parameter of 256 or more, a bind that no packet takes), or
// writes more than kMostFixedDwords.
// Errors: bad_argument: a sum is misaligned, too large for its field, or breaks a rule of its packet; wrong_generation:
// the ring has another one; and those of Ring::reserve.
#include "sdma/stream/frame.hpp"

#include <utility>

namespace sdma { inline namespace v0_3 {

inline constexpr std::size_t kMostFixedDwords = 512;  ///< of a FixedFrame

namespace detail {
/// What `build` writes, in arrays that are as long as they can be.
struct Recorded {
  std::array<std::uint32_t, kMostFixedDwords> dwords{};
  std::array<Relocation, kMostParameters> changes{};
  std::size_t length{}, changed{}, parameters{};
  Errc error = Errc::ok;
};
template <class Layout, Generation G> consteval Recorded record_fixed() {
  Recorded r;
  Frame frame(r.dwords, r.changes, G);
  Layout::build(frame);
  r.error = frame.finish();
  r.length = frame.dwords().size();
  r.changed = frame.changes().size();
  r.parameters = frame.parameters();
  return r;
}
}  // namespace detail

SDMA_DEVICE_BEGIN
template <class Layout, Generation G = kDefaultGeneration> class FixedFrame {
  static constexpr auto kRecorded = detail::record_fixed<Layout, G>();
  static_assert(kRecorded.error == Errc::ok, "this frame cannot be built: Frame::finish would return an error");

 public:
  static constexpr std::size_t kDwords = kRecorded.length;          ///< its length
  static constexpr std::size_t kParameters = kRecorded.parameters;  ///< how many values `submit` takes

  /// Stores the packets with these parameters into one slot of the ring, a Ring (queue/ring.hpp), and publishes it.
  template <class Ring>
  [[nodiscard]] SDMA_ALWAYS_INLINE static Errc submit(Ring& ring,
                                                      std::span<const std::uint64_t, kParameters> values) noexcept {
    if (ring.generation() != G) [[unlikely]]
      return Errc::wrong_generation;
    const auto* const v = values.data();
    if (refused(v, std::make_index_sequence<kRecorded.changed>{}) != 0) [[unlikely]]
      return Errc::bad_argument;
    if constexpr (kRuled) {  // rules read a whole packet, so it is written elsewhere first
      std::array<std::uint32_t, kDwords> dwords;
      store(v, dwords.data(), std::make_index_sequence<kDwords>{});
      if (!obeys(dwords, std::make_index_sequence<kRecorded.changed>{})) [[unlikely]]
        return Errc::bad_argument;
      const auto s = ring.reserve(kDwords);
      if (!s) return s.error();
      SDMA_COPY_BYTES(s->dwords.data(), dwords.data(), sizeof dwords);
      ring.publish(*s);
      return Errc::ok;
    }
    const auto s = ring.reserve(kDwords);
    if (!s) return s.error();
    store(v, s->dwords.data(), std::make_index_sequence<kDwords>{});
    ring.publish(*s);
    return Errc::ok;
  }

 private:
  static constexpr std::size_t kNone = kMostParameters;
  static constexpr bool kRuled = [] {
    bool any = false;
    for (std::size_t c = 0; c < kRecorded.changed; ++c) any = any || kRecorded.changes[c].obeys != nullptr;
    return any;
  }();
  template <std::size_t C> SDMA_ALWAYS_INLINE static bool obeys_at(std::span<const std::uint32_t> dwords) noexcept {
    constexpr auto obeys = kRecorded.changes[C].obeys;
    constexpr std::size_t packet = kRecorded.changes[C].packet;
    if constexpr (obeys == nullptr) return true;
    else return obeys(dwords.subspan(packet), G);
  }
  /// Does each packet that changes obey its rules?
  template <std::size_t... C>
  SDMA_ALWAYS_INLINE static bool obeys(std::span<const std::uint32_t> dwords, std::index_sequence<C...>) noexcept {
    return (obeys_at<C>(dwords) && ...);
  }
  template <std::size_t C> SDMA_ALWAYS_INLINE static std::uint64_t sum(const std::uint64_t* values) noexcept {
    constexpr std::uint64_t addend = kRecorded.changes[C].addend;
    constexpr std::size_t parameter = kRecorded.changes[C].parameter;
    return values[parameter] + addend;
  }
  template <std::size_t... C>
  SDMA_ALWAYS_INLINE static std::uint64_t refused([[maybe_unused]] const std::uint64_t* values,
                                                  std::index_sequence<C...>) noexcept {
    return (std::uint64_t{} | ... | (sum<C>(values) & kRefused<C>));
  }
  template <std::size_t C> static constexpr std::uint64_t kRefused = kRecorded.changes[C].refused;

  /// The change that fills all of the `dwords` dwords from D on; kNone if there is none.
  static constexpr std::size_t whole(std::size_t d, unsigned dwords) noexcept {
    for (std::size_t c = 0; c < kRecorded.changed; ++c) {
      const auto& r = kRecorded.changes[c];
      if (r.dword == d && r.lo == 0 && r.hi == 32 * dwords - 1) return c;
    }
    return kNone;
  }
  /// Are the four dwords from D on two parameters as they are, side by side?
  static constexpr bool pair(std::size_t d) noexcept {
    const auto a = whole(d, 2), b = whole(d + 2, 2);
    return a != kNone && b != kNone && kRecorded.changes[a].addend == 0 && kRecorded.changes[b].addend == 0 &&
           kRecorded.changes[b].parameter == kRecorded.changes[a].parameter + 1;
  }
  enum class How : std::uint8_t { pair, wide, dword, stored };
  /// How dword D is stored: with the three after it, with the next, alone; or it has been, with one before it.
  static constexpr auto kHow = [] {
    std::array<How, kDwords + 4> how{};
    for (auto& h : how) h = How::dword;
    for (std::size_t d = 0; d < kDwords; ++d) {
      if (how[d] == How::stored) continue;
      if (whole(d, 2) == kNone) continue;
      how[d] = pair(d) ? How::pair : How::wide;
      for (std::size_t k = 1; k < (how[d] == How::pair ? 4 : 2); ++k) how[d + k] = How::stored;
    }
    return how;
  }();
  /// What change C gives to dword D, of which it fills some bits.
  template <std::size_t D, std::size_t C>
  SDMA_ALWAYS_INLINE static std::uint32_t part([[maybe_unused]] const std::uint64_t* values) noexcept {
    constexpr Relocation c = kRecorded.changes[C];
    if constexpr (D < c.dword || D > c.dword + c.hi / 32u) return 0;
    else if constexpr (D == c.dword) return static_cast<std::uint32_t>(sum<C>(values) << c.lo);
    else return static_cast<std::uint32_t>(sum<C>(values) >> ((D - c.dword) * 32 - c.lo));
  }
  /// Dword D without the bits that change.
  static constexpr std::uint32_t constant(std::size_t d) noexcept {
    auto bits = kRecorded.dwords[d];
    for (std::size_t k = 0; k < kRecorded.changed; ++k) {
      const auto& c = kRecorded.changes[k];
      for (unsigned b = c.lo; b <= c.hi; ++b)
        if (c.dword + b / 32 == d) bits &= ~(1u << b % 32);
    }
    return bits;
  }
  template <std::size_t D>
  SDMA_ALWAYS_INLINE static void store_at([[maybe_unused]] const std::uint64_t* values,
                                          [[maybe_unused]] std::uint32_t* to) noexcept {
    if constexpr (kHow[D] == How::pair) {
      constexpr std::size_t parameter = kRecorded.changes[whole(D, 2)].parameter;
      SDMA_COPY_BYTES(to + D, values + parameter, 16);
    } else if constexpr (kHow[D] == How::wide) {
      const auto v = sum<whole(D, 2)>(values);
      SDMA_COPY_BYTES(to + D, &v, sizeof v);
    } else if constexpr (kHow[D] == How::dword) {
      constexpr std::uint32_t bits = constant(D);
      to[D] = [&]<std::size_t... C>(std::index_sequence<C...>) SDMA_ALWAYS_INLINE_LAMBDA {
        return (bits | ... | part<D, C>(values));
      }
      (std::make_index_sequence<kRecorded.changed>{});
    }
  }
  template <std::size_t... D>
  SDMA_ALWAYS_INLINE static void store(const std::uint64_t* values, std::uint32_t* to,
                                       std::index_sequence<D...>) noexcept {
    (store_at<D>(values, to), ...);
  }
};
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
