// SPDX-License-Identifier: MIT
#pragma once
// What memory holds while results.cpp follows an execution, and whether two ranges hold the same. Internal.
//
// What a kernel adds is a sum of parts (sums.hpp). Other parts, or one that is added twice, refute an expectation, and
// so does another order of additions, unless the expectation leaves the order open. Sums with opaque or known bytes are
// only equal to themselves: 0 + x has other bits than x, if x is -0.
#include "sdma/packets/footprint.hpp"
#include "sums.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {

class Bytes {
 protected:
  explicit Bytes(const Model& m) : m_(m), read_(m.queue_count()) {
    for (std::uint32_t q = 0; q < m.queue_count(); ++q) read_[q].resize(m.programs[q].items.size());
  }

  /// Calls fn(begin, bytes) for each run of a region.
  template <class Fn> void each_run(const Region& r, Fn fn) {
    const auto va = m_.canonical(r.va);
    for (std::uint64_t z = 0; z < r.slices; ++z)
      for (std::uint64_t y = 0; y < r.rows && taken_ <= m_.limits.pieces(); ++y)
        fn(va + z * r.slice_pitch + y * r.pitch, r.bytes);
  }
  void take(const Region& r, Pieces& out) {
    each_run(r, [&](std::uint64_t begin, std::uint64_t bytes) { take(now_, begin, bytes, out); });
  }
  void take(const Memory& from, std::uint64_t begin, std::uint64_t bytes, Pieces& out) {
    const auto before = out.size();
    from.take(begin, bytes, out);
    taken_ += out.size() - before + 1;
    for (auto i = before; i < out.size(); ++i) read(out[i].held);
  }
  /// What has put these bytes there is no longer unread.
  void read(const Held& h) {
    if (const auto* item = m_.item_at(h.by.agent, h.by.position))
      read_[h.by.agent][static_cast<std::size_t>(item - m_.programs[h.by.agent].items.data())] = true;
  }
  void store(std::uint64_t begin, std::uint64_t bytes, const Held& held) {
    now_.put(begin, bytes, held);
    ++taken_;
  }
  /// Stores pieces of the same number of bytes to a region.
  void store(const Region& r, const Pieces& bytes, Position by) {
    std::size_t i = 0;
    std::uint64_t used = 0;  // of the piece
    each_run(r, [&](std::uint64_t begin, std::uint64_t left) {
      while (left > 0 && i < bytes.size()) {
        const auto n = std::min(left, bytes[i].bytes - used);
        auto held = bytes[i].held.from(used);
        held.by = by;
        store(begin, n, held);
        begin += n, left -= n, used += n;
        if (used == bytes[i].bytes) ++i, used = 0;
      }
    });
  }

