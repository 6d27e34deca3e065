// SPDX-License-Identifier: MIT
#pragma once
// Appends formatted text to a string. Internal. Only append.cpp instantiates
// the formatter for a string that grows, because that takes seconds to compile.
//
//   append(out, "{} of {} packets\n", done, all);
#include <fmt/core.h>

#include <string>

namespace sdma { inline namespace v0_3 { namespace detail {

void append_formatted(std::string& out, fmt::string_view form, fmt::format_args values);

template <class... Values>
void append(std::string& out, fmt::format_string<const Values&...> form, const Values&... values) {
  append_formatted(out, form, fmt::make_format_args(values...));
}

}}}  // namespace sdma::v0_3::detail
