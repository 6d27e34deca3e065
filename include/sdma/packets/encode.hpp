// SPDX-License-Identifier: MIT
#pragma once
// Converts typed packets to dwords and back. Encoding costs no more than the stores that you would write by hand.
//
//   CopyLinear copy{.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = 4096};
//   if (Violation b = check(copy)) report(b.field, b.rule);   // e.g. "bytes", "range"
//   std::uint32_t* end = encode_to(copy, ring);            // 7 dwords, ascending, each stored exactly once
//   auto same = decode<CopyLinear>({ring, 7});
//
// These are the dwords of SDMA 4.4.2. Each function also takes another generation (generation.hpp): one that you know
// when you compile costs what 4.4.2 costs; one that is known at run time costs a branch for each layout that differs.
//
//   encode_to<Generation::v6_0>(copy, ring);    encode_to(copy, ring, generation);    fits(copy, generation);
//   decode<Generation::v6_0, CopyLinear>(dwords);          decode<CopyLinear>(dwords, generation);
//   max_bytes<CopyLinear>(generation);                     // how many bytes one packet can move: 2^22 or 2^30
//
// A packet that the generation lacks, or a field that it lacks and that does not hold its default, does not fit.
//
// `fits` returns true or false and is for hot paths; `check` names the field and the rule and is for error messages.
// encode_to does not check: it truncates an out-of-range value to the width of its field, and may write a field that
// the generation lacks. Call `fits` first, as Writer and Ring do. encode_to never reads from its target, so the target
// may be write-combining memory.
//
// Everything here is constexpr and noexcept, and allocates nothing. There is no shared state: any thread may call any
// function.
#include "sdma/core/compiler.hpp"
#include "sdma/packets/uniform.hpp"

