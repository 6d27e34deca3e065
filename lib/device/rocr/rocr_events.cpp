// SPDX-License-Identifier: MIT
// What ROCr reports to its devices: faults, by callback or as system events, and the interrupts of its signals.
#include "rocr_node.hpp"
#include "watched.hpp"

#include <map>
#include <mutex>

namespace sdma { inline namespace v0_3 { namespace detail {

using namespace rocr;

namespace {

struct Watch {
  RocrNode* node{};
  GpuId gpu{};
};
struct Watches {
  std::mutex mutex;
  std::map<std::uint64_t, Watch> all;
  std::uint64_t next = 1;
};
/// Never destroyed: ROCr's threads may outlive static objects.
Watches& watches() {
  static auto* const w = new Watches;
  return *w;
}

}  // namespace

std::uint64_t watch(RocrNode* n, GpuId g) {
  auto& w = watches();
  const std::lock_guard lock(w.mutex);
  w.all.emplace(w.next, Watch{n, g});
  return w.next++;
}

void forget(std::uint64_t number) noexcept {
  auto& w = watches();
  const std::lock_guard lock(w.mutex);
  w.all.erase(number);
}

void queue_callback(Status s, HsaQueue* queue, void* data) {
  auto& w = watches();
  const std::lock_guard lock(w.mutex);
  const auto at = w.all.find(reinterpret_cast<std::uint64_t>(data));
  if (at != w.all.end()) at->second.node->queue_failed(at->second.gpu, s, queue);
}

Status system_event(const SystemEvent* e, void*) {
  if (!e || e->type != kEventMemoryFault) return kNotHandled;
  auto& w = watches();
  const std::lock_guard lock(w.mutex);
  auto result = kNotHandled;
  for (const auto& [number, watched] : w.all) {
    if (watched.node->gpu_of(e->fault.agent) != watched.gpu) continue;
    watched.node->keep_memory_fault(watched.gpu, e->fault.address, e->fault.reason);
    result = kSuccess;
  }
  return result;
}

std::optional<Diagnostic> RocrNode::watch_system_events() {
  static std::mutex mutex;
  static bool registered = false;
  const std::lock_guard lock(mutex);
  // ROCr forgets the handler when the last user shuts it down, and then takes it again; a second one is refused or
  // called as well, and the faults that it finds are the same.
  const auto s = hsa_.on_system_event(system_event, nullptr);
  if (s != kSuccess && !registered)
    return Diagnostic{.where = "hsa_amd_register_system_event_handler",
                      .message = "faults cannot be watched: " + why(s),
                      .hint = "another library of this process may handle ROCr's system events"};
  registered = true;
  return {};
}

// --- Faults ----------------------------------------------------------------------------------------------------------

std::optional<GpuId> RocrNode::gpu_of(Agent a) const noexcept {
  for (std::uint32_t g = 0; g < agents_.size(); ++g)
    if (agents_[g] == a) return GpuId{g};
  return {};
}

void RocrNode::keep_memory_fault(GpuId g, std::uint64_t va, std::uint32_t reason) noexcept {
  const bool read_only = (reason & kReadOnly) != 0;
  faults_.keep({.kind = read_only ? FaultKind::read_only : FaultKind::unmapped,
                .access = read_only ? Access::write : Access::read_write,
                .anonymous = true,
                .gpu = g,
                .engine = kUnknownEngine,
                .va = GpuVa{va}});
}

void RocrNode::queue_failed(GpuId g, Status s, HsaQueue* queue) noexcept {
  bool seen = false;
  std::uint64_t va = 0;
  std::uint32_t reason = 0;
  if (hsa_.queue_info(queue, kFaultSeen, &seen) == kSuccess && seen) {
    (void)hsa_.queue_info(queue, kFaultAddress, &va);
    (void)hsa_.queue_info(queue, kFaultReason, &reason);
  }
  if (seen || s == kMemoryFault) return keep_memory_fault(g, va, reason);
  Fault f{.kind = FaultKind::driver_error, .anonymous = true, .gpu = g, .engine = kUnknownEngine};
  f.rule = hsa_.message(s);
  faults_.keep(f);
}

std::optional<Fault> RocrNode::fault(const Queue& q) const noexcept {
  if (auto f = DriverNode::fault(q)) return f;
  if (ways_ != RocrQueues::runtime || !in_opening_process()) return {};
  const std::lock_guard lock(queues_mutex_);
  const auto at = queues_.find(q.id());
  std::uint32_t engine = 0;
  if (at == queues_.end() ||
      hsa_.queue_info(reinterpret_cast<HsaQueue*>(at->second.handle), kEngineIndex, &engine) == kSuccess)
    return {};
  Fault f{.kind = FaultKind::driver_error, .anonymous = true, .gpu = q.gpu(), .engine = kUnknownEngine};
  f.rule = "that another library has destroyed the queue";
  return f;
}

// --- Events ----------------------------------------------------------------------------------------------------------

Result<Event, Diagnostic> RocrNode::create_event() {
  if (!in_opening_process()) return forked_error("create_event");
  SignalHandle signal;
  const auto failed = [](std::string message, std::string hint) {
    return Diagnostic{.where = "create_event", .message = std::move(message), .hint = std::move(hint)};
  };
  if (const auto s = hsa_.create_signal(0, 0, nullptr, &signal); s != kSuccess)
    return failed("ROCr could not create a signal: " + why(s),
                  "a process can have about 4000 with interrupts: free unused ones");
  const auto& words = *reinterpret_cast<const SignalWords*>(signal.handle);
  if (words.mailbox == 0 || words.event == 0) {
    (void)hsa_.destroy_signal(signal);
    return failed("ROCr's signals have no interrupts", "unset HSA_ENABLE_INTERRUPT, or poll a Signal");
  }
  (void)wait_event(words.event, Deadline{});  // ROCr uses events again: one may have arrived for the last user
  {
    const std::lock_guard lock(memory_);
    events_.emplace(words.event, signal);
  }
  hold();
  return Event(Lease(give_back<&RocrNode::free_event>, this, words.event), GpuVa{words.mailbox}, words.event);
}

void RocrNode::free_event(std::uint64_t id) noexcept {
  const std::lock_guard lock(memory_);
  if (const auto e = events_.extract(id)) (void)hsa_.destroy_signal(e.mapped());
}

}}}  // namespace sdma::v0_3::detail
