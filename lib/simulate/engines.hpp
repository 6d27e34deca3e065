// SPDX-License-Identifier: MIT
#pragma once
// Engines: one front end each, a window of bytes in flight, requests in order, and the flows that carry their bytes.
// Members of World, which world.cpp includes.
#include "world.hpp"

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::uint64_t kLargeSwap = std::uint64_t{64} << 20;

inline std::span<const std::uint32_t> head_of(const Fetched& f) noexcept {
  return {f.head.data(), std::min<std::size_t>(f.length, f.head.size())};
}

template <class Time> void World<Time>::opened(Engine& e) noexcept {
  if (e.open++ == 0) e.since = lead(now_);
}
template <class Time> void World<Time>::closed(Engine& e) noexcept {
  if (--e.open == 0) e.busy_ns += lead(now_) - e.since;
}

/// The next packet has been fetched: in each lane, when its doorbell has come and the packet before it has been read.
template <class Time> void World<Time>::becomes_ready(Program& q) {
  if constexpr (!std::is_same_v<Time, double>) {
    q.ready = after(q.read);
    const auto at = q.front->current().position;
    while (!q.doorbells.empty() && q.doorbells.front().first <= at) q.doorbells.pop_front();
    if (!q.doorbells.empty()) q.ready = after(higher(q.ready, q.doorbells.front().second));
  }
}

/// Requires a fetched packet.
template <class Time> void World<Time>::want_front(std::uint32_t queue) {
  auto& e = engines_[programs_[queue].engine];
  becomes_ready(programs_[queue]);
  programs_[queue].state = State::front;
  e.wants.push_back(queue);
  if (!e.front_busy) next_front(e);
}

/// The place with which the current packet exchanges bytes; kNoPeer if there is none, or more than one.
template <class Time> std::uint32_t World<Time>::peer_of(const Program& q) {
  auto out = kNoPeer;
  bool several = false;
  typed(q.front->current(), memory_->reader(q.gpu), [&](const auto& p) {
    if constexpr (Divisible<std::remove_cvref_t<decltype(p)>>)
      footprint(p, [&](const Region& region) {
        const auto home = memory_->home(region.va);
        if (home == Place::gpu(q.gpu)) return;
        const auto at = static_cast<std::uint32_t>(place_index(home));
        several = several || (out != kNoPeer && out != at);
        out = at;
      });
    return Outcome::done;
  });
  return several ? kNoPeer : out;
}

/// Does a runtime chain the queue's next packet to the copy before it?
template <class Time> bool World<Time>::chained(const Program& q) {
  if (!some(Cost::engine_command) || engines_[q.engine].network || q.front->current().role != Role::data) return false;
  std::uint64_t bytes = 0;
  typed(q.front->current(), memory_->reader(q.gpu), [&](const auto& p) {
    if constexpr (Divisible<std::remove_cvref_t<decltype(p)>>) bytes = work(p);
    return Outcome::done;
  });
  return static_cast<double>(bytes) > decides(Cost::engine_command_size);
}

/// The engine has as many copies in flight to the peer of the queue's next packet as it can, or that packet is chained
/// to the copy before it: it waits for a landing.
template <class Time> bool World<Time>::held(Engine& e, std::uint32_t queue) {
  const auto most = std::floor(decides(Cost::engine_peer_copies));
  const auto& q = programs_[queue];
  if (q.in_flight > 0 && chained(q)) return e.held.push_back(queue), true;
  if (most == 0 || e.network || q.front->current().role != Role::data) return false;
  const auto peer = peer_of(q);
  if (peer == kNoPeer || peer >= e.toward.size() || e.toward[peer] < most) return false;
  e.held.push_back(queue);
  return true;
}

/// A queue's fence or atomic has been sent, and needs the front end for longer.
template <class Time> void World<Time>::occupy(std::uint32_t queue) {
  auto& q = programs_[queue];
  auto& e = engines_[q.engine];
  q.occupies = true;
  q.ready = now_;
  q.state = State::front;
  e.wants.push_front(queue);
  if (!e.front_busy) next_front(e);
}

/// Does the next packet begin the work of a doorbell that arrived while the queue had work?
template <class Time> bool World<Time>::begins_later(Program& q) {
  while (!q.later.empty() && q.later.front() < q.front->current().position) q.later.pop_front();
  return !q.later.empty() && q.later.front() == q.front->current().position;
}

/// When the paths of a network take a message that is ready then. Each takes one at a time, in the order of the calls.
template <class Time> Time World<Time>::sent(const Engine& e, Time ready) {
  const auto& paths = turns_[e.link];
  for (const auto path : paths) ready = served(paths_[path], ready, times_.strayed);
  for (const auto path : paths) paths_[path].free = ready + m_.topology.shared[path].message_ns;
  return ready;
}

