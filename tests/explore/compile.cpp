// SPDX-License-Identifier: MIT
// Turns a schedule into cells, streams and scripts.
#include "program.hpp"
#include "sdma/device/topology.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace sdma::explore {
namespace {

using namespace detail;
using Kind = Packet::Kind;
using Expects = Schedule::Expectation::Kind;

class Compiler {
 public:
  Compiler(const Schedule& s, const Profile& profile) : s_(s) {
    p_.schedule = &s;
    p_.profile = profile;
  }

  Program run() {
    if (s_.queues.size() > kMostQueues || s_.hosts.size() > kMostHosts) refuse("this many queues or hosts");
    if (s_.hosts.empty()) refuse("a schedule without hosts");
    submits_.resize(s_.queues.size());
    if (!s_.kernels.empty()) refuse("kernels");
    for (const auto& h : s_.hosts) count(h.actions);
    if (p_.unsupported.empty()) decode();
    if (p_.unsupported.empty()) memory();
    if (p_.unsupported.empty())
      for (std::size_t q = 0; q < s_.queues.size(); ++q) stream(q);
    if (p_.unsupported.empty()) engines();
    if (p_.unsupported.empty())
      for (const auto& h : s_.hosts) script(h);
    if (p_.unsupported.empty()) expectations();
    if (p_.unsupported.empty()) detail::classify(p_);
    if (p_.unsupported.empty()) suffixes();
    return std::move(p_);
  }

 private:
  void refuse(std::string what) {
    if (p_.unsupported.empty()) p_.unsupported = std::move(what);
  }

  void count(const std::vector<Schedule::Action>& actions) {
    for (const auto& a : actions) {
      if (a.kind == Schedule::Action::Kind::submit)
        for (const auto q : a.queues) ++submits_[q];
      for (std::uint64_t n = 0; n < std::min<std::uint64_t>(a.rounds, 4096); ++n) count(a.body);
      if (a.rounds > 4096) refuse("a repeat with this many rounds");
    }
  }

  void decode() {
    raw_.resize(s_.queues.size());
    for (std::size_t q = 0; q < s_.queues.size(); ++q)
      for (std::uint32_t e = 1; e <= submits_[q] && p_.unsupported.empty(); ++e) {
        raw_[q].push_back(decode_submit(s_, s_.queues[q], e, p_.unsupported));
        if (raw_[q].size() * raw_[q].back().size() > kMostPackets) refuse("a queue with this many packets");
      }
  }

  void words(const std::vector<Schedule::Action>& actions) {
    for (const auto& a : actions) {
      if (a.kind == Schedule::Action::Kind::set || a.kind == Schedule::Action::Kind::wait) word(signal(a));
      words(a.body);
    }
  }
  Range signal(const Schedule::Action& a) const {
    const auto begin = canonical(s_, a.signal);
    const auto l = find_symbol(s_, a.signal);
    return {begin, begin + (l ? bytes_of(s_, *l) : 8)};
  }
  void word(Range r) {
    ranges_.push_back(r);
    words_.push_back(r);
  }

  void memory() {
    std::vector<Copied> copies;
    for (const auto& q : raw_)
      for (const auto& submit : q)
        for (const auto& raw : submit) {
          for (const auto& part : raw.parts) {
            ranges_.push_back({part.to, part.to + part.bytes});
            if (part.from != Part::From::copy) continue;
            ranges_.push_back({part.source, part.source + part.bytes});
            copies.push_back({part.source, part.to, part.bytes});
          }
          if (raw.word_va != 0) word({raw.word_va, raw.word_va + raw.packet.word.bytes});
        }
    for (const auto& h : s_.hosts) words(h.actions);
    for (const auto& e : s_.expectations) {
      if (e.kind == Expects::finding) continue;
      ranges_.push_back(range(e, e.left));
      if (e.kind == Expects::value) continue;
      ranges_.push_back(range(e, e.right));
      copies.push_back({ranges_.back().begin, ranges_.end()[-2].begin, e.left.bytes});
    }
    const auto earlier = [](const auto& a, const auto& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    };
    std::sort(ranges_.begin(), ranges_.end(), earlier);
    ranges_.erase(std::unique(ranges_.begin(), ranges_.end(),
                              [](const auto& a, const auto& b) { return a.begin == b.begin && a.end == b.end; }),
                  ranges_.end());
    if (!make_cells(s_, ranges_, copies, p_.cells)) return refuse("this many cells");
    for (std::size_t c = 0; c < p_.cells.size(); ++c)
      if (p_.cells[c].buffer) p_.buffers |= bit(c);
    for (const auto& c : p_.cells)
      if (!find_symbol(s_, GpuVa{c.va})) return refuse("an address outside every buffer and signal");
    for (const auto& w : words_) {
      const auto cells = cells_of(p_.cells, w.begin, w.end - w.begin);
      for (std::size_t i = 0; i < cells.cells; ++i) p_.cells[cells.first + i].sync = true;
    }
  }

