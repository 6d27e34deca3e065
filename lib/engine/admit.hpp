#pragma once
// May this packet be executed? Rights, fields, what software has, every byte that it touches, and no overlap: asked before
// the packet's first store, so that a refused packet has written nothing.
//
//   Fault why = admit(copy, reader);       // FaultKind::none, or kind, va, access, field, rule
//
// One thread, inside a Section of the reader. No allocation.
#include "sdma/engine/execute.hpp"
#include "sdma/engine/fault.hpp"

namespace sdma {
inline namespace v0 {
namespace detail {

/// Do two rows of bytes meet?
constexpr bool meet(GpuVa a, std::uint64_t a_bytes, GpuVa b, std::uint64_t b_bytes) noexcept {
  return a_bytes != 0 && b_bytes != 0 && (b - a < a_bytes || a - b < b_bytes);
}

/// Does a box write a byte twice? Said of some interlaced boxes that do not: those with neither rows within slices nor slices
/// within rows.
bool meets_itself(const Region&) noexcept;
/// Do two boxes have a byte in common? Exact.
bool boxes_meet(const Region&, const Region&) noexcept;
inline bool meet(const Region& a, const Region& b) noexcept {
  if (a.rows == 1 && a.slices == 1 && b.rows == 1 && b.slices == 1) return meet(a.va, a.bytes, b.va, b.bytes);
  return boxes_meet(a, b);
}

constexpr bool ends_with(std::string_view s, std::string_view end) noexcept {
  return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}
/// Fields that ask for what software memory does not have. Cache policies and coherence hints change nothing that is seen.
constexpr bool asks_too_much(std::string_view field) noexcept {
  return ends_with(field, "swap") || ends_with(field, "_gpa") || field == "tmz" || field == "encrypt" ||
         field == "mailbox" || field == "memlog_clear";
}

/// The value of an enumeration that has no name, if there is one.
template <class P> std::string_view nameless(const P& p) noexcept {
  std::string_view bad{};
  each<P>([&]<std::size_t I>() {
    using T = typename FieldOf<P, I>::Type;
    if constexpr (std::is_enum_v<T>) {
      const auto v = number<P, I>(p);
      bool named = false;
      for (const auto& n : names<T>) named = named || n.value == v;
      if (!named) bad = field<P, I>.name;
    }
  });
  return bad;
}
template <class P> std::string_view unsupported_field(const P& p) noexcept {
  std::string_view bad{};
  each<P>([&]<std::size_t I>() {
    if constexpr (asks_too_much(field<P, I>.name))
      if (number<P, I>(p) != 0) bad = field<P, I>.name;
  });
  return bad;
}

/// What only this packet can be refused for.
template <class P> Fault own_rule(const P&) noexcept { return {}; }
inline Fault own_rule(const Indirect& p) noexcept {
  Fault f;
  if (p.priv || p.vmid != 0) f.kind = FaultKind::privileged, f.field = p.priv ? "priv" : "vmid";
  return f;
}
inline Fault own_rule(const Atomic& p) noexcept {
  Fault f;
  if (p.loop && !compares(p.op)) f.kind = FaultKind::bad_field, f.field = "loop", f.rule = "loop-needs-compare";
  return f;
}

/// Source and destination, or two destinations, of a packet that moves data.
template <class P> bool overlaps(const P& p, GpuVa& where) noexcept {
  if constexpr (!Divisible<P>) {
    return false;
  } else {
    std::array<Region, 3> all;
    std::size_t n = 0;
    footprint(p, [&](const Region& r) { all[n++] = r; });
    for (std::size_t i = 0; i < n; ++i) {
      if (!allows(all[i].access, Access::write)) continue;
      where = all[i].va;
      if (meets_itself(all[i])) return true;
      for (std::size_t j = 0; j < n; ++j)
        if (i != j && meet(all[i], all[j])) return true;
    }
    return false;
  }
}

/// The part of the footprint that is not mapped.
template <class P> Fault unmapped(const P& p, AddressSpace::Reader& reader) noexcept {
  Fault f;
  footprint(p, [&](const Region& r) {
    if (f || reader.covers(r, &f.va)) return;
    f.access = r.access;
    f.kind = reader.run(f.va, 1, Access::read).empty() ? FaultKind::unmapped : FaultKind::read_only;
  });
  return f;
}

template <class P> [[gnu::noinline, gnu::cold]] Fault broken(const P& p) noexcept {
  const auto why = check(p);
  Fault f;
  f.kind = why.rule == "alignment" || ends_with(why.rule, "-alignment") ? FaultKind::misaligned : FaultKind::bad_field;
  f.field = why.field;
  f.rule = why.rule;
  return f;
}

}  // namespace detail

template <Packet P> Fault admit(const P& p, AddressSpace::Reader& reader) noexcept {
  Fault f;
  if constexpr (layout<P>.privilege == Privilege::kernel) {
    f.kind = FaultKind::privileged;
    return f;
  } else if constexpr (kRefused<P>) {
    f.kind = FaultKind::unsupported;
    return f;
  } else {
    if (f.field = detail::nameless(p); !f.field.empty()) {
      f.kind = FaultKind::bad_field;
      f.rule = "range";
      return f;
    }
    if (!fits(p)) [[unlikely]]
      return detail::broken(p);
    if (f.field = detail::unsupported_field(p); !f.field.empty()) {
      f.kind = FaultKind::unsupported;
      return f;
    }
    if (f = detail::own_rule(p); f) return f;
    if (f = detail::unmapped(p, reader); f) {
      // Mapped since this Section began, perhaps: whoever mapped it may only now have let this packet go.
      reader.refresh();
      if (f = detail::unmapped(p, reader); f) return f;
    }
    if (GpuVa where; detail::overlaps(p, where)) {
      f.kind = FaultKind::overlap;
      f.va = where;
    }
    return f;
  }
}

}  // namespace v0
}  // namespace sdma
