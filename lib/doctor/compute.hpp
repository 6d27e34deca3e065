// SPDX-License-Identifier: MIT
#pragma once
// Whether a compute queue of a live process may still change a word. Internal.
//
//   ComputeQueues c;
//   for (const auto& e : listing.queues) c.add(e, memory);
//   s.may_run = c.may_run();  s.notes.push_back(c.sentence());
//
//   empty     the read index is the write index
//   waits     the packet at the read index is a barrier whose signals do not permit it, or was not written yet: only
//             another agent can change that
//   may run   everything else: a kernel that is executed or waits for
//             resources, a queue of PM4, memory that cannot be read
//
// The layout is that of the HSA standard: packets of 64 bytes; the type is the lower byte of the header; a
// barrier has five signals, whose value is 8 bytes after their handle. One thread at a time. No errors: what
// cannot be read may run.
#include "../core/plural.hpp"
#include "../kfd/abi.hpp"
#include "process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

inline constexpr std::uint8_t kNotWritten = 1, kBarrierAnd = 3, kBarrierOr = 5;
inline constexpr std::size_t kDependencies = 8, kMostDependencies = 5,
                             kSignalValue = 8;  // bytes in a packet; in a signal
using AqlPacket = std::array<std::byte, 64>;
/// Why this packet cannot begin; nothing if it can, or if that is not known.
inline std::optional<std::string> what_it_waits_for(const AqlPacket& p, const ProcessMemory& memory) {
  const auto type = std::to_integer<std::uint8_t>(p[0]);
  if (type == kNotWritten) return "for a packet that its producer has reserved and not written";
  if (type != kBarrierAnd && type != kBarrierOr) return {};
  std::optional<std::string> first;
  for (std::size_t i = 0; i < kMostDependencies; ++i) {
    std::uint64_t signal = 0;
    std::memcpy(&signal, p.data() + kDependencies + 8 * i, sizeof signal);
    if (signal == 0) continue;
    const auto value = memory.value<std::int64_t>(GpuVa{signal + kSignalValue});
    if (!value) return {};
    if (*value == 0 && type == kBarrierOr) return {};
    if (*value != 0 && !first)
      first = fmt::format("at a barrier for {:#x} eq 0, which holds {}", signal + kSignalValue, *value);
  }
  return first;
}

class ComputeQueues {
 public:
  void add(const kfd::QueueEntry& e, const ProcessMemory& memory) {
    const auto rptr = memory.value<std::uint64_t>(GpuVa{e.rptr}), wptr = memory.value<std::uint64_t>(GpuVa{e.wptr});
    if (rptr && wptr && *rptr == *wptr) {
      ++empty_;
      return;
    }
    std::optional<std::string> why;
    if (e.type == kfd::kQueueComputeAql && rptr && wptr && e.ring_bytes >= sizeof(AqlPacket))
      if (const auto p = memory.value<AqlPacket>(GpuVa{e.ring + *rptr * sizeof(AqlPacket) % e.ring_bytes}))
        why = what_it_waits_for(*p, memory);
    if (why) waits_.push_back(std::move(*why));
    else ++running_;
  }
  std::size_t pending() const noexcept { return running_ + waits_.size(); }
  bool may_run() const noexcept { return running_ > 0; }
  /// About all of them; "" if there are none.
  std::string sentence() const {
    const auto all = empty_ + pending();
    if (all == 0) return {};
    std::vector<std::string> parts;
    if (empty_ > 0) parts.push_back(fmt::format("{} without pending packets", empty_));
    if (running_ > 0) parts.push_back(fmt::format("{} that may be executing a kernel", running_));
    for (const auto& w : waits_) parts.push_back(fmt::format("1 that waits {}", w));
    return fmt::format("The process has {}, of which only the first pending packet was examined: {}.",
                       plural(all, "compute queue"), fmt::join(parts, ", "));
  }

 private:
  std::size_t empty_ = 0, running_ = 0;
  std::vector<std::string> waits_{};  ///< for what each one waits
};

}}}  // namespace sdma::v0_3::doctor
