// SPDX-License-Identifier: MIT
#include "engine_generation.hpp"

#include "line.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

struct Chip {
  std::string_view name;  ///< in small letters
  Generation generation;
};
// As umr, the kernel and the maker call them. The kernel's driver says which chip is which target.
// clang-format off
constexpr std::array kChips{
    Chip{"vega10", Generation::v4_0}, Chip{"vega12", Generation::v4_0}, Chip{"mi25", Generation::v4_0},
    Chip{"raven", Generation::v4_1}, Chip{"raven1", Generation::v4_1}, Chip{"raven2", Generation::v4_1}, Chip{"renoir", Generation::v4_1},
    Chip{"vega20", Generation::v4_2}, Chip{"mi50", Generation::v4_2}, Chip{"mi60", Generation::v4_2},
    Chip{"arcturus", Generation::v4_2}, Chip{"mi100", Generation::v4_2},
    Chip{"aldebaran", Generation::v4_4}, Chip{"mi210", Generation::v4_4}, Chip{"mi250", Generation::v4_4}, Chip{"mi250x", Generation::v4_4},
    Chip{"aqua_vanjaram", Generation::v4_4_2}, Chip{"mi300a", Generation::v4_4_2}, Chip{"mi300x", Generation::v4_4_2}, Chip{"mi325x", Generation::v4_4_2},
    Chip{"mi350x", Generation::v4_4_5}, Chip{"mi355x", Generation::v4_4_5},
    Chip{"navi10", Generation::v5_0}, Chip{"navi12", Generation::v5_0}, Chip{"navi14", Generation::v5_0},
    Chip{"navi21", Generation::v5_2}, Chip{"navi22", Generation::v5_2}, Chip{"navi23", Generation::v5_2}, Chip{"navi24", Generation::v5_2},
    Chip{"sienna_cichlid", Generation::v5_2}, Chip{"navy_flounder", Generation::v5_2}, Chip{"dimgrey_cavefish", Generation::v5_2}, Chip{"beige_goby", Generation::v5_2},
    Chip{"navi31", Generation::v6_0}, Chip{"navi32", Generation::v6_0}, Chip{"navi33", Generation::v6_0},
    Chip{"navi44", Generation::v7_0}, Chip{"navi48", Generation::v7_0},
};
// clang-format on

bool in_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// "6.0.0" of "v6.0.0.0.0": major, minor and revision.
std::string_view version_at(std::string_view s) noexcept {
  std::size_t end = 0;
  for (int dots = 0; end < s.size(); ++end) {
    if (s[end] == '.' && ++dots == 3) break;
    if (s[end] != '.' && (s[end] < '0' || s[end] > '9')) break;
  }
  return s.substr(0, end);
}

}  // namespace

std::optional<Generation> generation_of_name(std::string_view word) noexcept {
  if (const auto g = generation_of(word); g && word.starts_with("gfx")) return g;
  const auto equal = [&](std::string_view name) {
    return std::equal(name.begin(), name.end(), word.begin(), word.end(),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  };
  for (const auto& c : kChips)
    if (equal(c.name)) return c.generation;
  return {};
}

std::optional<Generation> generation_in(std::string_view text) {
  std::optional<Generation> version, named;
  bool contradiction = false;
  each_line(text, 1, [&](std::string_view line, std::size_t) {
    constexpr std::string_view kEngine = "HWIP: SDMA", kVersion = ": v";
    if (const auto at = line.find(kEngine); at != std::string_view::npos)
      if (const auto v = line.find(kVersion, at + kEngine.size()); v != std::string_view::npos)
        if (const auto g = generation_of(version_at(line.substr(v + kVersion.size())))) version = g;
    // A name may be a part of a longer one: MI300X_HW_SRIOV. A chip's name may have a part of its own: sienna_cichlid.
    for (std::size_t begin = 0; begin < line.size();) {
      auto end = begin;
      while (end < line.size() && in_word(line[end])) ++end;
      auto longer = end;
      while (longer < line.size() && (in_word(line[longer]) || line[longer] == '_')) ++longer;
      auto g = generation_of_name(line.substr(begin, longer - begin));
      if (!g) g = generation_of_name(line.substr(begin, end - begin));
      contradiction = contradiction || (g && named && *g != *named);
      if (g) named = g;
      begin = longer + 1;
    }
    return true;
  });
  return version ? version : contradiction ? std::nullopt : named;
}

}}}  // namespace sdma::v0_3::detail