namespace sdma { inline namespace v0_3 {

namespace detail {
/// For each generation, one whose layout serves for it. A generation that lacks the packet needs none.
using Eras = std::array<std::uint8_t, kGenerationCount>;
/// The layout of `a` serves for `b` if serves(layout, a, b). If
/// several do, takes the one that serves for most generations.
template <class Layout, class Fn> consteval Eras choose_eras(const Layout& l, Fn serves) {
  Eras count{}, chosen{};
  const auto has = [&](std::size_t g) { return l.generations.contains(static_cast<Generation>(g)); };
  const auto serve = [&](std::size_t a, std::size_t b) {
    return has(a) && has(b) && serves(l, static_cast<Generation>(a), static_cast<Generation>(b));
  };
  for (std::size_t a = 0; a < kGenerationCount; ++a)
    for (std::size_t b = 0; b < kGenerationCount; ++b) count[a] = static_cast<std::uint8_t>(count[a] + serve(a, b));
  std::size_t any = 0;
  while (any + 1 < kGenerationCount && !has(any)) ++any;
  for (std::size_t b = 0; b < kGenerationCount; ++b) {
    std::size_t best = has(b) ? b : any;
    for (std::size_t a = 0; a < kGenerationCount; ++a)
      if (serve(a, has(b) ? b : any) && (count[a] > count[best] || (count[a] == count[best] && a < best))) best = a;
    chosen[b] = static_cast<std::uint8_t>(best);
  }
  return chosen;
}
/// The same fields in the same places.
template <class P>
inline constexpr auto kEras = choose_eras(grammar::layout<P>, [](const auto& l, Generation a, Generation b) {
  const auto alike = [&](Generations s) { return s.contains(a) == s.contains(b); };
  for (const auto& f : l.fields)
    if (!alike(f.generations) || !alike(f.moved.generations) || !alike(f.moved_again.generations)) return false;
  return alike(l.exception.pattern_generations) && alike(l.exception.length_generations);
});
/// `a` writes the dwords of `b` for each packet that fits `b`: a field
/// that only `a` has then holds its default, which is 0 on the wire.
template <class P>
inline constexpr auto kWriters = choose_eras(grammar::layout<P>, [](const auto& l, Generation a, Generation b) {
  const auto alike = [&](Generations s) { return s.contains(a) == s.contains(b); };
  for (const auto& f : l.fields) {
    const bool in_a = f.generations.contains(a);
    if (f.generations.contains(b) ? !in_a || !alike(f.moved.generations) || !alike(f.moved_again.generations)
                                  : in_a && ((f.default_value - f.bias) & f.mask()) != 0)
      return false;
  }
  return alike(l.exception.pattern_generations) && alike(l.exception.length_generations);
});
/// Returns fn<G>() for the generation that serves for `g`.
template <const Eras& Serving, class Fn> SDMA_ALWAYS_INLINE constexpr auto in_era(Generation g, Fn fn) noexcept {
  constexpr bool one = [] {
    for (const auto era : Serving)
      if (era != Serving[0]) return false;
    return true;
  }();
  if constexpr (one) {
    return fn.template operator()<static_cast<Generation>(Serving[0])>();
  } else {
    decltype(fn.template operator()<static_cast<Generation>(Serving[0])>()) result{};
    const auto era = Serving[static_cast<std::size_t>(g)];
    [&]<std::size_t... E>(std::index_sequence<E...>) SDMA_ALWAYS_INLINE_LAMBDA {
      const auto chosen = [&]<std::size_t I>() SDMA_ALWAYS_INLINE_LAMBDA {
        if constexpr (Serving[I] != I) return false;
        else return era == I && (result = fn.template operator()<static_cast<Generation>(I)>(), true);
      };
      static_cast<void>((chosen.template operator()<E>() || ...));
    }
    (std::make_index_sequence<kGenerationCount>{});
    return result;
  }
}
}  // namespace detail

/// Does this generation have the packet?
template <Packet P> constexpr bool exists(Generation g) noexcept { return grammar::layout<P>.generations.contains(g); }

namespace detail {
/// Index of the field that says whether optional part K is there.
template <class P, Generation G, std::size_t K>
inline constexpr auto kFlag = index_of(grammar::layout<P>.fields, shape<P, G>.length->parts[K].flag);
/// Which of the packet's optional parts are there.
template <class P, Generation G> constexpr std::array<bool, 2> parts_of(const P& p) noexcept {
  std::array<bool, 2> there{};
  const auto one = [&]<std::size_t K>() {
    if constexpr (kFlag<P, G, K> < grammar::layout<P>.fields.size()) there[K] = number<P, kFlag<P, G, K>>(p) != 0;
  };
  one.template operator()<0>();
  one.template operator()<1>();
  return there;
}
/// Is dword `d`, numbered as in the description, in a part that is not there?
constexpr bool missing(const grammar::Length& l, const std::array<bool, 2>& there, std::size_t d) noexcept {
  for (std::size_t k = 0; k < l.parts.size(); ++k)
    if (!there[k] && d >= l.parts[k].at && d < std::size_t{l.parts[k].at} + l.parts[k].dwords) return true;
  return false;
}
constexpr std::size_t missing(const grammar::Length& l, const std::array<bool, 2>& there) noexcept {
  std::size_t n = 0;
  for (std::size_t k = 0; k < l.parts.size(); ++k)
    if (!there[k]) n += l.parts[k].dwords;
  return n;
}
}  // namespace detail

/// The length of `p` on the wire, in dwords.
template <Generation G, Packet P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const P& p) noexcept {
  constexpr const auto& l = *detail::shape<P, G>.length;
  std::size_t n = l.fixed;
  if constexpr (!detail::kPlain<P, G>) n -= detail::missing(l, detail::parts_of<P, G>(p));
  if constexpr (!detail::kFixed<P>)
    n += l.stride * static_cast<std::size_t>(detail::number<P, detail::counter<P>()>(p));
  return n;
}
template <Packet P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const P& p) noexcept {
  return length<kDefaultGeneration>(p);
}
template <Packet P>
requires detail::kUniform<P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const P& p, Generation g) noexcept {
  return detail::length_uniform(p, g);
}
template <Packet P> constexpr std::size_t length(const P& p, Generation g) noexcept {
  return detail::in_era<detail::kWriters<P>>(g, [&]<Generation G>() { return length<G>(p); });
}