  /// The bytes that an expectation compares; of a value, its signal.
  Range range(const Schedule::Expectation& e, const Schedule::Range& r) const {
    const auto begin = canonical(s_, r.va);
    const auto l = find_symbol(s_, r.va);
    return {begin, begin + (e.kind == Expects::bytes ? r.bytes : l ? bytes_of(s_, *l) : 8)};
  }
  void expectations() {
    const auto cells = [&](const Range& r) { return cells_of(p_.cells, r.begin, r.end - r.begin); };
    for (const auto& e : s_.expectations) {
      if (e.kind == Expects::finding) continue;
      p_.expectations.push_back({.expectation = &e, .left = cells(range(e, e.left))});
      if (e.kind == Expects::bytes) p_.expectations.back().right = cells(range(e, e.right));
    }
  }

  std::uint64_t constant(const Part& part, const Cell& c) const {
    std::uint64_t v = 0;
    const auto at = [&](std::uint64_t i) { return part.content[(c.va - part.to + i) % part.content.size()]; };
    if (c.bytes <= 8)
      for (std::uint64_t i = 0; i < c.bytes; ++i) v |= std::uint64_t{at(i)} << (8 * i);
    else if (std::any_of(part.content.begin(), part.content.end(), [](auto b) { return b != 0; }))
      for (std::uint64_t i = 0; i < c.bytes; ++i) v = v * 0x9e3779b97f4a7c15 + at(i) + 1;
    return v;
  }

  void move(std::size_t q, Packet& k, std::size_t index, Move m) {
    const auto& to = p_.cells[static_cast<std::size_t>(m.to)];
    const bool from_sync = m.from >= 0 && p_.cells[static_cast<std::size_t>(m.from)].sync;
    if (m.from >= 0) (from_sync ? k.sync_read : k.data_read) |= bit(static_cast<std::size_t>(m.from));
    (to.sync ? k.sync_write : k.data_write) |= bit(static_cast<std::size_t>(m.to));
    // In a queue that is in order, what follows a move with a sync cell in its bytes must not come before it.
    const Mask data = bit(static_cast<std::size_t>(m.to)) | (m.from >= 0 ? bit(static_cast<std::size_t>(m.from)) : 0);
    if (!from_sync && !to.sync && (data & late_) == 0) {
      p_.now.push_back(m);
      ++k.nows;
      return;
    }
    m.queue = static_cast<std::uint8_t>(q);
    m.packet = static_cast<std::uint8_t>(index);
    m.load_at_start = m.from >= 0 && !from_sync && to.sync && (late_ & bit(static_cast<std::size_t>(m.from))) == 0;
    if (p_.profile.copies_in_order || p_.profile.writes_ordered) late_ |= data;
    if (m.from >= 0 && to.sync) m.slot = static_cast<std::int16_t>(p_.slots++);
    if (p_.later.size() == kMostMoves) return refuse("this many copies of flags");
    p_.queues[q].moves |= std::uint64_t{1} << p_.later.size();
    p_.later.push_back(m);
    ++k.laters;
  }

