// SPDX-License-Identifier: MIT
#pragma once
// One view of buffers and signals, where a SymbolOffset names either, and one of host threads and kernels. Internal.
//
//   for (const auto& l : symbols(schedule)) place_of(schedule, l), link_address(l) ...
//   resolve(schedule, va)        the address that aliases lead to
//   for (const auto& a : actors(schedule)) a.title(), *a.actions ...
//
// Pure functions without errors.
#include "sdma/schedule/schedule.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

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
  // What comes after a payload has no fixed place.
  const auto end = v.info->parts ? v.info->fixed - v.info->parts->tail_dwords : PacketInfo::kMaxDescribed;
  for (const auto& f : v.info->fields)
    if (f.kind == Kind::address && f.dword < end) fn(f, GpuVa{value_of(f, v.dwords.data())});
}

inline std::string queue_name(const Schedule::Queue& q) { return to_string(q.place) + "." + q.name; }
/// "buffer gpu1.buf", "signal host.done".
std::string title(const Schedule&, const SymbolOffset&);

inline constexpr std::uint32_t kMostWorkgroups = 4096;                                  ///< of a kernel
inline constexpr std::string_view kProtocols[] = {"plain", "simple", "ll", "tracked"};  ///< as Schedule::Protocol
constexpr std::string_view name(Schedule::Protocol p) noexcept { return kProtocols[static_cast<std::size_t>(p)]; }

/// A host thread or a kernel.
struct Actor {
  Place place{};  ///< a kernel's GPU
  std::string_view name{};
  const std::vector<Schedule::Action>* actions{};
  std::optional<std::uint32_t> rank{};  ///< of a host thread: the one that it names
  const Schedule::Kernel* of{};         ///< null: a host thread
  bool kernel() const noexcept { return !place.is_host(); }
  /// "host main", "kernel gpu0.gemm".
  std::string title() const {
    return kernel() ? "kernel " + to_string(place) + "." + std::string(name) : "host " + std::string(name);
  }
};
/// All host threads, then all kernels: the order of SourceMap::actions.
std::vector<Actor> actors(const Schedule&);
/// Calls fn(action) for each action, those of repeats included.
template <class Fn> void each_action(const std::vector<Schedule::Action>& all, Fn&& fn) {
  for (const auto& a : all) {
    fn(a);
    each_action(a.body, fn);
  }
}
template <class Fn> void each_action(const Schedule& s, Fn&& fn) {
  for (const auto& a : actors(s)) each_action(*a.actions, fn);
}
/// The bytes of a signal: 4 or 8.
inline std::uint32_t word_bytes(const Schedule& s, GpuVa signal) {
  const auto l = find_symbol(s, signal);
  return l ? static_cast<std::uint32_t>(bytes_of(s, *l)) : 8;
}
/// Does one of these actions wait for a queue's rptr?
bool waits_for_rptr(const std::vector<Schedule::Action>&);
/// Do threads or kernels of the schedule submit its queues? If not, some other program does.
bool submits_queues(const Schedule&);

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
/// Follows aliases to an address in link space, or to a fixed address; returns any other address unchanged. In a cycle
/// of aliases, returns any address of the cycle.
GpuVa resolve(const Schedule&, GpuVa) noexcept;
/// What is wrong with the chain of aliases that begins at this symbol:
/// it leads back to itself, or it is too long. "" if nothing is.
std::string_view wrong_alias(const Schedule&, SymbolOffset) noexcept;

}}}  // namespace sdma::v0_3::detail