namespace detail {
/// Writes a packet whose dwords are where its description numbers them: without what is missing, and with the payload
/// in its place. Returns a pointer past the last.
constexpr std::uint32_t* fold(const grammar::Length& l, const std::array<bool, 2>& there,
                              std::span<const std::uint32_t> whole, std::span<const std::uint32_t> payload,
                              std::uint32_t* out) noexcept {
  for (std::size_t d = 0; d <= whole.size(); ++d) {
    if (d == whole.size() - l.tail_dwords)
      for (auto w : payload) *out++ = w;
    if (d < whole.size() && !missing(l, there, d)) *out++ = whole[d];
  }
  return out;
}
/// The dwords of a packet whose parts may be missing or whose payload is not at its end.
template <class P, Generation G> constexpr std::uint32_t* encode_parts(const P& p, std::uint32_t* out) noexcept {
  std::array<std::uint32_t, head<P, G>()> whole{};
  [&]<std::size_t... D>(std::index_sequence<D...>) { (put<P, D, G>(p, whole.data()), ...); }
  (std::make_index_sequence<head<P, G>()>{});
  std::span<const std::uint32_t> payload{};
  each<P, G>([&]<std::size_t I>() {
    if constexpr (field<P, I, G>.kind == Kind::payload) payload = p.*FieldOf<P, I, G>::member;
  });
  return fold(*shape<P, G>.length, parts_of<P, G>(p), whole, payload, out);
}
}  // namespace detail

/// Writes `length(p)` dwords in ascending order, each exactly once, and returns a pointer past the last. Requires
/// fits(p).
template <Generation G, Packet P>
SDMA_ALWAYS_INLINE constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out) noexcept {
  static_assert(well_formed<P, G>());
  if constexpr (!detail::kPlain<P, G>) return detail::encode_parts<P, G>(p, out);
  else [&]<std::size_t... D>(std::index_sequence<D...>) SDMA_ALWAYS_INLINE_LAMBDA {
      (detail::put<P, D, G>(p, out), ...);
    }
  (std::make_index_sequence<detail::head<P, G>()>{});
  if constexpr (detail::kFixed<P>) {
    return out + detail::head<P, G>();
  } else if constexpr (detail::kPlain<P, G>) {
    auto* at = out + detail::head<P, G>();
    detail::each<P, G>([&]<std::size_t I>() {
      if constexpr (detail::field<P, I, G>.kind == Kind::payload)
        for (auto w : p.*detail::FieldOf<P, I, G>::member) *at++ = w;
    });
    while (at < out + length<G>(p)) *at++ = 0;
    return at;
  }
}
template <Packet P> SDMA_ALWAYS_INLINE constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out) noexcept {
  return encode_to<kDefaultGeneration>(p, out);
}
template <Packet P>
requires detail::kUniform<P> SDMA_ALWAYS_INLINE constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out,
                                                                                   Generation g) noexcept {
  return detail::encode_uniform(p, out, g);
}
template <Packet P> constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out, Generation g) noexcept {
  return detail::in_era<detail::kWriters<P>>(
      g, [&]<Generation G>() SDMA_ALWAYS_INLINE_LAMBDA { return encode_to<G>(p, out); });
}
/// The dwords of a packet of fixed length.
template <Generation G, Packet P> constexpr auto encode(const P& p) noexcept {
  static_assert(detail::kFixed<P> && detail::kPlain<P, G>, "this packet's length varies: use encode_to");
  std::array<std::uint32_t, detail::head<P, G>()> out{};
  encode_to<G>(p, out.data());
  return out;
}
template <Packet P> constexpr auto encode(const P& p) noexcept { return encode<kDefaultGeneration>(p); }

/// The stored bits of a field, without its bias.
constexpr std::uint64_t stored(const FieldInfo& f, const std::uint32_t* d) noexcept {
  std::uint64_t v = d[f.dword] >> f.lo;
  if (f.hi > 31) v |= std::uint64_t{d[f.dword + 1]} << (32 - f.lo);
  if (f.hi > 63) v |= std::uint64_t{d[f.dword + 2]} << (64 - f.lo);
  return v & f.mask();
}
/// The value of a field: what it means, not how it is stored.
constexpr std::uint64_t value_of(const FieldInfo& f, const std::uint32_t* d) noexcept { return stored(f, d) + f.bias; }
/// Replaces the stored bits of a field, and no others. `v` is the stored value, without bias. Requires v <= f.mask().
constexpr void store(const FieldInfo& f, std::uint64_t v, std::uint32_t* d) noexcept {
  const auto low = static_cast<std::uint32_t>(f.mask() << f.lo);
  d[f.dword] = (d[f.dword] & ~low) | static_cast<std::uint32_t>(v << f.lo);
  if (f.hi > 31) {
    const auto high = static_cast<std::uint32_t>(f.mask() >> (32 - f.lo));
    d[f.dword + 1] = (d[f.dword + 1] & ~high) | static_cast<std::uint32_t>(v >> (32 - f.lo));
  }
  if (f.hi > 63) {
    const auto last = static_cast<std::uint32_t>(f.mask() >> (64 - f.lo));
    d[f.dword + 2] = (d[f.dword + 2] & ~last) | static_cast<std::uint32_t>(v >> (64 - f.lo));
  }
}

