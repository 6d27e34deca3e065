#pragma once
// Queues of a process. None can be created yet: ENOMEM, as on a GPU whose engines are all taken. Under the node's lock.
#include "events.hpp"
#include "memory.hpp"

#include <cerrno>

namespace sdma::emulator {

class Queues {
 public:
  Queues(Memory&, Events&, const SysfsNode&) {}
  int create(kfd::CreateQueue&) { return ENOMEM; }
  int destroy(std::uint32_t) { return EINVAL; }
  int update(const kfd::UpdateQueue& a) { return a.percentage > kfd::kMaxPercentage ? EINVAL : EFAULT; }
  bool exists(std::uint32_t) const { return false; }
};

}  // namespace sdma::emulator
