// SPDX-License-Identifier: MIT
// Finds the conditions that have the same outcome in every execution: the word of a COND_EXEC always holds its
// reference, or never does. Packets that are skipped in every execution are left out of the model.
//
//   signal host.w value=0            cond_exec addr=host.w reference=1: w holds 0 or 2, so the condition is never met
//   fence addr=host.w value=2
//
// A word may hold its first value, and every value that a fence, a swap, a host or a kernel stores to it. Nothing is
// known about a word that anything else may change. Skipped packets store nothing, so the search is repeated after a
// condition is found that is never met.
#include "../schedule/contents.hpp"
#include "model.hpp"
#include "sdma/packets/footprint.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// How often the search is repeated; after that, fewer conditions are known.
constexpr int kMostSearches = 4;

/// What the 4 bytes of a condition may hold.
struct Contents {
  bool known = true;
  std::set<std::uint32_t> values{};
};

class Conditions {
 public:
  explicit Conditions(Model& m) : m_(m), s_(m.schedule) {}

  void run() {
    for (int pass = 0; pass < kMostSearches; ++pass) {
      if (!first_contents()) return;
      for (auto& p : m_.programs)
        for (const auto& i : p.items) packet(p, i);
      detail::each_action(s_, [&](const Schedule::Action& a) { action(a); });
      bool found = false;
      for (std::size_t q = 0; q < m_.programs.size(); ++q) found = decide(q) || found;
      if (!found) return;
    }
  }

 private:
  /// False if no condition is left whose outcome is not known.
  bool first_contents() {
    contents_.clear();
    const detail::FirstContents first{s_};
    for (const auto& p : m_.programs)
      for (const auto& i : p.items) {
        if (i.what != What::condition) continue;
        const auto address = p.touches[i.touch].begin;
        const auto value = first.word(GpuVa{address}, 4);
        contents_[address] = {.known = value.has_value(), .values = {static_cast<std::uint32_t>(value.value_or(0))}};
      }
    return !contents_.empty();
  }

  /// Calls fn(address, contents) for each word that has bytes from `begin` to `end`.
  template <class Fn> void each_word(std::uint64_t begin, std::uint64_t end, Fn fn) {
    for (auto w = contents_.lower_bound(begin < 3 ? 0 : begin - 3); w != contents_.end() && w->first < end; ++w)
      fn(w->first, w->second);
  }
  void changes(std::uint64_t begin, std::uint64_t end) {
    each_word(begin, end, [](std::uint64_t, Contents& c) { c.known = false; });
  }
  void stores(std::uint64_t address, std::uint32_t bytes, EpochValue value) {
    each_word(address, address + bytes, [&](std::uint64_t word, Contents& c) {
      c.known = c.known && value.factor == 0 && word >= address && word + 4 <= address + bytes;
      if (c.known) c.values.insert(static_cast<std::uint32_t>(value.at(1) >> (8 * (word - address))));
    });
  }

  void packet(const Program& p, const Item& i) {
    const bool unknown = i.what == What::indirect || !i.info || i.info->fields_unknown;
    if (unknown && !i.skipped) return changes(0, ~std::uint64_t{0});
    if (i.what == What::post && i.sync.op == Op::store) return stores(i.sync.address, i.sync.bytes, i.sync.value);
    for (auto t = i.touch; t < i.touch + i.touches; ++t) {
      const auto& touch = p.touches[t];
      if (touch.mode == Mode::write || touch.mode == Mode::store || touch.mode == Mode::modify)
        changes(touch.begin, touch.end);
    }
  }
  void action(const Schedule::Action& a) {
    using Kind = Schedule::Action::Kind;
    const auto signal = m_.canonical(a.signal), range = m_.canonical(a.range.va);
    const auto bytes = detail::word_bytes(s_, a.signal);
    const bool known = a.value.sample.empty();
    if (a.kind == Kind::set && known) stores(signal, bytes, a.value.plus);
    if (a.kind == Kind::add || (a.kind == Kind::set && !known)) changes(signal, signal + bytes);
    if (a.kind == Kind::store) changes(range, range + a.range.bytes);
  }

  /// How many dwords a packet may skip.
  std::uint32_t skips(std::size_t q, const Item& i) const {
    const auto view = Reader{std::span(s_.queues[q].dwords).subspan(i.dword)}.next();
    return i.info && view.whole() ? skipped(*i.info, view.dwords) : 0;
  }
  /// Where the range that packet `i` may skip ends; nullopt if it does not end where a packet of the same submit does.
  static std::optional<std::size_t> end_of(const Program& p, std::size_t i, std::uint32_t dwords) {
    std::uint32_t n = 0;
    for (++i; i < p.items.size() && n < dwords; ++i) n += p.items[i].dwords;
    return n == dwords ? std::optional(i) : std::nullopt;
  }

  /// Finds outcomes. Returns true if packets are now known to be skipped.
  bool decide(std::size_t q) {
    auto& p = m_.programs[q];
    std::vector<std::size_t> ends;
    for (const auto& i : p.items) {
      const auto index = static_cast<std::size_t>(&i - p.items.data());
      const auto dwords = skips(q, i);
      const auto end = end_of(p, index, dwords);
      if (!end) return false;
      // Ranges that overlap in part: what the one skips, the other may execute.
      while (!ends.empty() && ends.back() <= index) ends.pop_back();
      if (dwords != 0 && !ends.empty() && ends.back() < *end) return false;
      if (dwords != 0) ends.push_back(*end);
    }
    bool any = false;
    for (std::size_t i = 0; i < p.items.size(); ++i) {
      auto& item = p.items[i];
      if (item.what != What::condition) continue;
      const auto outcome = outcome_of(q, item);
      if (outcome == Item::Outcome::unknown) continue;
      const auto end = *end_of(p, i, skips(q, item));
      item.what = What::none;
      item.outcome = outcome;
      p.touches[item.touch].mode = Mode::constant;
      if (outcome == Item::Outcome::met) continue;
      any = true;
      for (++i; i < end; ++i) {
        leave_out(p.items[i]);
        p.items[i].skipped = true;
      }
      --i;
    }
    return any;
  }
  static void leave_out(Item& item) {
    item.what = What::none;
    item.touches = 0;
    item.sync = {};
  }
  Item::Outcome outcome_of(std::size_t q, const Item& item) const {
    const auto view = Reader{std::span(s_.queues[q].dwords).subspan(item.dword)}.next();
    const auto& epochs = s_.queues[q].epochs;
    if (std::any_of(epochs.begin(), epochs.end(), [&](const auto& e) { return e.packet == item.dword; })) return {};
    const auto& now = contents_.at(m_.programs[q].touches[item.touch].begin);
    if (!now.known) return {};
    const auto met = now.values.contains(decode<CondExec>(view.dwords).reference);
    if (!met) return Item::Outcome::never;
    return now.values.size() == 1 ? Item::Outcome::met : Item::Outcome::unknown;
  }

  Model& m_;
  const Schedule& s_;
  std::map<std::uint64_t, Contents> contents_;
};

}  // namespace

void Model::evaluate_conditions() {
  if (!open) Conditions{*this}.run();
}

}}}  // namespace sdma::v0_3::check_detail
