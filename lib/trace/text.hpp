#pragma once
// What all writers of traces share: the name and the line of a packet. Internal.
#include "sdma/stream/text.hpp"
#include "sdma/trace/trace.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sdma::inline v0::trace::detail {

/// The packet that an event holds, cut off if it was too long to keep.
inline PacketView view(const Event& e) { return e.dword_count == 0 ? PacketView{} : Reader{e.packet()}.next(); }
/// "copy_linear"; "packet" if no dword of it was stored.
inline std::string_view packet_name(const Event& e) {
  if (e.dword_count == 0) return "packet";
  const auto v = view(e);
  return v.info ? v.info->name : std::string_view(".dword");
}
inline std::string packet_line(const Event& e) {
  if (e.dword_count == 0) return {};
  if (e.length > e.dword_count)
    return fmt::format("{} of {} dwords, {} available", packet_name(e), e.length, e.dword_count);
  return to_text(view(e));
}

}  // namespace sdma::inline v0::trace::detail
