// SPDX-License-Identifier: MIT
#pragma once
// What all writers of traces share: the name and the line of a packet, an address, an action. Internal.
#include "../stream/print.hpp"
#include "sdma/stream/text.hpp"
#include "sdma/trace/trace.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace trace::detail {

/// The packet that an event holds, cut off if it was too long to keep.
inline PacketView view(const Event& e) {
  return e.dword_count == 0 ? PacketView{} : Reader{e.packet(), catalogue(e.generation)}.next();
}
/// "copy_linear"; "packet" if no dword of it was stored.
inline std::string_view packet_name(const Event& e) {
  if (e.dword_count == 0) return "packet";
  const auto v = view(e);
  return v.info ? v.info->name : std::string_view(".dword");
}
inline std::string packet_line(const Event& e, const NameTable& names) {
  if (e.dword_count == 0) return {};
  if (e.length > e.dword_count)
    return fmt::format("{} of {} dwords, {} available", packet_name(e), e.length, e.dword_count);
  if (names.empty()) return to_text(view(e));
  return to_text(view(e), [&](GpuVa va) { return names.text(va); });
}
/// "gpu7.buf[64K]", or "0x7f00" if the address has no name.
inline std::string address_text(GpuVa va, const NameTable& names) {
  auto name = names.text(va);
  return name.empty() ? sdma::detail::hex_text(va.value) : name;
}
/// The part of its text before the value: "waits for host.done >= ".
inline std::string_view action_name(const Event& e, const Trace& t) {
  const auto text = e.text.value < t.texts.size() ? std::string_view(t.texts[e.text.value]) : "?";
  return text.substr(0, text.find("{}"));
}
/// What an action_begin says: "waits for host.done >= 8".
inline std::string action_text(const Event& e, const Trace& t) {
  std::string text = e.text.value < t.texts.size() ? t.texts[e.text.value] : "?";
  if (const auto at = text.find("{}"); at != text.npos) text.replace(at, 2, sdma::detail::value_text(e.value));
  return text;
}

}}}  // namespace sdma::v0_3::trace::detail
