// SPDX-License-Identifier: MIT
#pragma once
// A frame: packets that are built once, and submitted often, with other addresses, values and epochs each time.
//
//   constexpr std::uint16_t kEpoch = 0, kSource = 1, kTarget = 2;              // the parameters of this frame
//   std::uint32_t room[64];
//   Relocation changes[8];
//   Frame frame{room, changes, generation};                                    // no ring and no GPU is needed
//   frame.bind<&PollMem::reference>(kEpoch);                                   // of the next poll: 1 + this parameter
//   acquire(frame.writer(), go.low_va(), 1);
//   frame.writer().copy({.src = parameter(kSource), .dst = parameter(kTarget) + 64, .bytes = n});
//   complete_with_atomic(frame.writer(), left.va);
//   if (auto e = frame.finish(); e != Errc::ok) return e;
//   ...
//   const std::uint64_t values[] = {epoch, a.value, b.value};                  // for each submission
//   if (auto e = frame.relocate(values); e != Errc::ok) return e;
//   if (auto e = frame.submit(ring); e != Errc::ok) return e;                  // no_space: submit again, later
//
//   packets + placeholders --record--> dwords    poll go >= . | copy . -> . | atomic left
//                                      changes        ^              ^    ^
//                          relocate:               epoch + 1  source  target + 64              the frame's own memory
//                          submit:                 reserve, memcpy, publish                    the ring
//
// Parameters are numbered from 0. An address refers to parameter k if it is parameter(k), or lies up to 2^47 bytes
// before or after it: a Writer, a recipe or a split copy keeps the distance. To make another member refer to parameter
// k, call bind<&Fence::value>(k): this applies to the next packet of the type, and the value that the packet holds is
// added to the parameter. The sum is stored in the field's place in the frame's generation.
//
// Sizes: dwords_of(generation, [&](auto& w) { hsa::complete_signal(w, signal); }) is the exact number of dwords that
// the same calls write, before there is a place for them (stream/writer.hpp).
//
// Indirect buffers: finish(kIndirectMultiple) pads the frame with NOPs, as INDIRECT requires. Relocate it, copy
// dwords() to 32-byte aligned memory of the engine, and call submit_indirect(ring, there). An engine may prefetch the
// buffer: change it only after you have seen a completion that follows. A frame itself cannot hold an INDIRECT, which
// has to end on a multiple of 8 dwords of the ring.
//
// Ordering: `submit` is Ring::reserve, a copy and Ring::publish, so a frame reaches the engine whole, with one
// doorbell, in the order of reserve. Several threads may submit one frame to a Ring<many> at once. No thread may
// submit it while another builds or relocates it. Nothing here allocates or waits; the spans outlive the Frame.
//
// Errors. finish: the first error of the writer; no_space: more changes than Relocations; bad_argument: a parameter
// of 256 or more, a bind whose packet never came, whose member has no bits in this generation, or whose member decides
// the length of its packet. relocate: bad_argument: a sum is misaligned, too large for its field, or breaks a rule of
// its packet, or a parameter is missing. submit: bad_argument after a failed finish or relocate, or before the first
// relocate of a frame that needs one; wrong_generation: the ring has another one; and those of reserve.
#include "sdma/core/compiler.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/stream/writer.hpp"

#include <algorithm>
#include <array>

