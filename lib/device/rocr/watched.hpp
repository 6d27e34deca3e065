// SPDX-License-Identifier: MIT
#pragma once
// The queues whose faults ROCr reports, by number: its threads may call while a queue or its device goes.
//
//   q.watch = watch(node, gpu);                      // before the queue exists; the number is the callback's data
//   forget(q.watch);                                 // after it is gone: later calls find nothing
//
// Any thread; the callbacks hold one lock while they report. Internal to the library. No errors.
#include "hsa.hpp"
#include "sdma/core/units.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

class RocrNode;

std::uint64_t watch(RocrNode*, GpuId);
void forget(std::uint64_t) noexcept;

/// hsa_amd_queue_create's callback; `data` is the number.
void queue_callback(rocr::Status, rocr::HsaQueue*, void* data);
/// Handles a memory fault of a GPU on which there are such queues; what it does not handle, ROCr ends the process for.
rocr::Status system_event(const rocr::SystemEvent*, void*);

}}}  // namespace sdma::v0_3::detail
