// SPDX-License-Identifier: MIT
#pragma once
// A Ring, its producers, an engine and whoever watches, as threads of a World, and what must hold at every moment:
//   a doorbell never goes back and never covers a slot that is not published; wptr is not behind a doorbell that is
//   seen; slots do not overlap, nor what the engine has not read; a dword stays free; no_space is said of rings without
//   room only; the engine reads whole packets that were written, each producer's in order, without a race; in the end
//   all is published, and doorbell == wptr == reserved.
#include "sdma/packets/sync.hpp"
#include "sdma/stream/reader.hpp"
#include "wave.hpp"
#include "world.hpp"

#include <deque>
#include <optional>

namespace model {

enum class Engine : std::uint8_t {
  doorbell,  ///< behind the doorbell
  wptr,      ///< has no doorbell, or lost it: wptr alone
  remapped,  ///< has seen a doorbell, and starts from wptr
  none,      ///< the ring is big enough without one
};

struct Take {
  std::size_t dwords = 8;  ///< 4 at least: a fence and NOPs
  bool give_back = false;
};

struct Scenario {
  const char* name;
  sdma::Producers kind = sdma::Producers::many;
  std::vector<std::vector<Take>> producers;
  Engine engine = Engine::doorbell;
  std::uint64_t start = 0;   ///< where the ring stands when it is attached
  std::uint64_t unread = 0;  ///< bytes before that which the engine has still to read
  bool watch = false;        ///< another thread looks at positions()
  bool doorbell = true;
  bool taken = false;       ///< the first slot of each is taken before they start, in their order
  bool give_up = false;     ///< at no_space; otherwise wait for rptr
  bool waves = false;       ///< each producer is a wave of two lanes that write a slot of 4 dwords together
  std::uint32_t least = 1;  ///< dwords of a submission
};

template <template <sdma::Producers, class> class RingOf, sdma::Producers K> class Play {
 public:
  using Ring = RingOf<K, Model>;
  static Outcome run(World& w, const Scenario& s) { return Play(w, s).explore(); }

 private:
  struct Taken {
    std::uint64_t begin, end;
    int owner;
    bool published;
  };
  struct Worker {
    Play* play;
    int index;
  };

  Play(World& w, const Scenario& s) : w_(w), s_(s) {}

  Outcome explore() {
    std::size_t slots = 0;
    for (const auto& p : s_.producers) slots += p.size();
    if (K == sdma::Producers::many && slots < Ring::kOpenSlots) w_.stored_twice(3, 3 + Ring::kOpenSlots);  // turn_
    bool same = !s_.taken;
    for (const auto& p : s_.producers)
      for (std::size_t i = 0; i < p.size(); ++i)
        same = same && p.size() == s_.producers[0].size() && p[i].dwords == s_.producers[0][i].dwords &&
               p[i].give_back == s_.producers[0][i].give_back;
    w_.ghost = [this] { return ghost(); };
    w_.storing = [this](int l, std::uint64_t v, std::uint64_t before, std::uint64_t behind) {
      storing(l, v, before, behind);
    };
    const Limits limits{.symmetric = same && !s_.waves ? static_cast<int>(s_.producers.size()) : 0};
    auto out = w_.explore([this] { setup(); }, [this] { end(); }, limits);
    w_.ghost = {};
    w_.storing = {};
    return out;
  }

  void setup() {
    w_.rptr = s_.start - s_.unread;
    w_.wptr = w_.doorbell = s_.start;
    taken_.clear();
    next_.assign(s_.producers.size(), 0);
    read_ = w_.rptr;
    ring_.emplace(sdma::RingMemory{.dwords = w_.dwords,
                                   .rptr = &w_.rptr,
                                   .wptr = &w_.wptr,
                                   .doorbell = s_.doorbell ? &w_.doorbell : nullptr,
                                   .least_dwords = s_.least});
    if (s_.unread != 0) {
      taken_.push_back({w_.rptr, s_.start, -1, true});
    }
    first_.clear();
    for (int i = 0; s_.taken && i < static_cast<int>(s_.producers.size()); ++i) {
      first_.push_back(*ring_->reserve(s_.producers[static_cast<std::size_t>(i)][0].dwords));
      taken_.push_back({first_.back().begin, first_.back().end, i, false});
    }
    workers_.clear();
    workers_.reserve(kThreads);
    lanes_.clear();
    for (int i = 0; i < static_cast<int>(s_.producers.size()); ++i) {
      add(i, [](Worker& me) { me.play->produce(me.index); });
      if (s_.waves) lanes_.emplace_back();
    }
    for (int i = 0; s_.waves && i < static_cast<int>(s_.producers.size()); ++i)
      add(i, [](Worker& me) { me.play->follow(me.index); });
    if (s_.engine != Engine::none) add(-1, [](Worker& me) { me.play->consume(); });
    if (s_.watch) add(-1, [](Worker& me) { me.play->look(); });
  }
  template <class Body> void add(int index, Body) {
    workers_.push_back({this, index});
    w_.thread([](void* p) { Body{}(*static_cast<Worker*>(p)); }, &workers_.back());
  }

  // --- threads ---

  /// The ring of a wave, which records the slots that it grants.
  struct OfWave {
    using Order = Model;
    Play* play;
    int me;
    std::uint32_t n;

    sdma::Generation generation() const { return play->ring_->generation(); }
    const sdma::RingMemory& memory() const { return play->ring_->memory(); }
    std::uint32_t padded(std::uint32_t dwords) const { return play->ring_->padded(dwords); }
    template <std::size_t N> sdma::Errc reserve_unfilled(sdma::Slot& slot) {
      for (;;) {
        const auto e = play->ring_->template reserve_unfilled<N>(slot);
        if (e == sdma::Errc::ok) play->take_unfilled(me, slot, N);
        if (e == sdma::Errc::ok || play->w_.failed()) return e;
        play->no_space(N);
        play->await_room();
      }
    }
    void publish_released(const sdma::Slot& s) {
      play->mark_published(s);
      play->ring_->publish_released(s);
    }
  };
  static sdma::Fence fence_of(int me, std::uint32_t n) {
    return {.addr = sdma::GpuVa{static_cast<std::uint64_t>(me) * 4}, .value = n};
  }
  void wave(int me, std::uint32_t lane) {
    ModelWave both(lanes_[static_cast<std::size_t>(me)], lane);
    for (std::uint32_t n = 0; n < s_.producers[static_cast<std::size_t>(me)].size() && !w_.failed(); ++n) {
      OfWave ring{this, me, n};
      w_.require(sdma::submit_together(both, ring, fence_of(me, n)) == sdma::Errc::ok, "a wave's packet is refused");
    }
  }
  void follow(int me) { wave(me, 1); }

  void produce(int me) {
    if (s_.waves) return wave(me, 0);
    const auto& takes = s_.producers[static_cast<std::size_t>(me)];
    for (std::uint32_t n = 0; n < takes.size(); ++n) {
      if (!one(me, n, takes[n])) return;
      w_.forget(n);
    }
  }
  bool one(int me, std::uint32_t n, const Take& t) {
    if (s_.taken && n == 0) {
      publish(me, n, t, first_[static_cast<std::size_t>(me)]);
      return true;
    }
    auto slot = ring_->reserve_or_rest(t.dwords);
    while (!slot || slot->dwords.size() < t.dwords) {
      if (slot) {
        rest(me, n, t.dwords, *slot);
        if (w_.failed()) return false;
        w_.forget(n + 1000);
        slot = ring_->reserve_or_rest(t.dwords);
        continue;
      }
      if (s_.give_up) return false;
      w_.require(slot.error() == sdma::Errc::no_space, "a slot is refused for another reason than room");
      no_space(t.dwords);
      await_room();
      w_.forget(n + 1000);  // it begins anew: what it knows is in its view
      slot = ring_->reserve_or_rest(t.dwords);
    }
    take(me, *slot, t.dwords);
    if (w_.failed()) return false;  // and write nowhere
    w_.forget(n + 2000);            // all that the slot is stands in taken_
    publish(me, n, t, *slot);
    return true;
  }
  /// Publishes the end of the ring, where a slot of so many dwords cannot begin.
  void rest(int me, std::uint32_t n, std::size_t dwords, const sdma::Slot& slot) {
    w_.require(never_fits(slot.begin, dwords), "a slot is shortened that fits in an empty ring");
    w_.require(slot.end % (kRing * 4) == 0, "a shortened slot does not reach the end of the ring");
    take(me, slot, slot.dwords.size());
    if (w_.failed()) return;
    w_.forget(n + 3000);
    publish(me, n, {.dwords = slot.dwords.size(), .give_back = true}, slot);
  }
  void publish(int me, std::uint32_t n, const Take& t, const sdma::Slot& slot) {
    std::size_t used = 0;
    if (!t.give_back) {
      sdma::encode_to(fence_of(me, n), slot.dwords.data());
      used = 4;
    }
    publish_taken(slot, used);
  }
  void await_room() {
    w_.access({.kind = Kind::await,
               .location = World::kRptr,
               .order = std::memory_order_relaxed,
               .expected = w_.seen(World::kRptr)});
  }
  void mark_published(const sdma::Slot& slot) {
    for (auto& x : taken_)
      if (x.begin == slot.begin) x.published = true;
  }
  void publish_taken(const sdma::Slot& slot, std::size_t used) {
    mark_published(slot);
    ring_->publish(slot, used);
  }

  void consume() {
    const bool by_wptr = s_.engine == Engine::wptr;
    if (s_.unread != 0) read(s_.start);
    for (;;) {
      auto to = w_.access({.kind = Kind::await,
                           .location = by_wptr ? World::kWptr : World::kDoorbell,
                           .order = std::memory_order_acquire,
                           .expected = read_});
      if (s_.engine == Engine::remapped) {
        const auto wptr = Model::load(&w_.wptr, std::memory_order_acquire);
        w_.require(wptr >= to, "a doorbell is seen and wptr is behind it: a queue that is mapped again stands still");
        to = wptr;
      }
      if (w_.failed()) return;
      read(to);
    }
  }
  void read(std::uint64_t to) {
    if (read_ >= s_.start) parse(read_, to);
    w_.read(read_, to);
    w_.consumed();
    read_ = to;
    Model::store(&w_.rptr, to, std::memory_order_release);
    w_.forget(to);
  }
  void parse(std::uint64_t from, std::uint64_t to) {
    while (from < to) {
      const auto offset = from / 4 % kRing;
      const auto n = std::min<std::uint64_t>((to - from) / 4, kRing - offset);
      const auto v = sdma::Reader{std::span<const std::uint32_t>(w_.dwords).subspan(offset, n)}.next();
      if (v.is<sdma::Fence>()) {
        const auto f = sdma::decode<sdma::Fence>(v.dwords);
        const auto who = f.addr.value / 4;
        w_.require(who < next_.size() && f.value == expected(who),
                   "the engine reads a producer's packets out of order");
        if (who < next_.size()) next_[who] = f.value + 1;
      } else if (!v.is<sdma::Nop>()) {
        w_.fail("the engine reads what nobody wrote");
        return;
      }
      from += v.dwords.size() * 4;
    }
  }
  std::uint32_t expected(std::size_t who) const {
    auto n = next_[who];
    while (n < s_.producers[who].size() && s_.producers[who][n].give_back) ++n;
    return n;
  }

  void look() {
    const auto p = ring_->positions();
    w_.require(p.read <= p.committed && p.committed <= p.reserved, "positions: not read <= committed <= reserved");
    if (s_.doorbell) {
      const auto bell = Model::load(&w_.doorbell, std::memory_order_acquire);
      w_.require(bell >= p.committed, "committed is told before its doorbell is rung");
    }
  }

  // --- what must hold ---

  std::uint64_t reserved() const { return taken_.empty() ? s_.start : taken_.back().end; }

  /// A slot that names no dwords: they end where it ends, less what fills a submission up.
  void take_unfilled(int me, sdma::Slot slot, std::size_t dwords) {
    const auto padded = ring_->padded(static_cast<std::uint32_t>(dwords));
    w_.require(slot.dwords.empty(), "a slot names dwords that its lanes have to find");
    const auto at = (slot.end / 4 - padded) % kRing;
    w_.require(at + padded <= kRing, "a slot crosses the end of the ring");
    slot.dwords = std::span(w_.dwords).subspan(at, std::min<std::size_t>(padded, kRing - at));
    take(me, slot, slot.dwords.size());
  }
  void take(int me, const sdma::Slot& slot, std::size_t dwords) {
    w_.require(slot.begin == reserved(), "a slot does not begin where the one before it ends");
    w_.require(slot.dwords.size() == dwords && slot.dwords.data() >= w_.dwords.data() &&
                   slot.dwords.data() + dwords <= w_.dwords.data() + kRing,
               "a slot lies outside the ring");
    w_.require((slot.end / 4 - dwords) % kRing == static_cast<std::size_t>(slot.dwords.data() - w_.dwords.data()),
               "a slot's dwords are not where its positions say");
    w_.require(slot.end - w_.last(World::kRptr) < kRing * 4, "no dword is free, or unread ones are given away");
    taken_.push_back({slot.begin, slot.end, me, false});
  }

  /// Does the ring end too early after this position, and is there too little before it, even if the ring is empty?
  static bool never_fits(std::uint64_t position, std::size_t dwords) {
    const auto offset = position % (kRing * 4), want = dwords * 4;
    return offset + want > kRing * 4 && want >= offset;
  }
  /// Would `dwords` have fitted, by what this thread knew of rptr and by what is truly reserved?
  void no_space(std::size_t dwords) {
    const auto offset = reserved() % (kRing * 4), want = dwords * 4;
    const auto skip = offset + want > kRing * 4 ? kRing * 4 - offset : 0;
    const auto end = reserved() + skip + (never_fits(reserved(), dwords) ? 0 : want);
    w_.require(end - w_.seen(World::kRptr) >= kRing * 4, "no_space where there is room");
  }

  void storing(int location, std::uint64_t v, std::uint64_t before, std::uint64_t behind) {
    if (location == World::kRptr) return;
    const bool bell = location == World::kDoorbell;
    w_.require(before < v, bell ? "a doorbell goes back" : "wptr goes back");
    w_.require(v < behind, bell ? "a doorbell may land behind a later one" : "wptr may land behind a later one");
    bool ends = false;
    for (const auto& t : taken_) {
      if (t.end <= v && !t.published)
        w_.fail(bell ? "a doorbell covers a slot that is not published" : "wptr covers a slot that is not published");
      ends = ends || t.end == v;
    }
    w_.require(ends, "wptr or the doorbell lies inside a slot");
  }

  void end() {
    for (int i = 1; i <= static_cast<int>(s_.producers.size()); ++i)
      if (!w_.finished(i)) w_.fail("a producer waits forever");
    w_.require(w_.last(World::kWptr) == reserved(), "all is published, and wptr does not cover it");
    if (s_.doorbell)
      w_.require(w_.last(World::kDoorbell) == reserved(), "all is published, and the doorbell does not cover it");
    if (K == sdma::Producers::many)  // committed_ is the second of the ring's atomics, and has a ticket in its low bits
      w_.require(w_.last(w_.atomic(1)) >> 8 == reserved() / 4, "all is published, and committed does not cover it");
    if (s_.engine != Engine::none) w_.require(read_ == reserved(), "the engine has not read all");
  }

  std::uint64_t ghost() const {
    std::uint64_t h = read_;
    for (const auto& t : taken_) h = mix(mix(h, t.end), static_cast<std::uint64_t>(t.owner * 2 + t.published));
    for (auto n : next_) h = mix(h, n);
    return h;
  }

  World& w_;
  const Scenario& s_;
  std::optional<Ring> ring_{};
  std::vector<Worker> workers_{};
  std::deque<Lanes> lanes_{};
  std::vector<sdma::Slot> first_{};
  std::vector<Taken> taken_{};
  std::vector<std::uint32_t> next_{};
  std::uint64_t read_ = 0;
};

template <template <sdma::Producers, class> class RingOf> Outcome play(const Scenario& s) {
  auto& w = World::current();
  // Scenarios differ in the words that they touch.
  w.reset_places();
  return s.kind == sdma::Producers::one ? Play<RingOf, sdma::Producers::one>::run(w, s)
                                        : Play<RingOf, sdma::Producers::many>::run(w, s);
}

}  // namespace model
