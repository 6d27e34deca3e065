#include "compare.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sdma::inline v0::detail {
std::string difference(const Schedule& s, const Schedule::Range& left, std::span<const std::byte> is,
                       std::span<const std::byte> should) {
  if (is.empty() || std::memcmp(is.data(), should.data(), is.size()) == 0) return {};
  constexpr std::size_t kShown = 4;
  const auto l = *find_symbol(s, left.va);
  const auto name = name_of(s, SymbolOffset{l.signal, l.index, 0});
  std::string runs;
  std::size_t count = 0, bytes = 0, first = 0;
  for (auto at = is.begin();;) {
    const auto [begin, other] = std::mismatch(at, is.end(), should.begin() + (at - is.begin()));
    if (begin == is.end()) break;
    at = std::mismatch(begin, is.end(), other, std::not_equal_to<>{}).first;
    const auto offset = static_cast<std::size_t>(begin - is.begin()), n = static_cast<std::size_t>(at - begin);
    if (count == 0) first = offset;
    if (count++ < kShown)
      runs += fmt::format("{}{}[{}..+{}]", runs.empty() ? "" : ", ", name, size_text(l.offset + offset), size_text(n));
    bytes += n;
  }
  if (count > kShown) runs += fmt::format(" and {} more runs", count - kShown);
  const auto poison = static_cast<unsigned>(is[first]) == kPoison ? " (poison: possibly never written)" : "";
  return fmt::format("{} of {} bytes differ: {}; {}[{}] is {:#04x}{}, not {:#04x}", bytes, size_text(is.size()), runs,
                     name, size_text(l.offset + first), static_cast<unsigned>(is[first]), poison,
                     static_cast<unsigned>(should[first]));
}

}  // namespace sdma::inline v0::detail