  /// What a sum over this range holds, if memory holds `from`. An element whose bytes in a part come from several
  /// places is not followed, nor are parts that are moved by some bytes against what they are stored to.
  Pieces sum(const Memory& from, const Schedule::Sum& s, const Schedule::Range& range, Position by) {
    struct Part {
      Pieces pieces{};
      std::size_t piece = 0;
      std::uint64_t used = 0;  ///< of the piece
      void skip(std::uint64_t n) {
        for (used += n; piece < pieces.size() && used >= pieces[piece].bytes; ++piece) used -= pieces[piece].bytes;
      }
    };
    std::vector<Part> parts(s.parts.size());
    bool moved = false;
    const auto begin = m_.canonical(range.va);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto at = m_.canonical(s.parts[i].va);
      moved = moved || (at != begin && at < begin + range.bytes && begin < at + range.bytes);
      take(from, at, range.bytes, parts[i].pieces);
    }
    Pieces out;
    for (std::uint64_t at = 0; at < range.bytes && taken_ <= m_.limits.pieces();) {
      auto n = range.bytes - at;
      std::vector<Held> held;
      for (const auto& p : parts) {
        n = std::min(n, p.pieces[p.piece].bytes - p.used);
        held.push_back(p.pieces[p.piece].held.from(p.used));
      }
      n = n / s.element() * s.element();
      const auto known = n > 0 && !(moved && by.agent != kNone) ? sums_.add(s, held, by) : std::nullopt;
      n = std::max(n, s.element());
      auto all = known ? *known : opaque(by);
      all.by = by;
      out.push_back({n, all});
      for (auto& p : parts) p.skip(n);
      at += n;
      taken_ += parts.size();
    }
    return out;
  }

  std::optional<std::uint64_t> word(const Word& w) {
    Pieces bytes;
    take(now_, w.address, w.bytes, bytes);
    std::uint64_t value = 0;
    unsigned at = 0;
    for (const auto& b : bytes) {
      if (!b.held.known()) return {};
      for (std::uint64_t i = 0; i < b.bytes; ++i, ++at)
        value |= std::uint64_t{std::to_integer<std::uint8_t>(b.held.byte(i))} << (8 * at);
    }
    return value;
  }

  Held opaque(Position p) {
    sources_.push_back({p, nullptr});
    return {.kind = Held::Kind::opaque, .value = sources_.size() - 1, .by = p};
  }
  enum class Equal : std::uint8_t { yes, unknown, no };
  Equal equal(const Held& a, const Held& b, std::uint64_t bytes, bool any_order) const {
    if (a.same(b)) return Equal::yes;
    if (a.kind == Held::Kind::sum || b.kind == Held::Kind::sum) return equal_sums(a, b, any_order);
    if (a.known() && b.known()) {
      const bool repeats = a.kind == Held::Kind::pattern && b.kind == Held::Kind::pattern;
      const auto most = repeats ? std::min<std::uint64_t>(bytes, 8) : bytes;
      for (std::uint64_t i = 0; i < most; ++i)
        if (a.byte(i) != b.byte(i)) return Equal::no;
      return Equal::yes;
    }
    // Some of the first contents differ. What is random depends on the range and the round, so two stores may be equal.
    const auto random = [&](const Held& h) { return h.kind == Held::Kind::opaque ? source(h).random : nullptr; };
    if (a.kind == Held::Kind::opaque && b.kind == Held::Kind::opaque)
      return random(a) && random(b) && random(a)->range.va != random(b)->range.va ? Equal::no : Equal::unknown;
    const auto may_be = [&](const Held& h) { return h.kind == Held::Kind::opaque && !random(h); };
    return may_be(a) || may_be(b) ? Equal::unknown : Equal::no;
  }

  Equal equal_sums(const Held& a, const Held& b, bool any_order) const {
    const auto is = sums_.parts(a), wanted = sums_.parts(b);
    if (a.kind == b.kind && sums_.type(a) == sums_.type(b) && sums_.phase(a) == sums_.phase(b) &&
        std::equal(is.begin(), is.end(), wanted.begin(), wanted.end(),
                   [](const Held& p, const Held& q) { return p.same(q); })) {
      // Where a zero is added makes no difference, unless it meets -0.
      const bool zero = std::any_of(is.begin(), is.end(),
                                    [](const Held& p) { return p.kind == Held::Kind::pattern && p.value == 0; });
      return any_order ? Equal::yes : sums_.open(a) || sums_.open(b) || zero ? Equal::unknown : Equal::no;
    }
    const auto vague = [](const Held& p) { return p.known() || p.kind == Held::Kind::opaque; };
    const bool some = std::any_of(is.begin(), is.end(), vague) || std::any_of(wanted.begin(), wanted.end(), vague);
    return some || sums_.phase(a) != sums_.phase(b) ? Equal::unknown : Equal::no;
  }

  const Model& m_;
  Memory first_, now_;
  Sums sums_;
  struct Source {
    Position by;
    const Schedule::Action* random;  ///< it stores random contents; null: nothing is known about them
  };
  const Source& source(const Held& opaque) const { return sources_[static_cast<std::size_t>(opaque.value)]; }
  std::vector<Source> sources_;
  std::vector<std::vector<bool>> read_;  ///< of each queue, its items: something has read what one of them has stored
  std::uint64_t taken_ = 0;
};

}}}  // namespace sdma::v0_3::check_detail
