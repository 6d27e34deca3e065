// SPDX-License-Identifier: MIT
#pragma once
// A wave of two lanes in the model: two threads that meet at each exchange of registers. Registers carry a value and
// order nothing else; the barrier orders what each lane did before it.
#include "sdma/queue/wave.hpp"
#include "world.hpp"

namespace model {

/// What the two lanes of a wave share. A mutant leaves out every second barrier: `skipped` 1 the first of a slot, 0 the
/// last.
struct Lanes {
  Model::Atomic<std::uint64_t> gate{}, answer{};
  std::array<Model::Atomic<std::uint64_t>, 2> arrived{};
  static inline std::uint64_t skipped = 2;
};

class ModelWave {
 public:
  ModelWave(Lanes& shared, std::uint32_t lane) : shared_(&shared), lane_(lane) {}

  std::uint32_t lane() const { return lane_; }
  static std::uint32_t lanes() { return 2; }
  template <class T> T first(T v) {
    if constexpr (sizeof v > 4) {
      const auto high = first(static_cast<std::uint32_t>(v >> 32));
      return T{high} << 32 | first(static_cast<std::uint32_t>(v));
    } else {
      ++phase_;
      if (lane_ == 0) {
        shared_->gate.store(phase_ << 32 | static_cast<std::uint32_t>(v), std::memory_order_relaxed);
        await(shared_->answer, phase_ - 1, std::memory_order_relaxed);
        return v;
      }
      const auto told = await(shared_->gate, (phase_ << 32) - 1, std::memory_order_relaxed);
      shared_->answer.store(phase_, std::memory_order_relaxed);
      return static_cast<T>(static_cast<std::uint32_t>(told));
    }
  }
  void barrier() {
    if (++barriers_ % 2 == Lanes::skipped) return;
    shared_->arrived[lane_].store(barriers_, std::memory_order_release);
    await(shared_->arrived[1 - lane_], barriers_ - 1, std::memory_order_acquire);
  }

 private:
  static std::uint64_t await(Model::Atomic<std::uint64_t>& word, std::uint64_t passed, std::memory_order o) {
    auto& w = World::current();
    return w.access({.kind = Kind::await, .location = word.location(), .order = o, .expected = passed});
  }
  Lanes* shared_;
  std::uint32_t lane_;
  std::uint64_t phase_ = 0, barriers_ = 0;
};

}  // namespace model
