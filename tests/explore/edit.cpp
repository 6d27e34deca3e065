// SPDX-License-Identifier: MIT
#include "edit.hpp"

#include <algorithm>
#include <set>

namespace sdma::explore {
namespace {

/// A packet of a queue, with its epoch values.
struct Item {
  std::vector<std::uint32_t> dwords{};
  std::vector<Schedule::EpochField> epochs{};
  PacketView view() const {
    Reader r{dwords};
    return r.next();
  }
};

std::vector<Item> unpack(const Schedule::Queue& q) {
  std::vector<Item> out;
  for (Reader r{q.dwords}; r;) {
    const auto at = r.position_dwords();
    const auto v = r.next();
    Item item{.dwords = {v.dwords.begin(), v.dwords.end()}};
    for (const auto& e : q.epochs)
      if (e.packet == at) item.epochs.push_back(e);
    out.push_back(std::move(item));
  }
  return out;
}

void pack(Schedule::Queue& q, const std::vector<Item>& items) {
  q.dwords.clear();
  q.epochs.clear();
  for (const auto& item : items) {
    for (auto e : item.epochs) {
      e.packet = q.dwords.size();
      q.epochs.push_back(e);
    }
    q.dwords.insert(q.dwords.end(), item.dwords.begin(), item.dwords.end());
  }
}

/// All lists of actions of a schedule, those of repeats included.
void lists(std::vector<Schedule::Action>& actions, std::vector<std::vector<Schedule::Action>*>& out) {
  out.push_back(&actions);
  for (auto& a : actions)
    if (a.kind == Schedule::Action::Kind::repeat) lists(a.body, out);
}
std::vector<std::vector<Schedule::Action>*> lists(Schedule& s) {
  std::vector<std::vector<Schedule::Action>*> out;
  for (auto& h : s.hosts) lists(h.actions, out);
  for (auto& k : s.kernels) lists(k.actions, out);
  return out;
}

GpuVa any_address(const Schedule& s, Random& r, bool signal) {
  if (signal && !s.signals.empty()) return link_signal(below(r, static_cast<std::uint32_t>(s.signals.size())));
  if (s.buffers.empty()) return GpuVa{};
  const auto i = below(r, static_cast<std::uint32_t>(s.buffers.size()));
  const auto words = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, s.buffers[i].bytes / 4));
  return link_buffer(i) + 4 * below(r, words);
}

std::int64_t nudge(Random& r) { return below(r, 2) == 0 ? 1 : -1; }

void change_packet(Schedule& s, Item& item, Random& r) {
  const auto v = item.view();
  if (!v.whole() || v.info->fields.empty()) return;
  if (!item.epochs.empty() && below(r, 3) == 0) {
    auto& value = item.epochs[below(r, static_cast<std::uint32_t>(item.epochs.size()))].value;
    (below(r, 4) == 0 ? value.factor : value.constant) += nudge(r);
    return;
  }
  const auto& f = v.info->fields[below(r, static_cast<std::uint32_t>(v.info->fields.size()))];
  if (f.kind == sdma::Kind::address) {
    const auto now = GpuVa{value_of(f, item.dwords.data())};
    const auto l = find_symbol(s, now);
    store(f, any_address(s, r, (l && l->signal) != (below(r, 12) == 0)).value, item.dwords.data());
  } else if (f.kind == sdma::Kind::value) {
    for (const auto& e : item.epochs)
      if (e.field == f.name) return;
    store(f, (value_of(f, item.dwords.data()) + static_cast<std::uint64_t>(nudge(r))) & f.mask(), item.dwords.data());
  } else if (f.name == "func") {
    store(f, 1 + below(r, 6), item.dwords.data());
  } else if (f.name == "retry" && below(r, 4) == 0) {
    store(f, 3, item.dwords.data());
  }
}