namespace sdma { inline namespace v0_3 {

SDMA_DEVICE_BEGIN
inline constexpr std::size_t kIndirectMultiple = 8;    ///< the dwords of an indirect buffer are a multiple of this
inline constexpr std::uint16_t kMostParameters = 256;  ///< of a frame

namespace detail {
// No engine has such an address: bit 62 differs from bit 63. Each parameter has a range, and is its middle.
inline constexpr std::uint64_t kFirstParameter = 0x5d00'0000'0000'0000, kParameterBytes = 0x1'0000'0000'0000;
}  // namespace detail
/// The address that parameter `k` of a frame gives: a placeholder. Requires k < kMostParameters.
constexpr GpuVa parameter(std::uint16_t k) noexcept {
  return GpuVa{detail::kFirstParameter + detail::kParameterBytes * k + detail::kParameterBytes / 2};
}

/// A field that changes when a frame is relocated. A Frame fills these in.
struct Relocation {
  std::uint32_t dword{};      ///< the first dword of the field, from the start of the frame
  std::uint32_t packet{};     ///< the first dword of its packet
  std::uint16_t parameter{};  ///< the parameter that gives its value
  std::uint8_t lo{}, hi{};    ///< its bits, counted from bit 0 of `dword`
  std::uint64_t addend{};     ///< the sum with the parameter is stored
  std::uint64_t refused{};    ///< bits that must be 0 in the sum
  /// Does the packet at these dwords obey its rules? Null: it has none.
  bool (*obeys)(std::span<const std::uint32_t>, Generation) noexcept = nullptr;
};

namespace detail {
/// What building a frame collects.
struct Recorder {
  struct Bind {
    const FieldInfo* fields{};  ///< those of the packet's layout
    std::uint8_t member{};
    std::uint16_t parameter{};
  };
  using Obeys = bool (*)(std::span<const std::uint32_t>, Generation) noexcept;
  std::uint32_t* begin{};
  std::span<Relocation> room{};
  std::size_t count{};
  std::array<Bind, 8> binds{};
  std::size_t bound{};
  std::size_t parameters{};  ///< one more than the highest in use
  Errc error = Errc::ok;

  void fail(Errc e) noexcept { error = error == Errc::ok ? e : error; }
  /// The parameter of a bind that waits for this field; kMostParameters if there is none.
  std::uint16_t take(const FieldInfo* fields, std::uint8_t member) noexcept {
    for (std::size_t i = 0; i < bound; ++i)
      if (binds[i].fields == fields && binds[i].member == member) {
        const auto parameter = binds[i].parameter;
        for (--bound; i < bound; ++i) binds[i] = binds[i + 1];
        return parameter;
      }
    return kMostParameters;
  }
  /// Notes the fields of a packet that has been written that are parameters.
  SDMA_COLD void record(std::span<const FieldInfo> layout, const grammar::Length& length, std::uint32_t* packet,
                        Obeys obeys, Generation g) noexcept {
    const auto there = parts_of(length, layout, packet);
    for (const auto& described : layout) {
      if (described.kind == Kind::payload || !described.generations.contains(g)) continue;
      const auto f = described.in_generation(g);
      if (missing(length, there, f.dword)) continue;
      auto at = packet + f.dword;
      for (std::size_t d = 0; d < f.dword; ++d) at -= missing(length, there, d);
      if (f.dword >= std::size_t{length.fixed} - length.tail_dwords && !length.counted.empty())
        at += length.stride * counted_by(length, layout, there, packet);
      auto first = f;
      first.dword = 0;
      auto value = stored(first, at), k = std::uint64_t{take(layout.data(), f.member)};
      if (k == kMostParameters && f.kind == Kind::address && value >= kFirstParameter) {
        k = (value - kFirstParameter) / kParameterBytes;
        if (k < kMostParameters) value -= parameter(static_cast<std::uint16_t>(k)).value;
      }
      if (k >= kMostParameters) continue;
      if (f.name == length.counted || f.name == length.parts[0].flag || f.name == length.parts[1].flag)
        return fail(Errc::bad_argument);
      if (count == room.size()) return fail(Errc::no_space);
      // Alignments are powers of two, and no aligned field is stored minus one.
      room[count++] = {.dword = static_cast<std::uint32_t>(at - begin),
                       .packet = static_cast<std::uint32_t>(packet - begin),
                       .parameter = static_cast<std::uint16_t>(k),
                       .lo = f.lo,
                       .hi = f.hi,
                       .addend = value,
                       .refused = ~f.mask() | (f.alignment - 1),
                       .obeys = obeys};
      if (k >= parameters) parameters = static_cast<std::size_t>(k) + 1;
    }
  }
};
}  // namespace detail

/// A target that notes which fields of the packets are parameters.
struct Recording : AnyGeneration {
  detail::Recorder* recorder{};  ///< the frame's
  /// As for its generation; an INDIRECT does not fit.
  template <Packet P> constexpr bool fits(const P& p) const noexcept {
    return !std::is_same_v<P, Indirect> && sdma::fits(p, generation);
  }
  /// Stores the packet, and notes its parameters.
  template <Packet P> std::uint32_t* encode_to(const P& p, std::uint32_t* out) const noexcept {
    constexpr const auto& l = grammar::layout<P>;
    auto* end = sdma::encode_to(p, out, generation);
    recorder->record(l.fields, l.exception.length_generations.contains(generation) ? l.exception.length : l.length, out,
                     kRuled<P> ? kObeys<P> : nullptr, generation);
    return end;
  }

