// SPDX-License-Identifier: MIT
#include "sdma/core/nearest.hpp"

namespace sdma::inline v0 {

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  Nearest nearest{word};
  std::string_view longer;
  std::size_t begin_so = 0;
  for (const auto k : known) {
    nearest.offer(k);
    if (!word.empty() && k.starts_with(word)) longer = k, ++begin_so;
  }
  const auto meant = begin_so == 1 ? longer : nearest.best();
  return meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?";
}

}  // namespace sdma::inline v0