void change_queue(Schedule& s, Schedule::Queue& q, Random& r) {
  auto items = unpack(q);
  if (items.empty()) return;
  const auto n = static_cast<std::uint32_t>(items.size());
  const auto i = below(r, n), j = below(r, n);
  const auto at = [&](std::uint32_t k) { return items.begin() + static_cast<std::ptrdiff_t>(k); };
  switch (below(r, 9)) {
    case 0:
    case 1: items.erase(at(i)); break;
    case 2: std::swap(items[i], items[j]); break;
    case 3: items.insert(at(i), items[j]); break;
    case 4: {
      // A packet of another queue.
      const auto& other = s.queues[below(r, static_cast<std::uint32_t>(s.queues.size()))];
      const auto from = unpack(other);
      if (!from.empty()) items.insert(at(i), from[below(r, static_cast<std::uint32_t>(from.size()))]);
      break;
    }
    default: change_packet(s, items[i], r);
  }
  pack(q, items);
}

void change_actions(Schedule& s, Random& r) {
  auto all = lists(s);
  auto& list = *all[below(r, static_cast<std::uint32_t>(all.size()))];
  if (list.empty()) return;
  const auto n = static_cast<std::uint32_t>(list.size());
  const auto i = below(r, n), j = below(r, n);
  const auto at = [&](std::uint32_t k) { return list.begin() + static_cast<std::ptrdiff_t>(k); };
  auto& a = list[i];
  using ActionKind = Schedule::Action::Kind;
  switch (below(r, 7)) {
    case 0: list.erase(at(i)); break;
    case 1: std::swap(list[i], list[j]); break;
    case 2: {
      auto copy = list[j];
      list.insert(at(i), std::move(copy));
      break;
    }
    case 3:
      if (a.kind == ActionKind::repeat) a.rounds = 1 + below(r, 4);
      [[fallthrough]];
    case 4:
      if (a.kind == ActionKind::set || a.kind == ActionKind::add || a.kind == ActionKind::wait)
        a.value = a.value + nudge(r);
      break;
    case 5:
      if (a.kind == ActionKind::wait) a.func = static_cast<Compare>(1 + below(r, 6));
      break;
    default:
      if (a.kind == ActionKind::set || a.kind == ActionKind::add || a.kind == ActionKind::wait) {
        if (!s.kernels.empty() && below(r, 2) == 0) a.system_scope = !a.system_scope;
        else a.signal = any_address(s, r, true);
      }
      if (a.kind == ActionKind::load || a.kind == ActionKind::store) a.range.va = any_address(s, r, false);
      if (a.kind == ActionKind::submit || a.kind == ActionKind::rptr)
        a.queues[0] = below(r, static_cast<std::uint32_t>(s.queues.size()));
  }
}

void change_world(Schedule& s, Random& r) {
  switch (below(r, 3)) {
    case 0:
      if (s.signals.empty()) return;
      s.signals[below(r, static_cast<std::uint32_t>(s.signals.size()))].value += 1;
      return;
    case 1: {
      if (s.buffers.empty()) return;
      s.buffers[below(r, static_cast<std::uint32_t>(s.buffers.size()))].init = static_cast<Init>(below(r, 3));
      return;
    }
    default: {
      auto& a = s.queues[below(r, static_cast<std::uint32_t>(s.queues.size()))];
      const auto& b = s.queues[below(r, static_cast<std::uint32_t>(s.queues.size()))];
      a.place = b.place;
      a.peer = b.peer;
      a.engine = b.engine;
    }
  }
}

// Shrinking: each function tries all its removals once, and says whether one succeeded.

using Holds = std::function<bool(const Schedule&)>;

bool keep(Schedule& s, Schedule&& smaller, const Holds& holds) {
  if (smaller == s || !problems(smaller).empty() || !holds(smaller)) return false;
  s = std::move(smaller);
  return true;
}

bool drop_packets(Schedule& s, const Holds& holds) {
  bool any = false;
  for (std::size_t q = 0; q < s.queues.size(); ++q)
    for (auto i = unpack(s.queues[q]).size(); i-- > 0;) {
      auto smaller = s;
      auto items = unpack(s.queues[q]);
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      pack(smaller.queues[q], items);
      any = keep(s, std::move(smaller), holds) || any;
    }
  return any;
}

