// SPDX-License-Identifier: MIT
#pragma once
// Splits the lines of CSV files: commas between fields, quotes around those that contain a comma. Internal.
//
//   csv_fields("a, \"b,c\"")     {"a", "b,c"}
//
// Allocates. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::inline v0::detail {

/// The fields of a line, without blanks around them; nothing if a quote is not closed or is inside a field.
std::optional<std::vector<std::string>> csv_fields(std::string_view line);

}  // namespace sdma::inline v0::detail
