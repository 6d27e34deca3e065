// SPDX-License-Identifier: MIT
#pragma once
// How recordings call what a schedule does: its addresses and the actions
// of its host threads. Runs and simulations share these names. Internal.
//
//   recorder.name(names_of(schedule, [&](const SymbolOffset& l) { return bound.address(link_address(l)); }));
//   recorder.text(builds_text("gpu0.push", 3))                       "builds 3 packets for gpu0.push, epoch {}"
//   recorder.text(waits_text(schedule, done, Compare::ge))           "waits for host.done >= {}"
//
// In a trace, "{}" means the event's value (sdma/trace/trace.hpp), so a schedule has few texts, however many rounds it
// runs. Pure functions without errors; they allocate.
#include "../core/plural.hpp"
#include "lifetimes.hpp"
#include "sdma/core/names.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Signals and buffers at their addresses. A signal that is a whole buffer comes first, because its name says more.
template <class Fn> NameTable names_of(const Schedule& s, Fn&& address) {
  NameTable names;
  const auto all = symbols(s);
  for (const bool signal : {true, false})
    for (const auto& l : all)
      if (l.signal == signal) names.add(address(l), bytes_of(s, l), name_of(s, l));
  return names;
}

inline std::string builds_text(std::string_view queue, std::size_t packets) {
  return fmt::format("builds {} for {}, epoch {{}}", plural(packets, "packet"), queue);
}
inline std::string rings_text(std::string_view queue) { return fmt::format("rings {}", queue); }
inline std::string room_text(std::string_view queue) { return fmt::format("waits for room in the ring of {}", queue); }
inline std::string waits_text(const Schedule& s, GpuVa signal, Compare func) {
  return fmt::format("waits for {} {} {{}}", address_text(s, signal), sign_of(func));
}
inline std::string sets_text(const Schedule& s, GpuVa signal) {
  return fmt::format("sets {} = {{}}", address_text(s, signal));
}
inline std::string adds_text(const Schedule& s, GpuVa signal) {
  return fmt::format("adds {{}} to {}", address_text(s, signal));
}
inline std::string samples_text(const Schedule& s, GpuVa signal) {
  return fmt::format("samples {}: {{}}", address_text(s, signal));
}
inline std::string rptr_text(const Schedule& s, const Schedule::Action& a) {
  return fmt::format("waits until {} is read", queue_name(s.queues[a.queues.front()]));
}
/// What a thread or a kernel does with a signal or with bytes; "" for other actions.
inline std::string action_text(const Schedule& s, const Schedule::Action& a) {
  using Kind = Schedule::Action::Kind;
  switch (a.kind) {
    case Kind::set: return sets_text(s, a.signal);
    case Kind::add: return adds_text(s, a.signal);
    case Kind::wait: return waits_text(s, a.signal, a.func);
    case Kind::sample: return samples_text(s, a.signal);
    case Kind::rptr: return rptr_text(s, a);
    case Kind::compute: return "computes";
    case Kind::load: return "loads " + range_text(s, a.range);
    case Kind::store: return (a.sum ? "adds into " : "stores ") + range_text(s, a.range);
    case Kind::expect:
      return "compares " + range_text(s, a.range) + " with " + (a.sum ? "a sum" : range_text(s, a.right));
    case Kind::alloc: return "allocates " + address_text(s, a.buffer);
    case Kind::free: return "frees " + address_text(s, a.buffer);
    case Kind::map: return "maps " + address_text(s, a.buffer) + " for " + to_string(a.gpu);
    case Kind::unmap: return "unmaps " + address_text(s, a.buffer) + " for " + to_string(a.gpu);
    case Kind::export_handle: return "exports " + address_text(s, a.buffer);
    case Kind::close_handle: return "closes the handle of " + address_text(s, a.buffer);
    case Kind::submit:
    case Kind::repeat: break;
  }
  return {};
}

}}}  // namespace sdma::v0_3::detail
