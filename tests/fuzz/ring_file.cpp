// SPDX-License-Identifier: MIT
// Any bytes are a `.ring` file, which survives its own bytes, or an error. The first byte may edit a valid file.
#include "sdma/queue/dump.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace sdma;

namespace {

void check(std::span<const std::byte> bytes) {
  const auto d = from_bytes(bytes, "fuzz");
  if (!d) {
    if (d.error().message.empty() || !d.error().where.starts_with("fuzz")) std::abort();
    return;
  }
  const auto own = to_bytes(*d);
  const auto again = from_bytes(own, "again");
  if (!again || to_bytes(*again) != own) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(std::as_bytes(std::span(data, size)));
  // A valid file, with the input over it from an offset.
  if (size < 2) return 0;
  RingDump ring{.label = "a label", .dwords = std::vector<std::uint32_t>(64, 1)};
  ring.committed = ring.reserved = ring.wptr = 64;
  auto bytes = to_bytes(ring);
  const std::size_t at = data[0] % bytes.size();
  const auto n = std::min(size - 1, bytes.size() - at);
  std::memcpy(bytes.data() + at, data + 1, n);
  check(bytes);
  return 0;
}