template <class Time> void World<Time>::next_front(Engine& e) {
  const auto blocked = [&](std::uint32_t queue) { return !programs_[queue].occupies && held(e, queue); };
  while (!e.wants.empty() && blocked(e.wants.front())) e.wants.pop_front();
  if (e.wants.empty()) return;
  const auto queue = e.wants.front();
  e.wants.pop_front();
  e.front_busy = true;
  auto& q = programs_[queue];
  const auto begin = led(served(e.front, q.ready, times_.strayed), lead(now_));
  if (q.occupies) return at(begin + cost(Cost::engine_occupied), Event::front, queue);
  const auto& next = q.front->current();
  const bool data = next.role == Role::data;
  const auto whole = e.network ? Cost::nic_message : Cost::engine_packet;
  const auto taken = begin + cost(data ? whole : Cost::engine_control) +
                     (next.info == &info_of<CopyBroadcast>() ? cost(Cost::engine_broadcast_time) : Time{}) +
                     (begins_later(q) ? cost(Cost::engine_doorbell) : Time{}) +
                     (chained(q) ? cost(Cost::engine_command) : Time{});
  const bool message = e.network && (data || next.role == Role::release || next.role == Role::stamp);
  const auto end = message ? sent(e, taken) : taken;
  const auto phase = data                                                       ? Phase::copy
                     : next.role == Role::acquire || next.role == Role::control ? Phase::schedule
                                                                                : Phase::sync;
  q.node = node(end, q.node, e.where, What::front_end, phase, queue);
  if (o_.recorder) o_.recorder->packet_begin(q.lane, ns(), next.position, head_of(next));
  at(end, Event::front, queue);
}

template <class Time> void World<Time>::front_done(std::uint32_t queue) {
  auto& e = engines_[programs_[queue].engine];
  e.front_busy = false;
  e.front.free = now_;
  if (std::exchange(programs_[queue].occupies, false)) {
    auto& q = programs_[queue];
    q.node = node(now_, q.node, e.where, What::front_end, Phase::sync, queue);
    consume(queue);
  } else {
    act(queue);
  }
  if (!e.front_busy) next_front(e);
}

/// A data packet has been decoded: it requests room in the window.
template <class Time> void World<Time>::launch(std::uint32_t queue) {
  auto& q = programs_[queue];
  std::uint32_t id;
  if (free_flights_.empty()) {
    id = static_cast<std::uint32_t>(flights_.size());
    flights_.emplace_back();
  } else {
    id = free_flights_.back();
    free_flights_.pop_back();
  }
  auto& f = flights_[id];
  f = {.queue = queue, .node = q.node, .number = flights_made_++};
  describe_flight(q, f);
  f.completes = q.front->current().role == Role::release;
  if (f.completes) q.releases.push_back(q.front->current());
  auto& e = engines_[q.engine];
  opened(e);
  ++q.in_flight;
  if (decides(Cost::engine_peer_copies) > 0 && !e.network && (f.peer = peer_of(q)) != kNoPeer) {
    e.toward.resize(places_);
    ++e.toward[f.peer];
  }
  const bool in_ring = q.front->current().payload == Fetched::Payload::pointer;
  if (f.executes && in_ring) {
    execute_now(q, q.front->current());  // its bytes leave the ring with the packet
    f.executes = false;
  }
  if (f.executes || o_.recorder) f.packet = q.front->current();
  f.position = q.front->current().position;
  needs(Cost::engine_window, e.used + f.need);
  f.entered = now_;
  if (e.room.empty() && e.used + f.need <= window() * (1 + 1e-9)) return enter(id);
  q.state = State::room;
  e.room.push_back(id);
}

/// The time that the pages cost which no engine of the GPU has accessed yet.
template <class Time> Time World<Time>::fresh_pages(std::uint32_t gpu, const Region& region) {
  const auto each = cost(Cost::engine_page);
  if (alike(each, Time{}) || hull(region) == 0) return Time{};
  const auto bytes = static_cast<std::uint64_t>(decides(Cost::engine_page_size));
  Time out{};
  for (auto page = region.va.value / bytes; page <= (region.va.value + hull(region) - 1) / bytes; ++page)
    out += pages_[gpu].insert(page).second ? each : Time{};
  return out;
}

