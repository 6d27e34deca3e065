// SPDX-License-Identifier: MIT
#pragma once
// Decides whether a packet may be executed. Checks privilege, fields, support in software, every byte of the footprint,
// and overlap before the packet's first store, so that a refused packet has not written anything.
//
//   if (!admit(copy, reader, why)) ...     // why: kind, va, access, field, rule; unchanged if the packet is admitted
//
// One thread, inside a Section of the reader. No allocation.
#include "../packets/overlap.hpp"
#include "execute.hpp"
#include "sdma/engine/fault.hpp"

namespace sdma { inline namespace v0_3 {
namespace detail {

constexpr bool ends_with(std::string_view s, std::string_view end) noexcept {
  return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}
/// Fields that request features that software memory does not have. Cache policies and hints have no effect.
constexpr bool asks_too_much(std::string_view field) noexcept {
  return ends_with(field, "swap") || ends_with(field, "_gpa") || field == "tmz" || field == "encrypt" ||
         field == "dcc" || field == "mailbox" || field == "memlog_clear";
}

template <class P> constexpr bool fits_in(const P& p, Generation g) noexcept {
  return g == kDefaultGeneration ? fits(p) : fits(p, g);
}

/// Which codes of an enumeration have a name.
template <class E> consteval auto known_codes() {
  std::array<bool, 128> known{};
  for (const auto& n : grammar::names<E>) known[n.value] = true;
  return known;
}
template <class E> inline constexpr auto kKnown = known_codes<E>();

/// The field whose value is a code without a name; "" if there is none.
template <class P> std::string_view nameless(const P& p) noexcept {
  std::string_view bad{};
  each<P>([&]<std::size_t I>() {
    using T = typename FieldOf<P, I>::Type;
    if constexpr (std::is_enum_v<T>)
      if (const auto v = number<P, I>(p); v >= kKnown<T>.size() || !kKnown<T>[static_cast<std::size_t>(v)])
        bad = field<P, I>.name;
  });
  return bad;
}
/// A field that the engine's generation lacks holds its default.
template <class P> std::string_view unsupported_field(const P& p) noexcept {
  std::string_view bad{};
  [&]<std::size_t... M>(std::index_sequence<M...>) {
    [[maybe_unused]] const auto one = [&]<std::size_t I>() {
      if constexpr (asks_too_much(grammar::layout<P>.fields[I].name))
        if (number<P, I>(p) != 0) bad = grammar::layout<P>.fields[I].name;
    };
    (one.template operator()<M>(), ...);
  }
  (std::make_index_sequence<grammar::layout<P>.fields.size()>{});
  return bad;
}

/// Reasons to refuse that apply only to this packet.
template <class P> FaultKind own_rule(const P&, Fault&) noexcept { return FaultKind::none; }
inline FaultKind own_rule(const Indirect& p, Fault& why) noexcept {
  if (!p.priv && p.vmid == 0) return FaultKind::none;
  why.field = p.priv ? "priv" : "vmid";
  return FaultKind::privileged;
}
inline FaultKind own_rule(const Atomic& p, Fault& why) noexcept {
  if (!p.loop || compares(p.op)) return FaultKind::none;
  why.field = "loop";
  why.rule = "loop-needs-compare";
  return FaultKind::bad_field;
}

template <class P> bool mapped(const P& p, AddressSpace::Reader& reader) noexcept {
  bool all = true;
  footprint(p, [&](const Region& r) { all = all && reader.covers(r); });
  return all;
}
/// Why the first unmapped part of the footprint is a fault; none if all of it is mapped.
template <class P> FaultKind unmapped(const P& p, AddressSpace::Reader& reader, Fault& why) noexcept {
  auto kind = FaultKind::none;
  footprint(p, [&](const Region& r) {
    GpuVa missing;
    if (kind != FaultKind::none || reader.covers(r, &missing)) return;
    why.va = missing;
    why.access = r.access;
    kind = reader.run(missing, 1, Access::read).empty() ? FaultKind::unmapped : FaultKind::read_only;
  });
  return kind;
}

/// Finds out why a packet is refused. Returns true if it is admitted after all. Kept out of line, because most packets
/// pass.
template <class P>
[[gnu::noinline, gnu::cold]] bool refuse(const P& p, AddressSpace::Reader& reader, Fault& why) noexcept {
  if (why.field = nameless(p); !why.field.empty()) {
    why.rule = "range";
    why.kind = FaultKind::bad_field;
  } else if (const auto broken = why.generation == kDefaultGeneration ? check(p) : check(p, why.generation)) {
    const bool alignment = broken.rule == "alignment" || ends_with(broken.rule, "-alignment");
    why.field = broken.field;
    why.rule = broken.rule;
    why.kind = alignment ? FaultKind::misaligned : FaultKind::bad_field;
  } else if (why.field = unsupported_field(p); !why.field.empty()) {
    why.kind = FaultKind::unsupported;
  } else if (why.kind = own_rule(p, why); why.kind == FaultKind::none) {
    // The memory may have been mapped after this Section began, and this packet published after that.
    reader.refresh();
    why.kind = unmapped(p, reader, why);
    if (const auto o = overlap(p); why.kind == FaultKind::none && o) {
      why.va = o.a.va;
      why.kind = FaultKind::overlap;
    }
  }
  return why.kind == FaultKind::none;
}

}  // namespace detail

/// Requires a `why` without a fault. Refreshes the reader's Section if the first lookup finds an address unmapped.
template <Packet P> bool admit(const P& p, AddressSpace::Reader& reader, Fault& why) noexcept {
  if constexpr (grammar::layout<P>.privilege == Privilege::kernel || kRefused<P>) {
    why.kind = grammar::layout<P>.privilege == Privilege::kernel ? FaultKind::privileged : FaultKind::unsupported;
    return false;
  } else {
    if (detail::nameless(p).empty() && detail::fits_in(p, why.generation) && detail::unsupported_field(p).empty() &&
        detail::own_rule(p, why) == FaultKind::none && detail::mapped(p, reader) && !overlap(p)) [[likely]]
      return true;
    return detail::refuse(p, reader, why);
  }
}

}}  // namespace sdma::v0_3
