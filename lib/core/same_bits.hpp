// SPDX-License-Identifier: MIT
#pragma once
// std::bit_cast, which some standard libraries lack. Internal.
//
//   same_bits<std::uint32_t>(1.0f)     0x3f800000
//
// A pure function without errors.
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {

template <class To, class From> To same_bits(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}}}  // namespace sdma::v0_3::detail
