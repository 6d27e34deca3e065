// SPDX-License-Identifier: MIT
#include "device.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace sdma::litmus {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLongest = 2000ms;
constexpr std::chrono::nanoseconds kLook = 1ms;

}  // namespace

std::string DeviceWorld::refused(Device& d, const Program& p) {
  if (p.kernel) return "it needs a compute kernel";
  if (!p.vram) return "";
  const auto some = d.allocate({.where = GpuId{0}, .bytes = 4096, .purpose = Purpose::words});
  return some && !some->host().empty() ? "" : "the host cannot read words in VRAM";
}

Result<std::unique_ptr<DeviceWorld>, Diagnostic> DeviceWorld::on(Device& d, const Program& p,
                                                                 std::chrono::nanoseconds still) {
  std::unique_ptr<DeviceWorld> w(new DeviceWorld(p, still));
  auto memory = d.allocate({.bytes = kWords * kPitch, .purpose = Purpose::words});
  if (!memory) return std::move(memory.error());
  w->memory_ = std::move(*memory);
  if (p.vram) {
    auto vram = d.allocate({.where = GpuId{0}, .bytes = (kWords - kVram) * kPitch, .purpose = Purpose::words});
    if (!vram) return std::move(vram.error());
    w->vram_ = std::move(*vram);
  }
  for (const auto e : p.engines) {
    auto q = d.create_queue({.engine = EngineId{e}, .ring_bytes = kRing * 4});
    if (!q) return std::move(q.error());
    w->lanes_.push_back({std::move(*q)});
  }
  for (std::uint32_t i = 0; i < w->words(); ++i)
    for (std::uint32_t k = 0; k < kPitch / 4; ++k) w->store_dword(i, k, 0);
  return w;
}

std::uint32_t& DeviceWorld::dword(std::uint32_t word, std::uint32_t index) const {
  const auto& m = word < kVram ? memory_ : vram_;
  return m.as<std::uint32_t>()[(word < kVram ? word : word - kVram) * kPitch / 4 + index];
}

std::uint32_t DeviceWorld::load(std::uint32_t word) {
  return std::atomic_ref(dword(word, 0)).load(std::memory_order_acquire);
}

void DeviceWorld::store_dword(std::uint32_t word, std::uint32_t dword, std::uint32_t value) {
  std::atomic_ref(this->dword(word, dword)).store(value, std::memory_order_release);
}

void DeviceWorld::put(std::uint32_t queue, std::span<const std::uint32_t> dwords) {
  auto& l = lanes_[queue];
  for (const auto d : dwords) l.queue.memory().dwords[l.put++ % kRing] = d;
}

void DeviceWorld::ring(std::uint32_t queue) {
  auto& l = lanes_[queue];
  const auto& m = l.queue.memory();
  std::atomic_ref(*m.wptr).store(l.put * 4, std::memory_order_release);
  if (m.doorbell) std::atomic_ref(*m.doorbell).store(l.put * 4, std::memory_order_release);
  if (m.on_doorbell) m.on_doorbell(m.on_doorbell_context, l.put * 4);
}

void DeviceWorld::patch(std::uint32_t queue, std::uint32_t dword, std::uint32_t value) {
  std::atomic_ref(lanes_[queue].queue.memory().dwords[dword % kRing]).store(value, std::memory_order_release);
}

std::uint64_t DeviceWorld::rptr(std::uint32_t queue) {
  return std::atomic_ref(*lanes_[queue].queue.memory().rptr).load(std::memory_order_acquire);
}

/// Until pointers and words have not changed for a while.
void DeviceWorld::settle() {
  const auto state = [this] {
    std::vector<std::uint64_t> s;
    for (std::uint32_t q = 0; q < lanes_.size(); ++q) s.push_back(rptr(q));
    for (std::uint32_t w = 0; w < words(); ++w) s.push_back(load(w));
    return s;
  };
  const auto end = Deadline::in(kLongest);
  auto before = state();
  auto since = Deadline::Clock::now();
  while (Deadline::Clock::now() - since < still_ && !end.passed()) {
    std::this_thread::sleep_for(std::min(kLook, still_ / 4));
    auto now = state();
    if (now == before) continue;
    before = std::move(now);
    since = Deadline::Clock::now();
  }
}

std::string DeviceWorld::run() {
  for (const auto& step : program_.steps) {
    if (step.when_stalled != Step::kAnyTime) settle();
    step.perform(*this);
  }
  settle();
  auto outcome = program_.outcome(*this);
  // A thread that a busy machine has kept from its processor is not an order: what the rule excludes must last.
  if (!program_.find(outcome)) {
    still_ *= 10;
    settle();
    outcome = program_.outcome(*this);
  }
  if (program_.release) {
    store(*program_.release, 1);
    settle();
  }
  return outcome;
}

}  // namespace sdma::litmus
