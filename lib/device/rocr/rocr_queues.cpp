// SPDX-License-Identifier: MIT
// Queues of a ROCr device: from ROCr, in the current or the earlier form, or from the libhsakmt that it links to.
#include "rocr_node.hpp"
#include "watched.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail {

using namespace rocr;

namespace {

constexpr std::uint32_t priority_of(const QueueRequest& r) noexcept {
  using D = QueueDescriptor;
  return r.priority < 0 ? D::kLow : r.priority > 0 ? D::kHigh : D::kNormal;
}

}  // namespace

/// The engine of the request, or the one of its kind with the fewest queues of this device.
EngineId RocrNode::engine_for(const QueueRequest& r) const noexcept {
  if (r.pick == EnginePick::exact) return r.engine;
  const auto kind = engines_for(r.pick, node_.topology.gpus[r.gpu.value]);
  std::array<std::uint32_t, 64> used{};
  for (const auto& [id, q] : queues_)
    if (q.gpu == r.gpu && q.engine.value < used.size()) ++used[q.engine.value];
  std::uint32_t best = 64;
  for (std::uint32_t e = 0; e < 64; ++e)
    if ((kind >> e & 1) != 0 && (best == 64 || used[e] < used[best])) best = e;
  return EngineId{best};
}

std::optional<Diagnostic> RocrNode::make_queue(const QueueRequest& r, QueueState& q) {
  q.watch = watch(this, r.gpu);
  auto failed = ways_ == RocrQueues::runtime   ? by_runtime(r, q)
                : ways_ == RocrQueues::earlier ? by_earlier(r, q)
                                               : make_driver_queue(*driver_queues_, r, q);
  q.memory.caching = Caching::write_back;
  q.memory.generation = node_.topology.gpus[r.gpu.value].generation();
  q.memory.least_dwords = least_submission(node_.topology.gpus[r.gpu.value].gfx);
  if (!failed)
    if (const auto no = validate(q.memory); !no.empty()) {
      unmake_queue(q);
      failed = Diagnostic{.where = place_of(r),
                          .message = fmt::format("ROCr made a queue that cannot be used: {}", no),
                          .hint = "this ROCr may have another version of the call; see docs/device.md"};
    }
  if (failed) forget(q.watch);
  return failed;
}

std::optional<Diagnostic> RocrNode::by_runtime(const QueueRequest& r, QueueState& q) {
  q.engine = engine_for(r);
  QueueDescriptor d{.bytes = static_cast<std::uint32_t>(r.ring_bytes),
                    .priority = priority_of(r),
                    .callback = queue_callback,
                    .callback_data = reinterpret_cast<void*>(q.watch),
                    .engine = q.engine.value};
  const auto s = hsa_.create_queues(agents_[r.gpu.value], &d, 1);
  if (s == kOutOfResources) return nothing_free(r, node_.topology);
  if (s != kSuccess || !d.queue)
    return Diagnostic{
        .where = place_of(r),
        .message = "ROCr could not create the queue: " + why(s),
        .hint = s == kInvalidQueueCreation
                    ? "the driver cannot place a queue on an engine: use KFD 1.17 or later (a newer kernel "
                      "or amdgpu-dkms)"
                    : "the kernel's log (dmesg) may say more"};
  q.handle = reinterpret_cast<std::uint64_t>(d.queue);
  q.memory.dwords = {static_cast<std::uint32_t*>(d.queue->base), d.queue->size / 4};
  (void)hsa_.queue_info(d.queue, kRptrAddress, &q.memory.rptr);
  (void)hsa_.queue_info(d.queue, kWptrAddress, &q.memory.wptr);
  (void)hsa_.queue_info(d.queue, kEngineIndex, &q.engine.value);
  const auto* const bell = reinterpret_cast<const SignalWords*>(d.queue->doorbell.handle);
  if (!bell || bell->kind != kDoorbell || !bell->doorbell) {
    unmake_queue(q);
    return Diagnostic{.where = place_of(r),
                      .message = "the doorbell of the queue that ROCr made is not a hardware doorbell",
                      .hint = "this ROCr forwards doorbells, which this library does not support"};
  }
  q.memory.doorbell = bell->doorbell;
  return {};
}

/// The ring has the size that ROCr chose, which must be at least that of the request.
std::optional<Diagnostic> RocrNode::by_earlier(const QueueRequest& r, QueueState& q) {
  constexpr std::uint32_t kUseEngine = 1;
  q.engine = engine_for(r);
  void* queue = nullptr;
  const auto s = hsa_.create_earlier(agents_[r.gpu.value], kUseEngine, 1u << q.engine.value, priority_of(r), &queue);
  if (s == kOutOfResources) return nothing_free(r, node_.topology);
  thunk::Grown<EarlierResource> made;
  if (s == kSuccess && queue) {
    q.handle = reinterpret_cast<std::uint64_t>(queue);
    if (hsa_.earlier_info(queue, kEarlierResource, &made.known) == kSuccess && made.known.bytes >= r.ring_bytes &&
        made.known.bytes <= kMaxRing && made.known.doorbell) {
      q.ring_bytes = made.known.bytes;
      q.memory = {.dwords = {static_cast<std::uint32_t*>(made.known.base), made.known.bytes / 4},
                  .rptr = made.known.rptr,
                  .wptr = made.known.wptr,
                  .doorbell = made.known.doorbell};
      return {};
    }
    unmake_queue(q);
  }
  return Diagnostic{.where = place_of(r),
                    .message = s == kSuccess ? fmt::format("ROCr made a ring of {} bytes", made.known.bytes)
                                             : "ROCr could not create the queue: " + why(s),
                    .hint = "request a smaller ring; a ROCr with hsa_amd_queue_create (ROCm 10.0.0) makes any size"};
}

void RocrNode::unmake_queue(const QueueState& q) noexcept {
  switch (ways_) {
    case RocrQueues::runtime: (void)hsa_.destroy_queue(reinterpret_cast<HsaQueue*>(q.handle)); break;
    case RocrQueues::earlier: (void)hsa_.destroy_earlier(reinterpret_cast<void*>(q.handle)); break;
    case RocrQueues::thunk: driver_queues_->destroy(q); break;
  }
  forget(q.watch);
}

/// The earlier form cannot stop a queue: there, it runs until its handle is destroyed.
void RocrNode::stop() noexcept {
  stop_sharing();
  const std::lock_guard lock(queues_mutex_);
  for (const auto& [id, q] : queues_)
    if (ways_ == RocrQueues::runtime) (void)hsa_.inactivate_queue(reinterpret_cast<HsaQueue*>(q.handle));
    else if (ways_ == RocrQueues::thunk) driver_queues_->disable(q);
}

}}}  // namespace sdma::v0_3::detail