bool drop_actions(Schedule& s, const Holds& holds) {
  bool any = false;
  for (std::size_t l = 0; l < lists(s).size(); ++l)
    for (auto i = lists(s)[l]->size(); i-- > 0;) {
      if (l >= lists(s).size() || i >= lists(s)[l]->size()) continue;
      auto smaller = s;
      auto& list = *lists(smaller)[l];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      if (keep(s, std::move(smaller), holds)) {
        any = true;
        continue;
      }
      smaller = s;
      auto& a = (*lists(smaller)[l])[i];
      if (a.kind == Schedule::Action::Kind::repeat && a.rounds > 1) {
        --a.rounds;
        any = keep(s, std::move(smaller), holds) || any;
      } else if (a.kind == Schedule::Action::Kind::submit && a.queues.size() > 1) {
        a.queues.pop_back();
        any = keep(s, std::move(smaller), holds) || any;
      }
    }
  return any;
}

bool drop_queues(Schedule& s, const Holds& holds) {
  bool any = false;
  for (auto q = s.queues.size(); q-- > 0;) {
    auto smaller = s;
    smaller.queues.erase(smaller.queues.begin() + static_cast<std::ptrdiff_t>(q));
    for (auto* list : lists(smaller))
      for (auto i = list->size(); i-- > 0;) {
        auto& a = (*list)[i];
        if (a.queues.empty()) continue;
        std::erase(a.queues, q);
        for (auto& other : a.queues) other -= other > q ? 1 : 0;
        if (a.queues.empty()) list->erase(list->begin() + static_cast<std::ptrdiff_t>(i));
      }
    any = keep(s, std::move(smaller), holds) || any;
  }
  for (auto h = s.hosts.size(); h-- > 0;) {
    auto smaller = s;
    smaller.hosts.erase(smaller.hosts.begin() + static_cast<std::ptrdiff_t>(h));
    any = keep(s, std::move(smaller), holds) || any;
  }
  for (auto k = s.kernels.size(); k-- > 0;) {
    auto smaller = s;
    smaller.kernels.erase(smaller.kernels.begin() + static_cast<std::ptrdiff_t>(k));
    any = keep(s, std::move(smaller), holds) || any;
  }
  return any;
}

bool simplify(Schedule& s, const Holds& holds) {
  bool any = false;
  const auto attempt = [&](auto change) {
    auto smaller = s;
    change(smaller);
    any = keep(s, std::move(smaller), holds) || any;
  };
  for (std::size_t i = 0; i < s.buffers.size(); ++i) {
    if (s.buffers[i].init != Init::poison) attempt([&](Schedule& x) { x.buffers[i].init = Init::poison; });
    if (s.buffers[i].at) attempt([&](Schedule& x) { x.buffers[i].at = {}; });
  }
  for (std::size_t i = 0; i < s.signals.size(); ++i) {
    if (s.signals[i].value != 0) attempt([&](Schedule& x) { x.signals[i].value = 0; });
    if (s.signals[i].at) attempt([&](Schedule& x) { x.signals[i].at = {}; });
  }
  for (std::size_t q = 0; q < s.queues.size(); ++q) {
    if (s.queues[q].ring_bytes != 0) attempt([&](Schedule& x) { x.queues[q].ring_bytes = 0; });
    for (std::size_t e = 0; e < s.queues[q].epochs.size(); ++e)
      attempt([&](Schedule& x) {
        const auto field = x.queues[q].epochs[e];
        auto items = unpack(x.queues[q]);
        std::size_t at = 0;
        for (auto& item : items) {
          if (at == field.packet) {
            std::erase_if(item.epochs, [&](const auto& f) { return f.field == field.field; });
            for (const auto& f : item.view().info->fields)
              if (f.name == field.field) store(f, field.value.at(1) & f.mask(), item.dwords.data());
          }
          at += item.dwords.size();
        }
        pack(x.queues[q], items);
      });
  }
  return any;
}

bool drop_expectations(Schedule& s, const Holds& holds) {
  bool any = false;
  for (auto i = s.expectations.size(); i-- > 0;) {
    auto smaller = s;
    smaller.expectations.erase(smaller.expectations.begin() + static_cast<std::ptrdiff_t>(i));
    any = keep(s, std::move(smaller), holds) || any;
  }
  return any;
}

