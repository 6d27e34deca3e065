// SPDX-License-Identifier: MIT
#pragma once
// How reports about waits write values and comparisons. Internal.
#include "sdma/packets/poll.hpp"

#include <string>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Like values in the text form: decimal near zero, otherwise hexadecimal.
std::string number_text(std::uint64_t);
/// "ge"; "func 7" for a code without a name.
std::string compare_text(Compare);

}}}  // namespace sdma::v0_3::detail
