// SPDX-License-Identifier: MIT
#pragma once
// `sdma check` of a text that a user wrote, or that was made of XML of MSCCL: findings have the lines of that file.
//
//   auto checked = check_source({text, made}, "ag.xml", parse, options);      // as check_text
#include "msccl.hpp"
#include "sdma/check/check.hpp"

#include <string_view>

namespace sdma::msccl {

struct CheckSource {
  std::string_view text{};
  const Made& made;
};
Result<CheckedText, std::vector<Diagnostic>> check_source(const CheckSource&, std::string_view file, ParseOptions,
                                                          const CheckOptions&);

}  // namespace sdma::msccl
