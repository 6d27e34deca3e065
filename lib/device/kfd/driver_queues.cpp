// SPDX-License-Identifier: MIT
#include "driver_queues.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace sdma::inline v0::detail {
namespace {

constexpr std::uint32_t kAll = kfd::kMaxPercentage;  // percent of the engine's time

std::uint64_t* word_at(std::uint64_t address) noexcept { return reinterpret_cast<std::uint64_t*>(address); }

}  // namespace

Diagnostic nothing_free(const QueueRequest& r, const Topology& t) {
  return {.where = place_of(r),
          .message = fmt::format("all {} queues of the engine are in use, by this process or others",
                                 t.gpus[r.gpu.value].queues_per_engine),
          .hint = "destroy one, or share a queue between producers: Ring<Producers::many>"};
}

std::optional<Diagnostic> DriverQueues::by_library(const QueueRequest& r, const Topology& t, Gpu g, QueueState& q) {
  const auto type = r.pick == EnginePick::exact      ? thunk::kQueueSdmaByEngine
                    : r.pick == EnginePick::any_host ? thunk::kQueueSdma
                                                     : thunk::kQueueSdmaXgmi;
  thunk::Grown<thunk::QueueResource> made;
  const auto s = thunk_.create_queue(g.node, type, kAll, r.priority, r.engine.value, word_at(q.ring), r.ring_bytes,
                                     nullptr, &made.known);
  if (s == thunk::kNoMemory) return nothing_free(r, t);
  if (s != thunk::kSuccess)
    return Diagnostic{.where = place_of(r),
                      .message = fmt::format("libhsakmt could not create the queue: {}", thunk::message(s)),
                      .hint = "HSAKMT_DEBUG_LEVEL=7 makes it print more"};
  q.handle = made.known.queue;
  q.memory.rptr = made.known.rptr;
  q.memory.wptr = made.known.wptr;
  q.memory.doorbell = made.known.doorbell;
  return {};
}

std::optional<Diagnostic> DriverQueues::by_driver(const QueueRequest& r, const Topology& t, Gpu g, QueueState& q) {
  constexpr std::uint32_t kPriorities[] = {0, 3, 5, 7, 9, 11, 15};  // for -3 to 3
  // The engine writes 16 bytes from rptr on, the upper 8 for the firmware's own use, so wptr is on another cache line.
  constexpr std::uint64_t kWptr = 64;
  kfd::CreateQueue a{.ring = q.ring,
                     .wptr = q.pointers + kWptr,
                     .rptr = q.pointers,
                     .ring_bytes = static_cast<std::uint32_t>(r.ring_bytes),
                     .gpu_id = g.id,
                     .type = r.pick == EnginePick::exact      ? kfd::kQueueSdmaByEngine
                             : r.pick == EnginePick::any_host ? kfd::kQueueSdma
                                                              : kfd::kQueueSdmaXgmi,
                     .percentage = kAll,
                     .priority = kPriorities[r.priority + 3],
                     .sdma_engine_id = r.pick == EnginePick::exact ? r.engine.value : 0};
  if (const int error = kfd::call(fd_, kfd::Nr::create_queue, a)) {
    if (error == ENOMEM) return nothing_free(r, t);
    return Diagnostic{.where = place_of(r),
                      .message = fmt::format("the driver could not create the queue: {}", std::strerror(error)),
                      .hint = "the kernel's log (dmesg) may say more"};
  }
  q.handle = a.queue_id;
  auto& doorbells = doorbells_[g.id];
  if (doorbells == 0) {
    const auto frame = a.doorbell_offset & ~(kfd::kDoorbellBytes - 1);
    void* at = ::mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(frame));
    if (at == MAP_FAILED) {
      const int error = errno;
      destroy(q);
      return Diagnostic{.where = place_of(r),
                        .message = fmt::format("the doorbells cannot be mapped: {}", std::strerror(error)),
                        .hint = "the kernel's log (dmesg) may say more"};
    }
    doorbells = reinterpret_cast<std::uint64_t>(at);
  }
  q.memory.rptr = word_at(q.pointers);
  q.memory.wptr = word_at(q.pointers + kWptr);
  q.memory.doorbell = word_at(doorbells + a.doorbell_offset % kfd::kDoorbellBytes);
  return {};
}

std::optional<Diagnostic> DriverQueues::create(const QueueRequest& r, const Topology& t, Gpu g, QueueState& q) {
  if (r.pick == EnginePick::exact && version_.minor < kfd::kByEngineMinor)
    return Diagnostic{.where = place_of(r),
                      .message = fmt::format("KFD {}.{} cannot place a queue on a chosen engine, but 1.{} can",
                                             version_.major, version_.minor, kfd::kByEngineMinor),
                      .hint = "use EnginePick::any_host or any_xgmi, or a newer kernel or amdgpu-dkms"};
  q.memory = {.dwords = {reinterpret_cast<std::uint32_t*>(q.ring), static_cast<std::size_t>(r.ring_bytes / 4)},
              .caching = Caching::write_back,
              .generation = t.gpus[r.gpu.value].generation()};
  return thunk_.create_queue ? by_library(r, t, g, q) : by_driver(r, t, g, q);
}

DriverQueues::~DriverQueues() {
  for (const auto& [gpu, at] : doorbells_)
    if (at != 0) ::munmap(reinterpret_cast<void*>(at), kfd::kDoorbellBytes);
}

void DriverQueues::destroy(const QueueState& q) noexcept {
  if (q.pointers == 0) {
    (void)thunk_.destroy_queue(q.handle);
    return;
  }
  kfd::DestroyQueue a{.queue_id = static_cast<std::uint32_t>(q.handle)};
  (void)kfd::call(fd_, kfd::Nr::destroy_queue, a);
}

void DriverQueues::disable(const QueueState& q) noexcept {
  if (q.pointers == 0) {
    (void)thunk_.update_queue(q.handle, 0, 0, word_at(q.ring), q.ring_bytes, nullptr);
    return;
  }
  kfd::UpdateQueue a{.ring = q.ring,
                     .queue_id = static_cast<std::uint32_t>(q.handle),
                     .ring_bytes = static_cast<std::uint32_t>(q.ring_bytes)};
  (void)kfd::call(fd_, kfd::Nr::update_queue, a, kfd::kIn);
}

}  // namespace sdma::inline v0::detail
