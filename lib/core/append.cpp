// SPDX-License-Identifier: MIT
#include "append.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail {

void append_formatted(std::string& out, fmt::string_view form, fmt::format_args values) {
  out += fmt::vformat(form, values);
}

}}}  // namespace sdma::v0_3::detail
