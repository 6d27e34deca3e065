// SPDX-License-Identifier: MIT
// What is known about sync cells before anything runs: which only grow or only shrink, what a random one may hold, and
// what uses them later.
#include "program.hpp"

#include <algorithm>
#include <set>

namespace sdma::explore::detail {
namespace {

/// Everything that posts to a cell or waits for it, in all epochs.
struct Uses {
  struct Post {
    bool add{}, known{};
    std::size_t agent{};
    std::int64_t value{};
  };
  struct Wait {
    Compare func{};
    std::uint64_t value{};
    std::uint32_t mask{};
    bool* stable{};
    std::uint8_t bytes{};
  };
  std::vector<Post> posts;
  std::vector<Wait> waits;
  bool other = false;  ///< a condition, a copy, another atomic, a word that begins elsewhere
};

class Classifier {
 public:
  explicit Classifier(Program& p) : p_(p), uses_(p.cells.size()) {}

  void run() {
    collect();
    for (std::size_t c = 0; c < p_.cells.size(); ++c)
      if (p_.cells[c].sync) commute(c);
    unknowns();
  }

 private:
  void wait(const Word& w, Compare f, std::uint64_t value, std::uint32_t mask, bool* stable) {
    for (std::size_t i = 1; i < w.cells; ++i) upper_.insert(w.first + i);
    uses_[w.first].waits.push_back({f, value, mask, stable, w.bytes});
  }
  void post(const Word& w, bool add, bool known, std::size_t agent, std::uint64_t value) {
    for (std::size_t i = 1; i < w.cells; ++i) upper_.insert(w.first + i);
    const auto n = w.bytes == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
    uses_[w.first].posts.push_back({add, known, agent, add ? n : static_cast<std::int64_t>(value)});
  }

  void collect() {
    for (std::size_t q = 0; q < p_.queues.size(); ++q)
      for (auto& k : p_.queues[q].packets) {
        using Kind = Packet::Kind;
        if (k.kind == Kind::poll) wait(k.word, k.func, k.value, k.mask, &k.stable);
        if (k.kind == Kind::condition) uses_[k.word.first].other = true;
        if (k.kind == Kind::data)
          for (std::size_t c = 0; c < p_.cells.size(); ++c)
            if ((k.sync_read | k.sync_write) >> c & 1) uses_[c].other = true;
        if (k.kind != Kind::release) continue;
        const bool store = k.op == Packet::Op::store, add = k.op == Packet::Op::add;
        post(k.word, add, (store && p_.profile.fences_ordered) || add, q, k.value);
      }
    for (std::size_t h = 0; h < p_.hosts.size(); ++h)
      for (auto& a : p_.hosts[h].actions) {
        using Kind = Action::Kind;
        if (a.kind == Kind::wait) wait(a.word, a.func, a.value, ~0u, &a.stable);
        if (a.kind == Kind::set || a.kind == Kind::add)
          post(a.word, a.kind == Kind::add, a.sample < 0, kMostQueues + h, a.value);
        if (a.kind == Kind::sample || a.sample >= 0) uses_[a.word.first].other = true;
      }
    for (const auto& x : p_.shadows)
      for (const auto& w : {x.memory, x.copy})
        for (std::size_t i = 0; i < w.cells; ++i) uses_[w.first + i].other = true;
  }

  /// Does cell `c` only grow or only shrink, with waits that its growth cannot undo?
  void commute(std::size_t c) {
    auto& u = uses_[c];
    const auto& cell = p_.cells[c];
    if (u.other || cell.unknown || upper_.count(c) || (cell.bytes != 4 && cell.bytes != 8)) return;
    const auto first = static_cast<std::int64_t>(cell.value);
    if (first < 0 || first > 0xffffffffll) return;
    std::int64_t last = first;
    bool up = true, down = true;
    const bool adds = !u.posts.empty() && u.posts.front().add;
    for (const auto& x : u.posts) {
      if (!x.known || x.add != adds || (!adds && x.agent != u.posts.front().agent)) return;
      const auto next = adds ? last + x.value : x.value;
      up = up && next >= last;
      down = down && next <= last;
      last = next;
      if (last < 0 || last > 0xffffffffll) return;
    }
    if (!up && !down) return;
    for (const auto& w : u.waits) {
      if (w.mask != ~0u) return;
      const auto value = static_cast<std::int64_t>(w.value);
      bool stable = w.func == Compare::always || (w.func == Compare::eq && value == last) ||
                    (w.func == Compare::ne && value == first);
      stable = stable || (up && (w.func == Compare::ge || w.func == Compare::gt));
      stable = stable || (down && (w.func == Compare::le || w.func == Compare::lt));
      if (!stable) return;
    }
    for (const auto& w : u.waits) *w.stable = true;
    p_.commuting |= bit(c);
    // The other half of a 64-bit word never changes.
    if (cell.bytes == 4 && c + 1 < p_.cells.size() && upper_.count(c + 1) && half_unused(c + 1))
      p_.commuting |= bit(c + 1);
  }
  bool half_unused(std::size_t c) const {
    return uses_[c].posts.empty() && uses_[c].waits.empty() && !uses_[c].other && p_.cells[c].value == 0 &&
           !p_.cells[c].unknown;
  }

