#pragma once
// Converts typed packets to dwords and back. Encoding costs no more than the stores that you would write by hand.
//
//   CopyLinear copy{.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = 4096};
//   if (Violation b = check(copy)) report(b.field, b.rule);   // e.g. "bytes", "range"
//   std::uint32_t* end = encode_to(copy, ring);            // 7 dwords, ascending, each stored exactly once
//   auto same = decode<CopyLinear>({ring, 7});
//
// `fits` returns true or false and is for hot paths; `check` names the field and the rule and is for error messages.
// encode_to does not check: it truncates an out-of-range value to the width of its field. Call `fits` first, as Writer
// and Ring do. encode_to never reads from its target, so the target may be write-combining memory.
//
// Everything here is constexpr and noexcept, and allocates nothing. There is no shared state: any thread may call any
// function.
#include "sdma/core/compiler.hpp"
#include "sdma/packets/layout.hpp"

#include <utility>

namespace sdma::inline v0 {

namespace detail {

using grammar::Field;
using grammar::Layout;

template <class P> inline constexpr auto kFields = grammar::layout<P>.fields.size();
template <class P, std::size_t I> inline constexpr auto const& field = grammar::layout<P>.fields[I];

// The member of field I. Overload resolution among the bases of a list finds it, without recursion over the fields.
template <std::size_t I, auto M> struct Numbered {};
template <class Sequence, auto... M> struct MemberList;
template <std::size_t... I, auto... M> struct MemberList<std::index_sequence<I...>, M...> : Numbered<I, M>... {};
template <class P, std::size_t N, auto... M>
MemberList<std::make_index_sequence<sizeof...(M)>, M...> members_of(const Layout<P, N, M...>&);
template <std::size_t I, auto M> Field<M> field_at(const Numbered<I, M>&);
template <class P> using Members = decltype(members_of(grammar::layout<P>));
template <class P, std::size_t I> using FieldOf = decltype(field_at<I>(std::declval<Members<P>>()));

template <class P, class Fn> SDMA_ALWAYS_INLINE constexpr void each(Fn fn) noexcept {
  [&]<std::size_t... I>(std::index_sequence<I...>) SDMA_ALWAYS_INLINE_LAMBDA { (fn.template operator()<I>(), ...); }
  (std::make_index_sequence<kFields<P>>{});
}

/// Index of the field named `name`; the number of fields if there is none.
consteval std::size_t index_of(std::span<const FieldInfo> fields, std::string_view name) {
  std::size_t at = 0;
  while (at < fields.size() && fields[at].name != name) ++at;
  return at;
}
/// The description of the field that a member holds.
template <auto Member> consteval FieldInfo field_of() {
  using P = typename Field<Member>::Owner;
  FieldInfo found;
  each<P>([&]<std::size_t I>() {
    if constexpr (std::is_same_v<FieldOf<P, I>, Field<Member>>) found = field<P, I>;
  });
  return found;
}
/// Index of the field that determines the length.
template <class P> consteval std::size_t counter() {
  return index_of(grammar::layout<P>.fields, grammar::layout<P>.length.counted);
}
template <class P> inline constexpr bool kFixed = grammar::layout<P>.length.counted.empty();
/// The number of dwords before any payload. Fields and the pattern must be in these dwords.
template <class P> consteval std::size_t head() {
  return kFixed<P> || grammar::layout<P>.length.fixed ? grammar::layout<P>.length.fixed : 1;
}

/// A member as a number: its value or, for a payload, how many strides it has.
template <class P, std::size_t I> SDMA_ALWAYS_INLINE constexpr std::uint64_t number(const P& p) noexcept {
  const auto& v = p.*FieldOf<P, I>::member;
  if constexpr (field<P, I>.kind == Kind::payload) return v.size() / grammar::layout<P>.length.stride;
  else if constexpr (std::is_same_v<typename FieldOf<P, I>::Type, GpuVa>) return v.value;
  else return static_cast<std::uint64_t>(v);
}

/// Dword `D` of `p` on the wire.
template <class P, std::size_t D> SDMA_ALWAYS_INLINE constexpr std::uint32_t dword(const P& p) noexcept {
  std::uint32_t w = 0;
  if constexpr (D < Pattern::kDwords) w = grammar::layout<P>.pattern.value[D];
  each<P>([&]<std::size_t I>() SDMA_ALWAYS_INLINE_LAMBDA {
    constexpr auto& f = field<P, I>;
    if constexpr (D * 32 <= f.dword * 32u + f.hi && f.dword * 32u + f.lo < D * 32 + 32) {
      const std::uint64_t stored = (number<P, I>(p) - f.bias) & f.mask();
      if constexpr (f.dword == D) w |= static_cast<std::uint32_t>(stored << f.lo);
      else w |= static_cast<std::uint32_t>(stored >> ((D - f.dword) * 32 - f.lo));
    }
  });
  return w;
}
/// Does a 64-bit field begin at dword `d`? If so, its two dwords are written with one store.
consteval bool wide(std::span<const FieldInfo> fields, std::size_t d) {
  for (const auto& f : fields)
    if (f.dword == d && f.width() == 64) return true;
  return false;
}
template <class P> consteval bool wide(std::size_t d) { return wide(grammar::layout<P>.fields, d); }
template <class P, std::size_t D> SDMA_ALWAYS_INLINE constexpr void put(const P& p, std::uint32_t* out) noexcept {
  if constexpr (wide<P>(D)) {
    const auto low = dword<P, D>(p), high = dword<P, D + 1>(p);
    if (std::is_constant_evaluated()) {
      out[D] = low;
      out[D + 1] = high;
    } else {
      const auto both = low | std::uint64_t{high} << 32;
      SDMA_COPY_BYTES(out + D, &both, sizeof both);
    }
  } else if constexpr (D == 0 || !wide<P>(D - 1)) {
    out[D] = dword<P, D>(p);
  }
}

// The conditions that well_formed requires of a layout.
consteval bool fields_inside(std::span<const FieldInfo> fields, const Pattern& pattern, std::size_t head) {
  // A field begins in its dword and ends no later than the next one: `stored` and `store` use only these two.
  for (const auto& f : fields)
    if (f.lo > f.hi || f.lo > 31 || f.hi > 63 || f.dword + f.hi / 32u >= head) return false;
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
template <class P, std::size_t N, auto... M> consteval bool members_hold_fields(const Layout<P, N, M...>& l) {
  // How many bits each member holds. The loop skips payloads, which are not numbers.
  constexpr std::array<std::size_t, sizeof...(M)> bits{
      (std::is_same_v<typename Field<M>::Type, bool> ? 1 : 8 * sizeof(typename Field<M>::Type))...};
  for (std::size_t i = 0; i < sizeof...(M); ++i) {
    const auto& f = l.fields[i];
    if (f.kind == Kind::payload) continue;
    if (bits[i] == 1 ? f.width() != 1 : f.width() + f.bias > bits[i]) return false;
  }
  return true;
}
consteval bool names_differ(std::span<const FieldInfo> fields) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (index_of(fields, fields[i].name) != i) return false;
  return true;
}

}  // namespace detail

/// Proves at compile time that a description is consistent. Returns true; otherwise a static_assert says what is wrong.
template <class P> consteval bool well_formed() {
  static_assert(detail::fields_inside(grammar::layout<P>.fields, grammar::layout<P>.pattern, detail::head<P>()),
                "a field or the pattern of this packet leaves the packet's fixed dwords");
  static_assert(detail::one_owner_a_bit(grammar::layout<P>.fields, grammar::layout<P>.pattern),
                "a bit of this packet has two owners (two fields, or a field and the pattern)");
  static_assert(detail::members_hold_fields(grammar::layout<P>),
                "a field of this packet is wider than its member (a bool holds one bit, a value stored minus one needs "
                "one more)");
  static_assert(detail::names_differ(grammar::layout<P>.fields), "two fields of this packet have one name");
  static_assert(detail::kFixed<P> || detail::counter<P>() < detail::kFields<P>,
                "this packet's length is counted by a field that it does not have");
  return true;
}

/// The length of `p` on the wire, in dwords.
template <Packet P> SDMA_ALWAYS_INLINE constexpr std::size_t length(const P& p) noexcept {
  if constexpr (detail::kFixed<P>) return grammar::layout<P>.length.fixed;
  else
    return grammar::layout<P>.length.fixed +
           grammar::layout<P>.length.stride * detail::number<P, detail::counter<P>()>(p);
}

/// Writes `length(p)` dwords in ascending order, each exactly once, and returns a pointer past the last. Requires
/// fits(p).
template <Packet P> SDMA_ALWAYS_INLINE constexpr std::uint32_t* encode_to(const P& p, std::uint32_t* out) noexcept {
  static_assert(well_formed<P>());
  [&]<std::size_t... D>(std::index_sequence<D...>) SDMA_ALWAYS_INLINE_LAMBDA { (detail::put<P, D>(p, out), ...); }
  (std::make_index_sequence<detail::head<P>()>{});
  if constexpr (detail::kFixed<P>) {
    return out + detail::head<P>();
  } else {
    auto* at = out + detail::head<P>();
    detail::each<P>([&]<std::size_t I>() {
      if constexpr (detail::field<P, I>.kind == Kind::payload)
        for (auto w : p.*detail::FieldOf<P, I>::member) *at++ = w;
    });
    while (at < out + length(p)) *at++ = 0;
    return at;
  }
}
/// The dwords of a packet of fixed length.
template <Packet P> constexpr auto encode(const P& p) noexcept {
  static_assert(detail::kFixed<P>, "this packet's length varies: use encode_to");
  std::array<std::uint32_t, detail::head<P>()> out{};
  encode_to(p, out.data());
  return out;
}

/// The stored bits of a field, without its bias.
constexpr std::uint64_t stored(const FieldInfo& f, const std::uint32_t* d) noexcept {
  std::uint64_t v = d[f.dword] >> f.lo;
  if (f.hi > 31) v |= std::uint64_t{d[f.dword + 1]} << (32 - f.lo);
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
}

/// The typed value of a packet; a payload member refers to `d` and does not copy it. `d` must hold the whole packet.
/// Reserved bits are dropped: a PacketView (stream/reader.hpp) keeps them.
template <Packet P> SDMA_ALWAYS_INLINE constexpr P decode(std::span<const std::uint32_t> d) noexcept {
  P p{};
  detail::each<P>([&]<std::size_t I>() SDMA_ALWAYS_INLINE_LAMBDA {
    constexpr auto& f = detail::field<P, I>;
    using F = detail::FieldOf<P, I>;
    const auto v = value_of(f, d.data());
    if constexpr (f.kind == Kind::payload)
      p.*F::member = d.subspan(grammar::layout<P>.length.fixed, grammar::layout<P>.length.stride * v);
    else p.*F::member = static_cast<typename F::Type>(v);
  });
  return p;
}

namespace detail {
template <class P, std::size_t I> SDMA_ALWAYS_INLINE constexpr bool in_range(const P& p) noexcept {
  constexpr auto& f = field<P, I>;
  const auto v = number<P, I>(p);
  if constexpr (f.kind == Kind::payload)
    if ((p.*FieldOf<P, I>::member).size() % grammar::layout<P>.length.stride != 0) return false;
  return v - f.bias <= f.mask() && v <= f.limit;
}
template <class P, std::size_t I> SDMA_ALWAYS_INLINE constexpr bool is_aligned(const P& p) noexcept {
  if constexpr (field<P, I>.alignment == 1) return true;
  else return number<P, I>(p) % field<P, I>.alignment == 0;
}
template <class P> SDMA_ALWAYS_INLINE constexpr bool obeys_all(const P& p) noexcept {
  return [&]<std::size_t... R>(std::index_sequence<R...>) SDMA_ALWAYS_INLINE_LAMBDA {
    return (grammar::layout<P>.rules[R].holds(p) && ...);
  }
  (std::make_index_sequence<grammar::layout<P>.rules.size()>{});
}
}  // namespace detail

/// Is every field in range and aligned, and does the packet obey every rule?
template <Packet P> [[nodiscard]] SDMA_ALWAYS_INLINE constexpr bool fits(const P& p) noexcept {
  bool ok = detail::obeys_all(p);
  detail::each<P>([&]<std::size_t I>() SDMA_ALWAYS_INLINE_LAMBDA {
    ok = ok && detail::in_range<P, I>(p) && detail::is_aligned<P, I>(p);
  });
  return ok;
}

/// The first thing that is wrong with a value: the field (empty for a rule over several fields), and "range", "alignment"
/// or the id of the packet's own rule. Converts to false if nothing is wrong.
struct [[nodiscard]] Violation {
  std::string_view field{}, rule{};
  constexpr explicit operator bool() const noexcept { return !rule.empty(); }
};
template <Packet P> constexpr Violation check(const P& p) noexcept {
  Violation first{};
  detail::each<P>([&]<std::size_t I>() {
    if (first) return;
    if (!detail::in_range<P, I>(p)) first = {detail::field<P, I>.name, "range"};
    else if (!detail::is_aligned<P, I>(p)) first = {detail::field<P, I>.name, "alignment"};
  });
  for (const auto& r : grammar::layout<P>.rules)
    if (!first && !r.holds(p)) first.rule = r.id;
  return first;
}

}  // namespace sdma::inline v0
