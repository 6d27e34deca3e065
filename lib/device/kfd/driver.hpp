// SPDX-License-Identifier: MIT
#pragma once
// The kernel driver's ioctls that no function of libhsakmt offers, or that an old libhsakmt does not know: queues by
// engine id (KFD 1.17), waits that keep what the driver says about a fault, and clocks. The numbers and structs are
// in kfd/abi.hpp.
//
//   kfd::CreateQueue a{.ring = ...};
//   const int error = kfd::call(fd, kfd::Nr::create_queue, a);
//
// Any thread may call these functions.
#include "../../kfd/abi.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"

#include <span>

namespace sdma::inline v0::kfd {

/// Returns 0, or the errno. Repeats a call that a signal handler interrupts.
int call(int fd, unsigned long request, void* args) noexcept;
template <class Args> int call(int fd, Nr nr, Args& args, Way way = kBoth) noexcept {
  return call(fd, request<Args>(nr, way), &args);
}
/// Waits for one of the events, at most a second: ok, timed_out, or stopped if the driver does not know one of them.
Errc wait(int fd, std::span<EventData> events, Deadline) noexcept;

}  // namespace sdma::inline v0::kfd
