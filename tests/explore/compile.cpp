// SPDX-License-Identifier: MIT
// Turns a schedule into cells, streams and scripts.
#include "program.hpp"

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
    p_.has_network = std::any_of(s.queues.begin(), s.queues.end(), [](const auto& q) { return q.network; });
    if (!p_.has_network) return;
    // docs/nodes.md: nothing else is promised.
    auto& x = p_.profile;
    x.copies_in_order = x.writes_ordered = x.vram_fence_covers = x.fence_full = x.poll_full = x.finite_poll_edge =
        false;
  }

  Program run() {
    if (s_.queues.size() > kMostQueues || s_.hosts.size() + s_.kernels.size() > kMostHosts)
      refuse("this many queues, hosts or kernels");
    if (s_.hosts.empty()) refuse("a schedule without hosts");
    if (!p_.profile.network_flushes && p_.has_network) refuse("a network that does not flush");
    p_.refused = detail::unreachable(s_);
    submits_.resize(s_.queues.size());
    each_script([&](const auto& x, int) { count(x.actions); });
    if (p_.unsupported.empty()) decode();
    if (!find_lives(s_, p_.lives)) refuse("this many lifetimes");
    if (p_.unsupported.empty()) memory();
    if (p_.unsupported.empty())
      for (std::size_t q = 0; q < s_.queues.size(); ++q) stream(q);
    if (p_.unsupported.empty()) detail::share_engines(p_);
    if (p_.unsupported.empty())
      each_script([&](const auto& x, int gpu) {
        p_.hosts.emplace_back().gpu = gpu;
        samples_.clear();
        actions(x.actions, 0);
      });
    if (p_.unsupported.empty())
      for (const auto& e : s_.expectations)
        if (e.kind != Expects::finding) expect(p_.expectations, e, e.old);
    if (p_.unsupported.empty()) detail::classify(p_);
    for (const auto& h : p_.hosts)
      for (const auto& a : h.actions)
        for (const auto& c : p_.cells)
          if (c.unknown && c.va - a.begins.first < a.begins.second) refuse("unknown bytes that are allocated");
    if (p_.unsupported.empty()) detail::suffixes(p_);
    return std::move(p_);
  }

 private:
  /// Calls fn(host or kernel, number of its GPU, or -1).
  template <class Fn> void each_script(Fn fn) {
    for (const auto& h : s_.hosts) fn(h, -1);
    for (const auto& k : s_.kernels) fn(k, static_cast<int>(k.place.index));
    p_.has_kernels = !s_.kernels.empty();
  }
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

  void words(const std::vector<Schedule::Action>& actions, std::vector<Copied>& copies) {
    using What = Schedule::Action::Kind;
    for (const auto& a : actions) {
      if (a.kind == What::set || a.kind == What::add || a.kind == What::wait || a.kind == What::sample) word(signal(a));
      if (a.kind == What::load || a.kind == What::store || a.kind == What::expect)
        bytes(resolved(a.range), resolved(a.right), a.sum, copies);
      words(a.body, copies);
    }
  }
  Range resolved(const Schedule::Range& r) const {
    const auto begin = canonical(s_, r.va);
    return {begin, begin + r.bytes};
  }
  bool in_vram(std::uint64_t va) const {
    const auto l = find_symbol(s_, GpuVa{va});
    return l && !(l->signal ? s_.signals[l->index].place : s_.buffers[l->index].place).is_host();
  }
  /// Bytes that something compares, or that a thread accesses. Those of a sum are split into elements.
  void bytes(Range left, Range right, const Schedule::Sum& sum, std::vector<Copied>& copies) {
    const auto add = [&](Range r) {
      if (sum && r.begin % 4 != 0) refuse("a sum of elements that are not aligned");
      if (sum.type != Schedule::Sum::Type::i32 && sum.any_order && sum.parts.size() > 2)
        refuse("rounded additions in any order");
      for (auto at = r.begin; sum && at < r.end; at += 4) ranges_.push_back({at, at + 4});
      ranges_.push_back(r);
      if (r.begin != left.begin) copies.push_back({r.begin, left.begin, left.end - left.begin});
    };
    add(left);
    if (right.begin != right.end) add(right);
    for (const auto& p : sum.parts) add(resolved(p));
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
    each_script([&](const auto& x, int) { words(x.actions, copies); });
    for (const auto& e : s_.expectations) {
      if (e.kind == Expects::value) ranges_.push_back(signal({.signal = e.left.va}));
      if (e.kind == Expects::bytes) bytes(resolved(e.left), resolved(e.right), e.sum, copies);
    }
    if (!p_.unsupported.empty()) return;
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

  Word cells(const Range& r) const { return cells_of(p_.cells, r.begin, r.end - r.begin); }
  template <class Written> void expect(std::vector<Expected>& to, const Written& e, bool old) {
    Expected out{.type = e.sum.type, .old = old};
    bool value = false;
    if constexpr (std::is_same_v<Written, Schedule::Expectation>) {
      out.expectation = &e;
      value = e.kind == Expects::value;
      if (value) out.left = cells(signal({.signal = e.left.va}));
    }
    if constexpr (std::is_same_v<Written, Schedule::Action>) out.left = cells(resolved(e.range));
    else if (!value) out.left = cells(resolved(e.left));
    if (e.right.bytes != 0) out.right = cells(resolved(e.right));
    for (const auto& p : e.sum.parts) out.parts.push_back(cells(resolved(p)));
    if constexpr (std::is_same_v<Written, Schedule::Expectation>) {
      out.lives = p_.lives.of(s_, e.left.va, Place::host());
      if (!old) out.lives |= p_.lives.of(s_, e.right.va, Place::host());
      for (const auto& p : e.sum.parts)
        if (!old) out.lives |= p_.lives.of(s_, p.va, Place::host());
    }
    to.push_back(std::move(out));
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
    const bool waits = to.sync || k.is_swap;  // between its load and its store
    m.load_at_start = m.from >= 0 && !from_sync && waits && (late_ & bit(static_cast<std::size_t>(m.from))) == 0;
    if (p_.profile.copies_in_order || p_.profile.writes_ordered) late_ |= data;
    if (m.from >= 0 && waits) m.slot = static_cast<std::int16_t>(p_.slots++);
    if (p_.later.size() == kMostMoves) return refuse("this many copies of flags");
    p_.queues[q].moves |= std::uint64_t{1} << p_.later.size();
    p_.later.push_back(m);
    ++k.laters;
  }

  void stream(std::size_t q) {
    auto& out = p_.queues.emplace_back();
    late_ = 0;
    const auto& queue = s_.queues[q];
    out.network = queue.network;
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
          k.in_vram = in_vram(raw.word_va);
          k.returns = out.network && detail::node_of(s_, raw.word_va) != queue.peer->index / 2;
          if (k.kind == Kind::release) k.sync_write = cells;
        }
        const auto view = Reader{std::span(queue.dwords).subspan(k.dword)}.next();
        for (const auto& f : view.info->fields)
          if (f.kind == sdma::Kind::address && !p_.lives.all.empty())
            k.lives |= p_.lives.of(s_, GpuVa{value_of(f, view.dwords.data())}, queue.place);
        const auto me = std::uint64_t{1} << index;
        if (k.kind == Kind::release) out.releases |= me;
        if (k.kind == Kind::data) out.data |= me;
        if ((k.data_read | k.data_write) != 0) out.lasting |= me;
        if (k.is_write) out.writes |= me;
        if (k.is_stamp) out.stamps |= me;
        for (const auto& part : raw.parts)
          if (!in_vram(part.to)) out.to_host |= me;
        if (k.kind == Kind::condition || k.kind == Kind::selection) {
          out.has_conditions = true;
          std::size_t n = 0, at = index - begin + 1;
          while (n < raw.skip && at < submit.size()) n += submit[at++].packet.dwords;
          if (n != raw.skip) refuse("a condition that ends inside a packet or after its submit");
          k.skip_to = static_cast<std::uint16_t>(begin + at);
        }
        out.packets.push_back(k);
      }
      if (!detail::lay_out(out, begin)) refuse("a packet that is larger than half its ring");
    }
    out.may_fill = !out.pieces.empty() && out.pieces.back().ring_end >= out.ring;
  }

  void actions(const std::vector<Schedule::Action>& from, std::uint64_t epoch) {
    using What = Schedule::Action::Kind;
    auto& out = p_.hosts.back();
    for (const auto& a : from) {
      if (out.actions.size() > 2000) return refuse("this many host actions");
      switch (a.kind) {
        case What::repeat:
          for (std::uint64_t n = 1; n <= a.rounds; ++n) actions(a.body, n);
          break;
        case What::submit:
          for (const auto q : a.queues) {
            const auto n = p_.queues[q].pieces.size() / std::max(1u, submits_[q]);
            for (std::size_t i = 0; i < n; ++i)
              out.actions.push_back({.kind = Action::Kind::submit,
                                     .queue = static_cast<std::uint8_t>(q),
                                     .first = i == 0,
                                     .last = i + 1 == n});
          }
          break;
        case What::rptr:
          out.actions.push_back({.kind = Action::Kind::rptr, .queue = static_cast<std::uint8_t>(a.queues.front())});
          break;
        case What::compute: break;
        case What::alloc:
        case What::free:
        case What::map:
        case What::unmap:
        case What::export_handle:
        case What::close_handle: out.actions.push_back(life_action(s_, p_.lives, a)); break;
        case What::load:
        case What::store:
        case What::expect: access(a, epoch); break;
        default: synchronise(a, epoch);
      }
    }
  }

  template <class Thread> static Place user(const Thread& t) {
    return t.gpu < 0 ? Place::host() : Place::gpu(static_cast<std::uint32_t>(t.gpu));
  }
  void synchronise(const Schedule::Action& a, std::uint64_t epoch) {
    using What = Schedule::Action::Kind;
    auto& out = p_.hosts.back();
    Action x{.kind = a.kind == What::set    ? Action::Kind::set
                     : a.kind == What::add  ? Action::Kind::add
                     : a.kind == What::wait ? Action::Kind::wait
                                            : Action::Kind::sample,
             .agent_scope = out.gpu >= 0 && !a.system_scope,
             .func = a.func,
             .word = cells(signal(a)),
             .value = a.value.plus.at(epoch)};
    if (a.kind == What::sample) {
      x.sample = samples_[a.value.sample] = static_cast<std::int16_t>(p_.slots++);
    } else if (!a.value.sample.empty()) {
      const auto from = samples_.find(a.value.sample);
      if (from == samples_.end()) return refuse("a sample that is not there");
      x.sample = from->second;
    }
    x.wide = x.word.bytes == 4 && x.sample < 0 && x.kind != Action::Kind::sample && x.value > ~std::uint32_t{};
    if (x.word.bytes == 4 && x.sample < 0) x.value = static_cast<std::uint32_t>(x.value);
    x.cells = Program::mask(x.word);
    if (x.agent_scope) x.word = copy(out.gpu, x.word);
    x.cells |= Program::mask(x.word);
    x.lives = p_.lives.of(s_, a.signal, user(out));
    out.actions.push_back(x);
  }
  /// The copy of a word in the L2 of a GPU: cells after all others.
  Word copy(int gpu, const Word& w) {
    for (const auto& x : p_.shadows) {
      const bool same = x.memory.first == w.first && x.memory.cells == w.cells;
      if (!same && x.memory.first < w.first + w.cells && w.first < x.memory.first + x.memory.cells)
        refuse("halves of a word at the scope of a GPU");
      if (same && x.gpu == gpu) return x.copy;
    }
    auto out = w;
    out.first = static_cast<std::uint16_t>(p_.cells.size());
    for (std::size_t i = 0; i < w.cells; ++i) {
      p_.cells.push_back(p_.cells[w.first + i]);
      p_.cells.back().buffer = p_.cells.back().unknown = false;
      if (p_.cells[w.first + i].unknown) refuse("a word at the scope of a GPU whose first value is not known");
    }
    if (p_.cells.size() > kMostCells || p_.shadows.size() == 64) refuse("this many cells");
    p_.shadows.push_back({gpu, w, out});
    return out;
  }

  /// A thread accesses bytes: it begins, and has then accessed them.
  void access(const Schedule::Action& a, std::uint64_t epoch) {
    using What = Schedule::Action::Kind;
    auto& out = p_.hosts.back();
    const auto to = cells(resolved(a.range));
    Action x{.kind = Action::Kind::access, .now = static_cast<std::uint16_t>(p_.now.size())};
    const auto reads = [&](const Schedule::Range& r) {
      const auto w = cells(resolved(r));
      if (a.sum && w.cells != to.cells) refuse("a sum of elements that are split");
      if (r.bytes != 0 && !a.old) x.data_read |= Program::mask(w);
      return w;
    };
    std::vector<Word> parts;
    for (const auto& p : a.sum.parts) {
      parts.push_back(reads(p));
      // Lanes are in no order: what one stores, another may not have read yet.
      const auto x0 = resolved(p), y0 = resolved(a.range);
      const bool same = x0.begin == y0.begin && x0.end == y0.end;
      if (a.kind == What::store && !same && x0.begin < y0.end && y0.begin < x0.end)
        p_.refused = "a sum over a shifted part";
    }
    if (a.kind == What::expect) {
      reads(a.right);
      x.expected = static_cast<std::int16_t>(p_.now_expected.size());
      expect(p_.now_expected, a, a.old);
    }
    (a.kind == What::store ? x.data_write : x.data_read) |= Program::mask(to);
    x.lives = p_.lives.of(s_, a.range.va, user(out));
    if (!a.old) x.lives |= p_.lives.of(s_, a.right.va, user(out));
    for (const auto& p : a.sum.parts)
      if (!a.old) x.lives |= p_.lives.of(s_, p.va, user(out));
    for (std::size_t i = 0; a.kind == What::store && i < to.cells; ++i) {
      const auto& c = p_.cells[to.first + i];
      Move m{.to = static_cast<std::int16_t>(to.first + i), .value = c.tag * (2 * epoch + 3) ^ a.range.va.value};
      if (a.byte) m.value = *a.byte * 0x0101010101010101u;
      if (c.bytes < 8) m.value &= (std::uint64_t{1} << (8 * c.bytes)) - 1;
      m.part = static_cast<std::uint16_t>(p_.parts.size());
      m.parts = static_cast<std::uint16_t>(parts.size());
      m.type = a.sum.type;
      for (const auto& w : parts) p_.parts.push_back(static_cast<std::int16_t>(w.first + i));
      p_.now.push_back(m);
      ++x.nows;
    }
    for (std::size_t c = 0; c < p_.cells.size(); ++c)
      if (p_.cells[c].sync && ((x.data_read | x.data_write) >> c & 1) != 0)
        return refuse("a thread that accesses the bytes of a word");
    out.actions.push_back(x);
    x.kind = Action::Kind::accessed;
    x.data_read = x.data_write = 0;
    out.actions.push_back(x);
  }

  const Schedule& s_;
  Program p_;
  std::vector<std::uint32_t> submits_;
  Mask late_ = 0;                                         ///< cells of the queue's moves that take their time
  std::vector<std::vector<std::vector<RawPacket>>> raw_;  // queue, submit, packet
  std::vector<Range> ranges_, words_;
  std::map<std::string, std::int16_t> samples_;  ///< of the present script: where each is kept
};

}  // namespace

std::string thread_name(const Schedule& s, std::size_t h) {
  if (h < s.hosts.size()) return "host " + s.hosts[h].name;
  const auto& k = s.kernels[h - s.hosts.size()];
  return "kernel " + to_string(k.place) + "." + k.name;
}

Program compile(const Schedule& s, const Profile& profile) { return Compiler{s, profile}.run(); }

}  // namespace sdma::explore
