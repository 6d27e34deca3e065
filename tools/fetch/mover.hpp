// SPDX-License-Identifier: MIT
#pragma once
// Executes requests on a device, and checks every block.
//
//   Mover m{*device, options};
//   const auto times = m.median_of({.way = Way::b2b, .engines = 2, .blocks = 256, .bytes = 16 << 10});
//   printf("%lu bytes wrong\n", m.wrong());
//
// Each round shuffles the pool, fills the request's blocks there, fetches them, checks them, changes them on the GPU,
// returns them, and checks them in the pool. Only the copies are timed. Bytes outside the request's blocks are neither
// filled nor checked.
//
// A Mover belongs to one thread. The device must outlive it, and the GPU must have the largest number of engines in the
// options. Errors end the verb (must.hpp).
#include "collectives/engines.hpp"
#include "collectives/pattern.hpp"
#include "core/median.hpp"
#include "fetch_tables.hpp"
#include "must.hpp"
#include "sdma/sync/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <span>

namespace collectives::kv {

using sdma::HostDirection;
using sdma::tool::fail;
using sdma::tool::must;

inline constexpr std::chrono::seconds kPatience(60);

/// A queue, and the word that counts its groups.
class Lane {
 public:
  struct Block {
    sdma::GpuVa from{}, to{};
  };
  Lane(sdma::Device& d, sdma::GpuId gpu, sdma::EngineId engine, std::uint64_t ring_bytes)
      : device_(d),
        done_(must(d.create_signal())),
        atomics_(d.topology().completion(gpu, {}) == sdma::Completion::atomic),
        queue_(must(d.create_queue({.gpu = gpu, .engine = engine, .ring_bytes = ring_bytes}))),
        ring_(queue_.memory()) {}

  /// One group; with `go`, after a poll for `value` there.
  void publish(std::span<const Block> blocks, std::uint64_t bytes, const sdma::Signal* go, std::uint32_t value) {
    using namespace sdma;
    const auto slot =
        must(ring_.reserve(dwords_of<PollMem, Atomic>() + blocks.size() * dwords_of(Writer::Copy{.bytes = bytes})));
    Writer w{slot.dwords};
    ++groups_;
    if (go != nullptr) must(acquire(w, go->low_va(), value));
    for (const auto& b : blocks) must(w.copy({.src = b.from, .dst = b.to, .bytes = bytes}));
    must(atomics_ ? complete_with_atomic(w, done_->va, 1) : complete_with_fence(w, done_->va, groups_));
    ring_.publish(slot, w.written().size());
    blocks_ += blocks.size();
  }
  void reach() {
    const auto r = sdma::wait(*done_, sdma::Compare::ge, groups_, sdma::Deadline::in(kPatience), ring_);
    if (!r) fail(r.error(), device_, kPatience);
  }
  std::uint64_t blocks() const noexcept { return blocks_; }

 private:
  sdma::Device& device_;
  sdma::SignalMemory done_;
  bool atomics_;
  sdma::Queue queue_;
  sdma::Ring<> ring_;
  std::uint32_t groups_ = 0;
  std::uint64_t blocks_ = 0;
};

class Mover {
 public:
  Mover(sdma::Device& d, const Cases& o)
      : device_(d),
        cases_(o),
        pool_(must(d.allocate({.bytes = std::max(o.pool * o.sizes.back(), large(o))}))),
        kv_(must(d.allocate({.where = o.gpu, .bytes = std::max(o.blocks * o.sizes.back(), large(o))}))),
        go_(must(d.create_signal())) {
    if (kv_.host().empty()) fail("the host cannot access the GPU's memory, which it has to check");
    // Room for each copy with a poll and a completion of its own.
    const auto packets = o.blocks * (o.sizes.back() / sdma::kChunk + 1) + large(o) / sdma::kChunk + 1;
    const auto most = *std::max_element(o.engines.begin(), o.engines.end());
    for (const auto direction : {HostDirection::from_host, HostDirection::to_host}) {
      const auto engines = must(engines_of(d.topology(), o.gpu, direction));
      for (std::uint32_t e = 0; e < most; ++e) {
        auto& queues = lanes_[engines[e]];
        while (queues.size() < o.queues) queues.emplace_back(d, o.gpu, engines[e], std::bit_ceil(packets * 128 + 4096));
      }
    }
  }

