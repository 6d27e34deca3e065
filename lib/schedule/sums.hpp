// SPDX-License-Identifier: MIT
#pragma once
// The sums that kernels store and that expectations name: their text, and their bytes. Internal.
//
//   to_text(schedule, sum)                  "sum(gpu0.a, gpu0.b) type=f32 order=free"
//   added(sum, bytes_of)                    the bytes of ((first + second) + third) + ..
//   each_sum(schedule, fn)                  all sums of kernels' actions and of expectations
//
// Each addition rounds to the type, to nearest with ties to even, and a result that is not a number has one
// representation. So a + b and b + a are the same bytes, and so is a sum in steps: (a + b) + c in two stores.
//
// Pure functions without errors; they allocate.
#include "sdma/schedule/schedule.hpp"
#include "symbols.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

using SumType = Schedule::Sum::Type;
inline constexpr std::string_view kSumTypes[] = {"f32", "bf16", "i32"};  ///< in the order of Sum::Type
constexpr std::string_view name(SumType t) noexcept { return kSumTypes[static_cast<std::size_t>(t)]; }

std::string to_text(const Schedule&, const Schedule::Sum&);

/// The bytes of a sum of at least one part. `bytes_of`: those that a part holds now.
std::vector<std::byte> added(const Schedule::Sum&,
                             const std::function<std::span<const std::byte>(const Schedule::Range&)>& bytes_of);

/// Calls fn(sum, range) for each sum; `range` is what it is stored to or compared with.
template <class Fn> void each_sum(const Schedule& s, Fn&& fn) {
  each_action(s, [&](const Schedule::Action& a) {
    if (a.sum) fn(a.sum, a.range);
  });
  for (const auto& e : s.expectations)
    if (e.sum) fn(e.sum, e.left);
}

/// Why a schedule cannot have this sum, which is as long as `bytes`; "" if it can. `other`: one that it has already.
std::string_view wrong_sum(const Schedule::Sum&, std::uint64_t bytes, const Schedule::Sum& other) noexcept;

}}}  // namespace sdma::v0_3::detail
