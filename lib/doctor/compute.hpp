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
#include "../kfd/abi.hpp"
#include "process.hpp"

#include <string>
#include <vector>

namespace sdma::inline v0::doctor {

class ComputeQueues {
 public:
  void add(const kfd::QueueEntry&, const ProcessMemory&);
  std::size_t pending() const noexcept { return running_ + waits_.size(); }
  bool may_run() const noexcept { return running_ > 0; }
  /// About all of them; "" if there are none.
  std::string sentence() const;

 private:
  std::size_t empty_ = 0, running_ = 0;
  std::vector<std::string> waits_{};  ///< for what each one waits
};

}  // namespace sdma::inline v0::doctor