/// Finds the resources that a packet uses, their load per byte, and whether anything waits for what it stores.
template <class Time> void World<Time>::describe_flight(const Program& q, Flight& f) {
  const auto place = Place::gpu(q.gpu);
  typed(q.front->current(), memory_->reader(q.gpu), [&](const auto& p) {
    using P = std::remove_cvref_t<decltype(p)>;
    if constexpr (Divisible<P>) {
      f.bytes = work(p);
      if (f.bytes == 0) return Outcome::done;
      const auto unit = static_cast<double>(f.bytes);
      auto use = [&](std::uint32_t r, const Time& weight) {
        for (auto& u : f.uses)
          if (u.resource == r) return void(u.weight += weight);
        f.uses.push_back({r, weight});
      };
      double written = 0, read = 0;
      Time far_ns{};
      bool other_link = false, host = false, to_host = false;
      const auto& e = engines_[q.engine];
      const auto cross = [&](Place from, Place to, double weight) {
        const auto r = crossed(from, to, q.name);
        if (!r) return;
        use(*r, weight);
        for (const auto shared : shares_[link(from, to)]) use(shared, weight);
        const auto peer = from == place ? to : from;
        if (e.network) return;
        if (peer.is_host()) return void((host = true, to_host = to_host || to.is_host()));
        const auto suits = masks_[q.gpu * places_ + peer.index];
        other_link = other_link || (suits != 0 && (suits >> e.id & 1) == 0);
      };
      footprint(p, [&](const Region& region) {
        const auto home = memory_->home(region.va);
        const auto bytes = static_cast<double>(region.bytes) * region.rows * region.slices;
        f.executes = f.executes || o_.contents || memory_->watched(region);
        f.extra_ns += fresh_pages(q.gpu, region);
        if (allows(region.access, Access::read)) {
          read += bytes;
          use(memories_[place_index(home)], bytes / unit);
          if (home != place) {
            cross(home, place, bytes / unit);
            far_ns = higher(far_ns, home.is_host() ? 2.0 * cost(Cost::pcie_flight) : cost(Cost::engine_read_peer));
          }
        }
        if (allows(region.access, Access::write)) {
          written += bytes;
          use(memories_[place_index(home)], bytes / unit);
          if (home != place) cross(place, home, bytes / unit);
        }
      });
      if (e.network) return use(e.resource, 1), Outcome::done;
      const Time part =
          std::is_same_v<P, CopyBroadcast> ? cost(Cost::engine_broadcast)
          : std::is_same_v<P, CopySwap>
              ? cost(Cost::engine_swap) * (f.bytes < kLargeSwap ? Time{1.0} : cost(Cost::engine_large_swap))
              : Time{1.0};
      f.extra_ns += far_ns;
      if constexpr (std::is_same_v<P, CopySwap>) f.extra_ns += cost(Cost::engine_swap_time);
      const auto& gpu = m_.topology.gpus[q.gpu];
      constexpr std::uint32_t kFar = 8;  // the first engine that is slow towards the host
      const auto facing = gpu.live_host_engines(), before = facing & Gpu::first(e.id);
      const bool second = before != 0 && (before & (before - 1)) == 0 && (facing >> e.id & 1) != 0;
      const auto down = e.id >= kFar ? cost(Cost::engine_far_down)
                        : second     ? cost(Cost::engine_second_down)
                                     : Time{1.0};
      const auto rate =
          !host ? Time{1.0} : cost(Cost::engine_host_rate) / cost(Cost::engine_rate) * (to_host ? down : Time{1.0});
      use(e.resource, written / unit / part / rate / (other_link ? cost(Cost::engine_other_link) : Time{1.0}));
      const auto whole = read > 0 ? read : written;
      needs(Cost::engine_window, whole);
      f.need = std::min(whole, window());
    }
    return Outcome::done;
  });
}

/// The flight has room: its turn comes when the flights before it have requested all their bytes.
template <class Time> void World<Time>::enter(std::uint32_t id) {
  auto& f = flights_[id];
  auto& e = engines_[programs_[f.queue].engine];
  e.used += f.need;
  f.entered = after(f.entered);
  e.turn.push_back(id);
  const auto before = std::exchange(now_, f.entered);
  if (e.turn.size() == 1) begin_flow(e);
  consume(flights_[id].queue);
  now_ = before;
}

template <class Time> void World<Time>::begin_flow(Engine& e) {
  while (!e.turn.empty()) {
    const auto id = e.turn.front();
    auto& f = flights_[id];
    const auto begin = led(served(e.bytes, f.entered, times_.strayed), lead(now_));
    if (f.bytes == 0) {
      e.turn.pop_front();
      const auto end = begin + (e.network ? cost(Cost::nic_flight) : Time{});
      at(end, Event::landed, id, e.network ? node(end, f.node, e.where, What::lands, Phase::sync, f.queue) : f.node);
      continue;
    }
    flows_changed_ = higher(flows_changed_, begin);
    f.flow = net_.start(begin, static_cast<double>(f.bytes), f.uses);
    own(f.flow, id);
    if (o_.recorder) {
      for (const auto& u : f.uses)
        if (net_.resources()[u.resource].kind == Busy::Kind::link) {
          f.lanes.push_back(resource_lanes_[u.resource]);
          o_.recorder->packet_begin(f.lanes.back(), ns(), f.number, head_of(f.packet));
        }
    }
    return;
  }
}