namespace detail {
/// What decides the length of a packet: the value of the field of that name; 0 if there is none.
constexpr std::uint64_t decisive(std::span<const FieldInfo> fields, std::string_view name, const std::uint32_t* d) {
  for (const auto& f : fields)
    if (f.name == name) return value_of(f, d);
  return 0;
}
/// The value of the field that counts the payload, if it comes after parts that may be missing; 0 if there is none.
constexpr std::uint64_t counted_by(const grammar::Length& l, std::span<const FieldInfo> fields,
                                   const std::array<bool, 2>& there, const std::uint32_t* d) noexcept {
  for (const auto& f : fields) {
    if (f.name != l.counted) continue;
    for (std::size_t i = 0; i < f.dword; ++i) d -= missing(l, there, i);
    return value_of(f, d);
  }
  return 0;
}
/// The optional parts that are there, as the dwords say.
constexpr std::array<bool, 2> parts_of(const grammar::Length& l, std::span<const FieldInfo> fields,
                                       const std::uint32_t* d) noexcept {
  std::array<bool, 2> there{};
  for (std::size_t k = 0; k < there.size(); ++k)
    there[k] = l.parts[k].dwords != 0 && decisive(fields, l.parts[k].flag, d) != 0;
  return there;
}
/// Puts the dwords of a packet where its description numbers them, with zeroes for what is missing. Returns the
/// payload. `out`: as many as the description has.
constexpr std::span<const std::uint32_t> unfold(const grammar::Length& l, std::span<const FieldInfo> fields,
                                                std::span<const std::uint32_t> d,
                                                std::span<std::uint32_t> out) noexcept {
  const auto there = parts_of(l, fields, d.data());
  std::span<const std::uint32_t> payload;
  std::size_t at = 0;
  for (std::size_t i = 0; i <= out.size(); ++i) {
    if (i == out.size() - l.tail_dwords) {
      const auto count = l.counted.empty() ? 0 : l.stride * decisive(fields, l.counted, out.data());
      payload = d.subspan(at, static_cast<std::size_t>(count));
      at += payload.size();
    }
    if (i < out.size()) out[i] = missing(l, there, i) || at == d.size() ? 0 : d[at++];
  }
  return payload;
}
}  // namespace detail

/// The typed value of a packet; a payload member refers to `d` and does not copy it. `d` must hold the whole packet.
/// Reserved bits are dropped: a PacketView (stream/reader.hpp) keeps them.
template <Generation G, Packet P> SDMA_ALWAYS_INLINE constexpr P decode(std::span<const std::uint32_t> d) noexcept {
  P p{};
  if constexpr (!detail::kPlain<P, G>) {
    std::array<std::uint32_t, detail::head<P, G>()> whole{};
    constexpr const auto& l = *detail::shape<P, G>.length;
    const auto there = detail::parts_of(l, detail::shape<P, G>.fields, d.data());
    const auto payload = detail::unfold(l, detail::shape<P, G>.fields, d, whole);
    detail::each<P, G>([&]<std::size_t I>() {
      constexpr auto& f = detail::field<P, I, G>;
      using F = detail::FieldOf<P, I, G>;
      if (detail::missing(l, there, f.dword)) return;
      if constexpr (f.kind == Kind::payload) p.*F::member = payload;
      else p.*F::member = static_cast<typename F::Type>(value_of(f, whole.data()));
    });
    return p;
  }
  detail::each<P, G>([&]<std::size_t I>() SDMA_ALWAYS_INLINE_LAMBDA {
    constexpr auto& f = detail::field<P, I, G>;
    using F = detail::FieldOf<P, I, G>;
    const auto v = value_of(f, d.data());
    if constexpr (f.kind == Kind::payload)
      p.*F::member = d.subspan(detail::shape<P, G>.length->fixed,
                               detail::shape<P, G>.length->stride * static_cast<std::size_t>(v));
    else p.*F::member = static_cast<typename F::Type>(v);
  });
  return p;
}
template <Packet P> SDMA_ALWAYS_INLINE constexpr P decode(std::span<const std::uint32_t> d) noexcept {
  return decode<kDefaultGeneration, P>(d);
}
template <Packet P> constexpr P decode(std::span<const std::uint32_t> d, Generation g) noexcept {
  return detail::in_era<detail::kEras<P>>(g, [&]<Generation G>() { return decode<G, P>(d); });
}

