// SPDX-License-Identifier: MIT
// Queues of a KFD device: created by libhsakmt if it supports queues by engine, otherwise by the driver's ioctl.
#include "node.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace sdma::inline v0::detail {
namespace {

constexpr std::uint32_t kAll = 100;  // percent of the engine's time

Diagnostic nothing_free(const QueueRequest& r, const Topology& t) {
  return {.where = place_of(r),
          .message = fmt::format("all {} queues of the engine are in use, by this process or others",
                                 t.gpus[r.gpu.value].queues_per_engine),
          .hint = "destroy one, or share a queue between producers: Ring<Producers::many>"};
}

std::uint64_t* word_at(std::byte* p) noexcept { return reinterpret_cast<std::uint64_t*>(p); }

}  // namespace

std::optional<Diagnostic> KfdNode::by_library(const QueueRequest& r, QueueState& q) {
  const auto type = r.pick == EnginePick::exact      ? thunk::kQueueSdmaByEngine
                    : r.pick == EnginePick::any_host ? thunk::kQueueSdma
                                                     : thunk::kQueueSdmaXgmi;
  thunk::Grown<thunk::QueueResource> made;
  const auto s = thunk_.create_queue(gpus_[r.gpu.value].thunk_node, type, kAll, r.priority, r.engine.value, q.address,
                                     r.ring_bytes, nullptr, &made.known);
  if (s == thunk::kNoMemory) return nothing_free(r, node_.topology);
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

std::optional<Diagnostic> KfdNode::by_driver(const QueueRequest& r, QueueState& q) {
  constexpr std::uint32_t kPriorities[] = {0, 3, 5, 7, 9, 11, 15};  // for -3 to 3
  // The engine writes 16 bytes from rptr on, the upper 8 for the firmware's own use, so wptr is on another cache line.
  constexpr std::uint64_t kWptr = 64;
  auto pointers =
      allocate_block({.bytes = kPage, .gpus = std::uint64_t{1} << r.gpu.value, .purpose = Purpose::packets});
  if (!pointers) return pointers.error();
  q.pointers = pointers->id;
  auto& gpu = gpus_[r.gpu.value];
  kfd::CreateQueue a{.ring = reinterpret_cast<std::uint64_t>(q.address),
                     .wptr = pointers->va.value + kWptr,
                     .rptr = pointers->va.value,
                     .ring_bytes = static_cast<std::uint32_t>(r.ring_bytes),
                     .gpu_id = gpu.gpu_id,
                     .type = r.pick == EnginePick::exact      ? kfd::kQueueSdmaByEngine
                             : r.pick == EnginePick::any_host ? kfd::kQueueSdma
                                                              : kfd::kQueueSdmaXgmi,
                     .percentage = kAll,
                     .priority = kPriorities[r.priority + 3],
                     .sdma_engine_id = r.pick == EnginePick::exact ? r.engine.value : 0};
  if (const int error = kfd::call(fd_, kfd::Nr::create_queue, a)) {
    if (error == ENOMEM) return nothing_free(r, node_.topology);
    return Diagnostic{.where = place_of(r),
                      .message = fmt::format("the driver could not create the queue: {}", std::strerror(error)),
                      .hint = "the kernel's log (dmesg) may say more"};
  }
  q.handle = a.queue_id;
  if (!gpu.doorbells) {
    const auto frame = a.doorbell_offset & ~(kfd::kDoorbellBytes - 1);
    void* at = ::mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(frame));
    if (at == MAP_FAILED) {
      const int error = errno;
      destroy(q);
      return Diagnostic{.where = place_of(r),
                        .message = fmt::format("the doorbells cannot be mapped: {}", std::strerror(error)),
                        .hint = "the kernel's log (dmesg) may say more"};
    }
    gpu.doorbells = static_cast<std::byte*>(at);
  }
  q.memory.rptr = word_at(pointers->host);
  q.memory.wptr = word_at(pointers->host + kWptr);
  q.memory.doorbell = word_at(gpu.doorbells + a.doorbell_offset % kfd::kDoorbellBytes);
  return {};
}

void KfdNode::give_back_memory(const QueueState& q) noexcept {
  free_block(q.ring);
  if (q.pointers != 0) free_block(q.pointers);
}

Result<Queue, Diagnostic> KfdNode::create_queue(const QueueRequest& r) {
  if (!in_opening_process()) return forked_error("create_queue");
  if (auto d = refuse(r, node_.topology)) return *d;
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{.where = place_of(r), .message = std::move(message), .hint = std::move(hint)};
  };
  if (r.watch_wptr)
    return refused("engines of this device do not watch wptr", "do not set watch_wptr: every queue has a doorbell");
  if (r.pick == EnginePick::exact && version_.minor < kfd::kByEngineMinor)
    return refused(fmt::format("KFD {}.{} cannot place a queue on a chosen engine, but 1.{} can", version_.major,
                               version_.minor, kfd::kByEngineMinor),
                   "use EnginePick::any_host or any_xgmi, or a newer kernel or amdgpu-dkms");
  if (fault(r.gpu)) {
    const std::lock_guard lock(faults_mutex_);
    if (const auto& f = gpus_[r.gpu.value].fault)
      return refused("the driver has stopped this process's queues on the GPU: " + describe(*f),
                     "they cannot be recovered: restart the process");
  }
  const std::lock_guard lock(queues_mutex_);
  QueueState q{.gpu = r.gpu, .ring_bytes = r.ring_bytes};
  auto ring =
      allocate_block({.bytes = r.ring_bytes, .gpus = std::uint64_t{1} << r.gpu.value, .purpose = Purpose::packets});
  if (!ring) return ring.error();
  q.ring = ring->id;
  q.address = ring->host;
  q.memory = {.dwords = {reinterpret_cast<std::uint32_t*>(ring->host), static_cast<std::size_t>(r.ring_bytes / 4)},
              .caching = Caching::write_back};
  if (auto d = thunk_.create_queue ? by_library(r, q) : by_driver(r, q)) {
    give_back_memory(q);
    return *d;
  }
  const auto id = next_queue_++;
  queues_.emplace(id, q);
  hold();
  return Queue(Lease(give_back<&KfdNode::destroy_queue>, this, id), q.memory, r.gpu,
               r.pick == EnginePick::exact ? r.engine : kUnknownEngine);
}

void KfdNode::destroy(const QueueState& q) noexcept {
  if (q.pointers == 0) {
    (void)thunk_.destroy_queue(q.handle);
    return;
  }
  kfd::DestroyQueue a{.queue_id = static_cast<std::uint32_t>(q.handle)};
  (void)kfd::call(fd_, kfd::Nr::destroy_queue, a);
}

void KfdNode::destroy_queue(std::uint64_t id) noexcept {
  const std::lock_guard lock(queues_mutex_);
  const auto at = queues_.find(id);
  if (at == queues_.end()) return;
  destroy(at->second);
  give_back_memory(at->second);
  queues_.erase(at);
}

}  // namespace sdma::inline v0::detail
