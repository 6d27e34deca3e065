// SPDX-License-Identifier: MIT
// Finds the data packets that store a known value to a word that something waits for: posts that land in no order with
// the other posts of their queue, and that say nothing about the data before them.
//
//   flag           Q16: a WRITE of one dword, if a full barrier (a fence, and a poll of the fence's value) separates it
//                  from all data before it in its queue, or if writes are ordered (Q2): then the flag covers that data
//   first value    a WRITE of one dword or a FILL of the word, with a value that satisfies none of its waits
//
// Any other store of data to such a word is an error (data-as-flag): what waits for it would not wait for the data.
#include "model.hpp"

#include <algorithm>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// What is waited for, by address.
class Awaited {
 public:
  struct Wait {
    std::uint32_t bytes = 4, mask = ~0u;
    Compare func{};
    EpochValue value{};
  };
  void add(std::uint64_t address, Wait w) { waits_[address].push_back(w); }

  /// The only address that is waited for and has bytes from `begin` to `end`; nullopt if there is none, or another one.
  std::optional<std::uint64_t> only(std::uint64_t begin, std::uint64_t end) const {
    auto w = waits_.lower_bound(begin < 8 ? 0 : begin - 7);
    while (w != waits_.end() && w->first + bytes(w->first) <= begin) ++w;
    if (w == waits_.end() || w->first >= end) return {};
    const auto next = std::next(w);
    if (w->first < begin || w->first + bytes(w->first) > end || (next != waits_.end() && next->first < end)) return {};
    return w->first;
  }
  std::uint32_t bytes(std::uint64_t address) const {
    const auto& all = waits_.at(address);
    return std::any_of(all.begin(), all.end(), [](const Wait& w) { return w.bytes == 8; }) ? 8 : 4;
  }
  /// Can this value satisfy a wait for the word in one of the first rounds?
  bool satisfied_by(std::uint64_t address, std::uint64_t value) const {
    const auto& waits = waits_.at(address);
    return std::any_of(waits.begin(), waits.end(), [&](const Wait& w) {
      const auto seen = truncate(w.bytes, value) & (w.bytes == 4 ? w.mask : ~std::uint64_t{0});
      return holds(seen, w.func, truncate(w.bytes, w.value.at(1))) ||
             holds(seen, w.func, truncate(w.bytes, w.value.at(2)));
    });
  }

 private:
  std::map<std::uint64_t, std::vector<Wait>> waits_;
};

/// The value that a packet stores to each of its dwords; nullopt if they differ, or are not known.
std::optional<std::uint64_t> stored(const PacketView& v) {
  if (v.is<Write>()) {
    const auto w = decode<Write>(v.dwords);
    if (w.data.size() == 1) return w.data[0];
  } else if (v.is<Fill>()) {
    const auto f = decode<Fill>(v.dwords);
    if (f.unit == FillUnit::dword || f.data == 0) return f.data;
  }
  return {};
}

}  // namespace

void Model::find_flags() {
  Awaited awaited;
  for (const auto& p : programs)
    for (const auto& i : p.items)
      if (i.what == What::poll) awaited.add(i.sync.address, {4, i.sync.mask, i.sync.func, i.sync.value});
  detail::each_action(schedule, [&](const Schedule::Action& a) {
    // A value that depends on a sample may be any value.
    if (a.kind == Schedule::Action::Kind::wait)
      awaited.add(canonical(a.signal), {.bytes = detail::word_bytes(schedule, a.signal),
                                        .func = a.value.sample.empty() ? a.func : Compare::always,
                                        .value = a.value.plus});
  });

  const auto flag = [&](std::size_t queue, Item& item, bool barrier) {
    if ((item.what != What::copy && item.what != What::write) || item.touches != 1) return false;
    auto& touch = programs[queue].touches[item.touch];
    const auto value = stored(Reader{std::span(schedule.queues[queue].dwords).subspan(item.dword)}.next());
    const auto address = value && touch.mode == Mode::write ? awaited.only(touch.begin, touch.end) : std::nullopt;
    if (!address) return false;
    const auto bytes = awaited.bytes(*address);
    const auto whole = bytes == 8 ? *value << 32 | *value : *value;
    if (awaited.satisfied_by(*address, whole) && !(barrier && item.what == What::write)) return false;
    item.sync = {.word = 0, .bytes = static_cast<std::uint8_t>(bytes), .address = *address, .value = whole};
    if (item.what == What::write) {
      touch.mode = Mode::store;
      programs[queue].flags = true;
    }
    return true;
  };
  for (std::size_t q = 0; q < programs.size(); ++q) {
    auto& p = programs[q];
    bool barrier = true;          // no data since the last full barrier
    const Item* fence = nullptr;  // the last one, if no data comes after it
    for (auto& i : p.items) {
      if (i.what == What::post && i.sync.op == Op::store) fence = &i;
      // Q5, Q2: assumptions under which less is a barrier.
      barrier = barrier || profile.writes_ordered || (profile.fence_full && i.what == What::post);
      // Q12, Q18: packets that wait for everything earlier.
      if (i.info && !i.skipped &&
          ((profile.cond_exec_ordered && is<CondExec>(*i.info)) || (profile.nop_drains && is<Nop>(*i.info)))) {
        p.barriers.push_back(static_cast<std::uint32_t>(&i - p.items.data() + 1));
        barrier = true;
      }
      const bool equals = i.sync.func == Compare::eq || i.sync.func == Compare::ge;
      if (i.what == What::poll && fence && !i.sync.finite && equals && i.sync.mask == ~0u &&
          i.sync.address == fence->sync.address && i.sync.value == fence->sync.value)
        barrier = true;
      if (!flag(q, i, barrier) && (i.what == What::copy || i.what == What::write || i.what == What::indirect)) {
        barrier = false;
        fence = nullptr;
      }
      if (i.what == What::write) p.writes.push_back(static_cast<std::uint32_t>(&i - p.items.data() + 1));
      if (i.sync.word == kNone) continue;
      p.stored_flags += i.flag();
      ++(i.what == What::poll ? p.acquires : p.posts);
    }
  }
}

}}}  // namespace sdma::v0_3::check_detail
