// SPDX-License-Identifier: MIT
#pragma once
// Queues and words as a doctor finds them: rings with a past, in which one thing is wrong.
//
//   Scene s{seed};
//   auto& q = s.queue();                       // a ring of some size, some laps old, with packets that were executed
//   const auto at = q.put(PollMem{...});       // its position
//   q.stand(at);                               // rptr
//   s.set(word, 3);
//   diagnose(s.snapshot(Form::live)).findings.front().what
//
// A ring is written as Ring::reserve writes it: a packet that does not fit before the ring's end begins after NOPs.
// Sizes, addresses, laps and the traffic before and after come from the seed.
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/read.hpp"
#include "sdma/packets/registry.hpp"
#include "sdma/queue/dump.hpp"

#include <algorithm>
#include <list>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sdma::test {

/// How the snapshot was taken.
enum class Form {
  live,     ///< a process on the driver, watched for 5 s: no doorbells, no engines, all queues, all memory
  node,     ///< a process on the software node, watched for 5 s: doorbells and engines too
  file,     ///< `.ring` files with the words that were asked for; the queues stood still for 5 s
  instant,  ///< the same, at one moment
};
inline constexpr Form kForms[] = {Form::live, Form::node, Form::file, Form::instant};
inline std::string name(Form f) {
  return f == Form::live ? "live" : f == Form::node ? "node" : f == Form::file ? "file" : "instant";
}

class Scene;

class SceneQueue {
 public:
  SceneQueue(Scene& s, std::size_t index);

