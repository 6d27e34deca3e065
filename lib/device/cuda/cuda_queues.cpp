// SPDX-License-Identifier: MIT
// The queues of a CUDA node: creation, destruction, and what stays if a stream cannot end.
#include "cuda_node.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {
/// Chooses the engine and the slot. Hold creation_.
std::optional<Diagnostic> Node::place(const QueueRequest& r, QueueParts& parts) {
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{.where = place_of(r), .message = std::move(message), .hint = std::move(hint)};
  };
  const auto& gpu = physical(r.gpu);
  if (const auto s = gpu.error(); s != kSuccess)
    return refused(fmt::format("the queues of this GPU have stopped: {}", driver_.describe(s)),
                   "an error of CUDA stays for the life of the process: start it again");
  const std::lock_guard lock(worker_);
  const auto per_engine = topology_.gpus[r.gpu.value].queues_per_engine;
  auto best = per_engine;
  for (auto left = r.pick == EnginePick::exact ? std::uint64_t{1} << r.engine.value
                                               : engines_for(r.pick, topology_.gpus[r.gpu.value]);
       left != 0; left &= left - 1) {
    const EngineId e{static_cast<std::uint32_t>(std::countr_zero(left))};
    std::uint32_t slot = 0;
    for (bool taken = true; taken; slot += taken) {
      taken = false;
      for (const auto& q : entries_) {
        const auto& p = q.queue->parts();
        taken = taken || (!q.parked && p.gpu == r.gpu && p.engine == e && p.slot == slot);
      }
    }
    if (slot >= best) continue;
    best = slot;
    parts.engine = e;
    parts.slot = slot;
  }
  if (best >= per_engine)
    return refused(fmt::format("all {} queues of the engine are in use", per_engine),
                   "destroy one, or share a queue between producers: Ring<Producers::many>");
  return {};
}

