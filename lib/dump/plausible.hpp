// SPDX-License-Identifier: MIT
#pragma once
// How well dwords read as packets: to choose between two ways to read a dump, never to accept one.
#include "sdma/packets/catalogue.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace sdma { inline namespace v0_3 { namespace detail {

/// GPU VAs have 48 bits, and the first page is never mapped.
inline bool is_address(std::uint64_t va) noexcept { return va >= 4096 && va < std::uint64_t{1} << 48; }

/// Might someone have written this packet? Its reserved bits are 0, its fields are aligned and within their
/// limits, its rules hold and its addresses are in user space. Of a packet that is cut off, only the dwords that
/// are there are judged.
inline bool is_plausible(const PacketView& v) noexcept {
  if (!v.info || v.info->fields_unknown) return false;
  const auto fields = [&](const std::uint32_t* d, std::size_t n) {
    for (std::size_t i = 0; i < n && i < v.info->described(); ++i)
      if ((d[i] & v.info->reserved(i)) != 0) return false;
    for (const auto& f : v.info->fields) {
      if (f.dword + f.hi / 32u >= n) continue;
      const auto value = value_of(f, d);
      if (value > f.max() || value % f.alignment != 0) return false;
      if (f.kind == Kind::address && !f.optional && !is_address(value)) return false;
    }
    return true;
  };
  const bool folded = v.info->parts && !v.info->parts->plain();
  const auto settled = folded ? std::min(v.info->parts->settled(), v.dwords.size()) : v.dwords.size();
  const bool good = folded && !v.cut_off ? fields(Unfolded{*v.info, v.dwords}.data(), v.info->described())
                                         : fields(v.dwords.data(), settled);
  if (!good) return false;
  return v.cut_off || std::all_of(v.info->rules.begin(), v.info->rules.end(),
                                  [&](const RuleInfo& r) { return r.holds(v.dwords, *v.info); });
}

/// With how many zeros these begin. Each is a NOP of one dword in every generation; a ring may be full of them.
inline std::size_t leading_zeros(std::span<const std::uint32_t> d) noexcept {
  return static_cast<std::size_t>(std::find_if(d.begin(), d.end(), [](auto w) { return w != 0; }) - d.begin());
}

/// The packet's dwords if it is plausible; a negative number if it is not.
/// Zeros count as nothing: they are NOPs, and memory that was never written.
inline std::int64_t plausibility(const PacketView& v) noexcept {
  const bool zeros = std::all_of(v.dwords.begin() + (v.is<Nop>() && v.dwords.size() > 1 ? 1 : 0), v.dwords.end(),
                                 [](std::uint32_t w) { return w == 0; });
  if (zeros) return 0;
  const auto n = static_cast<std::int64_t>(v.dwords.size());
  if (v.is<Nop>() || !v.whole() || !is_plausible(v)) return v.info && !v.cut_off ? -std::min<std::int64_t>(n, 4) : -1;
  return n;
}

/// The sum for all packets of these dwords.
inline std::int64_t plausibility(std::span<const std::uint32_t> dwords, const Catalogue& packets) noexcept {
  std::int64_t good = 0;
  for (Reader r{dwords, packets}; r;) good += plausibility(r.next());
  return good;
}

}}}  // namespace sdma::v0_3::detail
