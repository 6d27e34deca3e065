// SPDX-License-Identifier: MIT
#pragma once
// What a node shows the nodes of other processes, which read it from the beginning of the arena: whose arena it is, how
// much its engines have done, its VM faults, and its sDMA queues. `sdma_GPUID` of a process in the tree, the kernel's
// log, and `mqds` in debugfs come from here.
//
//   offset  0                    Shown
//           kShownQueuesOffset   ShownQueues, which one thread at a time changes. While it
//                                does, the version is odd: a reader reads the version, the
//                                queues, and the version again, until both are equal and even
#include "../../kfd/abi.hpp"

#include <array>
#include <cstdint>

namespace sdma::emulator {

/// The VM fault of a GPU, after which none of its queues runs.
struct ShownFault {
  std::uint64_t us{};  ///< since the machine started, of the kernel's log; 0: none. Stored last
  std::uint64_t page{};
};
struct Shown {
  std::uint64_t pid{};
  std::array<std::uint64_t, 8> sdma_activity{};  ///< of each GPU: how many steps of sDMA queues made progress
  std::array<ShownFault, 8> faults{};            ///< of each GPU
  std::array<std::uint64_t, 8> vram{}, gtt{};    ///< of each GPU: bytes that the process has allocated
};
inline constexpr std::uint64_t kShownOffset = 0;

/// An sDMA queue. As in the kernel, rptr and wptr are those of the last moment when the queue was not mapped.
struct ShownQueue {
  std::uint32_t gpu{}, engine{}, slot{}, id{};
  std::uint64_t ring{}, ring_bytes{}, rptr_va{}, rptr{}, wptr{};
};
struct ShownQueues {
  std::uint64_t version{}, count{};
  std::array<ShownQueue, kfd::kMaxQueues> queues{};
};
inline constexpr std::uint64_t kShownQueuesOffset = 4096;

}  // namespace sdma::emulator
