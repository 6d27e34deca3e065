#include "sdma/dump/place.hpp"

#include "plausible.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::inline v0 {
namespace {

/// The longest fixed packet has 16 dwords; a WRITE of a few dwords is as likely as any.
constexpr std::size_t kStarts = 64;

/// Do the packets from `start` on end exactly where the dwords end?
bool ends_exactly(std::span<const std::uint32_t> dwords, const Catalogue& packets) noexcept {
  bool cut = false;
  for (Reader r{dwords, packets}; r;) cut = r.next().cut_off;
  return !cut;
}

/// How many dwords to leave out, so that the rest begins with a packet. A start after the first dword needs evidence.
std::size_t find_start(std::span<const std::uint32_t> dwords, bool must_end, const Catalogue& packets) {
  constexpr std::int64_t kEvidence = 8;
  struct Start {
    std::size_t at = 0;
    std::int64_t good = 0;
    bool exact = false;
  };
  const auto start = [&](std::size_t at) {
    const auto rest = dwords.subspan(at);
    return Start{at, detail::plausibility(rest, packets), must_end && ends_exactly(rest, packets)};
  };
  const auto first = start(0);
  auto best = first;
  for (std::size_t s = 1; s < std::min(dwords.size(), kStarts); ++s) {
    const auto other = start(s);
    if (other.exact != best.exact ? other.exact : other.good > best.good) best = other;
  }
  if (best.good < kEvidence) return 0;
  if (best.exact && !first.exact) return best.at;
  // A first packet that breaks a rule is a finding. One that sets reserved bits is more likely the end of another packet.
  const auto v = Reader{dwords, packets}.next();
  bool fragment = !v.whole() || v.is<Nop>();
  for (std::size_t i = 0; !fragment && i < v.info->head; ++i) fragment = (v.dwords[i] & v.info->reserved(i)) != 0;
  return fragment && best.exact == first.exact && best.good > first.good ? best.at : 0;
}

Diagnostic wrong(std::string_view name, std::string message, std::string hint) {
  return {.rule = "dump", .where = std::string(name), .message = std::move(message), .hint = std::move(hint)};
}

class Cutter {
 public:
  Cutter(std::span<const std::uint32_t> dump, const RingPositions& p, std::string_view name)
      : dump_(dump), first_(p.first), packets_(catalogue(p.generation)), name_(name) {}

  /// The dwords [begin, end) of the dump, around its end if `end` is not after `begin`.
  void add(RingPartKind kind, std::size_t begin, std::size_t n, bool aligned) {
    if (n == 0) return;
    RingPart p{.kind = kind, .at = first_ + begin * 4};
    p.dwords.reserve(n);
    for (std::size_t i = 0; i < n; ++i) p.dwords.push_back(dump_[(begin + i) % dump_.size()]);
    if (!aligned) {
      p.lost = find_start(p.dwords, kind == RingPartKind::consumed, packets_);
      if (p.lost > 0)
        view_.notes.push_back(
            {.severity = Severity::note,
             .where = std::string(name_),
             .message = fmt::format(
                 "the first {} dword{} at {:#x} seem{} to be the end of a packet: reading begins after {}", p.lost,
                 p.lost == 1 ? "" : "s", p.at, p.lost == 1 ? "s" : "", p.lost == 1 ? "it" : "them")});
    }
    view_.parts.push_back(std::move(p));
  }
  PlacedRing take() { return std::move(view_); }

 private:
  std::span<const std::uint32_t> dump_;
  std::uint64_t first_;
  const Catalogue& packets_;
  std::string_view name_;
  PlacedRing view_;
};

}  // namespace

Result<PlacedRing, Diagnostic> place_ring(std::span<const std::uint32_t> dump, const RingPositions& p,
                                          std::string_view name) {
  Cutter cut{dump, p, name};
  if (!p.rptr && p.wptr) return wrong(name, "wptr is known, but rptr is not", "add --rptr");
  if (!p.rptr || dump.empty()) {
    cut.add(RingPartKind::whole, 0, dump.size(), false);
    return cut.take();
  }
  const auto bytes = std::uint64_t{dump.size()} * 4;
  for (const auto& [what, at] : {std::pair("rptr", p.rptr), std::pair("wptr", p.wptr)})
    if (at && *at % 4 != 0)
      return wrong(name, fmt::format("{} {:#x} is not a multiple of 4", what, *at),
                   "positions are bytes; add dw for dwords: 16dw");
  if (p.first != 0) {
    const auto end = p.first + bytes, w = p.wptr.value_or(end);
    if (*p.rptr < p.first || *p.rptr > end || w < *p.rptr || w > end)
      return wrong(
          name,
          fmt::format(
              "rptr {:#x} and wptr {:#x} do not lie in the part of the ring that the dump shows, [{:#x}, {:#x})",
              *p.rptr, w, p.first, end),
          "dump more of the ring, or give --base=0 if the dump is the whole ring");
    const auto r = static_cast<std::size_t>((*p.rptr - p.first) / 4), e = static_cast<std::size_t>((w - p.first) / 4);
    cut.add(RingPartKind::consumed, 0, r, false);
    cut.add(p.wptr ? RingPartKind::pending : RingPartKind::after, r, e - r, true);
    cut.add(RingPartKind::stale, e, dump.size() - e, false);
    return cut.take();
  }
  const auto r = static_cast<std::size_t>(*p.rptr % bytes / 4);
  if (!p.wptr) {
    cut.add(RingPartKind::after, r, dump.size(), true);
    return cut.take();
  }
  // Positions that have passed the ring's end do not wrap: then wptr is ahead by less than a ring.
  const bool unwrapped = *p.rptr >= bytes || *p.wptr >= bytes;
  if (unwrapped && (*p.wptr < *p.rptr || *p.wptr - *p.rptr >= bytes))
    return wrong(name, fmt::format("rptr {:#x} and wptr {:#x} contradict a ring of {} bytes", *p.rptr, *p.wptr, bytes),
                 "wptr is ahead of rptr by less than the ring; positions are bytes, add dw for dwords: 16dw");
  const auto w = static_cast<std::size_t>(*p.wptr % bytes / 4);
  const auto pending = (w + dump.size() - r) % dump.size();
  cut.add(RingPartKind::consumed, w, dump.size() - pending, false);
  cut.add(RingPartKind::pending, r, pending, true);
  return cut.take();
}

std::vector<PacketView> packets_of(const RingPart& part, Generation generation) {
  std::vector<PacketView> out;
  const std::span<const std::uint32_t> all{part.dwords};
  for (std::size_t i = 0; i < part.lost; ++i) out.push_back({nullptr, all.subspan(i, 1), false});
  for (std::size_t at = part.lost; at < all.size();) {
    auto v = Reader{all.subspan(at), catalogue(generation)}.next();
    // The engine stops at rptr and wptr between packets, so a packet that reaches past them is not one.
    const bool bounded = part.kind == RingPartKind::consumed || part.kind == RingPartKind::pending;
    if (v.cut_off && bounded) v = {nullptr, all.subspan(at, 1), false};
    out.push_back(v);
    at += v.dwords.size();
  }
  return out;
}

}  // namespace sdma::inline v0