  void stream(std::size_t q) {
    auto& out = p_.queues.emplace_back();
    late_ = 0;
    const auto& queue = s_.queues[q];
    // The size that bind chooses: room for four submits, and at least 64K.
    out.ring = queue.ring_bytes != 0
                   ? queue.ring_bytes
                   : std::max<std::uint64_t>(std::bit_ceil(std::uint64_t{queue.dwords.size()} * 16), 64 << 10);
    for (const auto& submit : raw_[q]) {
      const auto begin = out.packets.size();
      for (const auto& raw : submit) {
        auto k = raw.packet;
        const auto index = out.packets.size();
        k.now = static_cast<std::uint16_t>(p_.now.size());
        k.later = static_cast<std::uint16_t>(p_.later.size());
        for (const auto& part : raw.parts) {
          const auto to = cells_of(p_.cells, part.to, part.bytes);
          const auto from = part.from == Part::From::copy ? cells_of(p_.cells, part.source, part.bytes) : to;
          for (std::size_t i = 0; i < to.cells; ++i) {
            Move m{.to = static_cast<std::int16_t>(to.first + i)};
            if (part.from == Part::From::copy) m.from = static_cast<std::int16_t>(from.first + i);
            else m.value = constant(part, p_.cells[to.first + i]);
            move(q, k, index, m);
          }
        }
        if (raw.word_va != 0) {
          k.word = cells_of(p_.cells, raw.word_va, k.word.bytes);
          const auto cells = Program::mask(k.word);
          k.sync_read = cells;
          if (k.kind == Kind::release) k.sync_write = cells;
        }
        const auto me = std::uint64_t{1} << index;
        if (k.kind == Kind::release) out.releases |= me;
        if (k.kind == Kind::data) out.data |= me;
        if ((k.data_read | k.data_write) != 0) out.lasting |= me;
        if (k.is_write) out.writes |= me;
        if (k.kind == Kind::condition || k.kind == Kind::selection) {
          out.has_conditions = true;
          std::size_t n = 0, at = index - begin + 1;
          while (n < raw.skip && at < submit.size()) n += submit[at++].packet.dwords;
          if (n != raw.skip) refuse("a condition that ends inside a packet or after its submit");
          k.skip_to = static_cast<std::uint16_t>(begin + at);
        }
        out.packets.push_back(k);
      }
      pieces(out, begin);
    }
    out.may_fill = !out.pieces.empty() && out.pieces.back().ring_end >= out.ring;
  }

  /// Each piece takes at most half of the ring, and no piece crosses the end of the ring.
  void pieces(Stream& out, std::size_t begin) {
    for (std::size_t i = begin; i < out.packets.size();) {
      std::uint64_t bytes = 0;
      auto end = i;
      for (; end < out.packets.size() && bytes + out.packets[end].dwords * 4 <= out.ring / 2; ++end)
        bytes += out.packets[end].dwords * 4;
      if (end == i) return refuse("a packet that is larger than half its ring");
      auto at = out.pieces.empty() ? 0 : out.pieces.back().ring_end;
      if (at % out.ring + bytes > out.ring) at += out.ring - at % out.ring;
      for (auto k = i; k < end; ++k) out.packets[k].ring_end = at += out.packets[k].dwords * 4;
      out.pieces.push_back({static_cast<std::uint16_t>(end - i), at});
      i = end;
    }
  }

  void engines() {
    static const auto node = mi300x();
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> shared;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> of;
    for (std::size_t q = 0; q < s_.queues.size(); ++q) {
      const auto& queue = s_.queues[q];
      auto engine = queue.engine;
      if (queue.peer) {
        const GpuId gpu{queue.place.index};
        const auto e = queue.peer->is_host() ? node->engine_for(gpu, HostDirection::to_host)
                                             : node->engine_for(gpu, GpuId{queue.peer->index});
        engine = e ? e->value : 1000 + queue.peer->index;
      }
      of.emplace_back(queue.place.index, engine);
      shared[of.back()] |= std::uint64_t{1} << q;
    }
    std::uint32_t n = 0;
    for (const auto& [engine, queues] : shared) {
      for (std::size_t q = 0; q < of.size(); ++q) {
        if (of[q] != engine) continue;
        p_.queues[q].engine = n;
        if (!p_.profile.poll_yields && !std::has_single_bit(queues))
          p_.queues[q].sharers = queues & ~(std::uint64_t{1} << q);
      }
      ++n;
    }
  }

