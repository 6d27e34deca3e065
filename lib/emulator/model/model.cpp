#include "model.hpp"

#include "../options.hpp"
#include "../pace.hpp"
#include "../trace.hpp"

#include <bit>
#include <cerrno>
#include <cstdio>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kBudget = 32;  ///< actions of a queue before the next has its turn

Deadline patience() { return Deadline::in(std::chrono::seconds(60)); }

}  // namespace

Model::Queue::Queue(Model& m, const hsakmt_model_queue_info& i, std::span<std::uint32_t> ring)
    : write_pointer(reinterpret_cast<const std::uint64_t*>(i.write_pointer)),
      reader(m.space_, GpuId{i.node}),
      pipeline({.ring = ring,
                .rptr = reinterpret_cast<std::uint64_t*>(i.read_pointer),
                .reader = &reader,
                .gpu = GpuId{i.node},
                .queue = i.queue_id,
                .ordering = options().ordering,
                .seed = options().seed * 1024 + i.queue_id,
                .state = &state,
                .hooks = m.hooks()}) {}

Model::Model() : worker_(*this, kNodePace) {}

Model::~Model() { worker_.stop(); }

int Model::add_memory(void* address, std::uint64_t bytes) {
  const auto va = reinterpret_cast<std::uint64_t>(address);
  const auto whole = (bytes + 7) & ~std::uint64_t{7};
  const auto e = space_.map({.va = GpuVa{va}, .bytes = whole, .host = static_cast<std::byte*>(address)});
  return e == Errc::ok ? 0 : EINVAL;
}

int Model::remove_memory(void* address) {
  return space_.unmap(GpuVa{reinterpret_cast<std::uint64_t>(address)}, patience()) == Errc::ok ? 0 : EINVAL;
}

int Model::add_queue(const hsakmt_model_queue_info& i) {
  constexpr std::uint64_t kLeast = 1024, kMost = std::uint64_t{1} << 32;
  if (!std::has_single_bit(i.ring_bytes) || i.ring_bytes < kLeast || i.ring_bytes > kMost || i.node >= 64)
    return EINVAL;
  const auto inside = [&](std::uint64_t va, std::uint64_t bytes) {
    const auto m = space_.find(GpuVa{va});
    return va % 8 == 0 && m && m->bytes - (va - m->va.value) >= bytes;
  };
  if (!inside(i.ring, i.ring_bytes) || !inside(i.write_pointer, 8) || !inside(i.read_pointer, 8)) return EFAULT;
  const std::lock_guard lock(worker_);
  if (queues_.count(i.queue_id) != 0) return EEXIST;
  if (!worker_.started()) worker_.start("sdma model");
  queues_.emplace(i.queue_id, std::make_unique<Queue>(*this, i,
                                                      std::span(reinterpret_cast<std::uint32_t*>(i.ring),
                                                                i.ring_bytes / sizeof(std::uint32_t))));
  trace_queue(GpuId{i.node}, EngineId{}, i.queue_id, i.ring_bytes, true);
  return 0;
}

int Model::remove_queue(std::uint32_t id) {
  const std::lock_guard lock(worker_);
  const auto q = queues_.find(id);
  if (q == queues_.end()) return EINVAL;
  trace_queue(q->second->reader.gpu(), EngineId{}, id, q->second->pipeline.position(), false);
  queues_.erase(q);
  return 0;
}

void Model::on_event(hsakmt_model_set_event fn, void* data) {
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
    h.begin = [](void*, const PacketEvent& e) noexcept { trace_packet(GpuId{}, EngineId{}, e, true); };
    h.end = [](void*, const PacketEvent& e) noexcept { trace_packet(GpuId{}, EngineId{}, e, false); };
  }
  return h;
}

Progress Model::round() noexcept {
  ticket_ = parking_.ticket();
  auto result = Progress::idle;
  for (auto& [id, q] : queues_) {
    const auto position = __atomic_load_n(q->write_pointer, __ATOMIC_ACQUIRE);
    if (position != q->told) {
      q->told = position;
      trace_doorbell(q->reader.gpu(), EngineId{}, id, position);
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
