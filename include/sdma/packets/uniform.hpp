// SPDX-License-Identifier: MIT
#pragma once
// Packets for which one piece of code serves in every generation, also where only the running program knows it. The
// functions of packets/encode.hpp that take a generation use it; include that header, and not this one.
//
//   4.4.2   op | bytes | swap, policy | src | dst           a field that a generation lacks holds its default, which is
//   5.0     op | bytes, in 22 bits    | src | dst           0 on the wire: writing every field writes the right dwords
//   7.0     op | bytes | swap, policy | src | dst | dcc     dcc: there if the packet's cpv is 1
//
// A packet then costs as much as in a generation that is known when you compile, plus a test of a mask for each field
// that differs and is not constant. Packets whose fields have other places, or another pattern, are not uniform.
//
// Everything is a constant expression without state. No errors.
#include "sdma/packets/shape.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// Do the exceptional generations only add parts after the dwords that all have, each there if a flag is 1?
constexpr bool only_adds_parts(const grammar::Length& all, const grammar::Length& more) noexcept {
  return more.fixed == all.fixed + more.parts[0].dwords + more.parts[1].dwords && more.settled() >= all.fixed;
}
template <class P> consteval bool is_uniform() {
  constexpr const auto& l = grammar::layout<P>;
  for (const auto& f : l.fields) {
    for (const auto& m : {f.moved, f.moved_again})
      if (m.generations.mask != 0 && (m.dword != f.dword || m.lo != f.lo || m.hi > f.hi)) return false;
    if (f.generations != kAllGenerations && ((f.default_value - f.bias) & f.mask()) != 0) return false;
  }
  const auto& e = l.exception;
  return kFixed<P> && l.length.plain() && e.pattern_generations.mask == 0 &&
         (e.length_generations.mask == 0 || only_adds_parts(l.length, e.length));
}
template <class P> inline constexpr bool kUniform = is_uniform<P>();

/// Does the packet obey rule R of its layout?
template <class P, std::size_t R> SDMA_ALWAYS_INLINE constexpr bool obeys(const P& p) noexcept {
  constexpr auto holds = grammar::layout<P>.rules[R].holds;
  return holds(p);
}
template <class P> SDMA_ALWAYS_INLINE constexpr bool obeys_all(const P& p) noexcept {
  return [&]<std::size_t... R>(std::index_sequence<R...>) SDMA_ALWAYS_INLINE_LAMBDA { return (obeys<P, R>(p) && ...); }
  (std::make_index_sequence<grammar::layout<P>.rules.size()>{});
}

/// Calls fn<K>() for each part that some generations add.
template <class P, class Fn> SDMA_ALWAYS_INLINE constexpr void each_added(Fn fn) noexcept {
  constexpr const auto& e = grammar::layout<P>.exception;
  if constexpr (e.length_generations.mask != 0 && e.length.parts[0].dwords != 0) fn.template operator()<0>();
  if constexpr (e.length_generations.mask != 0 && e.length.parts[1].dwords != 0) fn.template operator()<1>();
}
/// Is the flag of added part K set?
template <class P, std::size_t K> SDMA_ALWAYS_INLINE constexpr bool flag_of_added(const P& p) noexcept {
  constexpr const auto& l = grammar::layout<P>;
  return number<P, index_of(l.fields, l.exception.length.parts[K].flag)>(p) != 0;
}
template <class P, std::size_t K> SDMA_ALWAYS_INLINE constexpr bool is_added(const P& p, Generation g) noexcept {
  return flag_of_added<P, K>(p) && grammar::layout<P>.exception.length_generations.contains(g);
}

/// May the value of field I, counted in the layout, be written for `g`?
template <class P, std::size_t I> SDMA_ALWAYS_INLINE constexpr bool field_fits(const P& p, Generation g) noexcept {
  // Numbers, not references to the description: a GPU's code would read them from memory.
  constexpr FieldInfo f = grammar::layout<P>.fields[I];
  constexpr std::uint64_t mask = f.mask(), bias = f.bias, limit = f.limit, alignment = f.alignment;
  const auto v = number<P, I>(p);
  bool ok = v - bias <= mask && v <= limit;
  if constexpr (alignment != 1) ok = ok && v % alignment == 0;
  const auto narrower = [&](Generations in, std::uint64_t most)
                            SDMA_ALWAYS_INLINE_LAMBDA { return !in.contains(g) || v - bias <= most; };
  constexpr auto moved = f.moved.generations, again = f.moved_again.generations, in = f.generations;
  if constexpr (moved.mask != 0) ok = ok && narrower(moved, mask >> (f.hi - f.moved.hi));
  if constexpr (again.mask != 0) ok = ok && narrower(again, mask >> (f.hi - f.moved_again.hi));
  constexpr auto initial = number<P, I>(P{});
  if constexpr ((grammar::layout<P>.generations.mask & ~in.mask) != 0) ok = ok && (v == initial || in.contains(g));
  each_added<P>([&]<std::size_t K>() SDMA_ALWAYS_INLINE_LAMBDA {
    constexpr auto part = grammar::layout<P>.exception.length.parts[K];
    constexpr auto at = grammar::layout<P>.fields[I].dword;
    if constexpr (at >= part.at && at < part.at + part.dwords) ok = ok && (v == initial || flag_of_added<P, K>(p));
  });
  return ok;
}
template <class P> SDMA_ALWAYS_INLINE constexpr bool fits_uniform(const P& p, Generation g) noexcept {
  bool ok = grammar::layout<P>.generations == kAllGenerations || grammar::layout<P>.generations.contains(g);
  ok = ok && obeys_all(p);
  [&]<std::size_t... I>(std::index_sequence<I...>) SDMA_ALWAYS_INLINE_LAMBDA {
    ok = ok && (field_fits<P, I>(p, g) && ...);
  }
  (std::make_index_sequence<grammar::layout<P>.fields.size()>{});
  return ok;
}
template <class P> SDMA_ALWAYS_INLINE constexpr std::size_t length_uniform(const P& p, Generation g) noexcept {
  std::size_t n = grammar::layout<P>.length.fixed;
  each_added<P>([&]<std::size_t K>() SDMA_ALWAYS_INLINE_LAMBDA {
    if (is_added<P, K>(p, g)) n += grammar::layout<P>.exception.length.parts[K].dwords;
  });
  return n;
}
template <class P, std::size_t First, std::size_t... D>
SDMA_ALWAYS_INLINE constexpr std::uint32_t* put_uniform(const P& p, std::uint32_t* out,
                                                        std::index_sequence<D...>) noexcept {
  (put<P, First + D, kAnyGeneration>(p, out - First), ...);
  return out + sizeof...(D);
}
template <class P>
SDMA_ALWAYS_INLINE constexpr std::uint32_t* encode_uniform(const P& p, std::uint32_t* out, Generation g) noexcept {
  out = put_uniform<P, 0>(p, out, std::make_index_sequence<grammar::layout<P>.length.fixed>{});
  each_added<P>([&]<std::size_t K>() SDMA_ALWAYS_INLINE_LAMBDA {
    constexpr auto part = grammar::layout<P>.exception.length.parts[K];
    if (is_added<P, K>(p, g)) out = put_uniform<P, part.at>(p, out, std::make_index_sequence<part.dwords>{});
  });
  return out;
}

}}}  // namespace sdma::v0_3::detail
