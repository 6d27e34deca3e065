// SPDX-License-Identifier: MIT
#pragma once
// What a packet looks like in a generation: which fields, where, with which
// pattern and length. Internal to the headers of packets, but for well_formed:
//
//   static_assert(well_formed<Mine>());                         a description of your own is consistent
//   static_assert(well_formed<Mine, Generation::v7_0>());       in another generation, too
//
// Everything is a constant expression; a faulty description fails a static_assert. No state.
#include "sdma/core/compiler.hpp"
#include "sdma/packets/layout.hpp"

#include <utility>

namespace sdma { inline namespace v0_3 {

namespace detail {

using grammar::Field;
using grammar::Layout;

// What a packet looks like in a generation. The fields that 4.4.2 lacks come last, so its fields are the first ones.
struct Shape {
  std::span<const FieldInfo> fields;
  const Pattern* pattern;
  const grammar::Length* length;
};
/// Not a generation: the fields of all of them (uniform.hpp).
inline constexpr auto kAnyGeneration = static_cast<Generation>(kGenerationCount);
template <class P, Generation G>
inline constexpr auto kOtherFields = [] {
  constexpr auto has = [](const FieldInfo& f) { return G == kAnyGeneration || f.generations.contains(G); };
  constexpr auto count = [=] {
    std::size_t n = 0;
    for (const auto& f : grammar::layout<P>.fields) n += has(f);
    return n;
  }();
  std::array<FieldInfo, count> out{};
  std::size_t n = 0;
  for (const auto& f : grammar::layout<P>.fields)
    if (has(f)) out[n++] = f.in_generation(G);
  return out;
}();
template <class P, Generation G> consteval Shape shape_in() {
  constexpr const auto& l = grammar::layout<P>;
  if constexpr (G == kDefaultGeneration) return {{l.fields.data(), l.default_fields}, &l.pattern, &l.length};
  else
    return {{kOtherFields<P, G>.data(), kOtherFields<P, G>.size()},
            l.exception.pattern_generations.contains(G) ? &l.exception.pattern : &l.pattern,
            l.exception.length_generations.contains(G) ? &l.exception.length : &l.length};
}
template <class P, Generation G = kDefaultGeneration> inline constexpr Shape shape = shape_in<P, G>();
template <class P, Generation G = kDefaultGeneration> inline constexpr auto kFields = shape<P, G>.fields.size();
template <class P, std::size_t I, Generation G = kDefaultGeneration>
inline constexpr auto const& field = shape<P, G>.fields[I];

// The member of field I. Overload resolution among the bases of a list finds it, without recursion over the fields.
template <std::size_t I, auto M> struct Numbered {};
template <class Sequence, auto... M> struct MemberList;
template <std::size_t... I, auto... M> struct MemberList<std::index_sequence<I...>, M...> : Numbered<I, M>... {};
template <class P, std::size_t N, auto... M>
MemberList<std::make_index_sequence<sizeof...(M)>, M...> members_of(const Layout<P, N, M...>&);
template <std::size_t I, auto M> Field<M> field_at(const Numbered<I, M>&);
template <class P> using Members = decltype(members_of(grammar::layout<P>));
template <class P, std::size_t Member> using MemberOf = decltype(field_at<Member>(std::declval<Members<P>>()));
template <class P, std::size_t I, Generation G = kDefaultGeneration>
using FieldOf = MemberOf<P, G == kDefaultGeneration ? I : field<P, I, G>.member>;

template <class P, Generation G = kDefaultGeneration, class Fn> SDMA_ALWAYS_INLINE constexpr void each(Fn fn) noexcept {
  [&]<std::size_t... I>(std::index_sequence<I...>) SDMA_ALWAYS_INLINE_LAMBDA { (fn.template operator()<I>(), ...); }
  (std::make_index_sequence<kFields<P, G>>{});
}

/// Index of the field named `name`; the number of fields if there is none.
constexpr std::size_t index_of(std::span<const FieldInfo> fields, std::string_view name) {
  std::size_t at = 0;
  while (at < fields.size() && fields[at].name != name) ++at;
  return at;
}
/// The description of the field that a member holds.
template <auto Member> consteval FieldInfo field_of() {
  using P = typename Field<Member>::Owner;
  FieldInfo found;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((std::is_same_v<MemberOf<P, I>, Field<Member>> ? void(found = grammar::layout<P>.fields[I]) : void()), ...);
  }
  (std::make_index_sequence<grammar::layout<P>.fields.size()>{});
  return found;
}
/// Index of the field that determines the length.
template <class P> consteval std::size_t counter() {
  return index_of(grammar::layout<P>.fields, grammar::layout<P>.length.counted);
}
template <class P> inline constexpr bool kFixed = grammar::layout<P>.length.counted.empty();
template <class P, Generation G = kDefaultGeneration> inline constexpr bool kPlain = shape<P, G>.length->plain();
/// The number of dwords before any payload. Fields and the pattern must be in these dwords.
template <class P, Generation G = kDefaultGeneration> consteval std::size_t head() {
  return kFixed<P> || shape<P, G>.length->fixed ? shape<P, G>.length->fixed : 1;
}

/// A member as a number: its value or, for a payload, how many strides it has. `I` counts the fields of the layout.
template <class P, std::size_t I> SDMA_ALWAYS_INLINE constexpr std::uint64_t number(const P& p) noexcept {
  const auto& v = p.*MemberOf<P, I>::member;
  if constexpr (grammar::layout<P>.fields[I].kind == Kind::payload) return v.size() / grammar::layout<P>.length.stride;
  else if constexpr (std::is_same_v<typename MemberOf<P, I>::Type, GpuVa>) return v.value;
  else return static_cast<std::uint64_t>(v);
}

/// The fields that have bits in dword `d`.
struct FieldsOfDword {
  std::array<std::uint8_t, 32> at{};
  std::size_t count = 0;
};
consteval FieldsOfDword fields_of_dword(std::span<const FieldInfo> fields, std::size_t d) {
  FieldsOfDword out;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (const auto& f = fields[i]; d * 32 <= f.dword * 32u + f.hi && f.dword * 32u + f.lo < d * 32 + 32)
      out.at[out.count++] = static_cast<std::uint8_t>(i);
  return out;
}
/// The description of field I as numbers. Not local constants: without optimisation, each would be stored on the stack,
/// and a reference to the description would be read from memory.
template <class P, std::size_t I, Generation G> struct Fixed {
  static constexpr std::uint64_t mask = field<P, I, G>.mask(), bias = field<P, I, G>.bias, limit = field<P, I, G>.limit,
                                 alignment = field<P, I, G>.alignment;
  static constexpr std::size_t lo = field<P, I, G>.lo, dword = field<P, I, G>.dword, member = field<P, I, G>.member;
};
/// What field I gives to dword D.
template <class P, std::size_t D, Generation G, std::size_t I>
SDMA_ALWAYS_INLINE constexpr std::uint32_t part(const P& p) noexcept {
  using F = Fixed<P, I, G>;
  if constexpr (F::dword == D)
    return static_cast<std::uint32_t>(((number<P, F::member>(p) - F::bias) & F::mask) << F::lo);
  else
    return static_cast<std::uint32_t>(((number<P, F::member>(p) - F::bias) & F::mask) >> ((D - F::dword) * 32 - F::lo));
}
template <class P, std::size_t D, Generation G>
inline constexpr std::uint32_t kPattern = D < Pattern::kDwords ? shape<P, G>.pattern->value[D] : 0;
template <class P, std::size_t D, Generation G>
inline constexpr auto kFieldsOf = fields_of_dword(shape<P, G>.fields, D);
template <class P, std::size_t D, Generation G, std::size_t... K>
SDMA_ALWAYS_INLINE constexpr std::uint32_t parts(const P& p, std::index_sequence<K...>) noexcept {
  return (kPattern<P, D, G> | ... | part<P, D, G, kFieldsOf<P, D, G>.at[K]>(p));
}
/// Dword `D` of `p` on the wire. Expands the fields of this dword alone:
/// packets have up to 30 fields, and programs choose among generations.
template <class P, std::size_t D, Generation G = kDefaultGeneration>
SDMA_ALWAYS_INLINE constexpr std::uint32_t dword([[maybe_unused]] const P& p) noexcept {
  if constexpr (kFieldsOf<P, D, G>.count == 0) return kPattern<P, D, G>;
  else return parts<P, D, G>(p, std::make_index_sequence<kFieldsOf<P, D, G>.count>{});
}
/// Does a 64-bit field begin at dword `d`? If so, its two dwords are written with one store.
consteval bool wide(std::span<const FieldInfo> fields, std::size_t d) {
  for (const auto& f : fields)
    if (f.dword == d && f.lo == 0 && f.width() == 64) return true;
  return false;
}
template <class P, Generation G> consteval bool wide(std::size_t d) { return wide(shape<P, G>.fields, d); }
template <class P, std::size_t D, Generation G>
SDMA_ALWAYS_INLINE constexpr void put(const P& p, std::uint32_t* out) noexcept {
  if constexpr (wide<P, G>(D)) {
    using F = Fixed<P, kFieldsOf<P, D, G>.at[0], G>;
    const std::uint64_t both = number<P, F::member>(p) - F::bias;
    if (std::is_constant_evaluated()) {
      out[D] = static_cast<std::uint32_t>(both);
      out[D + 1] = static_cast<std::uint32_t>(both >> 32);
    } else {
      SDMA_COPY_BYTES(out + D, &both, sizeof both);
    }
  } else if constexpr (D == 0 || !wide<P, G>(D - 1)) {
    out[D] = dword<P, D, G>(p);
  }
}

// The conditions that well_formed requires of a layout.
consteval bool fields_inside(std::span<const FieldInfo> fields, const Pattern& pattern, std::size_t head) {
  // A field begins in its dword and ends at most two dwords later: `stored` and `store` use only these.
  for (const auto& f : fields)
    if (f.lo > f.hi || f.lo > 31 || f.hi > 95 || f.width() > 64 || f.dword + f.hi / 32u >= head) return false;
  return pattern.dwords() <= head;
}
consteval bool one_owner_a_bit(std::span<const FieldInfo> fields, const Pattern& pattern) {
  std::array<std::uint32_t, 64> used{};
  for (std::size_t i = 0; i < Pattern::kDwords; ++i) used[i] = pattern.mask[i];
  for (const auto& f : fields)
    for (unsigned b = f.lo; b <= f.hi; ++b) {
      auto& word = used[f.dword + b / 32];
      if (word & (1u << (b % 32))) return false;
      word |= 1u << (b % 32);
    }
  return true;
}
template <class P, std::size_t N, auto... M>
consteval bool members_hold_fields(const Layout<P, N, M...>&, std::span<const FieldInfo> fields) {
  // How many bits each member holds. The loop skips payloads, which are not numbers.
  constexpr std::array<std::size_t, sizeof...(M)> bits{
      (std::is_same_v<typename Field<M>::Type, bool> ? 1 : 8 * sizeof(typename Field<M>::Type))...};
  for (const auto& f : fields) {
    const auto holds = bits[f.member];
    if (f.kind == Kind::payload) continue;
    if (holds == 1 ? f.width() != 1 : f.width() + f.bias > holds) return false;
  }
  return true;
}
consteval bool default_fields_first(std::span<const FieldInfo> fields, std::size_t count, const grammar::Exception& e) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].generations.contains(kDefaultGeneration) != (i < count) ||
        fields[i].moved_generations().contains(kDefaultGeneration))
      return false;
  return !(e.pattern_generations | e.length_generations).contains(kDefaultGeneration);
}
/// Do the flags that decide the length come before every dword whose place they decide, and the count before what it
/// counts?
consteval bool length_settled(std::span<const FieldInfo> fields, const grammar::Length& l) {
  if (l.plain()) return true;
  const auto early = [&](std::string_view name) {
    const auto i = index_of(fields, name);
    return i < fields.size() && fields[i].dword + fields[i].hi / 32u < l.settled();
  };
  for (const auto& p : l.parts)
    if (p.dwords != 0 && (!early(p.flag) || p.at + p.dwords > l.fixed)) return false;
  const auto count = index_of(fields, l.counted);
  return l.tail_dwords < l.fixed &&
         (l.counted.empty() || (count < fields.size() && fields[count].dword + 0u < l.fixed - l.tail_dwords + 0u));
}
consteval bool names_differ(std::span<const FieldInfo> fields) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (index_of(fields, fields[i].name) != i) return false;
  return true;
}

}  // namespace detail

