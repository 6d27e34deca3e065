// SPDX-License-Identifier: MIT
// Any text is refused with errors that say where, or becomes dwords that survive their own text.
#include "sdma/stream/text.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  // Small limits: what is looked for are mistakes in reading, not how long a loop of a million rounds takes.
  const auto dwords = sdma::assemble(text, "fuzz", {.max_dwords = 4096, .max_rounds = 64});
  if (!dwords) {
    require(!dwords.error().empty());
    for (const auto& e : dwords.error()) require(!e.message.empty() && e.where.starts_with("fuzz:"));
    return 0;
  }
  const auto again = sdma::assemble(sdma::disassemble(*dwords));
  require(again && *again == *dwords);
  return 0;
}
