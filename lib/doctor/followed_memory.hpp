// SPDX-License-Identifier: MIT
#pragma once
// What words hold while an execution is followed. Internal.
//
//   Memory m{snapshot, {0x1000, 0x2004}};         // the dwords that matter
//   m.dword(0x1000)                               // their values now; nullopt: not known
//   m.touches(packet)                             // which of them a packet stores to
//   m.post(packet)                                // the packet lands
//   m.after(packet, 0x1000)                       // what the dword would hold after it
#include "../engine/execute.hpp"
#include "../packets/overlap.hpp"
#include "line.hpp"

#include <algorithm>
#include <map>

namespace sdma { inline namespace v0_3 { namespace doctor {

class Memory {
 public:
  /// `dwords`: addresses of the dwords that matter.
  Memory(const Snapshot& s, std::vector<std::uint64_t> dwords) : s_(s), sorted_(std::move(dwords)) {
    std::sort(sorted_.begin(), sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
    for (const auto va : sorted_) {
      std::uint32_t value = 0;
      const bool known = read_memory(s, GpuVa{va}, std::as_writable_bytes(std::span(&value, 1))) == Errc::ok;
      now_[va] = known ? std::optional(value) : std::nullopt;
    }
  }

  /// The dwords from `va`, alone.
  Memory part(std::uint64_t va, std::uint32_t bytes) const {
    Memory out{s_, {}};
    for (auto at = now_.lower_bound(va); at != now_.end() && at->first < va + bytes; ++at) {
      out.sorted_.push_back(at->first);
      out.now_.insert(*at);
    }
    return out;
  }
  std::optional<std::uint32_t> dword(std::uint64_t va) const {
    const auto found = now_.find(va);
    return found == now_.end() ? std::nullopt : found->second;
  }
  /// `bytes`: 4 or 8.
  std::optional<std::uint64_t> word(std::uint64_t va, std::uint32_t bytes) const {
    const auto low = dword(va);
    if (bytes == 4 || !low) return low ? std::optional<std::uint64_t>(*low) : std::nullopt;
    const auto high = dword(va + 4);
    return high ? std::optional(std::uint64_t{*high} << 32 | *low) : std::nullopt;
  }
  /// The dwords that matter and that the packet stores to.
  std::vector<std::uint64_t> touches(const PacketView& v) const {
    std::vector<std::uint64_t> out;
    if (!v.whole() || v.info->foreign || v.info->fields_unknown) return out;
    footprint(*v.info, v.dwords, [&](const Region& r) {
      if (!allows(r.access, Access::write)) return;
      const auto end = end_of(r).value;
      const auto first = r.va.value < 3 ? 0 : r.va.value - 3;
      for (auto at = std::lower_bound(sorted_.begin(), sorted_.end(), first); at != sorted_.end() && *at < end; ++at)
        if (detail::meet(Region{.va = GpuVa{*at}, .bytes = 4}, r)) out.push_back(*at);
    });
    return out;
  }
  /// What the dword holds after the packet; nullopt: not known.
  std::optional<std::uint32_t> after(const PacketView& v, std::uint64_t at) const {
    std::optional<std::uint32_t> out;
    /// Does a run contain the whole dword at `at`?
    const auto inside = [&](GpuVa begin, std::uint64_t bytes) {
      return at >= begin.value && at - begin.value + 4 <= bytes;
    };
    visit(*v.info, v.dwords, [&]<class P>(const P& p) {
      if constexpr (std::is_same_v<P, Fence>) {
        if (p.addr.value == at) out = p.value;
      } else if constexpr (std::is_same_v<P, Atomic>) {
        const auto old = word(p.addr.value, width(p.op));
        const bool needs_old = p.op != AtomicOp::write_64;
        if (!inside(p.addr, width(p.op)) || (needs_old && !old)) return;
        const auto now = apply(p.op, old.value_or(0), p.value, p.compare);
        out = static_cast<std::uint32_t>(at == p.addr.value ? now : now >> 32);
      } else if constexpr (std::is_same_v<P, Semaphore> || std::is_same_v<P, MemIncr>) {
        const auto old = word(p.addr.value, 8);
        if (!inside(p.addr, 8) || !old) return;
        auto now = *old + 1;
        if constexpr (std::is_same_v<P, Semaphore>) now = !p.signal ? *old - 1 : p.write_one ? 1 : now;
        out = static_cast<std::uint32_t>(at == p.addr.value ? now : now >> 32);
      } else if constexpr (std::is_same_v<P, Write>) {
        if (inside(p.dst, p.data.size_bytes()) && (at - p.dst.value) % 4 == 0) out = p.data[(at - p.dst.value) / 4];
      } else if constexpr (std::is_same_v<P, Fill>) {
        if (p.unit == FillUnit::dword && inside(p.dst, bytes_written(p)) && (at - p.dst.value) % 4 == 0) out = p.data;
      } else if constexpr (std::is_same_v<P, CopyLinear>) {
        std::uint32_t value = 0;
        if (inside(p.dst, p.bytes) &&
            read_memory(s_, p.src + (at - p.dst.value), std::as_writable_bytes(std::span(&value, 1))) == Errc::ok)
          out = value;
      }
    });
    return out;
  }
  /// `touched`: what touches() returned.
  void post(const PacketView& v, const std::vector<std::uint64_t>& touched) {
    std::vector<std::optional<std::uint32_t>> values;
    for (const auto at : touched) values.push_back(after(v, at));
    for (std::size_t i = 0; i < touched.size(); ++i) now_[touched[i]] = values[i];
  }
  /// A store by the host.
  void store(std::uint64_t va, std::uint64_t value, std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; i += 4)
      if (const auto at = now_.find(va + i); at != now_.end())
        at->second = static_cast<std::uint32_t>(value >> (8 * i));
  }

 private:
  const Snapshot& s_;
  std::vector<std::uint64_t> sorted_;
  std::map<std::uint64_t, std::optional<std::uint32_t>> now_;
};

}}}  // namespace sdma::v0_3::doctor
