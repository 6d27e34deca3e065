#include "compare.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sdma::inline v0::detail {
namespace {

/// splitmix64: one step per word.
std::uint64_t next(std::uint64_t& state) noexcept {
  auto z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 33) * 0xff51afd7ed558ccd;
  z = (z ^ z >> 33) * 0xc4ceb9fe1a85ec53;
  return z ^ z >> 33;
}

/// `number`: that of the buffer, so that no two buffers hold the same bytes.
void fill(std::span<std::byte> out, Init init, std::uint64_t seed, std::uint64_t number) noexcept {
  if (init != Init::random) {
    std::memset(out.data(), init == Init::zero ? 0 : kPoison, out.size());
    return;
  }
  auto state = seed * 0x2545f4914f6cdd1d + number;
  next(state);
  for (std::size_t at = 0; at < out.size(); at += 8) {
    const auto word = next(state);
    std::memcpy(out.data() + at, &word, std::min<std::size_t>(8, out.size() - at));
  }
}

}  // namespace

void fill(const Schedule& s, std::uint64_t seed, const std::function<std::span<std::byte>(std::size_t)>& bytes_of) {
  // An alias has the contents of the bytes that it is an alias of, unless its own `init` says otherwise.
  for (const bool alias : {false, true})
    for (std::size_t i = 0; i < s.buffers.size(); ++i)
      if (const auto& b = s.buffers[i]; b.at.has_value() == alias && !(alias && b.init == Init::poison))
        fill(bytes_of(i), b.init, seed, i);
}

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
