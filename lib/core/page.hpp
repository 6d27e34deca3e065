// SPDX-License-Identifier: MIT
#pragma once
// The page in which the driver maps memory and reports faults. Internal.
#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::uint64_t kPage = 4096;  ///< bytes

}}}  // namespace sdma::v0_3::detail