template <class Time> void World<Time>::own(std::uint32_t flow, std::uint32_t owner) {
  if (flow_owner_.size() <= flow) flow_owner_.resize(flow + 1);
  flow_owner_[flow] = owner;
}

/// Flows that begin or end at one moment get their rates together, when nothing else happens at it.
template <class Time> void World<Time>::reschedule() {
  if (net_.settled() || (!events_.empty() && events_.top().t <= now_) ||
      (!ends_.empty() && ends_.next().t <= lead(now_)))
    return;
  const auto when = led(std::exchange(flows_changed_, Time{}), lead(now_));
  for (const auto flow : net_.settle(when))
    ends_.set({.t = lead(net_.finish(flow)), .number = numbers_++, .flow = flow});
}

/// The next event: that of a flow, or another one.
template <class Time> typename World<Time>::Scheduled World<Time>::next() {
  if (ends_.empty() || (!events_.empty() && !ends_.next().before({lead(events_.top().t), events_.top().number, 0}))) {
    const auto e = events_.top();
    events_.pop();
    return e;
  }
  const auto t = ends_.next().t;
  const auto flow = ends_.take();
  const auto owner = flow_owner_[flow];
  const bool thread = (owner & kOfThread) != 0;
  return {.t = led(net_.finish(flow), t), .event = thread ? Event::computed : Event::moved, .id = owner & ~kOfThread};
}

template <class Time> void World<Time>::moved(std::uint32_t id) {
  auto& f = flights_[id];
  auto& e = engines_[programs_[f.queue].engine];
  f.node = node(now_, f.node, resource_names_[net_.bound(f.flow)], What::moves, Phase::copy, f.queue, f.bytes);
  flows_changed_ = higher(flows_changed_, now_);
  e.bytes.free = now_;
  net_.end(now_, f.flow);
  for (const auto l : f.lanes) o_.recorder->packet_end(l, ns(), f.number);
  f.lanes.clear();
  const auto mine = f.node;
  const auto end = now_ + (e.network ? cost(Cost::nic_flight) : cost(Cost::engine_latency) + f.extra_ns);
  at(end, Event::landed, id, node(end, mine, e.where, What::lands, Phase::copy, f.queue, f.bytes));
  e.turn.pop_front();
  if (!e.turn.empty() && nodes_[flights_[e.turn.front()].node].t < now_) flights_[e.turn.front()].node = mine;
  begin_flow(e);
}

template <class Time> void World<Time>::landed(std::uint32_t id, std::uint32_t node) {
  const auto queue = flights_[id].queue;
  auto& q = programs_[queue];
  auto& e = engines_[q.engine];
  last_ = lead(now_);
  last_node_ = node;
  q.landed = higher(q.landed, now_);
  if (flights_[id].completes) {
    release(queue, node);
  } else if (flights_[id].executes) {
    const auto packet = flights_[id].packet;
    execute_now(q, packet);
    typed(packet, memory_->reader(q.gpu), [&](const auto& p) {
      footprint(p, [&](const Region& r) {
        if (allows(r.access, Access::write) && memory_->watched(r)) notify(r, node);
      });
      return Outcome::done;
    });
  }
  if (o_.recorder && !flights_[id].completes) o_.recorder->packet_end(q.lane, ns(), flights_[id].position);
  e.used -= flights_[id].need;
  totals_.bytes += flights_[id].bytes;
  free_flights_.push_back(id);
  closed(e);
  --q.in_flight;
  q.landed_node = node;
  if (const auto peer = std::exchange(flights_[id].peer, kNoPeer); peer != kNoPeer) --e.toward[peer];
  if (!e.held.empty()) {
    for (const auto waiting : std::exchange(e.held, {})) {
      programs_[waiting].node = node;
      programs_[waiting].ready = after(programs_[waiting].ready);
      e.wants.push_back(waiting);
    }
    if (!e.front_busy) next_front(e);
  }
  while (!e.room.empty() && e.used + flights_[e.room.front()].need <= window() * (1 + 1e-9)) {
    const auto next = e.room.front();
    e.room.pop_front();
    flights_[next].node = node;  // it waited for this one to land
    programs_[flights_[next].queue].node = node;
    enter(next);
  }
  if (q.state == State::drain && q.in_flight == 0) {
    q.node = node;
    drained(queue);
  }
}

}}}  // namespace sdma::v0_3::detail
