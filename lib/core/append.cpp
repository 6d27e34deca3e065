// SPDX-License-Identifier: MIT
#include "append.hpp"

#include <fmt/format.h>

#include <iterator>

namespace sdma::inline v0::detail {

void append_formatted(std::string& out, fmt::string_view form, fmt::format_args values) {
  fmt::vformat_to(std::back_inserter(out), form, values);
}

}  // namespace sdma::inline v0::detail
