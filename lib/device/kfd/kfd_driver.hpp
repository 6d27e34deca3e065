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

#include <sys/ioctl.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>

namespace sdma { inline namespace v0_3 { namespace kfd {

/// Returns 0, or the errno. Repeats a call that a signal handler interrupts.
inline int call(int fd, unsigned long request, void* args) noexcept {
  int status = 0;
  do {
    status = ::ioctl(fd, request, args);
  } while (status == -1 && (errno == EINTR || errno == EAGAIN));
  return status == -1 ? errno : 0;
}
template <class Args> int call(int fd, Nr nr, Args& args, Way way = kBoth) noexcept {
  return call(fd, request<Args>(nr, way), &args);
}
/// Waits for one of the events, at most a second: ok, timed_out, or stopped if the driver does not know one of them.
inline Errc wait(int fd, std::span<EventData> events, Deadline d) noexcept {
  using namespace std::chrono;
  constexpr milliseconds kLongest{1000};
  const auto left = d.at - std::min(d.at, Deadline::Clock::now());
  const auto ms = left > kLongest ? kLongest : ceil<milliseconds>(left);
  WaitEvents a{.events = reinterpret_cast<std::uint64_t>(events.data()),
               .count = static_cast<std::uint32_t>(events.size()),
               .timeout_ms = static_cast<std::uint32_t>(ms.count())};
  if (call(fd, Nr::wait_events, a) != 0) return Errc::stopped;
  return a.result == kWaitComplete ? Errc::ok : Errc::timed_out;
}

}}}  // namespace sdma::v0_3::kfd
