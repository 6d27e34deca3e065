// SPDX-License-Identifier: MIT
#pragma once
// Describes how bytes differ from what is expected. Internal.
#include "sdma/core/number.hpp"
#include "sdma/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

/// "" if they are equal. Otherwise how many bytes of `left` differ, where they are, and the first of them:
/// "12 of 4K bytes differ: gpu1.out[16..+8], gpu1.out[64..+4]; gpu1.out[16] is 0xdb, not 0x07". `wrong`, if not null,
/// receives how many bytes differ.
inline std::string difference(const Schedule& s, const Schedule::Range& left, std::span<const std::byte> is,
                              std::span<const std::byte> should, std::uint64_t* wrong = nullptr) {
  constexpr std::size_t kShown = 4;
  // Bytes may change while they are compared. So each is read once, and only what was read is compared and shown.
  std::array<std::byte, std::size_t{1} << 16> was, wanted;
  const auto l = *find_symbol(s, left.va);
  const auto name = name_of(s, SymbolOffset{l.signal, l.index, 0});
  std::string runs;
  std::size_t count = 0, bytes = 0, run = 0;  // run: bytes of the run that ends where the comparison is
  struct {
    std::size_t at;
    unsigned is, should;
  } first{};
  const auto end_run = [&](std::size_t end) {
    if (run != 0 && count++ < kShown)
      runs +=
          fmt::format("{}{}[{}..+{}]", runs.empty() ? "" : ", ", name, size_text(l.offset + end - run), size_text(run));
    bytes += std::exchange(run, 0);
  };
  for (std::size_t from = 0; from < is.size(); from += was.size()) {
    const auto n = std::min(was.size(), is.size() - from);
    std::memcpy(was.data(), is.data() + from, n);
    std::memcpy(wanted.data(), should.data() + from, n);
    if (std::memcmp(was.data(), wanted.data(), n) == 0) {
      end_run(from);
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (was[i] == wanted[i]) {
        end_run(from + i);
        continue;
      }
      if (count == 0 && run == 0) first = {from + i, static_cast<unsigned>(was[i]), static_cast<unsigned>(wanted[i])};
      ++run;
    }
  }
  end_run(is.size());
  if (wrong) *wrong = bytes;
  if (bytes == 0) return {};
  if (count > kShown) runs += fmt::format(" and {} more runs", count - kShown);
  const auto poison = first.is == kPoison ? " (poison: possibly never written)" : "";
  return fmt::format("{} of {} bytes differ: {}; {}[{}] is {:#04x}{}, not {:#04x}", bytes, size_text(is.size()), runs,
                     name, size_text(l.offset + first.at), first.is, poison, first.should);
}

}}}  // namespace sdma::v0_3::detail
