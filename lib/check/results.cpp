// SPDX-License-Identifier: MIT
// Follows what every byte holds through the followed execution, and compares it with the expectations.
//
//   copy_linear gpu0.in -> gpu1.mid     gpu1.mid holds the first contents of gpu0.in
//   fill gpu1.mid[0..+4K]               .. and its first 4K a pattern
//   expect gpu1.mid == old gpu0.in      refuted: the fill put other bytes there
//
// It is asked only about a schedule that is otherwise proved. There, two accesses of which one writes are ordered alike
// in every execution, so every execution gives every byte what this one does. The exceptions change nothing: posts that
// commute, and equal stores of which either may be the last. What may differ, or is not modelled, is opaque: a time
// stamp, a packet after a condition whose outcome is not known, a value that the epoch changes, an atomic of a word
// whose value is not known. An opaque byte equals itself, wherever copies take it, and nothing else is known about it.
#include "../core/plural.hpp"
#include "../schedule/contents.hpp"
#include "../schedule/sums.hpp"
#include "bytes.hpp"
#include "reporter.hpp"
#include "sdma/packets/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Results : private Bytes {
 public:
  Results(const Model& m, Reporter& r) : Bytes(m), s_(m.schedule), r_(r) {
    detail::FirstContents{s_}.each_known([&](std::uint64_t begin, std::uint64_t bytes, std::uint64_t value) {
      first_.put(begin, bytes, {.kind = Held::Kind::pattern, .value = value});
    });
    now_ = first_;
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q) opaque_.push_back(opaque_items(q));
  }

  void run() {
    std::vector<std::uint32_t> next(m_.agents.size(), 1);
    for (const auto& run : m_.runs)
      for (auto& p = next[run.agent]; p <= run.until && taken_ <= m_.limits.pieces(); ++p) visit({run.agent, p});
    for (const auto& e : s_.expectations) {
      if (e.kind == Schedule::Expectation::Kind::finding || taken_ > m_.limits.pieces()) continue;
      compare(e, {}, e);
    }
    if (taken_ <= m_.limits.pieces()) return find_unread(), report();
    if (!s_.expectations.empty())
      r_.add({.rule = "unknown-result",
              .message = "the bytes are in more pieces than are followed, so no expectation is proved",
              .hint = r_.larger_limit() + ", or larger pieces"});
    report();
  }

 private:
  /// Which items of a queue store what is not followed: a value that depends on the epoch, or a packet that may be
  /// skipped.
  std::vector<bool> opaque_items(std::uint32_t q) const {
    const auto& items = m_.programs[q].items;
    std::vector<bool> all(items.size());
    std::uint64_t until = 0;  // dwords
    std::size_t epoch = 0;
    const auto& epochs = s_.queues[q].epochs;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto& item = items[i];
      all[i] = item.dword < until;
      while (epoch < epochs.size() && epochs[epoch].packet < item.dword) ++epoch;
      if (item.moves() && epoch < epochs.size() && epochs[epoch].packet == item.dword) all[i] = true;
      if (item.what != What::condition) continue;
      const auto view = Reader{std::span(s_.queues[q].dwords).subspan(item.dword)}.next();
      until =
          std::max<std::uint64_t>(until, std::uint64_t{item.dword} + item.dwords + skipped(*item.info, view.dwords));
    }
    return all;
  }

  void visit(Position p) {
    if (const auto* item = m_.item_at(p.agent, p.position)) {
      if (item->touches == 0) return;
      const auto index = static_cast<std::size_t>(item - m_.programs[p.agent].items.data());
      if (opaque_[p.agent][index] || !follow(*item, p)) unfollowed(*item, p);
      return;
    }
    const auto* step = m_.step_at(p.agent, p.position);
    if (!step || step->position != p.position) return;
    if (step->kind == Step::Kind::post && step->sync) return post(*step, p);
    if (step->kind == Step::Kind::life) return allocate(m_.action(p.agent, *step));
    if (step->kind != Step::Kind::touch) return;
    const auto& action = m_.action(p.agent, *step);
    using Kind = Schedule::Action::Kind;
    if (action.kind == Kind::expect)
      return compare({.left = action.range, .right = action.right, .old = action.old, .sum = action.sum}, p, action);
    if (action.kind == Kind::load) return loaded(action.range);
    if (action.kind != Kind::store) return;
    if (action.sum) {
      auto at = m_.canonical(action.range.va);
      for (const auto& b : sum(now_, action.sum, action.range, p)) store(at, b.bytes, b.held), at += b.bytes;
      return;
    }
    Held held{.kind = Held::Kind::pattern, .by = p};
    if (action.byte) held.value = *action.byte * 0x0101010101010101u;
    else {
      held = opaque(p);
      sources_.back().random = &action;
    }
    store(m_.canonical(action.range.va), action.range.bytes, held);
  }

  /// A buffer that is allocated holds its first contents. A part of a pool keeps what is there.
  void allocate(const Schedule::Action& a) {
    const auto& b = s_.buffers[find_symbol(s_, a.buffer)->index];
    if (a.kind != Schedule::Action::Kind::alloc || b.at) return;
    Pieces all;
    take(first_, a.buffer.value, b.bytes, all);
    auto at = a.buffer.value;
    for (const auto& p : all) store(at, p.bytes, p.held), at += p.bytes;
  }

  void loaded(const Schedule::Range& range) {
    Pieces bytes;
    take(now_, m_.canonical(range.va), range.bytes, bytes);
  }
  /// The lines of copies of which nothing is read, and nothing is left at the end.
  void find_unread() {
    now_.each([&](const Held& h) { read(h); });
    std::set<std::uint32_t> some, none;
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q)
      for (std::uint32_t i = 0; m_.agents[q].submits > 0 && i < read_[q].size(); ++i) {
        const auto& item = m_.programs[q].items[i];
        if (item.what == What::copy && item.info != &info_of<Fill>())
          (read_[q][i] ? some : none).insert(r_.line({q, i + 1}));
      }
    std::vector<std::uint32_t> lines;
    std::set_difference(none.begin(), none.end(), some.begin(), some.end(), std::back_inserter(lines));
    std::erase(lines, 0u);
    r_.unread(std::move(lines));
  }

  /// Follows what a packet stores. False if it is not known.
  bool follow(const Item& item, Position p) {
    if (item.what == What::poll) return item.info == &info_of<PollMem>();
    if (item.what == What::condition || item.what == What::none) return true;
    if (item.what == What::post) {
      const auto* step = m_.post_at(p.agent, p.position);
      if (!step || !step->sync) return false;
      return post(*step, p), true;
    }
    if (!item.moves()) return false;
    bool followed = false;
    const auto view = Reader{std::span(s_.queues[p.agent].dwords).subspan(item.dword)}.next();
    sdma::visit(*view.info, view.dwords, [&](const auto& packet) { followed = move(packet, p); });
    return followed;
  }

  template <class P> bool move(const P& packet, Position p) {
    if constexpr (std::is_same_v<P, CopyLinear> || std::is_same_v<P, CopyBroadcast> ||
                  std::is_same_v<P, CopySubwindow>) {
      Pieces bytes;
      footprint(packet, [&](const Region& r) {
        if (r.access == Access::read) take(r, bytes);
        else store(r, bytes, p);
      });
    } else if constexpr (std::is_same_v<P, CopySwap>) {
      Pieces a, b;
      std::vector<Region> sides;
      footprint(packet, [&](const Region& r) { take(r, sides.empty() ? a : b), sides.push_back(r); });
      store(sides[0], b, p);
      store(sides[1], a, p);
    } else if constexpr (std::is_same_v<P, Write>) {
      const auto data = std::as_bytes(packet.data);
      store(m_.canonical(packet.dst), data.size(), {.kind = Held::Kind::data, .data = data.data(), .by = p});
    } else if constexpr (std::is_same_v<P, Fill>) {
      const std::uint64_t pattern = pattern_of(packet);
      footprint(packet, [&](const Region& r) {
        store(m_.canonical(r.va), r.bytes, {.kind = Held::Kind::pattern, .value = pattern << 32 | pattern, .by = p});
      });
    } else {
      return false;
    }
    return true;
  }

  /// What its word holds then, if that is known.
  void post(const Step& s, Position p) {
    const auto& y = *s.sync;
    const auto& w = m_.words[y.word];
    Held held{.kind = Held::Kind::pattern, .by = p};
    if (s.op == Op::store && !s.whole) {
      held.value = truncate(y.bytes, s.value);
      return store(y.address, y.bytes, held);
    }
    const auto before = word(w);
    // What algebra.cpp has put in the place of an atomic holds if only posts change its word.
    const bool replaced = s.whole || s.op != y.op || s.op == Op::other;
    if (s.op == Op::unknown || !before || (replaced && (w.copied || w.unmodelled))) held = opaque(p);
    else held.value = value_after(s, w, *before);
    store(w.address, w.bytes, held);
  }
  void unfollowed(const Item& item, Position p) {
    for (auto t = item.touch; t < item.touch + item.touches; ++t) {
      const auto& touch = m_.programs[p.agent].touches[t];
      if (touch.mode == Mode::constant) continue;
      const bool reads = touch.mode == Mode::read || touch.mode == Mode::condition ||
                         (touch.mode == Mode::poll && item.info == &info_of<PollMem>());
      Pieces bytes;
      if (reads) take(now_, touch.begin, touch.end - touch.begin, bytes);
      else if (touch.begin < touch.end) store(touch.begin, touch.end - touch.begin, opaque(p));
    }
  }

  struct Failed {
    std::string text;          ///< of the expectation
    std::uint64_t begin, end;  ///< the bytes
    Held held, wanted;
    std::optional<Position> at;  ///< the action that compares
    std::size_t more = 0;
  };
  /// `written`: the expectation or the action, as the schedule has it.
  template <class Written>
  void compare(const Schedule::Expectation& e, std::optional<Position> at, const Written& written) {
    const auto begin = m_.canonical(e.left.va);
    Pieces left, right;
    if (e.kind == Schedule::Expectation::Kind::value) {
      const auto bytes = detail::word_bytes(s_, e.left.va);
      take(now_, begin, bytes, left);
      right.push_back({bytes, {.kind = Held::Kind::pattern, .value = e.value}});
    } else {
      take(now_, begin, e.left.bytes, left);
      if (e.sum) right = sum(e.old ? first_ : now_, e.sum, e.left, {kNone, 0});
      else take(e.old ? first_ : now_, m_.canonical(e.right.va), e.right.bytes, right);
    }
    std::optional<Failed> wrong, unknown;
    std::uint64_t i = 0, j = 0, from = begin;  // in the pieces, and in memory
    for (auto a = left.begin(), b = right.begin(); a != left.end() && b != right.end() && !wrong;) {
      const auto n = std::min(a->bytes - i, b->bytes - j);
      const auto held = a->held.from(i), wanted = b->held.from(j);
      const auto result = equal(held, wanted, n, e.sum.any_order);
      auto& failed = result == Equal::no ? wrong : unknown;
      if (result != Equal::yes && !failed) failed = Failed{to_text(s_, written), from, from + n, held, wanted, at};
      i += n, j += n, from += n;
      if (i == a->bytes) ++a, i = 0;
      if (j == b->bytes) ++b, j = 0;
    }
    if (!wrong && !unknown) return void(++held_);
    auto& first = wrong ? wrong_ : unknown_;
    if (first) ++first->more;
    else first = wrong ? std::move(wrong) : std::move(unknown);
  }

  /// Whose bytes these are.
  std::string whose(const Held& h, std::uint64_t bytes) const {
    if (h.kind == Held::Kind::first) return "the first contents of " + r_.range(h.at, h.at + bytes);
    if (h.kind == Held::Kind::opaque)
      return source(h).by.agent == kNone ? "a sum that is not followed" : "what " + r_.place(source(h).by) + " stores";
    if (h.kind == Held::Kind::sum)
      return fmt::format("a sum of {} of {}", detail::name(sums_.type(h)), list(sums_.parts(h), bytes));
    constexpr std::uint64_t kShown = 4;
    std::string out;
    for (std::uint64_t i = 0; i < std::min(bytes, kShown); ++i)
      out += fmt::format("{}0x{:02x}", i == 0 ? "" : " ", std::to_integer<unsigned>(h.byte(i)));
    return out + (bytes > kShown ? " .." : "");
  }
  std::string list(const std::vector<Held>& parts, std::uint64_t bytes) const {
    constexpr std::size_t kShown = 4;
    std::string out;
    for (std::size_t i = 0; i < std::min(parts.size(), kShown); ++i)
      out += (i == 0 ? "" : ", ") + whose(parts[i], bytes);
    return out + (parts.size() > kShown ? fmt::format(" and {} more", parts.size() - kShown) : "");
  }
  /// What is there, and what is not; if both are sums, only where they differ.
  std::string contrast(const Held& is, const Held& wanted, std::uint64_t bytes) const {
    const auto both = is.kind == Held::Kind::sum && wanted.kind == is.kind && sums_.type(is) == sums_.type(wanted);
    if (!both) return whose(is, bytes) + ", not " + whose(wanted, bytes);
    const auto without = [](std::vector<Held> all, const std::vector<Held>& some) {
      for (const auto& p : some) {
        const auto at = std::find_if(all.begin(), all.end(), [&](const Held& q) { return p.same(q); });
        if (at != all.end()) all.erase(at);
      }
      return all;
    };
    const auto is_of = sums_.parts(is), wanted_of = sums_.parts(wanted);
    const auto more = without(is_of, wanted_of), less = without(wanted_of, is_of);
    if (more.empty() && less.empty()) return "the right parts, but added in another order";
    auto out = fmt::format("a sum of {}", detail::name(sums_.type(is)));
    if (!less.empty()) out += " without " + list(less, bytes);
    if (more.empty()) return out;
    out += less.empty() ? " that also has " : ", but with ";
    return out + list(more, bytes);
  }
  void report() {
    r_.expectations_hold(held_);
    if (wrong_) report(*wrong_, true);
    if (unknown_) report(*unknown_, false);
  }
  /// `wrong`: it does not hold. Otherwise whether it holds is not known.
  void report(const Failed& f, bool wrong) {
    const auto bytes = f.end - f.begin;
    const auto& by = wrong || f.held.kind == Held::Kind::opaque ? f.held : f.wanted;
    Finding out{.rule = wrong ? "wrong-result" : "unknown-result", .overlap = r_.range(f.begin, f.end)};
    if (f.at) out.places.push_back(*f.at);
    const auto put = by.kind == Held::Kind::opaque && !wrong ? source(by).by : by.by;
    if (put.agent != kNone) {
      out.notes.assign(out.places.size(), "");
      out.places.push_back(put);
      out.notes.push_back("puts them there");
    }
    out.message = f.text + ": " + out.overlap + " holds " + contrast(f.held, f.wanted, bytes);
    if (!wrong)
      out.message = f.text + ": whether " + out.overlap + " holds " + whose(f.wanted, bytes) +
                    " is not known: it holds " + whose(f.held, bytes);
    if (wrong && put.agent == kNone) out.message += "; nothing has stored to them";
    if (f.more > 0) out.message += fmt::format("; {} more", plural(f.more, "expectation"));
    out.hint = wrong ? "every execution has this result: a packet or an expectation has the wrong address, or a packet "
                       "comes too late"
                     : "sdma run --test compares the bytes of some executions";
    r_.add(std::move(out));
  }

  const Schedule& s_;
  Reporter& r_;
  std::vector<std::vector<bool>> opaque_;  ///< of each queue: its items
  std::size_t held_ = 0;
  std::optional<Failed> wrong_, unknown_;
};

}  // namespace

void find_results(const Model& m, Reporter& r) {
  const auto& all = m.schedule.expectations;
  bool any =
      std::any_of(all.begin(), all.end(), [](const auto& e) { return e.kind != Schedule::Expectation::Kind::finding; });
  detail::each_action(m.schedule, [&](const auto& a) { any = any || a.kind == Schedule::Action::Kind::expect; });
  // What nothing reads is of interest in a text that hints may change.
  if (any || m.packets <= CheckOptions{}.max_mended) Results{m, r}.run();
}

}}}  // namespace sdma::v0_3::check_detail
