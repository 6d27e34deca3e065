// SPDX-License-Identifier: MIT
// The table of KFD ioctls: the argument and the handler of each number. The caller gives the size of its argument:
// fields beyond it are zero on entry, and are not written back.
#include "../no_memory.hpp"
#include "../node_options.hpp"
#include "node.hpp"
#include "user.hpp"

#include "../../engine/pipeline.hpp"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <span>
#include <vector>

namespace sdma::emulator {
namespace {

using kfd::kBoth, kfd::kIn, kfd::kNone, kfd::kOut, kfd::Nr, kfd::Way;

constexpr std::size_t kLargest = 512;

std::uint64_t nanoseconds(clockid_t id) noexcept {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

int get_version(Node&, kfd::GetVersion& a) {
  a = {.major = kfd::kMajor, .minor = options().kfd_minor};
  return 0;
}

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
    if (!whole || o->pages->info.bytes < kfd::kSignalEvents * sizeof(std::uint64_t)) return EINVAL;
    if (const int error = n.events.create(a, reinterpret_cast<std::uint64_t*>(o->host))) return error;
    ++o->pins;
    return 0;
  }
  return n.events.create(a, nullptr, n.events.has_page() ? nullptr : n.memory.event_page());
}

int wait_events(Node& n, kfd::WaitEvents& a) {
  if (a.count > 1u << 16) return ENOMEM;
  std::vector<kfd::EventData> data(a.count);
  const auto bytes = data.size() * sizeof(kfd::EventData);
  if (!from_user(data.data(), a.events, bytes)) return EFAULT;
  const int error = n.events.wait(a, data);
  return error == 0 && !to_user(a.events, data.data(), bytes) ? EFAULT : error;
}

int get_tile_config(Node& n, kfd::GetTileConfig& a) {
  if (!known(n, a.gpu_id)) return EINVAL;
  a.tile_count = a.macro_tile_count = a.gb_addr_config = a.banks = a.ranks = 0;
  return 0;
}

int acquire_vm(Node& n, kfd::AcquireVm& a) {
  const auto g = n.memory.index(a.gpu_id);
  const auto device = device_of(static_cast<int>(a.drm_fd));
  if (g == n.memory.gpus() || SDMA_REAL(fcntl)(static_cast<int>(a.drm_fd), F_GETFD) < 0) return EINVAL;
  const bool ours = device && device->node == &n && is_drm(*device) && gpu_of_minor(minor_of(*device)) == g;
  if (!ours) return n.memory.gpu(g).acquired ? EBUSY : EINVAL;
  if (const int error = n.drm_files.acquire(serial_of(*device), g)) return error;
  n.smi.acquired(a.gpu_id);
  return 0;
}

/// A second context of the process, with queues and memory of its own, is one that this node does not have: as when the
/// kernel has no memory for it.
int create_process(Node&, std::uint64_t&) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    std::fprintf(stderr, "sdma emulator: CREATE_PROCESS is refused: a process has one context on this node\n");
  return ENOMEM;
}

int profile(Node& n, kfd::Profiler& a) {
  switch (static_cast<kfd::ProfilerOp>(a.op)) {
    case kfd::ProfilerOp::version: a.version = kfd::kProfilerVersion; return 0;
    // There are no counters to reserve or to switch on.
    case kfd::ProfilerOp::counters: return known(n, a.counters.gpu_id) ? 0 : EINVAL;
    case kfd::ProfilerOp::pc_sample: break;
  }
  return EINVAL;
}

/// As many attributes as `count` says follow the arguments.
int svm(Node& n, kfd::Svm& a) {
  const std::span<kfd::SvmAttribute> attributes(reinterpret_cast<kfd::SvmAttribute*>(&a + 1), a.count);
  switch (a.op) {
    case kfd::SvmOp::set: return n.svm.set(a.begin, a.bytes, attributes);
    case kfd::SvmOp::get: return n.svm.get(a.begin, a.bytes, attributes);
  }
  return EINVAL;
}
/// Whether the caller has passed all of them.
bool whole(const std::byte* args, std::size_t bytes) noexcept {
  kfd::Svm a{};
  std::memcpy(&a, args, sizeof a);
  return bytes >= sizeof a && a.count <= (bytes - sizeof a) / sizeof(kfd::SvmAttribute);
}

