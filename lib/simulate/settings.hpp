// SPDX-License-Identifier: MIT
#pragma once
// The values of a schedule's params, as tables of measurements write them: "N=8 chunk=64K". Internal.
//
//   auto set = settings_of("N=8 chunk=64K");        // {{"N", "8"}, {"chunk", "64K"}}
//
// Pure functions. Errors: a Diagnostic without `where` for a word that is not NAME=VALUE.
#include "../core/words.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/text.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

inline std::vector<std::string> words_of(std::string_view s) {
  std::vector<std::string> out;
  for (s = trimmed(s); !s.empty();) out.emplace_back(take_word(s));
  return out;
}

inline Result<ParseOptions, Diagnostic> settings_of(std::string_view text) {
  ParseOptions options;
  for (const auto& w : words_of(text)) {
    const auto equal = w.find('=');
    if (equal == 0 || equal == w.npos)
      return Diagnostic{.message = "the setting '" + w + "' is not NAME=VALUE",
                        .hint = "write settings as N=8 chunk=64K"};
    options.set.push_back({w.substr(0, equal), w.substr(equal + 1)});
  }
  return options;
}

}}}  // namespace sdma::v0_3::detail
