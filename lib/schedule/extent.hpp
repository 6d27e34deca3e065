// SPDX-License-Identifier: MIT
#pragma once
// Finds accesses of a packet beyond the end of its symbols. Internal: the parser reports them with a column, problems()
// without one.
//
//   outside(s, view, [&](const Outside& o) { ... });      // 4K bytes at gpu0.buf[62K], which has 64K
//
// Checks only symbols that an address field of the packet names. Other addresses may belong to other memory.
#include "sdma/packets/footprint.hpp"
#include "symbols.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

struct Outside {
  SymbolOffset symbol{};   ///< offset: where the bytes begin
  std::uint64_t bytes{};   ///< from the first to the last that is accessed
  std::uint64_t extent{};  ///< the size of the symbol
};

/// The symbol whose part of link space contains `va`, which may be far beyond its bytes.
inline std::optional<SymbolOffset> stride_of(const Schedule& s, GpuVa va) noexcept {
  const bool signal = va.value >= kLinkSignals;
  const auto at = va.value - (signal ? kLinkSignals : 0);
  const auto k = at / kLinkStride;
  if (k == 0 || k > (signal ? s.signals.size() : s.buffers.size())) return {};
  return SymbolOffset{signal, static_cast<std::size_t>(k - 1), at % kLinkStride};
}

template <class Fn> void outside(const Schedule& s, const PacketView& v, Fn&& fn) {
  if (!v.whole() || v.info->fields_unknown) return;
  footprint(*v.info, v.dwords, [&](const Region& r) {
    const auto bytes = hull(r);
    if (bytes == 0) return;
    const auto symbol = stride_of(s, r.va);
    if (!symbol) return;
    bool named = false;
    each_address(v, [&](const FieldInfo&, GpuVa va) {
      const auto base = find_symbol(s, va);
      named = named || (base && base->signal == symbol->signal && base->index == symbol->index);
    });
    if (!named) return;
    const auto extent = bytes_of(s, *symbol);
    if (bytes <= extent && symbol->offset <= extent - bytes) return;
    fn(Outside{*symbol, bytes, extent});
  });
}

/// The message and the hint; `declared` is where the symbol is declared ("on line 3", or "").
Diagnostic describe(const Schedule&, const PacketView&, const Outside&, std::string_view declared);

}}}  // namespace sdma::v0_3::detail
