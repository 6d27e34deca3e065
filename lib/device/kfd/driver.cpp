// SPDX-License-Identifier: MIT
#include "driver.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace sdma::inline v0::kfd {

int call(int fd, unsigned long request, void* args) noexcept {
  int status = 0;
  do {
    status = ::ioctl(fd, request, args);
  } while (status == -1 && (errno == EINTR || errno == EAGAIN));
  return status == -1 ? errno : 0;
}

Errc wait(int fd, std::span<EventData> events, Deadline d) noexcept {
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

}  // namespace sdma::inline v0::kfd
