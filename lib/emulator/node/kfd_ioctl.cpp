// The table of KFD ioctls: the argument and the handler of each number. The caller gives the size of its argument: fields beyond
// it are zero on entry, and are not written back.
#include "node.hpp"
#include "user.hpp"

#include "sdma/engine/pipeline.hpp"

#include <linux/ioctl.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

namespace sdma::emulator {
namespace {

using kfd::kBoth, kfd::kIn, kfd::kOut, kfd::Nr, kfd::Way;

constexpr std::size_t kLargest = 512;

std::uint64_t nanoseconds(clockid_t id) noexcept {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

int get_version(Node&, kfd::GetVersion& a) {
  a = {.major = kfd::kMajor, .minor = kfd::kMinor};
  return 0;
}

int create_queue(Node& n, kfd::CreateQueue& a) { return n.queues.create(a); }
int destroy_queue(Node& n, kfd::DestroyQueue& a) { return n.queues.destroy(a.queue_id); }
int update_queue(Node& n, kfd::UpdateQueue& a) { return n.queues.update(a); }

bool known(Node& n, std::uint32_t gpu_id) { return n.memory.index(gpu_id) != n.memory.gpus(); }

int set_memory_policy(Node& n, kfd::SetMemoryPolicy& a) {
  if (a.default_policy > 1 || a.alternate_policy > 1) return EINVAL;
  return known(n, a.gpu_id) ? 0 : EINVAL;
}

int get_clock_counters(Node& n, kfd::GetClockCounters& a) {
  // With an id that is not a GPU, the caller wants only the host's clocks.
  a.gpu = known(n, a.gpu_id) ? host_ticks() : 0;
  a.cpu = nanoseconds(CLOCK_MONOTONIC_RAW);
  a.system = nanoseconds(CLOCK_BOOTTIME);
  a.system_frequency = 1'000'000'000;
  return 0;
}

std::vector<kfd::Aperture> apertures() {
  constexpr std::uint64_t kLds = std::uint64_t{1} << 48, kScratch = std::uint64_t{2} << 48, kWindow = 0xffffffff;
  std::vector<kfd::Aperture> out;
  for (const auto& g : tree().node().gpus)
    out.push_back({.lds_base = kLds,
                   .lds_limit = kLds + kWindow,
                   .scratch_base = kScratch,
                   .scratch_limit = kScratch + kWindow,
                   .gpuvm_base = 0x4000,
                   // Everything that a program can address, because GPU and CPU use the same addresses.
                   .gpuvm_limit = (std::uint64_t{1} << 47) - 1,
                   .gpu_id = g.gpu_id,
                   .pad = 0});
  return out;
}

int get_apertures(Node&, kfd::GetApertures& a) {
  const auto all = apertures();
  for (a.nodes = 0; a.nodes < all.size() && a.nodes < std::size(a.apertures); ++a.nodes)
    a.apertures[a.nodes] = all[a.nodes];
  return 0;
}

int get_apertures_new(Node&, kfd::GetAperturesNew& a) {
  const auto all = apertures();
  const auto room = a.nodes;
  a.nodes = static_cast<std::uint32_t>(all.size());
  if (room == 0) return 0;
  if (room < a.nodes) a.nodes = room;
  return to_user(a.apertures, all.data(), a.nodes * sizeof all[0]) ? 0 : EFAULT;
}

int create_event(Node& n, kfd::CreateEvent& a) {
  if (a.page_offset != 0) {
    // The program has allocated the page of mailboxes, and passes its handle with the first event only.
    auto* o = n.memory.find(a.page_offset);
    // In the machine's memory, and owned by this object alone. A doubled object has half as many pages as it maps.
    const bool whole = o && o->pages && (o->flags & kfd::kGtt) != 0;
    if (!whole || o->pages->bytes < kfd::kSignalEvents * sizeof(std::uint64_t)) return EINVAL;
    if (const int error = n.events.set_page(reinterpret_cast<std::uint64_t*>(o->host))) return error;
    ++o->pins;
  }
  return n.events.create(a);
}
int destroy_event(Node& n, kfd::EventId& a) { return n.events.destroy(a.event_id); }
int set_event(Node& n, kfd::EventId& a) { return n.events.set(a.event_id); }
int reset_event(Node& n, kfd::EventId& a) { return n.events.reset(a.event_id); }

int wait_events(Node& n, kfd::WaitEvents& a) {
  if (a.count > 1u << 16) return ENOMEM;
  std::vector<kfd::EventData> data(a.count);
  const auto bytes = data.size() * sizeof(kfd::EventData);
  if (!from_user(data.data(), a.events, bytes)) return EFAULT;
  const int error = n.events.wait(a, data);
  return error == 0 && !to_user(a.events, data.data(), bytes) ? EFAULT : error;
}

int set_scratch_backing_va(Node& n, kfd::ScratchBacking& a) { return known(n, a.gpu_id) ? 0 : EINVAL; }
int set_trap_handler(Node& n, kfd::SetTrapHandler& a) { return known(n, a.gpu_id) ? 0 : EINVAL; }

int get_tile_config(Node& n, kfd::GetTileConfig& a) {
  if (!known(n, a.gpu_id)) return EINVAL;
  a.tile_count = a.macro_tile_count = a.gb_addr_config = a.banks = a.ranks = 0;
  return 0;
}

int acquire_vm(Node& n, kfd::AcquireVm& a) {
  const auto g = n.memory.index(a.gpu_id);
  const auto device = device_of(static_cast<int>(a.drm_fd));
  if (g == n.memory.gpus() || !device || device->node != &n || !is_drm(*device) || gpu_of_minor(number(*device)) != g)
    return EINVAL;
  n.memory.gpu(g).acquired = true;
  return 0;
}

int alloc_memory(Node& n, kfd::AllocMemory& a) { return n.memory.allocate(a); }
int free_memory(Node& n, kfd::FreeMemory& a) { return n.memory.free(a.handle); }

template <class Fn> int with_gpus(kfd::MapMemory& a, Fn&& fn) {
  if (a.count == 0 || a.count > 64 || a.done > a.count) return EINVAL;
  std::array<std::uint32_t, 64> ids{};
  if (!from_user(ids.data(), a.gpu_ids, a.count * sizeof ids[0])) return EFAULT;
  return fn(std::span<const std::uint32_t>(ids.data(), a.count));
}
int map_memory(Node& n, kfd::MapMemory& a) {
  return with_gpus(a, [&](auto ids) { return n.memory.map(a, ids); });
}
int unmap_memory(Node& n, kfd::MapMemory& a) {
  return with_gpus(a, [&](auto ids) { return n.memory.unmap(a, ids); });
}

int set_cu_mask(Node& n, kfd::SetCuMask& a) {
  if (a.bits == 0 || a.bits % 32 != 0) return EINVAL;
  return n.queues.exists(a.queue_id) ? 0 : EFAULT;
}
int alloc_queue_gws(Node& n, kfd::AllocQueueGws& a) {
  if (const int error = n.queues.set_gws(a.queue_id, a.count != 0)) return error;
  a.first = 0;
  return 0;
}

int set_xnack_mode(Node&, kfd::SetXnackMode& a) {
  if (a.enabled > 0) return EPERM;
  a.enabled = 0;
  return 0;
}

int available_memory(Node& n, kfd::AvailableMemory& a) {
  const auto g = n.memory.index(a.gpu_id);
  if (g == n.memory.gpus()) return EINVAL;
  a.bytes = n.memory.available(g);
  return 0;
}

int get_dmabuf_info(Node& n, kfd::GetDmabufInfo& a) { return n.memory.dmabuf_info(a); }
int import_dmabuf(Node& n, kfd::ImportDmabuf& a) { return n.memory.import_dmabuf(a); }
int export_dmabuf(Node& n, kfd::ExportDmabuf& a) { return n.memory.export_dmabuf(a); }
int import_ipc(Node& n, kfd::ImportIpc& a) { return n.memory.import_ipc(a); }
int export_ipc(Node& n, kfd::ExportIpc& a) { return n.memory.export_ipc(a); }
int runtime_enable(Node& n, kfd::RuntimeEnable& a) {
  const bool enable = (a.mode & 1) != 0;
  if (enable && n.runtime_enabled) return EBUSY;
  n.runtime_enabled = enable;
  return 0;
}

/// The answer to the ioctls of a feature that the kernel lacks.
template <int Error> int refused(Node&, std::uint64_t&) { return Error; }

/// `way`: the direction that the driver defines, not the bits in the caller's number.
struct Call {
  int (*answer)(Node&, void* args){};
  Way way = kBoth;
  bool locked = true;
};

template <auto Fn> struct Typed;
template <class A, int (*Fn)(Node&, A&)> struct Typed<Fn> {
  static_assert(sizeof(A) <= kLargest);
  static constexpr Call call(Way way = kBoth, bool locked = true) {
    return {[](Node& n, void* args) { return Fn(n, *static_cast<A*>(args)); }, way, locked};
  }
};

constexpr auto kCalls = [] {
  std::array<Call, static_cast<std::size_t>(Nr::end)> t{};
  const auto at = [&](Nr nr) -> Call& { return t[static_cast<std::size_t>(nr)]; };
  at(Nr::get_version) = Typed<get_version>::call(kOut);
  at(Nr::create_queue) = Typed<create_queue>::call();
  at(Nr::destroy_queue) = Typed<destroy_queue>::call();
  at(Nr::set_memory_policy) = Typed<set_memory_policy>::call(kIn);
  at(Nr::get_clock_counters) = Typed<get_clock_counters>::call(kBoth, false);
  at(Nr::get_process_apertures) = Typed<get_apertures>::call(kOut);
  at(Nr::update_queue) = Typed<update_queue>::call(kIn);
  at(Nr::create_event) = Typed<create_event>::call();
  at(Nr::destroy_event) = Typed<destroy_event>::call(kIn, false);
  at(Nr::set_event) = Typed<set_event>::call(kIn, false);
  at(Nr::reset_event) = Typed<reset_event>::call(kIn, false);
  at(Nr::wait_events) = Typed<wait_events>::call(kBoth, false);
  for (auto nr : {Nr::dbg_register, Nr::dbg_unregister, Nr::dbg_address_watch, Nr::dbg_wave_control})
    at(nr) = Typed<refused<EPERM>>::call(kIn);
  at(Nr::set_scratch_backing_va) = Typed<set_scratch_backing_va>::call();
  at(Nr::get_tile_config) = Typed<get_tile_config>::call();
  at(Nr::set_trap_handler) = Typed<set_trap_handler>::call(kIn);
  at(Nr::get_process_apertures_new) = Typed<get_apertures_new>::call();
  at(Nr::acquire_vm) = Typed<acquire_vm>::call(kIn);
  at(Nr::alloc_memory) = Typed<alloc_memory>::call();
  at(Nr::free_memory) = Typed<free_memory>::call(kIn);
  at(Nr::map_memory) = Typed<map_memory>::call();
  at(Nr::unmap_memory) = Typed<unmap_memory>::call();
  at(Nr::set_cu_mask) = Typed<set_cu_mask>::call(kIn);
  at(Nr::get_queue_wave_state) = Typed<refused<EINVAL>>::call();
  at(Nr::get_dmabuf_info) = Typed<get_dmabuf_info>::call();
  at(Nr::import_dmabuf) = Typed<import_dmabuf>::call();
  at(Nr::alloc_queue_gws) = Typed<alloc_queue_gws>::call();
  at(Nr::smi_events) = Typed<refused<EPERM>>::call();
  at(Nr::svm) = Typed<refused<EPERM>>::call();  // a kernel built without it
  at(Nr::set_xnack_mode) = Typed<set_xnack_mode>::call();
  at(Nr::criu_op) = Typed<refused<EPERM>>::call();
  at(Nr::available_memory) = Typed<available_memory>::call();
  at(Nr::export_dmabuf) = Typed<export_dmabuf>::call();
  at(Nr::runtime_enable) = Typed<runtime_enable>::call();
  at(Nr::dbg_trap) = Typed<refused<EINVAL>>::call();
  return t;
}();
constexpr std::array kRocmCalls = {Typed<import_ipc>::call(), Typed<export_ipc>::call()};

const Call* call_of(unsigned nr) noexcept {
  if (nr < kCalls.size()) return &kCalls[nr];
  const auto further = nr - static_cast<unsigned>(Nr::ipc_import);
  return further < kRocmCalls.size() ? &kRocmCalls[further] : nullptr;
}

}  // namespace

int kfd_ioctl(Node& n, unsigned long request, void* argument) {
  const auto* found = call_of(_IOC_NR(request));
  if (!found) return ENOTTY;
  const auto& call = *found;
  if (!call.answer) return EINVAL;
  const auto user = reinterpret_cast<std::uint64_t>(argument);
  const std::size_t theirs = _IOC_SIZE(request);
  alignas(8) std::array<std::byte, 1u << _IOC_SIZEBITS> args;
  std::memset(args.data(), 0, theirs > kLargest ? theirs : kLargest);
  if ((call.way & kIn) != 0 && !from_user(args.data(), user, theirs)) return EFAULT;
  int error = 0;
  if (call.locked) {
    const std::lock_guard lock(n.mutex);
    error = call.answer(n, args.data());
  } else {
    error = call.answer(n, args.data());
  }
  if ((call.way & kOut) != 0 && !to_user(user, args.data(), theirs)) return EFAULT;
  return error;
}

}  // namespace sdma::emulator
