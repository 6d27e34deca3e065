// SPDX-License-Identifier: MIT
#include "line.hpp"

#include "../dump/plausible.hpp"
#include "../schedule/symbols.hpp"
#include "sdma/dump/place.hpp"
#include "sdma/packets/control.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// How many dwords of indirect buffers are read for a queue.

class LineReader {
 public:
  LineReader(const QueueSnapshot& q, std::size_t index, const Snapshot& s) : q_(q), s_(s) {
    line_.queue = &q;
    line_.index = index;
    line_.bytes = q.ring_bytes && *q.ring_bytes != 0 ? *q.ring_bytes : q.first == 0 && !q.part ? q.ring.size() * 4 : 0;
  }

  Line take() {
    if (!q_.rptr || !q_.wptr) {
      line_.contradiction = q_.rptr ? "wptr is not known" : "rptr is not known";
    } else if (q_.ring.empty()) {
      line_.contradiction = "the dwords of the ring are not known";
    } else if (const auto n = pending_bytes()) {
      place(*n / 4 * 4);
    }
    return std::move(line_);
  }

 private:
  bool is_window() const noexcept { return q_.first != 0 || q_.part || q_.ring.size() * 4 < line_.bytes; }

  /// The bytes from rptr to wptr, or nullopt if the positions contradict each other.
  std::optional<std::uint64_t> pending_bytes() {
    const auto r = *q_.rptr, w = *q_.wptr;
    if (r % 4 != 0) return wrong(fmt::format("rptr {:#x} is not a multiple of 4", r));
    const auto there = q_.ring.size() * 4;
    if (line_.bytes != 0 && there > line_.bytes)
      return wrong(fmt::format("{:#x} bytes are given of a ring of {:#x}", there, line_.bytes));
    if (is_window() && (r < q_.first || r - q_.first > there))
      return wrong(fmt::format("rptr {:#x} is outside the part of the ring that is known, [{:#x}, {:#x})", r, q_.first,
                               q_.first + there));
    if (q_.positions_wrap && line_.bytes != 0) {
      if (r >= line_.bytes || w >= line_.bytes)
        return wrong(fmt::format("rptr {:#x} or wptr {:#x} is beyond the ring of {:#x} bytes", r, w, line_.bytes));
      return (w + line_.bytes - r) % line_.bytes;
    }
    if (w < r) return wrong(fmt::format("rptr {:#x} is ahead of wptr {:#x}", r, w));
    if (line_.bytes != 0 && w - r >= line_.bytes)
      return wrong(
          fmt::format("rptr {:#x} lags wptr {:#x} by {:#x} bytes, but the ring has {:#x}", r, w, w - r, line_.bytes));
    return w - r;
  }
  std::nullopt_t wrong(std::string why) {
    line_.contradiction = std::move(why);
    return std::nullopt;
  }

  void place(std::uint64_t pending) {
    line_.placed = true;
    const std::span<const std::uint32_t> ring{q_.ring};
    const auto r = *q_.rptr;
    std::size_t lost = 0;
    std::vector<std::uint32_t> consumed, waiting;
    if (is_window()) {
      const auto at = static_cast<std::size_t>((r - q_.first) / 4);
      const auto n = std::min<std::uint64_t>(pending / 4, ring.size() - at);
      line_.incomplete = n * 4 < pending;
      consumed.assign(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(at));
      waiting.assign(ring.begin() + static_cast<std::ptrdiff_t>(at),
                     ring.begin() + static_cast<std::ptrdiff_t>(at + n));
    } else {
      const auto at = static_cast<std::size_t>(r % line_.bytes / 4);
      for (std::size_t i = 0; i < pending / 4; ++i) waiting.push_back(ring[(at + i) % ring.size()]);
      const auto there = ring.size() - waiting.size();
      // In its first lap, a queue has consumed only what lies before rptr.
      const bool first_lap = !q_.positions_wrap && *q_.wptr <= line_.bytes;
      const auto n = first_lap ? static_cast<std::size_t>(r / 4) : there;
      for (std::size_t i = n; i > 0; --i) consumed.push_back(ring[(at + ring.size() - i) % ring.size()]);
      if (!first_lap) lost = lost_before(consumed);
    }
    read(std::move(consumed), r, lost, true);
    line_.head = line_.packets.size();
    read(std::move(waiting), r, 0, false);
  }
  /// The end of a packet whose beginning was overwritten.
  std::size_t lost_before(std::span<const std::uint32_t> consumed) const {
    if (consumed.empty()) return 0;
    const auto end = consumed.size() * 4;
    const auto parts = place_ring(consumed, {.rptr = end, .wptr = end, .first = 0, .generation = q_.generation}, "");
    return parts && !parts->parts.empty() ? parts->parts.front().lost() : 0;
  }

