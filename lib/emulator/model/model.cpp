// SPDX-License-Identifier: MIT
#include "model.hpp"

#include "../../kfd/abi.hpp"
#include "../node_options.hpp"
#include "../pace.hpp"
#include "../trace.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kBudget = 32;  ///< actions of a queue before the next has its turn

Deadline patience() { return Deadline::in(std::chrono::seconds(60)); }

}  // namespace

/// The memory of all models: the caller tells one of them, and maps it for any.
struct Model::Announced {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> ranges{};  ///< address: bytes
  std::vector<Model*> models{};
  std::uint32_t created = 0;
};

/// Never destroyed, because a program may end while models exist.
Model::Announced& Model::announced() {
  static auto* const all = new Announced;
  return *all;
}

struct Model::Queue final : hsakmt_model_queue {
  Queue(Model& m, std::uint32_t n, const hsakmt_model_queue_info& i)
      : id(n),
        compute(i.queue_type == kfd::kQueueComputeAql),
        write_pointer(m.at<std::uint64_t>(i.write_pointer_address)),
        doorbell(i.doorbell),
        rung(doorbell ? __atomic_load_n(doorbell, __ATOMIC_ACQUIRE) : 0),
        reader(m.space_, m.gpu_),
        pipeline({.ring = {m.at<std::uint32_t>(i.ring_base_address), i.ring_size / sizeof(std::uint32_t)},
                  .rptr = m.at<std::uint64_t>(i.read_pointer_address),
                  .reader = &reader,
                  .gpu = m.gpu_,
                  .queue = n,
                  .ordering = options().ordering,
                  .seed = options().seed * 1024 + n,
                  .state = &state,
                  .hooks = m.hooks()}) {
    told = __atomic_load_n(m.at<std::uint64_t>(i.read_pointer_address), __ATOMIC_ACQUIRE);
  }
  /// The later of write pointer and doorbell. A doorbell counts once it has
  /// changed, because the page of doorbells may hold the value of an earlier queue.
  std::uint64_t position() noexcept {
    auto p = std::max(told, __atomic_load_n(write_pointer, __ATOMIC_ACQUIRE));
    if (!doorbell) return p;
    const auto now = __atomic_load_n(doorbell, __ATOMIC_ACQUIRE);
    if (now != rung) p = std::max(p, now);
    return p;
  }

  const std::uint32_t id;
  const bool compute;
  const std::uint64_t *write_pointer, *doorbell;
  const std::uint64_t rung;  ///< the doorbell when the queue was registered
  std::uint64_t told = 0;
  AddressSpace::Reader reader;
  EngineState state{};
  Pipeline pipeline;
};

Model::Model() : worker_(*this, kNodePace) {
  auto& all = announced();
  const std::lock_guard lock(all.mutex);
  gpu_ = GpuId{all.created++ % 64};
  all.models.push_back(this);
}

Model::~Model() {
  {
    auto& all = announced();
    const std::lock_guard lock(all.mutex);
    std::erase(all.models, this);
  }
  worker_.stop();
}

const char* Model::map(GpuVa va, std::uint64_t bytes) {
  if (va.value > bytes_ || bytes > bytes_ - va.value) return "an allocation ends after the aperture";
  const auto e = space_.map({.va = va, .bytes = bytes, .host = base_ + va.value});
  return e == Errc::ok ? nullptr : "an allocation overlaps another, or is not in multiples of 8";
}

const char* Model::set_aperture(std::byte* base, std::uint64_t bytes) {
  auto& all = announced();
  const std::lock_guard lock(all.mutex);
  if (base_) return "the aperture was set twice";
  base_ = base;
  bytes_ = bytes;
  for (const auto& [va, size] : all.ranges)
    if (const auto* error = map(GpuVa{va}, size)) return error;
  return nullptr;
}

const char* Model::add_memory(void* address, std::uint64_t bytes) {
  const auto va = reinterpret_cast<std::uint64_t>(address);
  auto& all = announced();
  const std::lock_guard lock(all.mutex);
  if (!base_) return "memory was announced before the aperture";
  for (auto* m : all.models)
    if (m->base_)
      if (const auto* error = m->map(GpuVa{va}, bytes)) return error;
  all.ranges.emplace(va, bytes);
  return nullptr;
}

