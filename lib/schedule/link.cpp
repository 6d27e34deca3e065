// SPDX-License-Identifier: MIT
#include "link.hpp"

#include "../engine/execute.hpp"
#include "sdma/core/number.hpp"
#include "sdma/packets/footprint.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::uint64_t kLeastChosen = 64 * 1024;

constexpr std::size_t dwords_of_slot(std::uint64_t ring) noexcept {
  return static_cast<std::size_t>(ring / 2 / sizeof(std::uint32_t));
}

bool moves_data(const PacketView& v) {
  if (!v.whole() || v.info->fields_unknown) return false;
  bool out = false;
  visit(*v.info, v.dwords, [&](const auto& p) { out = Divisible<std::remove_cvref_t<decltype(p)>>; });
  return out;
}

/// Calls fn(packet, at, last) for each packet: `last` is where the packets end that stay together with it.
template <class Fn> void each_packet(std::span<const std::uint32_t> dwords, Fn fn) {
  std::size_t reach = 0;
  for (Reader r{dwords}; r;) {
    const auto at = r.position_dwords();
    if (at >= reach) {
      // A condition may begin within what another one skips.
      reach = at;
      for (Reader ahead{dwords.subspan(at)};
           ahead && (ahead.position_dwords() == 0 || at + ahead.position_dwords() < reach);) {
        const auto v = ahead.next();
        const auto end = at + ahead.position_dwords();
        const auto skips = v.whole() && !v.info->fields_unknown ? skipped(*v.info, v.dwords) : 0;
        reach = std::min(dwords.size(), std::max(reach, end + skips));
      }
    }
    fn(r.next(), at, reach);
  }
}

}  // namespace

std::uint64_t ring_bytes(const Schedule::Queue& q) noexcept {
  if (q.ring_bytes != 0) return q.ring_bytes;
  return std::clamp(std::bit_ceil(std::uint64_t{q.dwords.size()} * 16), kLeastChosen, kMaxRing);
}

std::optional<Diagnostic> too_large(const Schedule::Queue& q) {
  const auto most = dwords_of_slot(ring_bytes(q));
  if (q.dwords.size() <= most) return {};
  std::optional<Diagnostic> found;
  std::size_t end = 0;
  each_packet(q.dwords, [&](const PacketView& v, std::size_t at, std::size_t last) {
    if (at < end || found) return;
    end = last;
    const auto n = last - at;
    if (n <= most) return;
    found =
        Diagnostic{.message = (n == v.dwords.size() ? "a packet of " : "a condition and what it may skip, together ") +
                              std::to_string(n) + " dwords" + (n == v.dwords.size() ? " is" : ", are") +
                              " more than half the ring",
                   .hint = "give the queue a larger ring: ring=" +
                           size_text(std::max(kMinRing, std::bit_ceil(std::uint64_t{n} * 8)))};
  });
  return found;
}

Result<EngineId> engine_of(const Schedule::Queue& q, const LinkIndex& links, std::span<const GpuId> gpus) {
  if (!q.peer) return EngineId{q.engine};
  const auto gpu = [&](Place p) { return gpus.empty() ? GpuId{p.index} : gpus[p.index]; };
  if (!q.peer->is_host()) return links.engine_for(gpu(q.place), gpu(*q.peer));
  return links.topology().engine_for(gpu(q.place), q.from_host ? HostDirection::from_host : HostDirection::to_host);
}

Linked link_queue(const Schedule::Queue& q, const std::function<GpuVa(GpuVa)>& home,
                  const std::function<void(const PacketView&, std::span<const std::uint32_t>)>& then) {
  Linked out{.ring_bytes = ring_bytes(q), .dwords = q.dwords};
  const auto most = dwords_of_slot(out.ring_bytes);
  Linked::Piece piece;
  bool data = false;         // the piece has a packet that moves data
  std::size_t together = 0;  // where the packets end that are not cut
  each_packet(q.dwords, [&](const PacketView& v, std::size_t at, std::size_t last) {
    const auto n = v.dwords.size();
    const bool next = q.doorbell_each && moves_data(v);
    if (at >= together && (last - piece.begin > most || (next && data))) {
      out.pieces.push_back(piece);
      piece = {.begin = at};
      data = false;
    }
    together = last;
    data = data || next;
    piece.end = at + n;
    ++piece.packets;
    if (!v.whole() || v.info->fields_unknown) return;
    const auto now = std::span(out.dwords).subspan(at, n);
    each_address(v, [&](const FieldInfo& f, GpuVa link) {
      if (const auto to = home(link); to != link) store(f, to.value, now.data());
    });
    then(v, now);
  });
  if (piece.packets != 0) out.pieces.push_back(piece);
  return out;
}

}}}  // namespace sdma::v0_3::detail