  void read(std::vector<std::uint32_t> dwords, std::uint64_t rptr, std::size_t lost, bool consumed) {
    auto& kept = line_.dwords.emplace_back(std::move(dwords));
    const auto begin = consumed ? rptr - kept.size() * 4 : rptr;
    const auto all = std::span<const std::uint32_t>(kept);
    for (auto next = lost; next < all.size();) {
      if (consumed) next += skipped_nops(all.subspan(next));
      const auto at = begin + next * 4;
      Packet p{
          .view = Reader{all.subspan(next), catalogue(q_.generation)}.next(), .position = at, .consumed = consumed};
      to_snapshot(p.view, std::span(kept).subspan(next));
      next += p.view.dwords.size();
      if (q_.positions_wrap) p.position %= line_.bytes;
      const auto length = p.view.info && p.view.info->head <= p.view.dwords.size()
                              ? p.view.info->length(p.view.dwords.data())
                              : p.view.dwords.size();
      const bool doubt = p.view.info && p.view.info->doubt;
      p.wraps = !is_window() && !doubt && at % line_.bytes + length * 4 > line_.bytes;
      line_.packets.push_back(p);
      // Where the next packet begins is not certain, up to rptr or wptr.
      if (doubt) break;
      if (p.view.is<Indirect>()) indirect(p);
    }
  }

  /// How many dwords of a long run of zeros are left out: NOPs that did nothing, of which a ring may have millions.
  static std::size_t skipped_nops(std::span<const std::uint32_t> dwords) noexcept {
    constexpr std::size_t kKept = 64;
    const auto zeros = sdma::detail::leading_zeros(dwords);
    return zeros > kKept ? zeros - kKept : 0;
  }

  void indirect(const Packet& from) {
    if (from.view.cut_off) return;
    const auto ib = decode<Indirect>(from.view.dwords, *from.view.info);
    if (ib.dwords == 0) return;
    std::vector<std::uint32_t> buffer(std::min<std::size_t>(ib.dwords, indirect_left_));
    if (ib.dwords > indirect_left_ || read_memory(s_, ib.base, std::as_writable_bytes(std::span(buffer))) != Errc::ok) {
      line_.packets.back().unread = true;
      line_.packets.back().beyond = ib.dwords > indirect_left_;
      return;
    }
    indirect_left_ -= ib.dwords;
    auto& kept = line_.dwords.emplace_back(std::move(buffer));
    for (Reader reader{kept, catalogue(q_.generation)}; reader;) {
      const auto at = reader.position_dwords();
      line_.packets.push_back(
          {.view = reader.next(), .position = from.position, .consumed = from.consumed, .inside = true});
      to_snapshot(line_.packets.back().view, std::span(kept).subspan(at));
    }
  }

  /// Replaces the addresses of a process by those of the merged snapshot.
  void to_snapshot(const PacketView& v, std::span<std::uint32_t> dwords) const {
    if (q_.process == 0) return;
    detail::each_address(
        v, [&](const FieldInfo& f, GpuVa va) { store(f, address_in(s_, q_.process, va).value, dwords.data()); });
  }

  const QueueSnapshot& q_;
  const Snapshot& s_;
  Line line_;
  std::size_t indirect_left_ = kMostIndirect;
};

}  // namespace

std::size_t Line::last_read() const noexcept {
  auto i = head;
  while (i > 0 && packets[i - 1].view.is<Nop>()) --i;
  if (i == 0) return head;
  for (--i; i > 0 && packets[i].inside && packets[i - 1].inside;) --i;
  return i;
}

std::optional<std::size_t> Line::unread_buffer() const noexcept {
  for (auto i = last_read(); i < packets.size(); ++i)
    if (packets[i].unread) return i;
  return {};
}

Line read_line(const QueueSnapshot& q, std::size_t index, const Snapshot& s) { return LineReader{q, index, s}.take(); }

Errc read_memory(const Snapshot& s, GpuVa va, std::span<std::byte> out) {
  if (s.words.read(va, out) == Errc::ok) return Errc::ok;
  return s.peek ? s.peek(va, out) : Errc::unmapped;
}

}}}  // namespace sdma::v0_3::doctor
