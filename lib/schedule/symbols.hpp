#pragma once
// One view of buffers and signals: a SymbolOffset names either. Internal.
//
//   for (const auto& l : symbols(schedule)) place_of(schedule, l), link_address(l) ...
//   resolve(schedule, va)        the address that aliases lead to
//
// Pure functions without errors.
#include "sdma/schedule/schedule.hpp"

namespace sdma::inline v0::detail {

/// All buffers, then all signals.
std::vector<SymbolOffset> symbols(const Schedule&);

inline const Place& place_of(const Schedule& s, const SymbolOffset& l) noexcept {
  return l.signal ? s.signals[l.index].place : s.buffers[l.index].place;
}
/// The address in its declaration, if any: the target of an alias, or a fixed address.
inline const std::optional<GpuVa>& at_of(const Schedule& s, const SymbolOffset& l) noexcept {
  return l.signal ? s.signals[l.index].at : s.buffers[l.index].at;
}
constexpr GpuVa link_address(const SymbolOffset& l) noexcept {
  return (l.signal ? link_signal(l.index) : link_buffer(l.index)) + l.offset;
}
/// Calls fn(field, address) for each address field of a packet whose fields are known.
template <class Fn> void each_address(const PacketView& v, Fn&& fn) {
  if (!v.whole() || v.info->fields_unknown) return;
  for (const auto& f : v.info->fields)
    if (f.kind == Kind::address) fn(f, GpuVa{value_of(f, v.dwords.data())});
}

inline std::string queue_name(const Schedule::Queue& q) { return to_string(q.place) + "." + q.name; }
/// "buffer gpu1.buf", "signal host.done".
std::string title(const Schedule&, const SymbolOffset&);

/// "gpu1.buf[64K]", or "0x7f00" if find_symbol finds nothing.
std::string address_text(const Schedule&, GpuVa);
/// "gpu1.buf[2K..+4K]", "gpu1.buf", or "0x7f00..+4K".
std::string range_text(const Schedule&, const Schedule::Range&);
/// "==", "<".
constexpr std::string_view sign_of(Compare f) noexcept {
  constexpr std::string_view kSigns[] = {"?", "<", "<=", "==", "!=", ">=", ">"};
  return kSigns[static_cast<std::size_t>(f)];
}

/// Through how many aliases an alias may lead: every address of a packet is followed through all of them.
inline constexpr int kMostAliases = 64;
/// Follows aliases to an address in link space, or to a fixed address; returns any other address unchanged. In a cycle of
/// aliases, returns any address of the cycle.
GpuVa resolve(const Schedule&, GpuVa) noexcept;
/// What is wrong with the chain of aliases that begins at this symbol: it leads back to itself, or it is too long. "" if nothing is.
std::string_view wrong_alias(const Schedule&, SymbolOffset) noexcept;

}  // namespace sdma::inline v0::detail
