// SPDX-License-Identifier: MIT
#pragma once
// A JSON string, without the JSON library's headers. Internal.
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// `s` with quotes and escapes. Invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view s);

}}}  // namespace sdma::v0_3::detail
