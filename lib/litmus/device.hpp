// SPDX-License-Identifier: MIT
#pragma once
// A World on a device: real queues of one GPU, words in uncached host memory, steps in the order of the program.
//
//   auto world = DeviceWorld::on(device, program);       // an error: the device lends no memory or no queue
//   histogram[(*world)->run()] += 1;
//
// Rings and doorbells are used raw, as the programs need it. Each step waits until the engines stand still, which is
// all that a host can know; a run ends when nothing has changed for a while, or after two seconds for each step and for
// its end. A word that a poll may still wait for is then stored, so that no engine is left waiting. Programs with a
// kernel (rules C) are not for it.
#include "litmus.hpp"
#include "sdma/device/device.hpp"

#include <chrono>
#include <memory>

namespace sdma::litmus {

class DeviceWorld final : public World {
 public:
  /// An engine in software may be kept from its processor for long: what has not moved for less may still move.
  static constexpr std::chrono::milliseconds kStill{50};

  /// Why a program cannot run on this device; "" if it can.
  static std::string refused(Device&, const Program&);
  /// `still`: what has not changed for so long will not change. Both arguments must outlive it.
  static Result<std::unique_ptr<DeviceWorld>, Diagnostic> on(Device&, const Program&,
                                                             std::chrono::nanoseconds still = kStill);

  std::string run();

  GpuVa va(std::uint32_t word) const override {
    return word < kVram ? memory_.va() + word * kPitch : vram_.va() + (word - kVram) * kPitch;
  }
  std::uint32_t load(std::uint32_t word) override;
  void store_dword(std::uint32_t word, std::uint32_t dword, std::uint32_t value) override;
  std::uint32_t kernel_load(std::uint32_t word) override { return load(word); }
  void kernel_store(std::uint32_t word, std::uint32_t value) override { store(word, value); }
  void put(std::uint32_t queue, std::span<const std::uint32_t>) override;
  void ring(std::uint32_t queue) override;
  void patch(std::uint32_t queue, std::uint32_t dword, std::uint32_t value) override;
  std::uint64_t rptr(std::uint32_t queue) override;

 private:
  struct Lane {
    Queue queue{};
    std::uint64_t put = 0;  ///< dwords
  };
  DeviceWorld(const Program& p, std::chrono::nanoseconds still) : program_(p), still_(still) {}
  void settle();
  std::uint32_t words() const noexcept { return vram_ ? kWords : kVram; }
  std::uint32_t& dword(std::uint32_t word, std::uint32_t index) const;

  const Program& program_;
  std::chrono::nanoseconds still_;
  Memory memory_, vram_;     // vram_: only if the program uses it
  std::vector<Lane> lanes_;  // destroyed before the memory that their packets name
};

}  // namespace sdma::litmus