/// Leaves out buffers and signals that nothing uses. Only the last ones, because addresses are numbers.
bool drop_symbols(Schedule& s, const Holds& holds) {
  bool any = false;
  const auto used = [&](GpuVa from, std::uint64_t bytes) {
    const auto inside = [&](GpuVa va) { return va.value >= from.value && va.value < from.value + bytes; };
    for (const auto& q : s.queues)
      for (const auto& item : unpack(q)) {
        const auto v = item.view();
        if (v.whole())
          for (const auto& f : v.info->fields)
            if (f.kind == sdma::Kind::address && inside(GpuVa{value_of(f, item.dwords.data())})) return true;
      }
    for (const auto* list : lists(s))
      for (const auto& a : *list)
        if (inside(a.signal) || inside(a.buffer) || inside(a.range.va) || inside(a.right.va) ||
            std::ranges::any_of(a.sum.parts, [&](const auto& p) { return inside(p.va); }))
          return true;
    for (const auto& e : s.expectations)
      if (inside(e.left.va) || inside(e.right.va) ||
          std::ranges::any_of(e.sum.parts, [&](const auto& p) { return inside(p.va); }))
        return true;
    for (const auto& b : s.buffers)
      if (b.at && inside(*b.at)) return true;
    for (const auto& g : s.signals)
      if (g.at && inside(*g.at)) return true;
    return false;
  };
  while (!s.buffers.empty() && !used(link_buffer(s.buffers.size() - 1), kLinkStride)) {
    auto smaller = s;
    smaller.buffers.pop_back();
    if (!keep(s, std::move(smaller), holds)) break;
    any = true;
  }
  while (!s.signals.empty() && !used(link_signal(s.signals.size() - 1), kLinkStride)) {
    auto smaller = s;
    smaller.signals.pop_back();
    if (!keep(s, std::move(smaller), holds)) break;
    any = true;
  }
  return any;
}

}  // namespace

void mutate(Schedule& s, Random& r) {
  if (s.queues.empty()) return;
  const auto what = below(r, 10);
  if (what < 6) change_queue(s, s.queues[below(r, static_cast<std::uint32_t>(s.queues.size()))], r);
  else if (what < 9) change_actions(s, r);
  else change_world(s, r);
}

void combine(Schedule& s, Schedule other, bool after) {
  const auto buffers = s.buffers.size(), signals = s.signals.size(), queues = s.queues.size();
  const auto moved = [&](GpuVa va) {
    const auto l = find_symbol(other, va);
    if (!l) return va;
    return (l->signal ? link_signal(l->index + signals) : link_buffer(l->index + buffers)) + l->offset;
  };
  const std::string suffix = "x";
  auto added = other;
  for (auto& b : added.buffers) {
    b.name += suffix;
    if (b.at) b.at = moved(*b.at);
    s.buffers.push_back(b);
  }
  for (auto& g : added.signals) {
    g.name += suffix;
    if (g.at) g.at = moved(*g.at);
    s.signals.push_back(g);
  }
  for (auto& q : added.queues) {
    q.name += suffix;
    auto items = unpack(q);
    for (auto& item : items)
      for (const auto& f : item.view().info->fields)
        if (f.kind == sdma::Kind::address)
          store(f, moved(GpuVa{value_of(f, item.dwords.data())}).value, item.dwords.data());
    pack(q, items);
    s.queues.push_back(q);
  }
  for (auto* list : lists(added))
    for (auto& a : *list) {
      for (auto& q : a.queues) q += queues;
      for (auto* va : {&a.signal, &a.range.va, &a.right.va, &a.buffer}) *va = moved(*va);
      for (auto& p : a.sum.parts) p.va = moved(p.va);
    }
  for (std::size_t h = 0; h < added.hosts.size(); ++h) {
    auto& host = added.hosts[h];
    if (after && h < s.hosts.size()) {
      auto& to = s.hosts[h].actions;
      to.insert(to.end(), host.actions.begin(), host.actions.end());
    } else {
      host.name += suffix;
      s.hosts.push_back(host);
    }
  }
  for (auto& k : added.kernels) {
    k.name += suffix;
    s.kernels.push_back(k);
  }
  s.gpus = std::max(s.gpus, other.gpus);
}

Schedule shrink(Schedule s, const Holds& holds) {
  for (int round = 0; round < 8; ++round) {
    bool any = drop_expectations(s, holds);
    any = drop_queues(s, holds) || any;
    any = drop_actions(s, holds) || any;
    any = drop_packets(s, holds) || any;
    any = simplify(s, holds) || any;
    any = drop_symbols(s, holds) || any;
    if (!any) break;
  }
  return s;
}

}  // namespace sdma::explore
