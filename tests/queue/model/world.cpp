// SPDX-License-Identifier: MIT
#include "world.hpp"

#include <unordered_set>

namespace model {

World& World::current() {
  static World w;
  return w;
}

void World::body(void* self) {
  auto& t = *static_cast<Thread*>(self);
  t.run(t.argument);
}

void World::thread(void (*run)(void*), void* argument) {
  if (used_ == kThreads) limit("threads");
  auto& t = threads_[at(used_++)];
  t.run = run;
  t.argument = argument;
}

int World::word(const void* p) {
  if (p == &rptr) return kRptr;
  if (p == &wptr) return kWptr;
  if (p == &doorbell) return kDoorbell;
  limit("a word that is none of rptr, wptr and doorbell");
}

int World::atomic(std::uint32_t made) {
  auto& p = place_[made];
  if (p < 0) {
    if (places_ == kLocations) limit("atomic words");
    twice_[at(places_)] = made >= twice_from_ && made < twice_to_;
    p = places_++;
  }
  return p;
}

std::uint64_t World::access(Op op) {
  const auto l = at(op.location);
  if (running_ == 0) {  // nobody else runs yet
    auto& first = memory_.locations[l].at[0].value;
    if (op.location == kRptr) first = rptr;
    if (op.location == kWptr) first = wptr;
    const auto before = first;
    threads_[0].op.success = op.kind == Kind::compare_exchange && before == op.expected;
    if (op.kind == Kind::store || threads_[0].op.success) first = op.value;
    return before;
  }
  wrote();
  auto& t = threads_[at(running_)];
  t.op = op;
  t.offered = 0;
  t.declined = false;
  t.fiber.yield();
  t.observed = mix(t.observed, t.op.result * 2 + t.op.success);
  seen_[at(running_)][l] = t.op.result;
  return t.op.result;
}

bool World::compare_exchange(Op op, std::uint64_t& expected) {
  op.expected = expected;
  const auto found = access(op);
  const bool ok = threads_[at(running_)].op.success;
  if (ok) ++threads_[at(running_)].taken;
  else expected = found;
  return ok;
}

void World::set(std::size_t i, const Dword& now) {
  const auto one = [&](const Dword& d) {
    return mix(mix(mix(i + 1, d.value * 2ull + d.buffered), static_cast<std::uint64_t>(d.writer)), d.position);
  };
  shadow_hash_ += one(now) - one(shadow_[i]);
  buffered_ += now.buffered - shadow_[i].buffered;
  shadow_[i] = now;
  known_[i] = now.value;
}

/// Finds the plain stores of the step that has just ended.
void World::wrote() {
  if (dwords == known_) return;
  auto& view = memory_.views[at(running_)];
  int block = -1;
  for (std::size_t i = 0; i < kRing; ++i) {
    if (dwords[i] == known_[i]) continue;
    if (block < 0) {
      auto& n = threads_[at(running_)].blocks;
      if (n == 9) limit("blocks of plain writes");
      block = (running_ - 1) * 9 + static_cast<int>(n++);
    }
    const auto& d = shadow_[i];
    if (d.writer >= 0 && !(view.written >> d.writer & 1)) fail("race: two producers write one dword");
    if (d.position > view.read) fail("race: a dword is overwritten that the engine may still read");
    set(i, {dwords[i], block, 0, true});
  }
  if (block >= 0) view.written |= std::uint64_t{1} << block;
}

void World::flush() {
  wrote();
  threads_[at(running_)].wptr_buffered = false;
  for (std::size_t i = 0; i < kRing && buffered_ != 0; ++i) {
    auto d = shadow_[i];
    if (!d.buffered || d.writer / 9 != running_ - 1) continue;
    d.buffered = false;
    set(i, d);
  }
}

void World::read(std::uint64_t from, std::uint64_t to) {
  auto& view = memory_.views[at(running_)];
  for (auto p = from; p < to; p += 4) {
    const auto i = p / 4 % kRing;
    auto d = shadow_[i];
    if (d.writer >= 0 && !(view.written >> d.writer & 1)) fail("race: the engine reads a dword while it is written");
    if (d.buffered) fail("the engine reads a dword that still is in a write-combining buffer");
    d.position = p + 4;
    set(i, d);
  }
  view.read = std::max(view.read, to);
  read_from_ = from;
  read_to_ = to;
}

void World::consumed() {
  for (auto p = read_from_; p < read_to_; p += 4) {
    const auto i = p / 4 % kRing;
    auto d = shadow_[i];
    d.value = dwords[i] = kPoison;
    d.writer = -1;  // who overwrites it must know of the read, which knew of the write
    set(i, d);
  }
}

void World::forget(std::uint64_t point) { threads_[at(running_)].observed = mix(point, 0x5eed); }

void World::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

void World::restart(const std::function<void()>& setup) {
  memory_.reset();
  dwords.fill(kPoison);
  shadow_hash_ = 0;
  shadow_.fill({kPoison, -1, 0, false});
  known_.fill(kPoison);
  buffered_ = 0;
  atomics_ = 0;
  used_ = 1;
  running_ = 0;
  failure_.clear();
  if (trace_) trace_->clear();
  setup();
  memory_.locations[kRptr].at[0].value = rptr;
  memory_.locations[kWptr].at[0].value = wptr;
  memory_.locations[kDoorbell].at[0].value = doorbell;
  for (int i = 1; i < used_; ++i) {
    auto& t = threads_[at(i)];
    t.observed = 0;
    t.blocks = 0;
    t.taken = 0;
    t.wptr_buffered = false;
    seen_[at(i)] = {};
    t.fiber.start(&World::body, &t);
    resume(i);
  }
}

void World::resume(int thread) {
  running_ = thread;
  auto& t = threads_[at(thread)];
  t.fiber.resume();
  if (t.fiber.done()) wrote();
}

void World::step(Choice c) {
  auto& t = threads_[c.thread];
  const auto& l = memory_.locations[at(t.op.location)];
  if (c.store == kWait) {
    t.offered = static_cast<std::uint32_t>(l.stores);
    t.declined = true;
    return;
  }
  if (t.op.kind == Kind::store && twice_[at(t.op.location)] && l.stores > 2) fail("a word is stored a third time");
  if (t.op.kind == Kind::store && t.op.location <= kDoorbell && storing) {
    running_ = c.thread;
    const bool is_last = c.store + 1 == l.stores;
    storing(t.op.location, t.op.value, l.at[c.store].value, is_last ? ~std::uint64_t{} : l.at[c.store + 1u].value);
  }
  if (t.op.kind == Kind::store && t.op.location == kWptr) t.wptr_buffered = true;
  if (t.op.kind == Kind::store && t.op.location == kDoorbell && t.wptr_buffered)
    fail("the doorbell may overtake wptr: wptr still is in a write-combining buffer");
  memory_.apply(c.thread, t.op, c.store);
  if (trace_) trace_->push_back(describe(c.thread, t.op));
  resume(c.thread);
}

/// What the next thread that has a choice may do. None: true if this is an end, false if somebody waits in vain.
bool World::choices(std::vector<Choice>& out) {
  out.clear();
  bool end = true;
  for (const bool stores : {true, false})
    for (int i = 1; i < used_; ++i) {
      const auto& t = threads_[at(i)];
      if (t.fiber.done() || (t.op.kind == Kind::store) != stores) continue;
      const auto& l = memory_.locations[at(t.op.location)];
      for (int r = memory_.views[at(i)].store[at(t.op.location)]; r < l.stores; ++r) {
        if (l.at[at(r)].born < t.offered || !memory_.allows(i, t.op, r)) continue;
        const bool takes = t.op.kind == Kind::compare_exchange && l.at[at(r)].value == t.op.expected;
        if (takes && t.taken == 0 && i > 1 && i <= symmetric_ && threads_[at(i) - 1].taken == 0) {
          end = false;
          continue;
        }
        out.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(r)});
      }
      if (!out.empty()) {
        const bool last = twice_[at(t.op.location)] && l.stores == 3;
        if (!stores && !last) out.insert(out.begin(), {static_cast<std::uint8_t>(i), kWait});
        return true;
      }
      end = end && !t.declined;
    }
  return end;
}

