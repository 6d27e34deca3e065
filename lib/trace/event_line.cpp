// SPDX-License-Identifier: MIT
// A trace as text: one line per event.
#include "sdma/core/number.hpp"
#include "sdma/trace/write.hpp"
#include "text.hpp"

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

std::string what(const Trace& t, const Event& e) {
  const auto text = [&] { return e.text.value < t.texts.size() ? std::string_view(t.texts[e.text.value]) : "?"; };
  switch (e.kind) {
    case Kind::doorbell: return fmt::format("doorbell {}", e.position);
    case Kind::packet_begin:
      return fmt::format("@{} {}", e.position,
                         e.dword_count == 0 ? std::string("packet") : detail::packet_line(e, t.names));
    case Kind::packet_end: return fmt::format("@{} ends", e.position);
    case Kind::signal: return fmt::format("signal {} = {:#x}", detail::address_text(e.address, t.names), e.value);
    case Kind::fault: {
      const auto where = t.names.text(e.address);
      return fmt::format("@{} fault: {}{}{}", e.position, text(), where.empty() ? "" : ", at ", where);
    }
    case Kind::queue_created: return fmt::format("queue created, a ring of {} bytes", size_text(e.value));
    case Kind::queue_destroyed: return fmt::format("queue destroyed, read up to {}", e.position);
    case Kind::counter: return fmt::format("{} = {}", text(), e.value);
    case Kind::flow_begin: return fmt::format("arrow {} begins", e.value);
    case Kind::flow_end: return fmt::format("arrow {} ends", e.value);
    case Kind::action_begin: return detail::action_text(e, t);
    case Kind::action_end: return "ends";
    case Kind::epoch: return fmt::format("@{} epoch {}", e.position, e.value);
  }
  return {};
}

}  // namespace

std::string to_line(const Trace& t, const Event& e, std::uint64_t first_ns) {
  const auto lane = e.lane.value < t.lanes.size() ? t.lanes[e.lane.value] : Lane{"?", "?"};
  return fmt::format("{:>14.3f} us  {:<5} {:<20} {}\n", static_cast<double>(e.ns - first_ns) / 1000, lane.group,
                     lane.name, what(t, e));
}

std::string to_text(const Trace& t) {
  std::string out;
  for (const auto& e : t.events) out += to_line(t, e, t.events.front().ns);
  return out;
}

}}}  // namespace sdma::v0_3::trace
