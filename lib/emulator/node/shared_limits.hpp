// SPDX-License-Identifier: MIT
#pragma once
// What the processes of one `sdma emulate` share: the slots of the engines, and the memory. As with the driver, limits
// count over all of them. It is a small memfd, which each process finds through one that has it.
//
//   seat     the bytes that a process uses, in a place of its own. Its owner locks a byte (F_OFD_SETLK)
//   slot     of an engine: the process whose queue has it locks a byte
//   member   each process binds the abstract socket sdma-machine-ID-PID-FD: /proc/net/unix lists who has the file. A
//            process that joins binds sdma-machine-ID as long, so that two do not create the file at once
//
// The kernel unlocks bytes and removes names when a process ends, however it ends. Only the numbers in its seat are
// left, and `reap` clears them. Without an id, or if the machine refuses the file, a process counts for itself.
//
// Threads: under the node's lock. Nothing here throws.
#include "system_memory.hpp"

#include <sys/types.h>
#include <array>
#include <cstdint>
#include <string_view>

namespace sdma::emulator {

class SharedLimits {
 public:
  /// `id`: of the `sdma emulate` that started the process.
  explicit SharedLimits(std::string_view id) noexcept;
  ~SharedLimits();
  SharedLimits(const SharedLimits&) = delete;
  SharedLimits& operator=(const SharedLimits&) = delete;

  /// Takes a slot of an engine that no queue of this process has. False: another process has it.
  bool take(std::uint32_t gpu, std::uint32_t engine, std::uint32_t slot) const noexcept;
  void give_back(std::uint32_t gpu, std::uint32_t engine, std::uint32_t slot) const noexcept;

  /// What this process uses of a GPU, or through it; and what all processes use.
  MemoryUse& use(std::uint32_t gpu) noexcept { return seat_->of_gpus[gpu]; }
  MemoryUse used(std::uint32_t gpu) const noexcept;
  /// Clears the seats of processes that have ended.
  void reap() noexcept;

  /// For a forked child: closes our descriptors, so that the child does not keep the parent's slots.
  void abandon() noexcept;

 private:
  struct Seat {
    std::array<MemoryUse, 8> of_gpus{};
  };
  static constexpr std::uint32_t kSeats = 4096;
  struct File {
    std::uint64_t seats{};  ///< how many were ever taken
    std::array<Seat, kSeats> all{};
  };

  int join(std::string_view id) noexcept;
  bool sit() noexcept;
  bool valid() const noexcept;
  bool lock(std::int64_t byte, bool locked) const noexcept;

  int fd_ = -1, name_ = -1;
  ino_t inode_{};
  File* file_{};
  Seat alone_{};
  Seat* seat_ = &alone_;
};

}  // namespace sdma::emulator