namespace detail {
template <class P, std::size_t I, Generation G> SDMA_ALWAYS_INLINE constexpr bool in_range(const P& p) noexcept {
  using F = Fixed<P, I, G>;
  if constexpr (field<P, I, G>.kind == Kind::payload)
    if ((p.*FieldOf<P, I, G>::member).size() % grammar::layout<P>.length.stride != 0) return false;
  if constexpr (F::limit == ~std::uint64_t{}) return number<P, F::member>(p) - F::bias <= F::mask;
  else return number<P, F::member>(p) - F::bias <= F::mask && number<P, F::member>(p) <= F::limit;
}
template <class P, std::size_t I, Generation G> SDMA_ALWAYS_INLINE constexpr bool is_aligned(const P& p) noexcept {
  using F = Fixed<P, I, G>;
  if constexpr (F::alignment == 1) return true;
  else return number<P, F::member>(p) % F::alignment == 0;
}
/// Can the member hold a value that does not fit its field? It cannot if both have the same number of bits and nothing
/// else limits the value.
template <class P, std::size_t I, Generation G> consteval bool may_misfit() {
  constexpr auto& f = field<P, I, G>;
  using Type = typename FieldOf<P, I, G>::Type;
  if (f.kind == Kind::payload || f.bias != 0 || f.alignment != 1 || f.limit != ~std::uint64_t{}) return true;
  return f.width() < (std::is_same_v<Type, bool> ? 1 : 8 * sizeof(Type));
}
/// The fields of `G` whose members may, in order.
template <class P, Generation G> struct Fallible {
  std::array<std::uint8_t, kFields<P, G> + 1> at{};
  std::size_t count = 0;
};
template <class P, Generation G>
inline constexpr auto kFallible = [] {
  Fallible<P, G> out;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((may_misfit<P, I, G>() ? void(out.at[out.count++] = I) : void()), ...);
  }
  (std::make_index_sequence<kFields<P, G>>{});
  return out;
}();
template <class P, Generation G, std::size_t... K>
SDMA_ALWAYS_INLINE constexpr bool fields_fit([[maybe_unused]] const P& p, std::index_sequence<K...>) noexcept {
  return ((in_range<P, kFallible<P, G>.at[K], G>(p) && is_aligned<P, kFallible<P, G>.at[K], G>(p)) && ...);
}
/// Calls fn<Member>() for each member that has no bits in `G`.
template <class P, Generation G, class Fn> SDMA_ALWAYS_INLINE constexpr void each_absent(Fn fn) noexcept {
  if constexpr (kFields<P, G> != grammar::layout<P>.fields.size())
    [&]<std::size_t... I>(std::index_sequence<I...>) SDMA_ALWAYS_INLINE_LAMBDA {
      const auto call = [&]<std::size_t M>() SDMA_ALWAYS_INLINE_LAMBDA {
        if constexpr (!grammar::layout<P>.fields[M].generations.contains(G)) fn.template operator()<M>();
      };
      (call.template operator()<I>(), ...);
    }
  (std::make_index_sequence<grammar::layout<P>.fields.size()>{});
}
/// Calls fn<I>() for each field in an optional part that is not there.
template <class P, Generation G, class Fn> constexpr void each_missing(const P& p, Fn fn) noexcept {
  if constexpr (!kPlain<P, G>) {
    const auto there = parts_of<P, G>(p);
    each<P, G>([&]<std::size_t I>() {
      if (missing(*shape<P, G>.length, there, field<P, I, G>.dword)) fn.template operator()<I>();
    });
  }
}
template <class P, std::size_t M> inline constexpr std::uint64_t kInitial = number<P, M>(P{});
/// Does the member hold its default?
template <class P, std::size_t M> SDMA_ALWAYS_INLINE constexpr bool is_default(const P& p) noexcept {
  return number<P, M>(p) == kInitial<P, M>;
}
}  // namespace detail

