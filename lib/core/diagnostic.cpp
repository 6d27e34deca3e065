// SPDX-License-Identifier: MIT
#include "sdma/core/diagnostic.hpp"

namespace sdma::inline v0 {

std::string to_string(const Diagnostic& d) {
  std::string s;
  if (!d.where.empty()) s.append(d.where).append(": ");
  s += name(d.severity);
  if (!d.rule.empty()) s.append("[").append(d.rule).append("]");
  s.append(": ").append(d.message);
  if (!d.excerpt.empty()) s.append("\n").append(d.excerpt);
  if (!d.hint.empty()) s.append("\n  hint: ").append(d.hint);
  return s;
}

}  // namespace sdma::inline v0