int smi_events(Node& n, kfd::SmiEvents& a) {
  if (!known(n, a.gpu_id)) return EINVAL;
  const int fd = n.smi.open(a.gpu_id);
  if (fd < 0) return -fd;
  a.fd = static_cast<std::uint32_t>(fd);
  return 0;
}

template <auto Change> int change_mapping(Node& n, kfd::MapMemory& a) {
  if (a.count == 0 || a.count > 64 || a.done > a.count) return EINVAL;
  std::array<std::uint32_t, 64> ids{};
  if (!from_user(ids.data(), a.gpu_ids, a.count * sizeof ids[0])) return EFAULT;
  return (n.memory.*Change)(a, std::span(ids).first(a.count));
}

int set_cu_mask(Node& n, kfd::SetCuMask& a) {
  constexpr std::uint32_t kMostBits = 1024;
  std::array<std::byte, kMostBits / 8> mask{};
  if (a.bits == 0 || a.bits % 32 != 0) return EINVAL;
  if (!from_user(mask.data(), a.mask, std::min(a.bits, kMostBits) / 8)) return EFAULT;
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

int runtime_enable(Node& n, kfd::RuntimeEnable& a) {
  std::unique_lock lock(n.mutex);
  return n.debug.set_runtime(a, lock);
}

/// `way`: the direction that the driver defines, not the bits in the caller's number. `locked`: under the node's lock.
struct Call {
  int (*answer)(Node&, void* args){};
  Way way = kBoth;
  bool locked = true;
};

template <class Args> Args args_of(int (*)(Node&, Args&));
/// A row of the table. `Answer`: int(Node&, Args&).
template <auto Answer> constexpr Call call(Way way = kBoth, bool locked = true) {
  using Args = decltype(args_of(+Answer));
  static_assert(sizeof(Args) <= kLargest);
  return {[](Node& n, void* args) { return Answer(n, *static_cast<Args*>(args)); }, way, locked};
}

/// The answer to the ioctls of a feature that the kernel lacks.
template <int Error> int refused(Node&, std::uint64_t&) { return Error; }
/// The answer to the ioctls that set what this node does not have.
template <class Args> int ignored(Node& n, Args& a) { return known(n, a.gpu_id) ? 0 : EINVAL; }

constexpr auto kCalls = [] {
  using namespace kfd;
  std::array<Call, static_cast<std::size_t>(Nr::end)> t{};
  const auto at = [&](Nr nr) -> Call& { return t[static_cast<std::size_t>(nr)]; };
  at(Nr::get_version) = call<get_version>(kOut);
  at(Nr::create_queue) = call<[](Node& n, CreateQueue& a) { return n.queues.create(a); }>();
  at(Nr::destroy_queue) = call<[](Node& n, DestroyQueue& a) { return n.queues.destroy(a.queue_id); }>();
  at(Nr::set_memory_policy) = call<set_memory_policy>(kIn);
  at(Nr::get_clock_counters) = call<get_clock_counters>(kBoth, false);
  at(Nr::get_process_apertures) = call<get_apertures>(kOut);
  at(Nr::update_queue) = call<[](Node& n, UpdateQueue& a) { return n.queues.update(a); }>(kIn);
  at(Nr::create_event) = call<create_event>();
  at(Nr::destroy_event) = call<[](Node& n, EventId& a) { return n.events.destroy(a.event_id); }>(kIn, false);
  at(Nr::set_event) = call<[](Node& n, EventId& a) { return n.events.set(a.event_id); }>(kIn, false);
  at(Nr::reset_event) = call<[](Node& n, EventId& a) { return n.events.reset(a.event_id); }>(kIn, false);
  at(Nr::wait_events) = call<wait_events>(kBoth, false);
  for (auto nr : {Nr::dbg_register, Nr::dbg_unregister, Nr::dbg_address_watch, Nr::dbg_wave_control})
    at(nr) = call<refused<EPERM>>(kIn);
  at(Nr::set_scratch_backing_va) = call<ignored<ScratchBacking>>();
  at(Nr::get_tile_config) = call<get_tile_config>();
  at(Nr::set_trap_handler) = call<ignored<SetTrapHandler>>(kIn);
  at(Nr::get_process_apertures_new) = call<get_apertures_new>();
  at(Nr::acquire_vm) = call<acquire_vm>(kIn);
  at(Nr::alloc_memory) = call<[](Node& n, AllocMemory& a) { return n.memory.allocate(a); }>();
  at(Nr::free_memory) = call<[](Node& n, FreeMemory& a) { return n.memory.free(a.handle); }>(kIn);
  at(Nr::map_memory) = call<change_mapping<&Memory::map>>();
  at(Nr::unmap_memory) = call<change_mapping<&Memory::unmap>>();
  at(Nr::set_cu_mask) = call<set_cu_mask>(kIn);
  at(Nr::get_queue_wave_state) = call<[](Node& n, QueueWaveState& a) { return n.queues.wave_state(a); }>();
  at(Nr::get_dmabuf_info) = call<[](Node& n, GetDmabufInfo& a) { return n.memory.dmabuf_info(a); }>();
  at(Nr::import_dmabuf) = call<[](Node& n, ImportDmabuf& a) { return n.memory.import_dmabuf(a); }>();
  at(Nr::alloc_queue_gws) = call<alloc_queue_gws>();
  at(Nr::smi_events) = call<smi_events>();
  at(Nr::svm) = call<svm>();
  at(Nr::set_xnack_mode) = call<set_xnack_mode>();
  at(Nr::criu_op) = call<refused<EPERM>>();
  at(Nr::available_memory) = call<available_memory>();
  at(Nr::export_dmabuf) = call<[](Node& n, ExportDmabuf& a) { return n.memory.export_dmabuf(a); }>();
  at(Nr::runtime_enable) = call<runtime_enable>(kBoth, false);
  at(Nr::dbg_trap) = call<debug_trap>(kBoth, false);
  at(Nr::create_process) = call<create_process>(kNone);
  at(Nr::profiler) = call<profile>();
  return t;
}();
constexpr std::array kRocmCalls = {call<[](Node& n, kfd::ImportIpc& a) { return n.memory.import_ipc(a); }>(),
                                   call<[](Node& n, kfd::ExportIpc& a) { return n.memory.export_ipc(a); }>()};

const Call* call_of(unsigned nr) noexcept {
  if (nr < kfd::end_of(options().kfd_minor)) return &kCalls[nr];
  const auto further = nr - static_cast<unsigned>(Nr::ipc_import);
  return further < kRocmCalls.size() ? &kRocmCalls[further] : nullptr;
}

}  // namespace

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

int kfd_ioctl(Node& n, unsigned long request, void* argument) {
  const auto* found = call_of(_IOC_NR(request));
  if (!found) return ENOTTY;
  if (!found->answer) return EINVAL;
  const auto user = reinterpret_cast<std::uint64_t>(argument);
  const std::size_t theirs = _IOC_SIZE(request);
  alignas(8) std::array<std::byte, 1u << _IOC_SIZEBITS> args;
  std::memset(args.data(), 0, theirs > kLargest ? theirs : kLargest);
  if ((found->way & kIn) != 0 && !from_user(args.data(), user, theirs)) return EFAULT;
  if (_IOC_NR(request) == static_cast<unsigned>(Nr::svm) && !whole(args.data(), theirs)) return EINVAL;
  std::unique_lock lock(n.mutex, std::defer_lock);
  if (found->locked) lock.lock();
  const int error = errno_of([&] { return found->answer(n, args.data()); });
  if (found->locked) lock.unlock();
  if ((found->way & kOut) != 0 && !to_user(user, args.data(), theirs)) return EFAULT;
  return error;
}

}  // namespace sdma::emulator