std::uint64_t World::state() const {
  std::uint32_t live = 0;
  std::uint64_t h = 0;
  for (int i = 1; i < used_; ++i) {
    const auto& t = threads_[at(i)];
    if (t.fiber.done()) continue;
    live |= 1u << i;
    h = mix(h, t.observed);
    h = mix(h, t.blocks * 64u + static_cast<unsigned>(t.taken));
    h = mix(h, seen_[at(i)][kRptr]);
    // Of its location: what it can still be offered, as far as it may read it.
    const auto& l = memory_.locations[at(t.op.location)];
    std::uint64_t fresh = t.declined;
    for (int r = memory_.views[at(i)].store[at(t.op.location)]; r < l.stores; ++r)
      fresh = fresh * 2 + (l.at[at(r)].born >= t.offered);
    h = mix(h, fresh);
  }
  h = mix(mix(h, live), shadow_hash_);
  if (ghost) h = mix(h, ghost());
  return mix(h, memory_.hash(live));
}

std::string World::describe(int thread, const Op& op) const {
  static constexpr const char* kKinds[] = {"load", "store", "exchange", "compare_exchange", "await"};
  std::string s = "thread " + std::to_string(thread) + " " + kKinds[static_cast<int>(op.kind)] + " ";
  if (op.location <= kDoorbell) {
    static constexpr const char* kWords[] = {"rptr", "wptr", "doorbell"};
    s += kWords[op.location];
  } else {
    for (std::size_t i = 0; i < place_.size(); ++i)
      if (place_[i] == op.location) s += "atomic " + std::to_string(i);
  }
  if (op.kind != Kind::store) s += " sees " + std::to_string(op.result);
  if (op.kind == Kind::store || op.kind == Kind::exchange || (op.kind == Kind::compare_exchange && op.success))
    s += " stores " + std::to_string(op.value);
  return s;
}

