// SPDX-License-Identifier: MIT
#include "sdma/doctor/snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace doctor {

std::string_view name(Source s) noexcept {
  constexpr std::array<std::string_view, 7> kNames{"unknown", "memory",    "dump", "command line",
                                                   "driver",  "recording", "node"};
  const auto i = static_cast<std::size_t>(s);
  return i < kNames.size() ? kNames[i] : kNames[0];
}

void Words::add(GpuVa va, std::span<const std::byte> bytes) {
  if (!bytes.empty()) pieces_.push_back({va, {bytes.begin(), bytes.end()}});
}

void Words::add(GpuVa va, std::uint64_t value, std::uint32_t bytes) {
  add(va, std::as_bytes(std::span(&value, 1)).first(std::min<std::size_t>(bytes, sizeof value)));
}

Errc Words::read(GpuVa va, std::span<std::byte> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const auto at = va + done;
    const auto piece =
        std::find_if(pieces_.rbegin(), pieces_.rend(), [&](const Piece& p) { return at - p.va < p.bytes.size(); });
    if (piece == pieces_.rend()) return Errc::unmapped;
    // A piece that was added later may begin inside this one.
    auto n = std::min<std::size_t>(piece->bytes.size() - (at - piece->va), out.size() - done);
    for (auto later = pieces_.rbegin(); later != piece; ++later)
      if (later->va - at < n) n = later->va - at;
    std::memcpy(out.data() + done, piece->bytes.data() + (at - piece->va), n);
    done += n;
  }
  return Errc::ok;
}

}}}  // namespace sdma::v0_3::doctor
