// SPDX-License-Identifier: MIT
#pragma once
// The unit in which a time is written: in tables, and on the axis of a picture beside them. Internal.
//
//   const auto u = time_unit(12'340);                          // us
//   fmt::format("{:.{}f} {}", 12'340 / u.ns, u.decimals, u.name)   // 12.34 us
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

struct TimeUnit {
  std::string_view name{};
  double ns{};     ///< how long it is
  int decimals{};  ///< how many a time has
};
constexpr TimeUnit time_unit(double ns) noexcept {
  if (ns < 1e3) return {"ns", 1, 0};
  if (ns < 1e6) return {"us", 1e3, 2};
  if (ns < 1e9) return {"ms", 1e6, 3};
  return {"s", 1e9, 3};
}

}}}  // namespace sdma::v0_3::detail