Outcome World::explore(const std::function<void()>& setup, const std::function<void()>& end, const Limits& limits) {
  Outcome o;
  symmetric_ = limits.symmetric;
  std::unordered_set<std::uint64_t> visited;
  std::vector<Node> nodes{{0, {0, 0}}};
  std::vector<std::uint32_t> open{0};
  std::vector<Choice> path, next;
  const auto path_to = [&](std::uint32_t n) {
    path.clear();
    for (; n != 0; n = nodes[n].parent) path.push_back(nodes[n].choice);
    std::reverse(path.begin(), path.end());
  };
  while (!open.empty()) {
    auto at_node = open.back();
    open.pop_back();
    path_to(at_node);
    restart(setup);
    ++o.runs;
    for (auto c : path) step(c);
    while (failure_.empty()) {
      if (!visited.insert(state()).second) break;
      if (++o.states == limits.states) {
        o.complete = false;
        return o;
      }
      const bool all = choices(next);
      if (next.empty()) {
        if (all) {
          ++o.ends;
          end();
        }
        break;
      }
      for (auto c : next) {
        nodes.push_back({at_node, c});
        open.push_back(static_cast<std::uint32_t>(nodes.size() - 1));
      }
      at_node = open.back();
      open.pop_back();
      step(nodes[at_node].choice);
    }
    if (!failure_.empty()) {
      o.complete = false;
      o.failure = failure_;
      std::vector<std::string> trace;
      path_to(at_node);
      trace_ = &trace;
      restart(setup);
      for (auto c : path) step(c);
      trace_ = nullptr;
      o.trace = std::move(trace);
      return o;
    }
  }
  return o;
}

}  // namespace model