  Times median_of(const Request& r) {
    std::vector<double> there, back;
    for (std::uint64_t round = 0; round < cases_.warm + cases_.rounds; ++round) {
      const auto t = once(r, round);
      if (round >= cases_.warm) there.push_back(t.fetch), back.push_back(t.give);
    }
    return {sdma::detail::median(there), sdma::detail::median(back)};
  }
  std::uint64_t wrong() const noexcept { return wrong_; }
  /// How many blocks each queue has copied, in all rounds: "engine 0: 528, 264; engine 1: 528, 264".
  std::string work() const {
    std::string text;
    for (const auto& [engine, queues] : lanes_) {
      text += fmt::format("{}engine {}:", text.empty() ? "" : "; ", engine.value);
      for (const auto& q : queues) text += fmt::format("{} {}", &q == &queues.front() ? "" : ",", q.blocks());
    }
    return text;
  }

 private:
  static std::uint64_t large(const Cases& c) noexcept { return c.sweeps() ? c.large : 0; }
  /// The first lanes of each engine, in the order of the request's lanes.
  std::vector<Lane*> lanes(const Request& r, HostDirection direction) {
    const auto engines = must(engines_of(device_.topology(), cases_.gpu, direction));
    std::vector<Lane*> all;
    for (std::uint32_t e = 0; e < r.engines; ++e)
      for (std::uint32_t q = 0; q < r.queues; ++q) all.push_back(&lanes_.at(engines[e])[q]);
    return all;
  }

  /// Seconds.
  double move(const Request& r, HostDirection direction, std::span<const Lane::Block> blocks) {
    const auto used = lanes(r, direction);
    const auto groups = groups_of(r);
    std::vector<std::vector<Lane::Block>> of_group;
    for (const auto& g : groups) {
      auto& all = of_group.emplace_back();
      for (const auto i : g.blocks) all.push_back(blocks[i]);
    }
    const bool ahead = r.way == Way::prelaunched;
    if (ahead) ++released_;
    (void)device_.flush_host_writes(cases_.gpu);
    auto begin = sdma::Deadline::Clock::now();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      used[groups[i].lane]->publish(of_group[i], r.bytes, ahead ? &*go_ : nullptr, released_);
      if (!groups[i].wait) continue;
      if (ahead) begin = sdma::Deadline::Clock::now(), go_->set(released_);
      for (auto* lane : used) lane->reach();
    }
    return std::chrono::duration<double>(sdma::Deadline::Clock::now() - begin).count();
  }

  Times once(const Request& r, std::uint64_t round) {
    std::vector<std::size_t> order(std::min(cases_.pool, pool_.host().size() / r.bytes));
    std::iota(order.begin(), order.end(), std::size_t{});
    std::shuffle(order.begin(), order.end(), random_);
    const auto block_of = [&](std::size_t i) { return pool_.host().subspan(order[i] * r.bytes, r.bytes); };
    const auto kv = kv_.host().first(r.blocks * r.bytes);
    std::vector<Lane::Block> in, out;
    for (std::size_t i = 0; i < r.blocks; ++i) {
      in.push_back({pool_.va() + order[i] * r.bytes, kv_.va() + i * r.bytes});
      out.push_back({in[i].to, in[i].from});
      fill_pattern(block_of(i), round, 0, i * r.bytes);
    }
    std::memset(kv.data(), 0xdb, kv.size());
    Times t;
    t.fetch = move(r, HostDirection::from_host, in);
    (void)device_.flush_host_writes(cases_.gpu);
    wrong_ += mismatch(kv, round, 0, 0).wrong;
    // A step of the model changes every block; the blocks in the pool are stale until the return.
    fill_pattern(kv, round, 1, 0);
    t.give = move(r, HostDirection::to_host, out);
    for (std::size_t i = 0; i < r.blocks; ++i) wrong_ += mismatch(block_of(i), round, 1, i * r.bytes).wrong;
    return t;
  }

  sdma::Device& device_;
  Cases cases_;
  sdma::Memory pool_, kv_;
  sdma::SignalMemory go_;
  std::uint32_t released_ = 0;
  std::map<sdma::EngineId, std::deque<Lane>> lanes_{};
  std::mt19937_64 random_{1};
  std::uint64_t wrong_ = 0;
};

}  // namespace collectives::kv