  /// Values that satisfy the waits for an unknown cell, and values that do not.
  void unknowns() {
    // Copies carry an unknown value from cell to cell.
    std::vector<bool> matters(p_.cells.size());
    std::set<std::uint64_t> values{0};
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      matters[c] = p_.cells[c].sync && (!uses_[c].waits.empty() || uses_[c].other || upper_.count(c));
      for (const auto& w : uses_[c].waits) values.insert({w.value, w.value + 1});
    }
    for (const auto& q : p_.queues)
      for (const auto& k : q.packets)
        if (k.kind == Packet::Kind::condition) values.insert(k.value);
    for (bool more = true; more;) {
      more = false;
      for (const auto* moves : {&p_.now, &p_.later})
        for (const auto& m : *moves) {
          if (m.from < 0 || !matters[static_cast<std::size_t>(m.to)] || matters[static_cast<std::size_t>(m.from)])
            continue;
          matters[static_cast<std::size_t>(m.from)] = more = true;
        }
    }
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      auto& cell = p_.cells[c];
      // Data is only copied: which bytes it holds makes no difference, as long as copies of other data differ. An
      // expectation compares it.
      if (!matters[c] && !cell.sync && p_.expectations.empty() && p_.now_expected.empty()) cell.value = cell.tag;
      cell.unknown = cell.unknown && matters[c] && cell.bytes <= 8;
      if (!cell.unknown) continue;
      std::set<std::uint64_t> here;
      for (const auto& w : uses_[c].waits) here.insert({w.value - 1, w.value, w.value + 1});
      if (here.empty()) here = values;
      here.insert(0);
      for (auto v : here) {
        if (cell.bytes < 8) v &= (std::uint64_t{1} << (8 * cell.bytes)) - 1;
        if (cell.candidates.size() < 6) cell.candidates.push_back(v);
      }
    }
  }

  Program& p_;
  std::vector<Uses> uses_;
  std::set<std::size_t> upper_;  // cells that are not the first of a word
};

}  // namespace

void classify(Program& p) { Classifier{p}.run(); }

void suffixes(Program& p) {
  for (auto& q : p.queues) {
    const auto n = q.packets.size();
    for (auto* v : {&q.polls, &q.posts, &q.move_reads, &q.move_writes, &q.data_reads, &q.data_writes})
      v->assign(n + 1, 0);
    for (auto i = n; i-- > 0;) {
      const auto& k = q.packets[i];
      const bool data = k.kind == Packet::Kind::data, release = k.kind == Packet::Kind::release;
      q.polls[i] = q.polls[i + 1] | (data || release ? Mask{} : k.sync_read);
      q.posts[i] = q.posts[i + 1] | (release ? k.sync_write : Mask{});
      q.move_reads[i] = q.move_reads[i + 1] | (data ? k.sync_read : Mask{});
      q.move_writes[i] = q.move_writes[i + 1] | (data ? k.sync_write : Mask{});
      q.data_reads[i] = q.data_reads[i + 1] | k.data_read;
      q.data_writes[i] = q.data_writes[i + 1] | k.data_write;
    }
  }
  for (auto& h : p.hosts) {
    const auto n = h.actions.size();
    h.reads.assign(n + 1, 0);
    h.writes.assign(n + 1, 0);
    h.data_reads.assign(n + 1, 0);
    h.data_writes.assign(n + 1, 0);
    h.submits.assign(n + 1, 0);
    for (auto i = n; i-- > 0;) {
      const auto& a = h.actions[i];
      const bool looks = a.kind == Action::Kind::wait || a.kind == Action::Kind::sample;
      const bool posts = a.kind == Action::Kind::set || a.kind == Action::Kind::add;
      h.reads[i] = h.reads[i + 1] | (looks ? a.cells : Mask{});
      h.writes[i] = h.writes[i + 1] | (posts ? a.cells : Mask{});
      h.data_reads[i] = h.data_reads[i + 1] | a.data_read;
      h.data_writes[i] = h.data_writes[i + 1] | a.data_write;
      h.submits[i] = h.submits[i + 1] | (a.kind == Action::Kind::submit ? std::uint64_t{1} << a.queue : 0);
    }
  }
}

}  // namespace sdma::explore::detail
