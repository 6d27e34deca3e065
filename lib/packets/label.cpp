// SPDX-License-Identifier: MIT
// Packets and generations in words, and the proof that each packet of the registry has a consistent description.
#include "sdma/packets/catalogue.hpp"

namespace sdma { inline namespace v0_3 {

using namespace grammar;

// A packet_info is proved.
static_assert([]<class... P>(PacketList<P...>) { return ((packet_info<P>.head != 0) && ...); }(Packets{}));

std::string to_string(Generations s) {
  std::string text;
  // The header's variant of 4.4.2 is not an engine of its own.
  const auto has = [&](std::size_t i) { return i < kGenerationCount && s.contains(static_cast<Generation>(i)); };
  const auto next = [](std::size_t i) { return i + (static_cast<Generation>(i + 1) == v4_4_2_header ? 2 : 1); };
  for (std::size_t i = 0; i < kGenerationCount; i = next(i)) {
    if (!has(i) || static_cast<Generation>(i) == v4_4_2_header) continue;
    auto last = i;
    while (has(next(last))) last = next(last);
    text.append(text.empty() ? "" : ", ").append(name_of(static_cast<Generation>(i)));
    if (last != i) text.append(" to ").append(name_of(static_cast<Generation>(last)));
    i = last;
  }
  return text;
}

std::string label(const PacketInfo& p) {
  std::string text{p.name};
  if (p.foreign)
    text.append(" of ")
        .append(to_string(p.generations | p.undescribed))
        .append(", not of ")
        .append(name_of(p.generation));
  else if (p.fields_unknown) text.append(", not described for ").append(name_of(p.generation));
  return text;
}

}}  // namespace sdma::v0_3
