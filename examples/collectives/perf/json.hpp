// SPDX-License-Identifier: MIT
#pragma once
// Text as JSON writes it.
//
//   json_text("a \"b\"")                 // "a \"b\"" in quotes, with its quotes escaped
//
// A pure function that allocates; any thread may call it. No errors.
#include <string>
#include <string_view>

namespace collectives::perf {

std::string json_text(std::string_view);

}  // namespace collectives::perf
