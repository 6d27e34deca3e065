// SPDX-License-Identifier: MIT
#include "sdma/dump/place.hpp"

#include "../core/plural.hpp"
#include "plausible.hpp"
#include "resync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace sdma { inline namespace v0_3 {
namespace {

/// The longest fixed packet has 16 dwords; a WRITE of a few dwords is as likely as any.
constexpr std::size_t kStarts = 64;

/// A dword at which packets may begin, and what is read from there on.
struct Start {
  std::size_t at = 0;     ///< where it is
  std::int64_t good = 0;  ///< plausibility of the packets from there to the end
  bool exact = true;      ///< they end exactly where the dwords end
};

/// The first kStarts dwords as starts. Packets of two starts that have one boundary in common are the same from there
/// on, and most soon have: so all are read together, and the dwords hardly more than once.
std::vector<Start> starts_of(std::span<const std::uint32_t> dwords, const Catalogue& packets) {
  struct Walk {
    std::size_t start, at;
  };
  struct Join {
    std::size_t from, to;
    std::int64_t more;  ///< plausibility of `from` up to the boundary, less that of `to`
  };
  std::vector<Start> all(std::min(dwords.size(), kStarts));
  std::vector<Walk> walks;
  std::vector<Join> joins;
  for (std::size_t s = 0; s < all.size(); ++s) all[s].at = s, walks.push_back({s, s});
  while (!walks.empty()) {
    const auto w = std::min_element(walks.begin(), walks.end(), [](auto& a, auto& b) { return a.at < b.at; });
    auto& start = all[w->start];
    const auto same = std::find_if(w + 1, walks.end(), [&](const Walk& o) { return o.at == w->at; });
    if (same != walks.end()) {
      joins.push_back({same->start, w->start, all[same->start].good - start.good});
      walks.erase(same);
      continue;
    }
    if (walks.size() == 1) w->at += detail::leading_zeros(dwords.subspan(w->at));
    if (w->at < dwords.size()) {
      const auto v = Reader{dwords.subspan(w->at), packets}.next();
      start.good += detail::plausibility(v);
      start.exact = !v.cut_off;
      w->at += v.dwords.size();
    }
    if (w->at == dwords.size()) walks.erase(w);
  }
  std::for_each(joins.rbegin(), joins.rend(), [&](const Join& j) {
    all[j.from].good = all[j.to].good + j.more;
    all[j.from].exact = all[j.to].exact;
  });
  return all;
}

/// How many dwords to leave out, so that the rest begins with a packet. A start after the first dword needs evidence.
std::size_t find_start(std::span<const std::uint32_t> dwords, bool must_end, const Catalogue& packets) {
  constexpr std::int64_t kEvidence = 8;
  auto starts = starts_of(dwords, packets);
  if (starts.empty()) return 0;
  for (auto& s : starts) s.exact = s.exact && must_end;
  const auto first = starts.front();
  auto best = first;
  for (const auto& other : starts)
    if (other.exact != best.exact ? other.exact : other.good > best.good) best = other;
  if (best.good < kEvidence) return 0;
  if (best.exact && !first.exact) return best.at;
  // A first packet that breaks a rule is a finding. One with reserved bits set is more likely the end of another.
  const auto v = Reader{dwords, packets}.next();
  bool fragment = !v.whole() || v.is<Nop>();
  for (std::size_t i = 0; !fragment && i < v.info->head; ++i) fragment = (v.dwords[i] & v.info->reserved(i)) != 0;
  return fragment && best.exact == first.exact && best.good > first.good ? best.at : 0;
}

Diagnostic wrong(std::string_view name, std::string message, std::string hint) {
  return {.rule = "dump", .where = std::string(name), .message = std::move(message), .hint = std::move(hint)};
}

/// Does the engine stop where the part ends, so that no packet reaches past its end?
bool is_bounded(RingPartKind k) noexcept { return k == RingPartKind::consumed || k == RingPartKind::pending; }

std::string_view end_of(RingPartKind k) noexcept {
  return k == RingPartKind::consumed ? "rptr" : k == RingPartKind::pending ? "wptr" : "the end of the dump";
}

std::string why_lost(const RingPart& part, std::size_t at, const Catalogue& packets) {
  const auto v = Reader{std::span(part.dwords).subspan(at), packets}.next();
  if (!v.info) return fmt::format("{:#x} begins no packet", part.dwords[at]);
  const auto n = v.info->head <= v.dwords.size() ? v.info->length(v.dwords.data()) : v.info->head;
  return fmt::format("{} would have {}, but {} to {}", v.info->name, plural(n, "dword"),
                     v.dwords.size() == 1 ? "1 is left up" : fmt::format("{} are left up", v.dwords.size()),
                     end_of(part.kind));
}

/// What is read in the dwords [at, end), as the reason to read on there.
std::string evidence(const RingPart& part, std::size_t at, std::size_t end, const Catalogue& packets) {
  if (at == part.dwords.size()) return fmt::format("nothing up to {} reads as packets", end_of(part.kind));
  std::size_t all = 0, valid = 0;
  const PacketInfo* cut = nullptr;
  const auto some = std::span(part.dwords).subspan(at, end - at);
  for (std::size_t i = 0; i < some.size();) {
    if (const auto zeros = detail::leading_zeros(some.subspan(i)); zeros > 0) {
      i += zeros;
      continue;
    }
    const auto v = Reader{some.subspan(i), packets}.next();
    i += v.dwords.size();
    if (v.cut_off) cut = v.info;
    if (v.cut_off || v.is<Nop>()) continue;
    ++all;
    valid += detail::is_plausible(v);
  }
  const auto up_to = end == part.dwords.size() ? fmt::format(", up to {}", end_of(part.kind)) : "";
  if (all == 0 && cut) return fmt::format("the beginning of {} follows, and nothing else", cut->name);
  if (all == 0) return fmt::format("only NOPs follow{}", up_to);
  if (all == valid && all == 1) return fmt::format("the next packet has valid fields{}", up_to);
  return all == valid ? fmt::format("the next {} packets have valid fields{}", all, up_to)
                      : fmt::format("{} of the next {} packets {} valid fields{}", valid, all,
                                    valid == 1 ? "has" : "have", up_to);
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
    const auto until_end = dump_.subspan(begin, std::min(n, dump_.size() - begin)),
               rest = dump_.first(n - until_end.size());
    p.dwords.insert(p.dwords.end(), until_end.begin(), until_end.end());
    p.dwords.insert(p.dwords.end(), rest.begin(), rest.end());
    find_gaps(p, aligned);
    view_.parts.push_back(std::move(p));
  }
  PlacedRing take() { return std::move(view_); }

