// SPDX-License-Identifier: MIT
// Where packets lie in their ring, and which queues share an engine.
#include "program.hpp"
#include "sdma/device/topology.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace sdma::explore::detail {

/// Each piece takes at most half of the ring, and no piece crosses the end of the ring.
bool lay_out(Stream& out, std::size_t begin) {
  for (std::size_t i = begin; i < out.packets.size();) {
    std::uint64_t bytes = 0;
    auto end = i;
    for (; end < out.packets.size() && bytes + out.packets[end].dwords * 4 <= out.ring / 2; ++end)
      bytes += out.packets[end].dwords * 4;
    if (end == i) return false;
    auto at = out.pieces.empty() ? 0 : out.pieces.back().ring_end;
    if (at % out.ring + bytes > out.ring) at += out.ring - at % out.ring;
    for (auto k = i; k < end; ++k) out.packets[k].ring_end = at += out.packets[k].dwords * 4;
    out.pieces.push_back({static_cast<std::uint16_t>(end - i), at});
    i = end;
  }
  return true;
}

}  // namespace sdma::explore::detail

namespace sdma::explore {

std::string_view layout_of(const Schedule& s) noexcept {
  for (const auto& q : s.queues)
    if (q.network) return "nodes:2x2";
  return s.gpus == 4 ? "ring:4" : "";
}

}  // namespace sdma::explore

namespace sdma::explore::detail {
namespace {

template <class Fn> void each(const std::vector<Schedule::Action>& all, Fn fn) {
  for (const auto& a : all) {
    fn(a);
    each(a.body, fn);
  }
}

/// May this GPU access the byte?
bool reaches(const Schedule& s, std::uint32_t gpu, std::uint64_t va) {
  const auto l = find_symbol(s, GpuVa{va});
  if (!l) return true;
  const auto place = l->signal ? s.signals[l->index].place : s.buffers[l->index].place;
  if (!l->signal) {
    const auto& map = s.buffers[l->index].map;
    if (!map.empty() && std::find(map.begin(), map.end(), Place::gpu(gpu)) == map.end()) return false;
  }
  if (layout_of(s) != "ring:4" || place.is_host()) return true;
  const auto apart = (place.index + 4 - gpu) % 4;
  return apart != 2;
}

}  // namespace

std::string unreachable(const Schedule& s) {
  std::string out;
  const auto look = [&](const std::string& who, std::uint32_t gpu, std::uint64_t va) {
    if (out.empty() && !reaches(s, gpu, va)) out = who + " does not reach " + name_of(s, GpuVa{va});
  };
  for (const auto& q : s.queues) {
    std::string ignored;
    if (q.network) continue;
    for (const auto& raw : decode_submit(s, q, 1, ignored)) {
      for (const auto& part : raw.parts) {
        look(q.name, q.place.index, part.to);
        if (part.from == Part::From::copy) look(q.name, q.place.index, part.source);
      }
      if (raw.word_va != 0) look(q.name, q.place.index, raw.word_va);
    }
  }
  for (const auto& k : s.kernels)
    each(k.actions, [&](const Schedule::Action& a) {
      if (a.signal != GpuVa{}) look(k.name, k.place.index, canonical(s, a.signal));
      if (a.range.bytes != 0) look(k.name, k.place.index, canonical(s, a.range.va));
      if (a.right.bytes != 0 && !a.old) look(k.name, k.place.index, canonical(s, a.right.va));
      for (const auto& p : a.sum.parts)
        if (!a.old) look(k.name, k.place.index, canonical(s, p.va));
    });
  return out;
}

std::optional<std::uint32_t> node_of(const Schedule& s, std::uint64_t va) {
  const auto l = find_symbol(s, GpuVa{va});
  if (!l) return {};
  const auto place = l->signal ? s.signals[l->index].place : s.buffers[l->index].place;
  if (!place.is_host()) return place.index / 2;
  // A word of the host is in the node of the threads and engines that use or copy it. A thread is where its queues are.
  const auto has = [&](std::uint64_t from, std::uint64_t bytes) { return from < va + 4 && va < from + bytes; };
  std::optional<std::uint32_t> found;
  for (const auto& h : s.hosts) {
    std::optional<std::uint32_t> home;
    bool uses = false;
    each(h.actions, [&](const Schedule::Action& a) {
      for (const auto q : a.queues) home = s.queues[q].place.index / 2;
      uses = uses || (a.signal != GpuVa{} && canonical(s, a.signal) == va);
    });
    if (uses && home) found = home;
  }
  for (const auto& q : s.queues) {
    std::string ignored;
    if (!q.network)
      for (const auto& raw : decode_submit(s, q, 1, ignored))
        if (raw.word_va == va || std::any_of(raw.parts.begin(), raw.parts.end(), [&](const Part& part) {
              return (part.from == Part::From::copy && has(part.source, part.bytes)) || has(part.to, part.bytes);
            }))
          found = q.place.index / 2;
  }
  return found;
}

void share_engines(Program& p) {
  static const auto node = mi300x();
  const auto& s = *p.schedule;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> shared;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of;
  for (std::size_t q = 0; q < s.queues.size(); ++q) {
    const auto& queue = s.queues[q];
    auto engine = queue.engine;
    if (queue.network) {
      engine = 2000 + static_cast<std::uint32_t>(q);
    } else if (queue.peer) {
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
      p.queues[q].engine = n;
      if (!p.profile.poll_yields && !std::has_single_bit(queues))
        p.queues[q].sharers = queues & ~(std::uint64_t{1} << q);
    }
    ++n;
  }
}

}  // namespace sdma::explore::detail