const char* Model::remove_memory(void* address) {
  const auto va = reinterpret_cast<std::uint64_t>(address);
  auto& all = announced();
  const std::lock_guard lock(all.mutex);
  if (all.ranges.erase(va) == 0) return "memory was freed that was not announced";
  for (auto* m : all.models)
    if (m->base_ && m->space_.unmap(GpuVa{va}, patience()) == Errc::timed_out)
      return "an engine did not leave freed memory";
  return nullptr;
}

const char* Model::add_queue(const hsakmt_model_queue_info& i, hsakmt_model_queue*& made) {
  constexpr std::uint32_t kLeast = 1024;
  if (i.queue_type != kfd::kQueueSdma && i.queue_type != kfd::kQueueComputeAql)
    return "a queue is neither SDMA nor compute (AQL)";
  if (!std::has_single_bit(i.ring_size) || i.ring_size < kLeast)
    return "the size of a ring is not a power of two from 1 KiB";
  const auto inside = [&](std::uint64_t va, std::uint64_t bytes) {
    const auto m = space_.find(GpuVa{va});
    return va % 8 == 0 && m && m->bytes - (va - m->va.value) >= bytes;
  };
  if (!inside(i.ring_base_address, i.ring_size)) return "a ring is not in announced memory";
  if (!inside(i.write_pointer_address, 8) || !inside(i.read_pointer_address, 8))
    return "a queue's pointers are not in announced memory, or not multiples of 8";
  const std::lock_guard lock(worker_);
  if (!worker_.started()) worker_.start("sdma model");
  made = queues_.emplace_back(std::make_unique<Queue>(*this, next_queue_, i)).get();
  trace_queue(gpu_, EngineId{}, next_queue_++, i.ring_size, true);
  return nullptr;
}

void Model::remove_queue(hsakmt_model_queue* queue) {
  const std::lock_guard lock(worker_);
  const auto q = std::find_if(queues_.begin(), queues_.end(), [&](const auto& e) { return e.get() == queue; });
  if (q == queues_.end()) return;
  trace_queue(gpu_, EngineId{}, (*q)->id, (*q)->pipeline.position(), false);
  queues_.erase(q);
}

void Model::on_event(hsakmt_model_set_event_fn fn, void* data) {
  const std::lock_guard lock(event_mutex_);
  set_event_ = fn;
  event_data_ = data;
}

PipelineHooks Model::hooks() noexcept {
  PipelineHooks h{.context = this};
  h.trap = [](void* m, std::uint64_t, std::uint32_t event) noexcept {
    auto& self = *static_cast<Model*>(m);
    const std::lock_guard lock(self.event_mutex_);
    if (self.set_event_) self.set_event_(self.event_data_, event);
  };
  h.fault = [](void*, const Fault& f) noexcept {
    std::fprintf(stderr, "sdma model: %s\n", describe(f).c_str());
    trace_fault(f);
  };
  if (trace_on()) {
    h.begin = [](void* m, const PacketEvent& e) noexcept {
      trace_packet(static_cast<Model*>(m)->gpu_, EngineId{}, e, true);
    };
    h.end = [](void* m, const PacketEvent& e) noexcept {
      trace_packet(static_cast<Model*>(m)->gpu_, EngineId{}, e, false);
    };
  }
  return h;
}

Progress Model::round() noexcept {
  ticket_ = parking_.ticket();
  auto result = Progress::idle;
  for (auto& q : queues_) {
    const auto position = q->position();
    if (position != q->told && q->compute) {
      if (q->told == 0)
        std::fprintf(stderr,
                     "sdma model: a compute queue has packets, but the model executes none. A program that waits for "
                     "them hangs. The preloaded node (sdma emulate) executes copies and fills.\n");
      q->told = position;
    }
    if (q->compute) continue;
    if (position != q->told) {
      q->told = position;
      trace_doorbell(gpu_, EngineId{}, q->id, position);
      q->pipeline.doorbell(position);
    }
    const AddressSpace::Reader::Section section(q->reader);
    result = sdma::detail::busier(result, q->pipeline.step(kBudget));
  }
  return result;
}

/// Only the model's destructor wakes it, because nothing announces a store to a write pointer.
Model::Worker::Rest Model::rest(Progress, std::chrono::nanoseconds nap) noexcept {
  parking_.sleep(ticket_, Deadline::in(nap));
  return Worker::Rest::slept;
}

}  // namespace sdma::emulator