 private:
  template <class P>
  static constexpr bool kRuled = [] {
    bool any = !grammar::layout<P>.rules.empty();
    for (const auto& f : grammar::layout<P>.fields) any = any || f.limit != ~std::uint64_t{};
    return any;
  }();
  template <class P>
  static constexpr detail::Recorder::Obeys kObeys =
      [](std::span<const std::uint32_t> d, Generation g) noexcept { return sdma::fits(decode<P>(d, g), g); };
};

class Frame {
 public:
  /// Writes into `dwords`, in the frame's own memory, and notes up to changes.size() fields.
  Frame(std::span<std::uint32_t> dwords, std::span<Relocation> changes, Generation g = kDefaultGeneration) noexcept
      : recorder_{.begin = dwords.data(), .room = changes}, writer_(dwords, Recording{{g}, &recorder_}) {}
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Takes packets, requests and recipes, until finish.
  BasicWriter<Recording>& writer() noexcept { return writer_; }
  /// This member of the next packet of its type is a parameter; what the packet holds is added. Up to 8 may wait.
  template <auto Member> void bind(std::uint16_t parameter) noexcept {
    using P = typename grammar::Field<Member>::Owner;
    constexpr auto f = detail::field_of<Member>();
    static_assert(f.kind != Kind::payload, "the number of dwords of a packet cannot change");
    if (parameter >= kMostParameters || recorder_.bound == recorder_.binds.size())
      return recorder_.fail(Errc::bad_argument);
    recorder_.binds[recorder_.bound++] = {grammar::layout<P>.fields.data(), f.member, parameter};
  }
  /// Ends the frame, and pads it with NOPs to a multiple of `multiple` dwords.
  [[nodiscard]] Errc finish(std::size_t multiple = 1) noexcept {
    const auto over = multiple == 0 ? 0 : writer_.position_dwords() % multiple;
    if (over != 0) writer_.put(Nop{static_cast<std::uint32_t>(multiple - over)});
    if (recorder_.bound != 0) recorder_.fail(Errc::bad_argument);
    const auto e = writer_.error() != Errc::ok ? writer_.error() : recorder_.error;
    // One loop for each width: 64 bits, 32, and others.
    auto* const first = recorder_.room.data();
    end_ = first + recorder_.count;
    wide_end_ = std::partition(first, end_, [](const Relocation& c) { return c.lo == 0 && c.hi == 63; });
    dword_end_ = std::partition(wide_end_, end_, [](const Relocation& c) { return c.lo == 0 && c.hi == 31; });
    more_ = dword_end_ != end_ || std::any_of(first, end_, [](const Relocation& c) { return c.obeys != nullptr; });
    dwords_ = writer_.written();
    takes_ = e == Errc::ok ? recorder_.parameters : kUnfinished;
    ready_for_ = e == Errc::ok && recorder_.count == 0 ? generation() : kNotReady;
    return e;
  }

  /// Stores parameters[k], plus what was written, in each field that is parameter k. After an error, the frame can be
  /// relocated again, but not submitted.
  [[nodiscard]] SDMA_ALWAYS_INLINE Errc relocate(std::span<const std::uint64_t> parameters) noexcept {
    const auto* const values = parameters.data();
    auto* const frame = recorder_.begin;
    const auto *const wide_end = wide_end_, *const dword_end = dword_end_;
    std::uint64_t bad = parameters.size() < takes_;
    const auto sum = [&](const Relocation& c) SDMA_ALWAYS_INLINE_LAMBDA {
      const auto v = values[c.parameter] + c.addend;
      bad |= v & c.refused;
      return v;
    };
    ready_for_ = kNotReady;
    if (bad != 0) return Errc::bad_argument;
    const Relocation* c = recorder_.room.data();
    for (; c != wide_end; ++c) {
      const auto v = sum(*c);
      SDMA_COPY_BYTES(frame + c->dword, &v, sizeof v);
    }
    for (; c != dword_end; ++c) frame[c->dword] = static_cast<std::uint32_t>(sum(*c));
    if (bad != 0 || (more_ && !relocate_more(values))) return Errc::bad_argument;
    ready_for_ = generation();
    return Errc::ok;
  }

