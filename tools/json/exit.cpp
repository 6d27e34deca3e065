// SPDX-License-Identifier: MIT
#include "exit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::tool {

std::string exit_codes(std::span<const ExitMeaning> more, bool all) {
  std::string out = "Exit codes:\n";
  for (const auto& e : kExits) {
    const auto own = std::find_if(more.begin(), more.end(), [&](const auto& m) { return m.code == e.code; });
    const bool always = e.code == kOk || e.code == kUsage || e.code == kInput || e.code == kInterrupted;
    if (own == more.end() && !all && !always) continue;
    std::string text(own == more.end() ? e.text : own->text);
    for (auto at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) text.insert(at + 1, 7, ' ');
    out += fmt::format("  {:<5}{}\n", static_cast<int>(e.code), text);
  }
  return out;
}

}  // namespace sdma::tool
