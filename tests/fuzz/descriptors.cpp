// SPDX-License-Identifier: MIT
// Any text is the kernel's descriptors or registers of queues, or an error with a place. They survive their own text.
#include "sdma/dump/descriptors.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto d = sdma::read_descriptors(text, "fuzz");
  if (!d) {
    if (d.error().message.empty() || d.error().where.empty()) std::abort();
    return 0;
  }
  if (d->queues.empty() == sdma::has_descriptors(text)) std::abort();
  (void)to_text(*d);
  (void)to_json(*d);
  return 0;
}
