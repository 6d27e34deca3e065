// SPDX-License-Identifier: MIT
// Any text is a dump or an error, and a dump's dwords are at most what its text can hold or repeat.
#include "sdma/dump/text.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  // A `*` may repeat a gigabyte, which takes longer than a run may.
  if (text.find('*') != std::string_view::npos) return 0;
  const auto r = sdma::read_text_dump(text, "fuzz");
  if (!r) {
    if (r.error().message.empty() || r.error().where.empty()) std::abort();
    return 0;
  }
  if (r->dumps.empty()) std::abort();
  std::size_t dwords = 0;
  for (const auto& d : r->dumps) dwords += d.dwords.size();
  if (dwords > size) std::abort();
  return 0;
}
