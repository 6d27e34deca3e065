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
  bool paired{};              ///< moved together with its neighbour
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

  constexpr void fail(Errc e) noexcept { error = error == Errc::ok ? e : error; }
  /// The parameter of a bind that waits for this field; kMostParameters if there is none.
  constexpr std::uint16_t take(const FieldInfo* fields, std::uint8_t member) noexcept {
    for (std::size_t i = 0; i < bound; ++i)
      if (binds[i].fields == fields && binds[i].member == member) {
        const auto parameter = binds[i].parameter;
        for (--bound; i < bound; ++i) binds[i] = binds[i + 1];
        return parameter;
      }
    return kMostParameters;
  }
  /// Notes the fields of a packet that has been written that are parameters.
  SDMA_COLD constexpr void record(std::span<const FieldInfo> layout, const grammar::Length& length,
                                  std::uint32_t* packet, Obeys obeys, Generation g) noexcept {
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
/// Pairs of 64-bit fields that neighbouring parameters give as they are: the addresses of copies, one after another.
struct Run {
  std::uint32_t dword{};      ///< of the first field
  std::uint16_t parameter{};  ///< of the first field
  std::uint16_t pairs{};      ///< 1 to kMostPairs, each a copy after the one before it
};
inline constexpr std::uint16_t kMostPairs = 8;
/// The loops of Frame::patch.
enum class Kinds : std::uint8_t { pair, wide, dword, other };
constexpr Kinds kind_of(const Relocation& c) noexcept {
  if (c.paired) return Kinds::pair;
  if (c.lo != 0) return Kinds::other;
  return c.hi == 63 ? Kinds::wide : c.hi == 31 ? Kinds::dword : Kinds::other;
}
/// Does a parameter give all 64 bits as they are?
constexpr bool is_plain(const Relocation& c) noexcept {
  return c.lo == 0 && c.hi == 63 && c.addend == 0 && c.refused == 0 && c.obeys == nullptr;
}
/// Finds runs, as many as there is room for, and puts the changes in the order of their kinds. Returns the number of
/// runs. As recorded, the changes are in the order of the packets.
constexpr std::size_t sort_changes(std::span<Relocation> changes, std::span<Run> runs) noexcept {
  std::size_t n = 0;
  for (auto& c : changes) c.paired = false;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    auto &a = changes[i], &b = changes[i + 1];
    if (!is_plain(a) || !is_plain(b) || b.dword != a.dword + 2 || b.parameter != a.parameter + 1) continue;
    auto* const last = n == 0 ? nullptr : &runs[n - 1];
    if (last && last->pairs != kMostPairs && a.dword == last->dword + last->pairs * dwords_of<CopyLinear>() &&
        a.parameter == last->parameter + 2 * last->pairs) {
      ++last->pairs;
    } else {
      if (n == runs.size()) break;
      runs[n++] = {a.dword, a.parameter, 1};
    }
    a.paired = b.paired = true;
    ++i;
  }
  for (std::size_t i = 1; i < changes.size(); ++i)
    for (auto d = i; d != 0 && kind_of(changes[d]) < kind_of(changes[d - 1]); --d) {
      const auto before = changes[d - 1];
      changes[d - 1] = changes[d];
      changes[d] = before;
    }
  return n;
}
SDMA_ALWAYS_INLINE inline void move_run(std::uint32_t* to, const std::uint64_t* from, std::size_t pairs) noexcept {
  const auto move = [&](std::size_t k) SDMA_ALWAYS_INLINE_LAMBDA {
    SDMA_COPY_BYTES(to + dwords_of<CopyLinear>() * k, from + 2 * k, 2 * sizeof *from);
  };
  switch (pairs % kMostPairs) {
    case 0: move(7); [[fallthrough]];
    case 7: move(6); [[fallthrough]];
    case 6: move(5); [[fallthrough]];
    case 5: move(4); [[fallthrough]];
    case 4: move(3); [[fallthrough]];
    case 3: move(2); [[fallthrough]];
    case 2: move(1); [[fallthrough]];
    default: move(0);
  }
}
}  // namespace detail

