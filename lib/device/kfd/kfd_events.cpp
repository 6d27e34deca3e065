// SPDX-License-Identifier: MIT
// The interrupts of a KFD device's queues.
#include "kfd_node.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

Result<Event, Diagnostic> KfdNode::create_event() {
  if (!in_opening_process()) return forked_error("create_event");
  thunk::EventDescriptor d{.type = thunk::kEventSignal, .node = gpus_.front().thunk_node};
  thunk::Event* e = nullptr;
  const std::lock_guard lock(memory_);
  if (const auto s = thunk_.create_event(&d, false, false, &e); s != thunk::kSuccess)
    return Diagnostic{.where = "create_event",
                      .message = std::string("the driver could not create an event: ") + thunk::message(s),
                      .hint = "a process can have about 4000: free unused ones"};
  events_.emplace(e->id, e);
  hold();
  return Event(Lease(give_back<&KfdNode::free_event>, this, e->id), GpuVa{e->mailbox}, e->id);
}

void KfdNode::free_event(std::uint64_t id) noexcept {
  const std::lock_guard lock(memory_);
  const auto at = events_.find(static_cast<std::uint32_t>(id));
  if (at == events_.end()) return;
  (void)thunk_.destroy_event(at->second);
  events_.erase(at);
}

}}}  // namespace sdma::v0_3::detail
