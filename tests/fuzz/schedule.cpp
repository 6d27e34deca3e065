// SPDX-License-Identifier: MIT
// Any text is refused with errors that say where, or becomes a schedule that survives its own text and its own layout.
#include "sdma/schedule/text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Small limits: what is looked for are mistakes in reading, not how long a loop of a million rounds takes.
  const sdma::ParseOptions options{.max_rounds = 64, .max_dwords = 4096, .max_items = 256};
  const auto s = sdma::parse_schedule(text, "fuzz", options);
  const auto laid_out = sdma::format_source(text);
  if (!s) {
    require(!s.error().empty());
    for (const auto& e : s.error()) require(!e.message.empty() && e.where.starts_with("fuzz"));
    return 0;
  }
  require(sdma::problems(*s).empty());
  const auto flat = sdma::to_text(*s);
  const auto again = sdma::parse_schedule(flat, "flat", options);
  require(again && *again == *s && sdma::to_text(*again) == flat);
  const auto same = sdma::parse_schedule(laid_out, "layout", options);
  require(same && *same == *s);
  require(sdma::format_source(laid_out) == laid_out);
  return 0;
}