/// Proves at compile time that a description is consistent. Returns true; otherwise a static_assert says what is wrong.
template <class P, Generation G = kDefaultGeneration> consteval bool well_formed() {
  constexpr const auto& l = grammar::layout<P>;
  constexpr const auto& s = detail::shape<P, G>;
  static_assert(detail::fields_inside(s.fields, *s.pattern, detail::head<P, G>()),
                "a field or the pattern of this packet leaves the packet's fixed dwords");
  static_assert(detail::one_owner_a_bit(s.fields, *s.pattern),
                "a bit of this packet has two owners (two fields, or a field and the pattern)");
  static_assert(detail::members_hold_fields(l, s.fields),
                "a field of this packet is wider than its member (a bool holds one bit, a value stored minus one needs "
                "one more)");
  static_assert(detail::names_differ(s.fields), "two fields of this packet have one name");
  static_assert(detail::default_fields_first(l.fields, l.default_fields, l.exception),
                "a field of this packet that 4.4.2 lacks comes before one that it has, or 4.4.2 has it elsewhere");
  static_assert(detail::kFixed<P> || detail::index_of(s.fields, l.length.counted) < s.fields.size(),
                "this packet's length is counted by a field that it does not have");
  static_assert(s.length->counted == l.length.counted && s.length->stride == l.length.stride,
                "this packet counts its dwords in different ways");
  static_assert(detail::length_settled(s.fields, *s.length),
                "a field that decides this packet's length is missing, or comes after a dword whose place it decides");
  return true;
}

}}  // namespace sdma::v0_3