  void script(const Schedule::Host& h) { actions(p_.hosts.emplace_back(), h.actions, 0); }

  void actions(Script& out, const std::vector<Schedule::Action>& from, std::uint64_t epoch) {
    using What = Schedule::Action::Kind;
    for (const auto& a : from) {
      if (out.actions.size() > 2000) return refuse("this many host actions");
      if (a.kind == What::repeat) {
        for (std::uint64_t n = 1; n <= a.rounds; ++n) actions(out, a.body, n);
      } else if (a.kind == What::submit) {
        for (const auto q : a.queues) {
          const auto n = p_.queues[q].pieces.size() / std::max(1u, submits_[q]);
          for (std::size_t i = 0; i < n; ++i)
            out.actions.push_back({.kind = Action::Kind::submit,
                                   .queue = static_cast<std::uint8_t>(q),
                                   .first = i == 0,
                                   .last = i + 1 == n});
        }
      } else if (a.kind == What::rptr) {
        out.actions.push_back({.kind = Action::Kind::rptr, .queue = static_cast<std::uint8_t>(a.queues.front())});
      } else if (a.kind != What::set && a.kind != What::wait) {
        return refuse("an action other than submit, set, wait and repeat");
      } else {
        const auto r = signal(a);
        const auto w = cells_of(p_.cells, r.begin, r.end - r.begin);
        auto value = a.value.plus.at(epoch);
        if (w.bytes == 4) value = static_cast<std::uint32_t>(value);
        out.actions.push_back({.kind = a.kind == What::set ? Action::Kind::set : Action::Kind::wait,
                               .func = a.func,
                               .word = w,
                               .cells = Program::mask(w),
                               .value = value});
      }
    }
  }

  void suffixes() {
    for (auto& q : p_.queues) {
      const auto n = q.packets.size();
      for (auto* v : {&q.polls, &q.posts, &q.move_reads, &q.move_writes, &q.data_reads, &q.data_writes})
        v->assign(n + 1, 0);
      for (auto i = n; i-- > 0;) {
        const auto& k = q.packets[i];
        const bool data = k.kind == Kind::data, release = k.kind == Kind::release;
        q.polls[i] = q.polls[i + 1] | (data || release ? Mask{} : k.sync_read);
        q.posts[i] = q.posts[i + 1] | (release ? k.sync_write : Mask{});
        q.move_reads[i] = q.move_reads[i + 1] | (data ? k.sync_read : Mask{});
        q.move_writes[i] = q.move_writes[i + 1] | (data ? k.sync_write : Mask{});
        q.data_reads[i] = q.data_reads[i + 1] | k.data_read;
        q.data_writes[i] = q.data_writes[i + 1] | k.data_write;
      }
    }
    for (auto& h : p_.hosts) {
      const auto n = h.actions.size();
      h.reads.assign(n + 1, 0);
      h.writes.assign(n + 1, 0);
      h.submits.assign(n + 1, 0);
      for (auto i = n; i-- > 0;) {
        const auto& a = h.actions[i];
        h.reads[i] = h.reads[i + 1] | (a.kind == Action::Kind::wait ? a.cells : Mask{});
        h.writes[i] = h.writes[i + 1] | (a.kind == Action::Kind::set ? a.cells : Mask{});
        h.submits[i] = h.submits[i + 1] | (a.kind == Action::Kind::submit ? std::uint64_t{1} << a.queue : 0);
      }
    }
  }

  const Schedule& s_;
  Program p_;
  std::vector<std::uint32_t> submits_;
  Mask late_ = 0;                                         ///< cells of the queue's moves that take their time
  std::vector<std::vector<std::vector<RawPacket>>> raw_;  // queue, submit, packet
  std::vector<Range> ranges_, words_;
};

}  // namespace

Program compile(const Schedule& s, const Profile& profile) { return Compiler{s, profile}.run(); }

}  // namespace sdma::explore
