// SPDX-License-Identifier: MIT
#pragma once
// Random schedules: right ones of a few kinds, each then with up to a few mutations.
//
//   Random r{seed};
//   const auto g = generate(r, "", 2);       any family, up to two mutations
//
// Sometimes two schedules become one, with their host threads side by side or one after the other.
// Buffers have few bytes, so that the explorer can execute a schedule in every way. A mutation may cause
// problems(g.schedule); such a schedule is not worth a check.
#include "edit.hpp"

#include <span>
#include <string_view>

namespace sdma::explore {

struct Generated {
  std::string_view family{};
  Schedule schedule{};
};

/// `families`: names with commas between them; "" for any. Unknown names give an empty schedule.
Generated generate(Random&, std::string_view families, std::uint32_t most_mutations);
std::span<const std::string_view> families() noexcept;

}  // namespace sdma::explore