  /// Adds a packet and returns its position.
  template <class P> std::uint64_t put(const P& p) {
    std::vector<std::uint32_t> dwords(length(p));
    encode_to(p, dwords.data());
    return put_dwords(dwords);
  }
  std::uint64_t put_dwords(std::span<const std::uint32_t> dwords) {
    if (offset() / 4 + dwords.size() > ring_.size()) pad();
    return put_here(dwords);
  }
  /// Without NOPs before the ring's end.
  std::uint64_t put_here(std::span<const std::uint32_t> dwords) {
    const auto at = end_;
    for (const auto d : dwords) {
      this->at(end_) = d;
      end_ += 4;
    }
    return at;
  }
  void pad() {
    for (auto left = bytes() - offset(); left > 0; left -= 4) {
      at(end_) = 0;
      end_ += 4;
    }
  }
  /// Packets that move data and post to words of their own.
  void traffic(std::size_t packets);
  void stand(std::uint64_t rptr) { rptr_ = rptr; }
  /// Everything is executed.
  void drained() { rptr_ = end_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t bytes() const { return ring_.size() * 4; }
  std::uint64_t rptr() const { return rptr_; }
  /// Of the next packet, from the ring's start.
  std::uint64_t offset() const { return end_ % bytes(); }
  std::uint32_t& at(std::uint64_t position) { return ring_[position / 4 % ring_.size()]; }

  std::uint64_t ring_va{};
  std::optional<std::uint64_t> wptr{}, doorbell{}, committed{}, reserved{};  ///< if they differ from the end
  std::optional<std::uint64_t> rptr_first{};
  std::uint32_t gpu{}, engine{};
  std::optional<std::uint32_t> engines{};
  std::optional<bool> destroyed{}, host_atomics{};
  std::optional<Fault> fault{};
  std::uint64_t exceptions = 0;
  std::string label{};

 private:
  friend class Scene;
  Scene& scene_;
  std::vector<std::uint32_t> ring_;
  std::uint64_t end_ = 0, rptr_ = 0;
};

class Scene {
 public:
  explicit Scene(std::uint64_t seed) : random(seed) {
    host_ = 0x7f0000000000 + below(1 << 20) * 0x1000;
    for (std::uint32_t g = 0; g < 8; ++g) vram_.push_back(0x7e0000000000 + g * 0x1000000000 + below(1 << 20) * 0x1000);
  }
  std::uint64_t below(std::uint64_t n) { return random() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  std::uint32_t small(std::uint64_t low, std::uint64_t high) { return static_cast<std::uint32_t>(between(low, high)); }

  SceneQueue& queue() { return queues_.emplace_back(*this, queues_.size()); }
  /// A word in host memory that nothing else uses; 8-byte aligned. It holds 0.
  GpuVa word() {
    next_word_ += 64 * between(1, 7);
    const GpuVa va{host_ + next_word_};
    set(va, 0);
    return va;
  }
  GpuVa data(std::uint32_t gpu = 0) {
    next_data_ += 0x200000;
    return GpuVa{vram_[gpu % 8] + next_data_ % 0x200000000};
  }
  std::uint64_t host() const { return host_; }
  std::uint64_t vram(std::uint32_t gpu) const { return vram_[gpu % 8]; }
  void set(GpuVa va, std::uint64_t value, std::uint32_t bytes = 8) { words_.push_back({va, value, bytes}); }

  doctor::Snapshot snapshot(Form form) const;

  std::mt19937_64 random;
  std::vector<doctor::HostWait> waits{};
  std::vector<doctor::HostPost> posts{};
  bool complete = false;  ///< the address ranges are all that the process has

 private:
  struct Word {
    GpuVa va;
    std::uint64_t value;
    std::uint32_t bytes;
  };
  std::list<SceneQueue> queues_;
  std::vector<Word> words_;
  std::uint64_t host_{}, next_word_ = 0, next_data_ = 0;
  std::vector<std::uint64_t> vram_;
};

inline SceneQueue::SceneQueue(Scene& s, std::size_t index) : scene_(s), ring_(std::size_t{256} << s.below(5)) {
  gpu = static_cast<std::uint32_t>(index % 8);
  engine = static_cast<std::uint32_t>(2 + index % 14);
  label = "queue " + std::to_string(index);
  ring_va = s.host() + 0x80000000 + index * 0x100000;
  // Some queues are in their first lap, others many laps old.
  if (const auto laps = s.below(4); laps > 0) {
    const auto begin = laps * (laps == 3 ? 1000 : 1) * bytes();
    end_ = begin - bytes();
    while (begin - end_ > 64 * 4) traffic(1);
    if (end_ < begin) pad();
  }
  traffic(s.below(12));
  rptr_ = end_;
}

inline void SceneQueue::traffic(std::size_t packets) {
  for (std::size_t i = 0; i < packets; ++i) {
    switch (scene_.below(4)) {
      case 0:
      case 1:
        put(CopyLinear{
            .src = scene_.data(gpu), .dst = scene_.data(gpu + 1), .bytes = std::uint32_t{4096} << scene_.below(6)});
        break;
      case 2: {
        const Fence fence{.addr = scene_.word(), .value = scene_.small(1, 100)};
        scene_.set(fence.addr, fence.value, 4);
        put(fence);
        break;
      }
      default: put(Atomic{.addr = scene_.word(), .value = ~std::uint64_t{0}}); break;
    }
  }
}

inline doctor::Snapshot Scene::snapshot(Form form) const {
  using doctor::Source;
  doctor::Snapshot s;
  s.from = test::name(form);
  s.waits = waits;
  s.posts = posts;
  const bool file = form == Form::file || form == Form::instant;
  for (const auto& [va, value, bytes] : words_) s.words.add(va, value, bytes);
  s.watched_ns = form == Form::instant ? 0 : 5'000'000'000;
  s.all_queues = !file;
  if (!file) {
    s.ranges_complete = complete;
    s.ranges.push_back({GpuVa{host_}, std::uint64_t{1} << 32, "host memory", doctor::Range::Kind::host, {}});
    for (std::uint32_t g = 0; g < vram_.size(); ++g)
      s.ranges.push_back({GpuVa{vram_[g]},
                          std::uint64_t{1} << 34,
                          "gpu " + std::to_string(g) + " memory",
                          doctor::Range::Kind::vram,
                          {GpuId{g}, Source::driver}});
  }
  for (const auto& q : queues_) {
    const auto wptr = q.wptr.value_or(q.end_), committed = q.committed.value_or(q.end_);
    if (file) {
      const RingDump d{.read = q.rptr_,
                       .committed = committed,
                       .reserved = q.reserved.value_or(committed),
                       .wptr = wptr,
                       .doorbell = q.doorbell.value_or(wptr),
                       .gpu = {q.gpu},
                       .engine = {q.engine},
                       .label = q.label,
                       .dwords = q.ring_};
      add(s, *from_bytes(to_bytes(d), q.label), "file");
    } else {
      doctor::QueueSnapshot n{.name = q.label, .gpu = {GpuId{q.gpu}, Source::driver}, .ring = q.ring_};
      n.ring_va = {GpuVa{q.ring_va}, Source::driver};
      n.rptr = {q.rptr_, Source::memory};
      n.wptr = {wptr, Source::memory};
      if (form == Form::node) {
        n.doorbell = {q.doorbell.value_or(wptr), Source::node};
        n.engine = {EngineId{q.engine}, Source::node};
      }
      n.exceptions = {q.exceptions, Source::driver};
      s.queues.push_back(std::move(n));
    }
    auto& n = s.queues.back();
    if (form != Form::instant) n.rptr_first = {q.rptr_first.value_or(q.rptr_), Source::memory};
    if (q.fault) n.fault = {*q.fault, Source::node};
    if (q.engines) n.engines = {*q.engines, Source::driver};
    if (q.destroyed) n.destroyed = {*q.destroyed, Source::driver};
    if (q.host_atomics) n.host_atomics = {*q.host_atomics, Source::driver};
  }
  return s;
}

}  // namespace sdma::test
