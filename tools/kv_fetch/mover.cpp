// SPDX-License-Identifier: MIT
#include "mover.hpp"

#include "collectives/engines.hpp"
#include "collectives/pattern.hpp"
#include "median.hpp"
#include "sdma/sync/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace collectives::kv {

using namespace sdma;
using namespace std::chrono_literals;
using example::fail;
using example::must;

namespace {

constexpr std::chrono::seconds kPatience(60);
constexpr HostDirection kDirections[] = {HostDirection::from_host, HostDirection::to_host};

/// Room for each copy with a poll and a completion of its own.
std::uint64_t ring_bytes(const Options& o) {
  const auto packets = o.blocks * (o.sizes.back() / kChunk + 1) + o.large / kChunk + 1;
  return std::bit_ceil(packets * 128 + 4096);
}

}  // namespace

Mover::Lane::Lane(Device& d, GpuId gpu, EngineId engine, std::uint64_t ring_bytes)
    : done_(must(d.create_signal())),
      atomics_(d.topology().completion(gpu, {}) == Completion::atomic),
      queue_(must(d.create_queue({.gpu = gpu, .engine = engine, .ring_bytes = ring_bytes}))),
      ring_(queue_.memory()) {}

void Mover::Lane::publish(std::span<const Block> blocks, std::uint64_t bytes, const Signal* go, std::uint32_t value) {
  const auto slot = must(ring_.reserve(kAcquireDwords + blocks.size() * kDwordsOf<CopyLinear> * (bytes / kChunk + 1) +
                                       kCompleteWithAtomicDwords));
  Writer w{slot.dwords};
  ++groups_;
  if (go != nullptr) must(acquire(w, go->low(), value));
  for (const auto& b : blocks) must(w.copy({.src = b.from, .dst = b.to, .bytes = bytes}));
  must(atomics_ ? complete_with_atomic(w, done_->va, 1) : complete_with_fence(w, done_->va, groups_));
  ring_.publish(slot, w.written().size());
  blocks_ += blocks.size();
}

void Mover::Lane::reach(const Device& device) {
  const auto r = wait(*done_, Compare::ge, groups_, Deadline::in(kPatience), ring_);
  if (!r) fail(r.error(), device, kPatience);
}

Mover::Mover(Device& d, const Options& o)
    : device_(d),
      options_(o),
      pool_(must(d.allocate({.bytes = std::max(o.pool * o.sizes.back(), o.large)}))),
      kv_(must(d.allocate({.where = o.gpu, .bytes = std::max(o.blocks * o.sizes.back(), o.large)}))),
      go_(must(d.create_signal())) {
  if (kv_.host().empty()) fail("the host cannot access the GPU's memory, which it has to check");
  const auto most = *std::max_element(o.engines.begin(), o.engines.end());
  for (const auto direction : kDirections) {
    const auto engines = must(engines_of(d.topology(), o.gpu, direction));
    for (std::uint32_t e = 0; e < most; ++e) {
      auto& queues = lanes_[engines[e]];
      while (queues.size() < o.queues) queues.emplace_back(d, o.gpu, engines[e], ring_bytes(o));
    }
  }
}

std::vector<Mover::Lane*> Mover::lanes(const Request& r, HostDirection direction) {
  const auto engines = must(engines_of(device_.topology(), options_.gpu, direction));
  std::vector<Lane*> all;
  for (std::uint32_t e = 0; e < r.engines; ++e)
    for (std::uint32_t q = 0; q < r.queues; ++q) all.push_back(&lanes_.at(engines[e])[q]);
  return all;
}

double Mover::move(const Request& r, HostDirection direction, std::span<const Block> blocks) {
  const auto used = lanes(r, direction);
  const auto groups = groups_of(r);
  std::vector<std::vector<Block>> of_group;
  for (const auto& g : groups) {
    auto& all = of_group.emplace_back();
    for (const auto i : g.blocks) all.push_back(blocks[i]);
  }
  const bool ahead = r.way == Way::prelaunched;
  if (ahead) ++released_;
  auto begin = Deadline::Clock::now();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    used[groups[i].lane]->publish(of_group[i], r.bytes, ahead ? &*go_ : nullptr, released_);
    if (!groups[i].wait) continue;
    if (ahead) begin = Deadline::Clock::now(), go_->set(released_);
    for (auto* lane : used) lane->reach(device_);
  }
  return std::chrono::duration<double>(Deadline::Clock::now() - begin).count();
}

Times Mover::once(const Request& r, std::uint64_t round) {
  std::vector<std::size_t> order(std::min(options_.pool, pool_.host().size() / r.bytes));
  std::iota(order.begin(), order.end(), std::size_t{});
  std::shuffle(order.begin(), order.end(), random_);
  const auto block_of = [&](std::size_t i) { return pool_.host().subspan(order[i] * r.bytes, r.bytes); };
  const auto kv = kv_.host().first(r.blocks * r.bytes);
  std::vector<Block> in, out;
  for (std::size_t i = 0; i < r.blocks; ++i) {
    in.push_back({pool_.va() + order[i] * r.bytes, kv_.va() + i * r.bytes});
    out.push_back({in[i].to, in[i].from});
    fill_pattern(block_of(i), round, 0, i * r.bytes);
  }
  std::memset(kv.data(), 0xdb, kv.size());
  Times t;
  (void)device_.flush_host_writes(options_.gpu);
  t.fetch = move(r, HostDirection::from_host, in);
  (void)device_.flush_host_writes(options_.gpu);
  wrong_ += mismatch(kv, round, 0, 0).wrong;
  // A step of the model changes every block; the blocks in the pool are stale until the return.
  fill_pattern(kv, round, 1, 0);
  (void)device_.flush_host_writes(options_.gpu);
  t.give = move(r, HostDirection::to_host, out);
  for (std::size_t i = 0; i < r.blocks; ++i) wrong_ += mismatch(block_of(i), round, 1, i * r.bytes).wrong;
  return t;
}

Times Mover::median_of(const Request& r) {
  std::vector<double> there, back;
  for (std::uint64_t round = 0; round < options_.warm + options_.rounds; ++round) {
    const auto t = once(r, round);
    if (round >= options_.warm) there.push_back(t.fetch), back.push_back(t.give);
  }
  return {tool::median(there), tool::median(back)};
}

std::string Mover::work() const {
  std::string text;
  for (const auto& [engine, queues] : lanes_) {
    text += fmt::format("{}engine {}:", text.empty() ? "" : "; ", engine.value);
    for (const auto& q : queues) text += fmt::format("{} {}", &q == &queues.front() ? "" : ",", q.blocks());
  }
  return text;
}

}  // namespace collectives::kv