/// Is every field in range and aligned, and does the packet obey every rule? Does the generation have the packet, and
/// every field that does not hold its default?
template <Generation G, Packet P> [[nodiscard]] SDMA_ALWAYS_INLINE constexpr bool fits(const P& p) noexcept {
  if constexpr (!exists<P>(G)) return false;
  bool ok =
      detail::obeys_all(p) && detail::fields_fit<P, G>(p, std::make_index_sequence<detail::kFallible<P, G>.count>{});
  detail::each_absent<P, G>([&]<std::size_t M>() SDMA_ALWAYS_INLINE_LAMBDA { ok = ok && detail::is_default<P, M>(p); });
  if constexpr (!detail::kPlain<P, G>)
    detail::each_missing<P, G>(
        p, [&]<std::size_t I>() { ok = ok && detail::is_default<P, detail::field<P, I, G>.member>(p); });
  return ok;
}
template <Packet P> [[nodiscard]] SDMA_ALWAYS_INLINE constexpr bool fits(const P& p) noexcept {
  return fits<kDefaultGeneration>(p);
}
template <Packet P>
requires detail::kUniform<P>
[[nodiscard]] SDMA_ALWAYS_INLINE constexpr bool fits(const P& p, Generation g) noexcept {
  return detail::fits_uniform(p, g);
}
template <Packet P> [[nodiscard]] constexpr bool fits(const P& p, Generation g) noexcept {
  return exists<P>(g) && detail::in_era<detail::kEras<P>>(g, [&]<Generation G>() { return fits<G>(p); });
}

/// The first thing that is wrong with a value: the field (empty for a rule over several fields), and "range",
/// "alignment", "generation" (it lacks the packet or the field), "absent" (the field is in an optional part that is not
/// there), or the id of the packet's own rule. Converts to false if nothing is wrong.
struct [[nodiscard]] Violation {
  std::string_view field{}, rule{};  ///< as above; `rule` is empty if nothing is wrong
  constexpr explicit operator bool() const noexcept { return !rule.empty(); }
};
template <Generation G, Packet P> constexpr Violation check(const P& p) noexcept {
  if (!exists<P>(G)) return {{}, "generation"};
  Violation first{};
  detail::each<P, G>([&]<std::size_t I>() {
    if (first) return;
    if (!detail::in_range<P, I, G>(p)) first = {detail::field<P, I, G>.name, "range"};
    else if (!detail::is_aligned<P, I, G>(p)) first = {detail::field<P, I, G>.name, "alignment"};
  });
  detail::each_absent<P, G>([&]<std::size_t M>() {
    if (!first && !detail::is_default<P, M>(p)) first = {grammar::layout<P>.fields[M].name, "generation"};
  });
  detail::each_missing<P, G>(p, [&]<std::size_t I>() {
    constexpr auto& f = detail::field<P, I, G>;
    if (!first && !detail::is_default<P, f.member>(p)) first = {f.name, "absent"};
  });
  for (const auto& r : grammar::layout<P>.rules)
    if (!first && !r.holds(p)) first.rule = r.id;
  return first;
}
template <Packet P> constexpr Violation check(const P& p) noexcept { return check<kDefaultGeneration>(p); }
template <Packet P> constexpr Violation check(const P& p, Generation g) noexcept {
  if (!exists<P>(g)) return {{}, "generation"};
  return detail::in_era<detail::kEras<P>>(g, [&]<Generation G>() { return check<G>(p); });
}

/// The largest value of the field that a member holds: max_of<&CopySubwindow::x>(g). 0 if the generation lacks it.
template <auto Member> constexpr std::uint64_t max_of(Generation g = kDefaultGeneration) noexcept {
  constexpr auto f = detail::field_of<Member>();
  constexpr auto generations = grammar::layout<typename grammar::Field<Member>::Owner>.generations & f.generations;
  return generations == kAllGenerations || generations.contains(g) ? f.in_generation(g).max() : 0;
}
/// How many bytes one packet can move or fill.
template <Packet P> constexpr std::uint64_t max_bytes(Generation g = kDefaultGeneration) noexcept {
  return max_of<&P::bytes>(g);
}

}}  // namespace sdma::v0_3
