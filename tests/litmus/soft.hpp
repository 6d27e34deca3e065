// SPDX-License-Identifier: MIT
#pragma once
// A World on the software engine: all queues in one thread, and a chooser that decides everything.
//
//   SoftWorld world{program, Ordering::adversarial, chooser};
//   histogram[world.run()] += 1;
//
// The scheduler lets one queue, the host, or the L2 make one step at a time; what a step may do is the engine's model.
// A run ends when nobody can do anything. GPU addresses are not the host's.
#include "engine/pipeline.hpp"
#include "litmus/litmus.hpp"

#include <array>
#include <memory>

namespace sdma::litmus {

class SoftWorld final : public World {
 public:
  static constexpr GpuVa kBase{0x7f0000000000};

  /// `all_parts`: the whole model, whatever the program is about.
  SoftWorld(const Program&, Ordering, Chooser&, bool all_parts);

  std::string run();

  GpuVa va(std::uint32_t word) const override { return kBase + word * kPitch; }
  std::uint32_t load(std::uint32_t word) override { return memory_[word * kPitch / 4]; }
  void store_dword(std::uint32_t word, std::uint32_t dword, std::uint32_t v) override {
    memory_[word * kPitch / 4 + dword] = v;
  }
  std::uint32_t kernel_load(std::uint32_t word) override;
  void kernel_store(std::uint32_t word, std::uint32_t value) override;
  void put(std::uint32_t queue, std::span<const std::uint32_t>) override;
  void ring(std::uint32_t queue) override { queues_[queue].pipeline->doorbell(queues_[queue].wptr); }
  void patch(std::uint32_t queue, std::uint32_t dword, std::uint32_t v) override {
    queues_[queue].dwords[dword % kRing] = v;
  }
  std::uint64_t rptr(std::uint32_t queue) override { return queues_[queue].rptr; }

 private:
  struct Queue {
    std::array<std::uint32_t, kRing> dwords{};
    std::uint64_t rptr = 0, wptr = 0;
    std::uint32_t engine = 0;
    std::unique_ptr<Pipeline> pipeline{};
  };
  /// A line of the L2 that keeps one word.
  struct Line {
    bool valid = false, dirty = false;
    std::uint32_t value = 0;
  };

  bool may_step(std::size_t queue);
  bool host_may_step();

  const Program& program_;
  Chooser& chooser_;
  bool weak_;
  alignas(kPitch) std::array<std::uint32_t, kWords * kPitch / 4> memory_{};
  std::array<Line, kWords> lines_{};
  std::vector<Queue> queues_;
  std::size_t next_step_ = 0;
  AddressSpace space_;
  AddressSpace::Reader reader_{space_, GpuId{0}};
};

}  // namespace sdma::litmus
