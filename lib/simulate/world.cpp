// SPDX-License-Identifier: MIT
// The state of a simulation, and the loop over its events.
#include "world.hpp"

#include "activity.hpp"
#include "engines.hpp"
#include "links.hpp"
#include "path.hpp"
#include "queues.hpp"
#include "threads.hpp"

#include "../schedule/compare.hpp"
#include "../schedule/recorded.hpp"
#include "../schedule/refused.hpp"
#include "../schedule/sums.hpp"
#include "../schedule/symbols.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace sdma { inline namespace v0_3 {
namespace detail {

template <class Time> auto World<Time>::costs_of(const MachineDescription& m) noexcept -> Costs {
  Costs out;
  for (std::size_t i = 0; i < kCosts; ++i) out[i] = m.parameters[i].value;
  return out;
}

template <class Time>
World<Time>::World(const Schedule& s, const MachineDescription& m, const SimulateOptions& o)
    : s_(s), m_(m), o_(o), costs_(costs_of(m)), steps_(o.max_steps) {}
template <class Time> World<Time>::~World() = default;

template <class Time> void World<Time>::find(std::string where, std::string message, std::string hint) {
  findings_.push_back({.where = std::move(where), .message = std::move(message), .hint = std::move(hint)});
}

template <class Time> std::string World<Time>::where(const Thread& t) const {
  const Schedule::Action* action = nullptr;
  if (t.blocked) action = &(*t.frames.back().actions)[t.frames.back().next];
  // A frame counts an action before it performs it. A round that just began has performed none: the repeat is meant.
  for (auto f = t.frames.rbegin(); !action && f != t.frames.rend(); ++f)
    if (f->next > 0) action = &(*f->actions)[f->next - 1];
  const auto line = action && o_.map ? o_.map->action(s_, *action).line : 0;
  return line == 0 ? t.name : fmt::format("{}, line {}", t.name, line);
}

template <class Time> bool World<Time>::spend(std::uint64_t steps, const Thread* t) {
  if (steps_.take(steps)) return true;
  for (auto i = threads_.begin(); !t && i != threads_.end(); ++i)
    if (!i->done) t = &*i;
  find(t ? where(*t) : "simulate", fmt::format("the simulation takes more than {} steps", steps_.limit()),
       "repeat less often: a round after the third takes as long as the third");
  return false;
}

template <class Time> bool World<Time>::stops() {
  constexpr std::uint32_t kBetween = 64;
  if (!o_.stop || ++asked_ % kBetween != 0 || !o_.stop()) return false;
  stopped_ = true;
  find("simulate", "the simulation was stopped before its end");
  return true;
}

template <class Time> std::uint32_t World<Time>::named(std::string n) {
  names_.push_back(std::move(n));
  return static_cast<std::uint32_t>(names_.size() - 1);
}

template <class Time>
std::uint32_t World<Time>::node(const Time& t, std::uint32_t cause, std::uint32_t where, What w, Phase p,
                                std::uint32_t queue, std::uint64_t count) {
  nodes_.push_back({.t = t, .cause = cause, .where = where, .queue = queue, .what = w, .phase = p, .count = count});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

template <class Time>
void World<Time>::at(const Time& t, Event e, std::uint32_t id, std::uint32_t node, std::uint64_t argument) {
  events_.push({t, numbers_++, e, id, node, argument});
}

template <class Time> Time World<Time>::flight(std::uint32_t gpu, Place to) const noexcept {
  if (to.is_host()) return cost(Cost::pcie_flight);
  return to.index == gpu ? Time{} : cost(flights_between_[gpu * places_ + to.index]);
}

template <class Time> Time World<Time>::flight(const Thread& t, std::size_t signal) const noexcept {
  const auto home = memory_->home(memory_->resolve(link_signal(signal)));
  if (t.kernel()) return flight(t.place.index, home);
  return home.is_host() ? Time{} : cost(Cost::pcie_flight);
}

template <class Time> trace::LaneId World<Time>::lane(const Node<Time>& n) const noexcept {
  for (const auto& t : threads_)
    if (t.where == n.where) return t.lane;
  return n.queue < programs_.size() ? programs_[n.queue].lane : threads_.front().lane;
}

/// A resource whose rate is a parameter, or a multiple of it.
template <class Time> std::uint32_t World<Time>::resource(Busy::Kind kind, std::string name, Cost c, double times) {
  return net_.add({.kind = kind,
                   .name = std::move(name),
                   .rate = times * value(c),
                   .cost = static_cast<std::size_t>(c),
                   .times = times});
}

/// A resource that was never full does not matter while its rate covers what its flows could use.
template <class Time> typename World<Time>::Needs World<Time>::needs() const {
  constexpr double kMargin = 1 + 1e-6;
  auto out = needs_;
  for (const auto& r : net_.resources())
    if (r.cost < kCosts) out[r.cost] = std::max(out[r.cost], lead(costs_[r.cost]) * r.peak / lead(r.rate) * kMargin);
  return out;
}

template <class Time>
std::optional<std::uint32_t> World<Time>::engine_of(const Schedule::Queue& q, const std::string& where) {
  if (q.network) return network_of(q, where);
  const auto id = detail::engine_of(q, by_ends_)->value;  // or it would have been refused
  const auto [known, added] =
      engine_numbers_.try_emplace({q.place.index, id}, static_cast<std::uint32_t>(engines_.size()));
  if (!added) return known->second;
  auto& e = engines_.emplace_back();
  e.gpu = q.place.index;
  e.id = id;
  const auto name = fmt::format("gpu{} engine {}", e.gpu, e.id);
  e.resource = resource(Busy::Kind::engine, name, Cost::engine_rate);
  e.where = named(name);
  return known->second;
}

/// The thread that passes the packets of a queue on to the network, as an engine that has the rate of the link.
template <class Time>
std::optional<std::uint32_t> World<Time>::network_of(const Schedule::Queue& q, const std::string& where) {
  if (!leads(q.place, *q.peer) || m_.topology.gpus[q.place.index].node == m_.topology.gpus[q.peer->index].node)
    return find(where, fmt::format("the machine has no network from {} to {}", to_string(q.place), to_string(*q.peer)),
                "simulate it on several nodes: --machine=nodes:2x4"),
           std::nullopt;
  const auto between = crossed(q.place, *q.peer, where);
  if (!between) return std::nullopt;
  auto& e = engines_.emplace_back();
  e.gpu = q.place.index;
  e.network = true;
  e.link = static_cast<std::uint32_t>(link(q.place, *q.peer));
  const auto name = "network " + queue_name(q);
  auto as_link = net_.resources()[*between];
  as_link.kind = Busy::Kind::engine;
  as_link.name = name;
  e.resource = net_.add(std::move(as_link));
  e.where = named(name);
  return static_cast<std::uint32_t>(engines_.size() - 1);
}

/// A ring of 64K for each of a thousand queues is mostly room that none of them uses.
template <class Time> void World<Time>::queues() {
  constexpr std::size_t kParts = 3;  // a ring, and its copy of twice the size
  std::uint64_t bytes = 0;
  for (const auto& q : s_.queues) bytes += ring_bytes(q) * kParts;
  if (bytes == 0) return;
  if (std::in_range<std::size_t>(bytes)) rings_ = LazyPages{static_cast<std::size_t>(bytes)};
  if (!rings_) return find("queues", "no address space is left for their rings", "declare smaller rings: ring=64K");
  std::span left{reinterpret_cast<std::uint32_t*>(rings_.data()), static_cast<std::size_t>(bytes / 4)};
  for (std::size_t i = 0; i < s_.queues.size() && findings_.empty(); ++i) {
    const auto ring = static_cast<std::size_t>(ring_bytes(s_.queues[i]) / 4);
    queue(i, left.first(ring), left.subspan(ring, (kParts - 1) * ring));
    left = left.subspan(kParts * ring);
  }
}

template <class Time>
void World<Time>::queue(std::size_t i, std::span<std::uint32_t> ring, std::span<std::uint32_t> copy) {
  const auto& source = s_.queues[i];
  auto& q = programs_.emplace_back();
  q.source = &source;
  q.name = queue_name(source);
  q.gpu = source.place.index;
  const auto engine = engine_of(source, "queue " + q.name);
  if (!engine) return;
  q.engine = *engine;
  // Watch every word that a packet polls or posts to, in any memory: copies to it must really be executed.
  bool first = true;
  const auto watch = [&](const PacketView& was, std::span<const std::uint32_t> now) {
    visit(*was.info, now, [&](const auto& p) {
      const auto w = word(p);
      if (w.bytes != 0) memory_->watch(w.va, w.bytes);
      if (source.network) pattern_of_.network();
      else pattern_of_.packet(p, source.place, [this](GpuVa va) { return memory_->home(va); });
      if (LinkMemory::kScarce) {
        std::vector<Region> regions;
        footprint(p, [&](const Region& r) { regions.push_back(r); });
        memory_->accesses(std::move(regions), Divisible<std::remove_cvref_t<decltype(p)>>);
      }
      if (std::exchange(first, false) && was.info == &info_of<PollMem>()) q.head = w.va;
    });
  };
  q.linked = link_queue(
      source, [this](GpuVa link) { return memory_->resolve(link); }, watch);
  q.dwords = ring;
  q.ring.emplace(q.ring_memory());
  q.front.emplace(PipelineConfig{.ring = ring,
                                 .copy = copy,
                                 .reader = &memory_->reader(q.gpu),
                                 .gpu = GpuId{q.gpu},
                                 .engine = EngineId{engines_[q.engine].id}});
  if (o_.recorder)
    q.lane = source.network
                 ? o_.recorder->lane(to_string(source.place), "network " + source.name)
                 : o_.recorder->lane(trace::queue_lane(GpuId{q.gpu}, EngineId{engines_[q.engine].id}, source.name));
}

template <class Time> void World<Time>::prepare() {
  findings_ = problems(s_);
  if (!findings_.empty()) return;
  // What check and run refuse because of the node, in their words.
  for (auto& r : detail::refused(s_, m_.topology)) {
    const auto line = !o_.map    ? 0
                      : r.action ? o_.map->action(s_, *r.action).line
                      : r.queue  ? o_.map->packet(*r.queue, r.dword).line
                                 : 0;
    find(line == 0 ? r.where : fmt::format("{}, line {}", r.where, line), std::move(r.message), std::move(r.hint));
    findings_.back().rule = r.rule;
  }
  if (!findings_.empty()) return;
  memory_.emplace(s_);
  findings_ = std::move(memory_->findings());
  if (!findings_.empty()) return;
  if (o_.recorder)
    o_.recorder->name(names_of(s_, [this](const SymbolOffset& l) { return memory_->resolve(link_address(l)); }));
  named("");
  nodes_.push_back({});
  links();
  for (const auto& a : actors(s_)) {
    auto& t = threads_.emplace_back();
    t.name = a.title();
    t.place = a.place;
    t.of = a.of;
    t.where = named(t.name);
    t.actions = a.actions;
    if (o_.recorder) t.lane = o_.recorder->lane(to_string(a.place), a.name);
    if (t.kernel()) t.pace = net_.add({.kind = Busy::Kind::agent, .name = t.name, .rate = 1, .times = 1});
  }
  queues();
  memory_->buffers(o_.contents);
  std::move(memory_->findings().begin(), memory_->findings().end(), std::back_inserter(findings_));
  if (!findings_.empty()) return;
  for (const auto& r : net_.resources()) {
    resource_names_.push_back(named(r.name));
    if (o_.recorder)
      resource_lanes_.push_back(r.kind == Busy::Kind::link ? o_.recorder->lane("links", r.name.substr(5))
                                                           : trace::LaneId{});
  }
  if (o_.contents)
    fill(s_, o_.seed, [this](std::size_t i) {
      return std::span(memory_->at(memory_->resolve(link_buffer(i))), static_cast<std::size_t>(s_.buffers[i].bytes));
    });
  // After the buffers, because a signal may be a word in one.
  for (std::size_t i = 0; i < s_.signals.size() && findings_.empty(); ++i) memory_->set(i, s_.signals[i].value);
}

template <class Time> void World<Time>::handle(const Scheduled& e) {
  switch (e.event) {
    case Event::thread:
      if (e.node == 1) round_ends(threads_[e.id]);
      return step(e.id);
    case Event::computed: return computed(e.id);
    case Event::store: return store_lands(e.id, e.node);
    case Event::doorbell: return doorbell(e.id, e.argument, e.node);
    case Event::front: return front_done(e.id);
    case Event::look: return look(e.id, e.node);
    case Event::decide: return decide(e.id);
    case Event::moved: return moved(e.id);
    case Event::landed: return landed(e.id, e.node);
    case Event::release: return release(e.id, e.node);
  }
}

/// What `prepare` has made stays; what a run has changed is as before it.
template <class Time> void World<Time>::restart(const Costs& costs) {
  costs_ = costs;
  findings_.clear();
  steps_.renew();
  stopped_ = false;
  needs_ = {};
  uses_ = {};
  memory_->clear();
  net_.restart(costs_);
  std::fill(paths_.begin(), paths_.end(), InTurn<Time>{});
  nodes_.resize(1);
  events_ = {};
  ends_ = {};
  numbers_ = flights_made_ = 0;
  now_ = flows_changed_ = Time{};
  changed_.clear();
  times_ = {};
  for (auto& t : threads_) static_cast<ThreadProgress&>(t) = {};
  for (auto& q : programs_) {
    static_cast<Progress&>(q) = {};
    q.rptr = q.wptr = 0;
    q.ring.emplace(q.ring_memory());
    q.front->restart();
  }
  for (auto& e : engines_) static_cast<EngineProgress&>(e) = {};
  flights_.clear();
  free_flights_.clear();
  flow_owner_.clear();
  stores_.clear();
  waiters_.clear();
  words_.clear();
  for (auto& p : pages_) p.clear();
  rounds_.clear();
  settling_.clear();
  forced_ = false;
  round_ = RoundRule<Time>{round_.is_whole()};
  last_ = 0;
  end_node_ = last_node_ = 0;
  busy_.clear();
  activity_ = {};
  kernel_bytes_ = 0;
  totals_ = {};
  for (std::size_t i = 0; i < s_.signals.size(); ++i) memory_->set(i, s_.signals[i].value);
}

template <class Time> Result<Simulation, std::vector<Diagnostic>> World<Time>::again(const Costs& costs) {
  restart(costs);
  return play();
}

/// Whether the bytes need a rate that is unknown, only the run says.
template <class Time> bool World<Time>::can_begin() {
  prepare();
  if (!findings_.empty()) return false;
  if (!unrated_.empty()) (void)play();
  return !lacks_rate_;
}

template <class Time> Result<Simulation, std::vector<Diagnostic>> World<Time>::run() {
  prepare();
  if (!findings_.empty()) return std::move(findings_);
  return play();
}

template <class Time> Result<Simulation, std::vector<Diagnostic>> World<Time>::play() {
  // One section per reader for the whole run: nothing is mapped or unmapped meanwhile.
  std::deque<AddressSpace::Reader::Section> sections;
  for (std::uint32_t g = 0; g < s_.gpus; ++g) sections.emplace_back(memory_->reader(g));
  if (o_.contents)
    for (const auto& e : s_.expectations) {
      std::vector<std::byte> room;
      if (!e.old) continue;
      const auto right = expected(e, room);
      old_.emplace_back(right.begin(), right.end());
    }
  if (o_.contents)
    for (const auto& a : actors(s_)) remember(*a.actions);
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    threads_[i].frames.push_back({.actions = threads_[i].actions, .round = 1, .rounds = 1});
    at(0, Event::thread, i);
  }
  for (;;) {
    reschedule();
    if (!findings_.empty() || (events_.empty() && ends_.empty() && !release_trigger())) break;
    const auto e = next();
    if (lead(e.t) > o_.time_limit_ns) {
      find("simulate",
           fmt::format("the simulation has not ended after {:.3g} s of virtual time", o_.time_limit_ns / 1e9));
      break;
    }
    now_ = e.t;
    if (!stops() && spend(1)) handle(e);
  }
  stuck();
  if (!findings_.empty()) return std::move(findings_);
  return result();
}

/// Reports everything that still waits when no event is left.
template <class Time> void World<Time>::stuck() {
  if (!findings_.empty()) return;
  for (const auto& t : threads_) {
    if (t.done) continue;
    if (t.waits)
      find(where(t), fmt::format("waits forever for {} {} {}: its value is {}", name_of(s_, link_signal(t.signal)),
                                 sign_of(t.func), t.reference, memory_->value(t.signal)));
    else find(where(t), "waits forever for room in a ring");
  }
  if (findings_.empty()) return;
  for (const auto& q : programs_)
    if (q.state == State::waits)
      find("queue " + q.name, "its engine is stalled at a poll of " + name_of(s_, q.front->current().word),
           "sdma check says why nothing satisfies it");
}

template <class Time> void World<Time>::remember(const std::vector<Schedule::Action>& all) {
  for (const auto& a : all) {
    remember(a.body);
    if (!a.old) continue;
    std::vector<std::byte> room;
    const auto right = expected(a, room);
    old_of_actions_[&a].assign(right.begin(), right.end());
  }
}

template <class Time> std::span<std::byte> World<Time>::bytes(const Schedule::Range& r) {
  return {memory_->at(memory_->resolve(r.va)), static_cast<std::size_t>(r.bytes)};
}

/// What memory now holds of that which an expectation or an action names; `sum` is room for it.
template <class Time>
template <class Expects>
std::span<const std::byte> World<Time>::expected(const Expects& e, std::vector<std::byte>& sum) {
  if (!e.sum) return bytes(e.right);
  return sum = added(e.sum, [this](const auto& part) { return bytes(part); });
}

/// An expectation that a thread compares at this moment.
template <class Time> void World<Time>::compare(const Thread& t, const Schedule::Action& a) {
  std::vector<std::byte> room;
  const auto should = a.old ? std::span<const std::byte>(old_of_actions_.at(&a)) : expected(a, room);
  if (auto d = difference(s_, a.range, bytes(a.range), should); !d.empty())
    totals_.findings.push_back({.where = where(t), .message = std::move(d)});
}

/// Reports each compute that needs more of the memory than there is: it cannot take the time that it asks for.
template <class Time>
void World<Time>::too_fast(const Thread& t, const std::vector<Schedule::Action>& all, Simulation& r) const {
  const auto rate = lead(value(Cost::hbm_rate));
  for (const auto& a : all) {
    too_fast(t, a.body, r);
    const auto least = static_cast<double>(a.hbm) / rate;
    if (least <= static_cast<double>(a.ns) * (1 + 1e-9)) continue;
    const auto line = o_.map ? o_.map->action(s_, a).line : 0;
    r.findings.push_back(
        {.severity = Severity::warning,
         .where = line == 0 ? t.name : fmt::format("{}, line {}", t.name, line),
         .message = fmt::format(
             "{} bytes in {} ns are {:.0f} GB/s, but the memory of {} has {:.0f}: it takes {:.0f} ns", size_text(a.hbm),
             a.ns, static_cast<double>(a.hbm) / static_cast<double>(a.ns), to_string(t.place), rate, least)});
  }
}

template <class Time> void World<Time>::expectations(Simulation& r) {
  std::size_t old = 0;
  for (const auto& e : s_.expectations) {
    if (e.kind == Schedule::Expectation::Kind::finding) continue;
    if (e.kind == Schedule::Expectation::Kind::value) {
      const auto signal = find_symbol(s_, e.left.va)->index;
      if (memory_->value(signal) != e.value)
        r.findings.push_back(
            {.where = "expect",
             .message = fmt::format("{} is {}, not {}", name_of(s_, e.left.va), memory_->value(signal), e.value)});
      continue;
    }
    std::vector<std::byte> room;
    const auto should = e.old ? std::span<const std::byte>(old_[old++]) : expected(e, room);
    if (auto d = difference(s_, e.left, bytes(e.left), should); !d.empty())
      r.findings.push_back({.where = "expect", .message = std::move(d)});
  }
}

template class World<double>;
template class World<Lanes<kLanes>>;

}  // namespace detail

bool can_begin(const Schedule& s, const MachineDescription& m) { return detail::World<double>{s, m, {}}.can_begin(); }

Result<Simulation, std::vector<Diagnostic>> simulate(const Schedule& s, const MachineDescription& m,
                                                     const SimulateOptions& o) {
  return detail::World<double>{s, m, o}.run();
}

}}  // namespace sdma::v0_3
