// SPDX-License-Identifier: MIT
// Any schedule is checked, under any assumptions, in bounded time: the report agrees with itself, and what is checked
// only in part is not proved. The first two bytes choose the assumptions.
#include "sdma/check/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  sdma::CheckOptions o{.max_packets = 2048, .open = (data[0] & 0x80) != 0};
  const auto options = sdma::profile_options();
  for (std::size_t i = 0; i < 12 && 2 * i + 1 < options.size(); ++i)
    if (data[i / 7] >> (i % 7) & 1) require(o.profile.set(options[2 * i]));
  sdma::SourceMap map;
  const std::string text(reinterpret_cast<const char*>(data + 2), size - 2);
  const auto s =
      sdma::parse_schedule(text, "fuzz", {.max_rounds = 64, .max_dwords = 4096, .max_items = 256, .map = &map});
  if (!s) return 0;
  o.map = &map;
  const auto r = sdma::check(*s, o);
  const auto some = [&](sdma::Severity severity) {
    return std::ranges::any_of(r.findings, [&](const auto& f) { return f.diagnostic.severity == severity; });
  };
  require(r.proved() == (r.verdict() == sdma::Verdict::proved));
  require((r.verdict() == sdma::Verdict::refuted) == some(sdma::Severity::error));
  for (const auto& f : r.findings) {
    require(!f.diagnostic.rule.empty() && !f.diagnostic.message.empty());
    require(!r.proved() || f.diagnostic.severity == sdma::Severity::note);
  }
  // Cut short, it proves nothing.
  if (o.max_packets = r.packets / 2; r.packets > 1) require(!sdma::check(*s, o).proved());
  return 0;
}