 private:
  void find_gaps(RingPart& p, bool aligned) {
    // If the first dword cannot be a packet, the gap that begins with it ends where packets begin.
    const bool readable = !detail::is_no_packet(Reader{p.dwords, packets_}.next(), is_bounded(p.kind));
    const auto start = aligned || !readable ? 0 : find_start(p.dwords, p.kind == RingPartKind::consumed, packets_);
    if (start > 0)
      p.gaps.push_back({.dwords = start, .inside_packet = true, .why = "it seems to be the end of a packet"});
    for (const auto& g : detail::find_gaps(p.dwords, start, is_bounded(p.kind), packets_))
      if (start > 0 && g.at == start)
        p.gaps.back().dwords += g.end - g.at;  // the end of a packet, and garbage after it
      else
        p.gaps.push_back({.at = g.at,
                          .dwords = g.end - g.at,
                          .inside_packet = !aligned && g.at == 0 && g.end <= kLongest && g.end < p.dwords.size(),
                          .why = why_lost(p, g.at, packets_)});
    for (std::size_t i = 0; i < p.gaps.size(); ++i) {
      auto& g = p.gaps[i];
      g.rests_on = evidence(p, g.at + g.dwords, i + 1 < p.gaps.size() ? p.gaps[i + 1].at : p.dwords.size(), packets_);
      if (i < kNotes) note(describe(p, g));
    }
    if (p.gaps.size() > kNotes)
      note(fmt::format("reading was lost in {} from there on", plural(p.gaps.size() - kNotes, "more place")));
  }
  void note(std::string message) {
    view_.notes.push_back({.severity = Severity::note, .where = std::string(name_), .message = std::move(message)});
  }

  static constexpr std::size_t kNotes = 4;     // for a part
  static constexpr std::size_t kLongest = 16;  // a fixed packet

  std::span<const std::uint32_t> dump_;
  std::uint64_t first_;
  const Catalogue& packets_;
  std::string_view name_;
  PlacedRing view_;
};

}  // namespace

std::uint64_t first_position(std::uint64_t offset, std::size_t dwords, std::optional<std::uint64_t> rptr,
                             std::optional<std::uint64_t> wptr) noexcept {
  const auto among = [&](const auto& p) { return p && *p >= offset && *p - offset <= std::uint64_t{dwords} * 4; };
  return among(rptr) && among(wptr) ? offset : 0;
}

bool is_part(std::size_t dwords, const RingPositions& p) noexcept {
  constexpr std::size_t kSmallest = 64;
  const auto bytes = std::uint64_t{dwords} * 4;
  if (p.first != 0) return true;
  if (!p.rptr || !p.wptr || *p.rptr > *p.wptr || *p.wptr > bytes) return false;
  return dwords < kSmallest || !std::has_single_bit(dwords) || *p.wptr - *p.rptr == bytes;
}

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
  if (is_part(dump.size(), p)) {
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

std::string describe(const RingPart& part, const RingGap& g, std::uint64_t base) {
  const auto at = [&](std::size_t dword) { return fmt::format("{:#x}", base + part.at + dword * 4); };
  const auto end = g.at + g.dwords;
  if (g.inside_packet)
    return fmt::format("the first {} at {} {} the end of a packet. That packets begin at {} is a guess: {}",
                       g.dwords == 1 ? "dword" : plural(g.dwords, "dword"), at(0),
                       g.dwords == 1 ? "seems to be" : "seem to be", at(end), g.rests_on);
  const auto lost = fmt::format("reading was lost at {}: {}; {} {} skipped", at(g.at), g.why, plural(g.dwords, "dword"),
                                g.dwords == 1 ? "is" : "are");
  if (end == part.dwords.size()) return fmt::format("{}: {}", lost, g.rests_on);
  return fmt::format("{}. That packets begin again at {} is a guess: {}", lost, at(end), g.rests_on);
}

std::vector<PacketView> packets_of(const RingPart& part, Generation generation) {
  std::vector<PacketView> out;
  each_packet(part, generation, [&](const PacketView& v) { out.push_back(v); });
  return out;
}

}}  // namespace sdma::v0_3
