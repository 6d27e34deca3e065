// SPDX-License-Identifier: MIT
#pragma once
// Bytes as base64 (RFC 4648), with padding. Internal.
#include <string>
#include <string_view>

namespace sdma::inline v0::detail {

void append_base64(std::string& out, std::string_view bytes);

}  // namespace sdma::inline v0::detail
