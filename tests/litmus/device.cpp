// SPDX-License-Identifier: MIT
#include "device.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace sdma::litmus {
namespace {

using namespace std::chrono_literals;

/// An engine in software may be kept from its processor for long: what has not moved for less may still move.
constexpr std::chrono::milliseconds kStill = 50ms, kLongest = 2000ms, kLook = 1ms;

template <class T> T must(Result<T, Diagnostic> r) {
  if (!r) {
    std::fprintf(stderr, "litmus: %s\n", to_string(r.error()).c_str());
    std::exit(1);
  }
  return std::move(*r);
}

}  // namespace

DeviceWorld::DeviceWorld(Device& d, const Program& p)
    : program_(p), memory_(must(d.allocate({.bytes = kWords * kPitch, .purpose = Purpose::words}))) {
  if (p.vram)
    vram_ = must(d.allocate({.where = GpuId{0}, .bytes = (kWords - kVram) * kPitch, .purpose = Purpose::words}));
  for (const auto e : p.engines)
    lanes_.push_back({must(d.create_queue({.engine = EngineId{e}, .ring_bytes = kRing * 4}))});
  for (std::uint32_t w = 0; w < words(); ++w)
    for (std::uint32_t i = 0; i < kPitch / 4; ++i) store_dword(w, i, 0);
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

std::uint64_t DeviceWorld::put_dwords(std::uint32_t queue, std::span<const std::uint32_t> dwords) {
  auto& l = lanes_[queue];
  const auto begin = l.put;
  for (const auto d : dwords) l.queue.memory().dwords[l.put++ % kRing] = d;
  return begin;
}

void DeviceWorld::ring(std::uint32_t queue) {
  auto& l = lanes_[queue];
  const auto& m = l.queue.memory();
  std::atomic_ref(*m.wptr).store(l.put * 4, std::memory_order_release);
  if (m.doorbell) std::atomic_ref(*m.doorbell).store(l.put * 4, std::memory_order_release);
  if (m.on_doorbell) m.on_doorbell(m.on_doorbell_context, l.put * 4);
}

void DeviceWorld::patch(std::uint32_t queue, std::uint64_t dword, std::uint32_t value) {
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
  while (Deadline::Clock::now() - since < kStill && !end.passed()) {
    std::this_thread::sleep_for(kLook);
    auto now = state();
    if (now == before) continue;
    before = std::move(now);
    since = Deadline::Clock::now();
  }
}

std::string DeviceWorld::run() {
  program_.setup(*this);
  for (const auto& step : program_.host) {
    if (step.when_stands != Step::kAnyTime) settle();
    step.act(*this);
  }
  settle();
  auto outcome = program_.outcome(*this);
  if (program_.release) store(*program_.release, 1);
  return outcome;
}

}  // namespace sdma::litmus
