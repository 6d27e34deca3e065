// SPDX-License-Identifier: MIT
#pragma once
// Okabe and Ito's palette, which all eyes can tell apart, without yellow, and a grey. Pages have the same colours, in
// lib/trace/page/colours.css. Internal.
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::string_view kBlue = "#0072b2", kVermilion = "#d55e00", kGreen = "#009e73", kPurple = "#cc79a7",
                                  kOrange = "#e69f00", kSky = "#56b4e9", kBlack = "#000000", kDarkGrey = "#555555";

}}}  // namespace sdma::v0_3::detail