/// Ring, stream and memory of the queue. On an error, `e` holds what is to be disposed of.
std::optional<Diagnostic> Node::furnish(const QueueRequest& r, QueueParts& parts, CommandParts& commands, Entry& e) {
  const auto where = place_of(r);
  e.page_bytes = r.ring_bytes + 3 * kPage;
  e.for_kernels = r.for_kernels;
  std::byte* at = nullptr;
  if (r.for_kernels) {
    const auto pinned = allocate_block({.bytes = e.page_bytes, .purpose = Purpose::words});
    if (!pinned) return pinned.error();
    e.blocks.push_back(pinned->id);
    at = pinned->host;
  } else {
    auto* pages = mmap(nullptr, e.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
      return Diagnostic{.where = where,
                        .message = fmt::format("no memory for the ring: {}", std::strerror(errno)),
                        .hint = "free memory, or use a smaller ring"};
    at = e.pages = static_cast<std::byte*>(pages);
  }
  const auto word = [&](std::uint64_t page) {
    return reinterpret_cast<std::uint64_t*>(at + r.ring_bytes + page * kPage);
  };
  parts.ring = {.dwords = {reinterpret_cast<std::uint32_t*>(at), static_cast<std::size_t>(r.ring_bytes / 4)},
                .rptr = word(0),
                .wptr = word(1),
                .doorbell = r.watch_wptr ? nullptr : word(2),
                .caching = Caching::write_back};

  const auto pinned = allocate_block({.bytes = Commands::kPayloadBytes + kPage, .purpose = Purpose::words});
  if (!pinned) return pinned.error();
  e.blocks.push_back(pinned->id);
  const auto staging = allocate_block({.where = r.gpu,
                                       .bytes = Commands::kStagingBytes,
                                       .gpus = std::uint64_t{1} << r.gpu.value,
                                       .host_access = false});
  if (!staging) return staging.error();
  e.blocks.push_back(staging->id);
  commands = {.progress = reinterpret_cast<std::uint32_t*>(pinned->host + Commands::kPayloadBytes),
              .payload = pinned->host,
              .staging = staging->va,
              .batches = options_.batches,
              .counters = &counters_};

  auto& gpu = physical(r.gpu);
  e.stream = gpu.take_stream();
  parts.stream_waits = e.stream != nullptr;
  commands.stream = e.stream ? e.stream : gpu.shared_stream();
  if (e.stream || gpus_.size() > physical_.size()) return {};
  return Diagnostic{
      .where = where,
      .message = fmt::format(
          "all {} streams of the GPU that may wait at a poll are in use{}", gpu.streams(),
          parked() != 0 ? fmt::format(", {} of them at polls of queues that are gone", parked()) : std::string{}),
      .hint = gpu.streams() == PhysicalGpu::kMostWaiting
                  ? "destroy a queue: one more waiting stream would hold up unrelated ones"
                  : "set CUDA_DEVICE_MAX_CONNECTIONS=32 before the program starts"};
}

Result<Queue, Diagnostic> Node::create_queue(const QueueRequest& r) {
  if (!in_opening_process()) return forked_error("create_queue");
  if (auto d = refuse(r, topology_)) return *d;
  const std::lock_guard creation(creation_);
  QueueParts parts{.id = next_queue_, .gpu = r.gpu};
  CommandParts commands;
  if (auto d = place(r, parts)) return *d;
  Entry e;
  if (auto d = furnish(r, parts, commands, e)) {
    dispose(e);
    return *d;
  }
  e.queue = std::make_unique<CudaQueue>(*this, physical(r.gpu), space_, parts, commands);
  if (!r.for_kernels)
    parts.ring.on_doorbell = [](void* queue, std::uint64_t) noexcept { static_cast<CudaQueue*>(queue)->ring(); };
  parts.ring.on_doorbell_context = e.queue.get();
  try {
    const std::lock_guard lock(worker_);
    if (!worker_.started()) worker_.start("sdma cuda");
    entries_.push_back(std::move(e));
    map_queues(r.gpu);
  } catch (const std::system_error&) {
    dispose(e);
    return Diagnostic{.where = place_of(r),
                      .message = "cannot start the device's thread",
                      .hint = "raise the thread limit (ulimit -u)"};
  }
  ++next_queue_;
  wake();
  hold();
  return Queue(Lease(give_back<&Node::destroy_queue>, this, parts.id), parts.ring, r.gpu, parts.engine);
}

/// Hold the worker's lock.
void Node::map_queues(GpuId g) noexcept {
  for (auto& e : entries_)
    if (!e.retired && e.queue->parts().gpu == g) e.queue->map();
}

/// Nothing is issued any more; what was issued has ended, or never will.
void Node::retire(Entry& e) noexcept {
  {
    const std::lock_guard lock(worker_);
    if (std::exchange(e.retired, true)) return;
  }
  if (e.queue->retire()) return;
  const auto blocks = memory_pool_.next_id();
  const std::lock_guard lock(worker_);
  e.parked = true;
  e.blocks_before = blocks;
  parked_.fetch_add(1, std::memory_order_relaxed);
}

/// Gives back what a queue was made of. Its stream has ended.
void Node::dispose(Entry& e) noexcept {
  if (e.stream) e.queue->physical().give_stream(e.stream);
  e.queue.reset();
  for (const auto id : e.blocks) free_block(id);
  if (e.pages) munmap(e.pages, e.page_bytes);
}

void Node::destroy_queue(std::uint64_t id) noexcept {
  auto at = entries_.end();
  {
    const std::lock_guard lock(worker_);
    at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.queue->parts().id == id; });
    if (at == entries_.end()) return;
  }
  retire(*at);  // may wait for its stream, so without the lock that other queues are created under
  const std::lock_guard creation(creation_);
  faults_.forget(id);
  if (at->parked) return;  // the entry stays, with everything that the stream may touch
  std::list<Entry> gone;
  {
    const std::lock_guard lock(worker_);
    gone.splice(gone.begin(), entries_, at);
    map_queues(gone.front().queue->parts().gpu);
  }
  wake();
  dispose(gone.front());
  memory_pool_.collect();
  unpin();
}

}}}  // namespace sdma::v0_3::detail::cuda
