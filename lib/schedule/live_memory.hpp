// SPDX-License-Identifier: MIT
#pragma once
// Which memory of a run is there, and who may reach it: what the actions of lifetimes.hpp do in a run. Internal.
//
//   LiveMemory live{bound};
//   live.begin(deadline)                        before a run: what nothing has begun yet is taken from the engines
//   live.perform(action, "host main", deadline) a thread allocates, frees, maps .. ; "" or what is wrong with that
//   live.gone(action.range.va, place)           why a thread at this place cannot use the bytes; "" if it can
//   live.gone_at(fault.va, place)               the same about an engine's fault
//
// Engines of a GPU that may not reach a buffer fault there. A part of a buffer with a life of its own, as a block of a
// pool has, is at an address of its own (bind.cpp), so an engine that uses its name faults there, too, whatever else is
// in the same bytes by then.
//
// Thread-safe, except begin. Errors are texts.
#include "lifetimes.hpp"
#include "sdma/schedule/bind.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class LiveMemory {
 public:
  explicit LiveMemory(const Bound&);

  /// Does the schedule manage memory?
  bool any() const noexcept { return any_; }
  /// Why this device, or a run of several processes, cannot; "" if it can.
  std::string refused() const;
  std::string begin(Deadline);
  std::string perform(const Schedule::Action&, const std::string& who, Deadline);
  std::string gone(GpuVa link, Place user) const;
  std::string gone_at(GpuVa device, Place user) const;

 private:
  struct State {
    bool present = true, open = false;
    GpuSet mapped{};                 ///< GPUs of the schedule
    std::string ended{};             ///< what took it away last: "host main has freed it"
    std::string begun{};             ///< what brought it: "host main has allocated it"
    std::vector<std::byte> first{};  ///< what an allocation gives
  };
  std::string gone(const std::vector<std::size_t>& buffers, Place user) const;
  bool reaches(std::size_t buffer, Place user) const;
  /// The address of the memory through which engines reach a buffer, and nothing else; nullopt: it has none.
  std::optional<GpuVa> memory_of(std::size_t buffer) const;
  std::string apply(std::size_t buffer, Deadline) const;

  const Bound& bound_;
  const Schedule& s_;
  const std::vector<Lifetime> of_;
  const bool any_;
  std::vector<std::vector<std::size_t>> chains_;  ///< of each buffer: itself, and those whose bytes it is an alias of
  mutable std::mutex mutex_;
  std::vector<State> states_;
};

}}}  // namespace sdma::v0_3::detail
