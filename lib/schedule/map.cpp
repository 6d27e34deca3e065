// Maps the parts of a schedule to lines and columns of its text.
#include "parser.hpp"

#include <algorithm>

namespace sdma {
inline namespace v0 {

SourceMap::Location SourceMap::packet(std::size_t queue, std::size_t dword) const noexcept {
  if (queue >= packets.size()) return {};
  const auto& all = packets[queue];
  const auto behind = std::upper_bound(all.begin(), all.end(), dword,
                                       [](std::size_t d, const PacketLocation& p) { return d < p.dword; });
  return behind == all.begin() ? Location{} : std::prev(behind)->location;
}

namespace detail {

SourceMap::Location ScheduleParser::location(std::size_t at) {
  if (!options_.map) return {};
  if (const auto context = context_.empty() ? "" : context_ + "]"; context != map_.contexts.back())
    map_.contexts.push_back(context);
  return {.line = static_cast<std::uint32_t>(at), .context = static_cast<std::uint32_t>(map_.contexts.size() - 1)};
}

void ScheduleParser::finish_map() {
  const auto text = source_.text();
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') begins.push_back(i + 1);
  const auto count = [&](SourceMap::Location& s) {
    const auto at = s.line;
    const auto line = std::upper_bound(begins.begin(), begins.end(), at) - begins.begin();
    s.line = static_cast<std::uint32_t>(line);
    s.column = static_cast<std::uint32_t>(at - begins[static_cast<std::size_t>(line - 1)] + 1);
  };
  for (auto* all : {&map_.buffers, &map_.signals}) std::for_each(all->begin(), all->end(), count);
  for (auto& host : map_.actions) std::for_each(host.begin(), host.end(), count);
  for (auto& queue : map_.packets)
    for (auto& p : queue) count(p.location);
  map_.file = source_.file();
  *options_.map = std::move(map_);
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
