#pragma once
// What a node shows the nodes of other processes, which read it from the arena's first page: whose arena it is, and how much its
// engines have done. `sdma_GPUID` of a process in the tree comes from here.
#include <array>
#include <cstdint>

namespace sdma::emulator {

struct Shown {
  std::uint64_t pid{};
  std::array<std::uint64_t, 8> sdma_activity{};  ///< of each GPU: how many steps of sDMA queues made progress
};
inline constexpr std::uint64_t kShownOffset = 0;

}  // namespace sdma::emulator