/// A target that notes which fields of the packets are parameters.
struct Recording : AnyGeneration {
  detail::Recorder* recorder{};  ///< the frame's
  /// As for its generation; an INDIRECT does not fit.
  template <Packet P> constexpr bool fits(const P& p) const noexcept {
    return !std::is_same_v<P, Indirect> && sdma::fits(p, generation);
  }
  /// Stores the packet, and notes its parameters.
  template <Packet P> constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out) const noexcept {
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
  constexpr Frame(std::span<std::uint32_t> dwords, std::span<Relocation> changes,
                  Generation g = kDefaultGeneration) noexcept
      : recorder_{.begin = dwords.data(), .room = changes}, writer_(dwords, Recording{{g}, &recorder_}) {}
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Takes packets, requests and recipes, until finish.
  constexpr BasicWriter<Recording>& writer() noexcept { return writer_; }
  /// This member of the next packet of its type is a parameter; what the packet holds is added. Up to 8 may wait.
  template <auto Member> constexpr void bind(std::uint16_t parameter) noexcept {
    using P = typename grammar::Field<Member>::Owner;
    constexpr auto f = detail::field_of<Member>();
    static_assert(f.kind != Kind::payload, "the number of dwords of a packet cannot change");
    if (parameter >= kMostParameters || recorder_.bound == recorder_.binds.size())
      return recorder_.fail(Errc::bad_argument);
    recorder_.binds[recorder_.bound++] = {grammar::layout<P>.fields.data(), f.member, parameter};
  }
  /// Ends the frame, and pads it with NOPs to a multiple of `multiple` dwords.
  [[nodiscard]] constexpr Errc finish(std::size_t multiple = 1) noexcept {
    const auto over = multiple == 0 ? 0 : writer_.position_dwords() % multiple;
    if (over != 0) writer_.put(Nop{static_cast<std::uint32_t>(multiple - over)});
    if (recorder_.bound != 0) recorder_.fail(Errc::bad_argument);
    const auto e = writer_.error() != Errc::ok ? writer_.error() : recorder_.error;
    // One loop for each kind: pairs of addresses, 64 bits, 32 bits, and others.
    auto* const first = recorder_.room.data();
    end_ = first + recorder_.count;
    runs_end_ = &runs_[0] + detail::sort_changes(recorder_.room.first(recorder_.count), runs_);
    const auto after = [&](Relocation* from, detail::Kinds kind) {
      while (from != end_ && detail::kind_of(*from) == kind) ++from;
      return from;
    };
    pairs_end_ = after(first, detail::Kinds::pair);
    wide_end_ = after(pairs_end_, detail::Kinds::wide);
    dword_end_ = after(wide_end_, detail::Kinds::dword);
    more_ = dword_end_ != end_;
    for (const auto& c : changes()) more_ = more_ || c.obeys != nullptr;
    dwords_ = writer_.written();
    there_for_ = e == Errc::ok && !more_ ? generation() : kNotReady;
    takes_ = e == Errc::ok ? recorder_.parameters : kUnfinished;
    ready_for_ = e == Errc::ok && recorder_.count == 0 ? generation() : kNotReady;
    return e;
  }

  /// Stores parameters[k], plus what was written, in each field that is parameter k. After an error, the frame can be
  /// relocated again, but not submitted.
  [[nodiscard]] SDMA_ALWAYS_INLINE Errc relocate(std::span<const std::uint64_t> parameters) noexcept {
    ready_for_ = kNotReady;
    if (parameters.size() < takes_ || !place(parameters.data())) return Errc::bad_argument;
    move_pairs(recorder_.begin, parameters.data());
    if (more_ && !relocate_more(parameters.data())) return Errc::bad_argument;
    ready_for_ = generation();
    return Errc::ok;
  }

  /// Copies the frame into one slot of the ring, relocates it there, and publishes it: less work than `relocate` and
  /// `submit`, because the frame's own memory need not change. Stores some dwords twice, which is slow where it is
  /// write-combining memory. A later `submit` without parameters needs a `relocate`.
  template <class Ring>
  [[nodiscard]] SDMA_ALWAYS_INLINE Errc submit(Ring& ring, std::span<const std::uint64_t> parameters) noexcept {
    const auto* const values = parameters.data();
    if (ring.generation() != there_for_ || parameters.size() < takes_ || !place(values)) [[unlikely]]
      return submit_here(ring, parameters);
    const auto n = dwords().size();
    const auto s = ring.reserve(n);
    if (!s) return s.error();
    SDMA_COPY_BYTES(s->dwords.data(), recorder_.begin, n * sizeof(std::uint32_t));
    move_pairs(s->dwords.data(), values);
    ring.publish(*s);
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
  constexpr std::span<const std::uint32_t> dwords() const noexcept { return dwords_; }
  /// The fields that change.
  constexpr std::span<const Relocation> changes() const noexcept { return recorder_.room.first(recorder_.count); }
  /// How many parameters `relocate` takes at least.
  constexpr std::size_t parameters() const noexcept { return recorder_.parameters; }
  /// The generation of the packets.
  constexpr Generation generation() const noexcept { return writer_.generation(); }

 private:
  static constexpr auto kNotReady = static_cast<Generation>(0xff);
  static constexpr auto kUnfinished = ~std::size_t{};

  SDMA_COLD Errc refusal() const noexcept {
    return ready_for_ == kNotReady ? Errc::bad_argument : Errc::wrong_generation;
  }
  /// The way of `relocate`, which packets with rules and fields of other widths take, and everything that is refused.
  template <class Ring> SDMA_COLD Errc submit_here(Ring& ring, std::span<const std::uint64_t> parameters) noexcept {
    if (takes_ != kUnfinished && ring.generation() != generation()) return Errc::wrong_generation;
    const auto e = relocate(parameters);
    return e == Errc::ok ? submit(ring) : e;
  }
  /// Stores the sums of 64 and 32 bits in the frame's own memory. Has none a bit that its field refuses?
  SDMA_ALWAYS_INLINE bool place(const std::uint64_t* values) noexcept {
    ready_for_ = kNotReady;
    std::uint64_t bad = 0;
    const auto sum = [&](const Relocation& c) SDMA_ALWAYS_INLINE_LAMBDA {
      const auto v = values[c.parameter] + c.addend;
      bad |= v & c.refused;
      return v;
    };
    auto* const frame = recorder_.begin;
    const Relocation* c = pairs_end_;
    for (const auto* const end = wide_end_; c != end; ++c) {
      const auto v = sum(*c);
      SDMA_COPY_BYTES(frame + c->dword, &v, sizeof v);
    }
    for (const auto* const end = dword_end_; c != end; ++c) frame[c->dword] = static_cast<std::uint32_t>(sum(*c));
    return bad == 0;
  }
  /// Stores the pairs, which refuse nothing, in the frame or in a copy of it.
  SDMA_ALWAYS_INLINE void move_pairs(std::uint32_t* frame, const std::uint64_t* values) const noexcept {
    for (const auto *run = &runs_[0], *const end = runs_end_; run != end; ++run)
      detail::move_run(frame + run->dword, values + run->parameter, run->pairs);
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
  std::span<const std::uint32_t> dwords_{};  ///< those that are finished
  std::size_t takes_ = kUnfinished;          ///< how many parameters
  std::array<detail::Run, 8> runs_{};
  const detail::Run* runs_end_ = &runs_[0];
  /// The changes are in the order of these.
  Relocation *pairs_end_{}, *wide_end_{}, *dword_end_{}, *end_{};
  bool more_ = false;                 ///< relocate_more has something to do
  Generation ready_for_ = kNotReady;  ///< the rings that may take it
  Generation there_for_ = kNotReady;  ///< and those in which it may be relocated
};
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