  /// Copies the frame into one slot of the ring, a Ring (queue/ring.hpp), and publishes it.
  template <class Ring> [[nodiscard]] SDMA_ALWAYS_INLINE Errc submit(Ring& ring) const noexcept {
    if (ring.generation() != ready_for_) [[unlikely]]
      return refusal();
    const auto n = dwords().size();
    const auto s = ring.reserve(n);
    if (!s) return s.error();
    SDMA_COPY_BYTES(s->dwords.data(), recorder_.begin, n * sizeof(std::uint32_t));
    ring.publish(*s);
    return Errc::ok;
  }
  /// Publishes an INDIRECT to a copy of the frame at `there`, with NOPs before it so that it ends where it must.
  template <class Ring> [[nodiscard]] Errc submit_indirect(Ring& ring, GpuVa there) const noexcept {
    if (ring.generation() != ready_for_) return refusal();
    const Indirect call{.base = there, .dwords = static_cast<std::uint32_t>(dwords().size())};
    if (dwords().size() % kIndirectMultiple != 0 || !fits(call, generation())) return Errc::bad_packet;
    const auto n = length(call, generation());
    const auto s = ring.reserve(n + kIndirectMultiple - 1);
    if (!s) return s.error();
    // The ring begins at a multiple of 256 bytes.
    const auto at = reinterpret_cast<std::uintptr_t>(s->dwords.data()) / sizeof(std::uint32_t) + n;
    const auto before = static_cast<std::size_t>((0 - at) % kIndirectMultiple);
    if (before != 0) encode_to(Nop{static_cast<std::uint32_t>(before)}, s->dwords.data(), generation());
    encode_to(call, s->dwords.data() + before, generation());
    ring.publish(*s, before + n);
    return Errc::ok;
  }

  /// The packets up to the last finish, as they are now.
  std::span<const std::uint32_t> dwords() const noexcept { return dwords_; }
  /// The fields that change.
  std::span<const Relocation> changes() const noexcept { return recorder_.room.first(recorder_.count); }
  /// How many parameters `relocate` takes at least.
  std::size_t parameters() const noexcept { return recorder_.parameters; }
  /// The generation of the packets.
  Generation generation() const noexcept { return writer_.generation(); }

 private:
  static constexpr auto kNotReady = static_cast<Generation>(0xff);
  static constexpr auto kUnfinished = ~std::size_t{};

  SDMA_COLD Errc refusal() const noexcept {
    return ready_for_ == kNotReady ? Errc::bad_argument : Errc::wrong_generation;
  }
  /// The fields of other widths, and the rules of packets.
  SDMA_NOINLINE bool relocate_more(const std::uint64_t* values) const noexcept {
    std::uint64_t bad = 0;
    for (const auto* c = dword_end_; c != end_; ++c) {
      const auto v = values[c->parameter] + c->addend;
      bad |= v & c->refused;
      store({.lo = c->lo, .hi = c->hi}, v, recorder_.begin + c->dword);
    }
    for (const auto& c : changes())
      if (bad == 0 && c.obeys) bad = !c.obeys(dwords().subspan(c.packet), generation());
    return bad == 0;
  }

  detail::Recorder recorder_;
  BasicWriter<Recording> writer_;
  std::span<const std::uint32_t> dwords_{};         ///< those that are finished
  std::size_t takes_ = kUnfinished;                 ///< how many parameters
  Relocation *wide_end_{}, *dword_end_{}, *end_{};  ///< the changes are in the order of these
  bool more_ = false;                               ///< relocate_more has something to do
  Generation ready_for_ = kNotReady;                ///< the rings that may take it
};
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
