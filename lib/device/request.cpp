// SPDX-License-Identifier: MIT
#include "request.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// The memory of this machine, in bytes; 0 if it is not known.
std::uint64_t machine_bytes() noexcept {
  const auto pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 0;
}

Diagnostic no_gpu(std::string where, GpuId g, const Topology& t) {
  return {.where = std::move(where),
          .message = fmt::format("there is no gpu{}", g.value),
          .hint = fmt::format("this node has {} GPUs, numbered from 0", t.gpus.size()),
          .cause = Cause::bad_argument};
}

}  // namespace

std::string place_of(const QueueRequest& r) {
  return r.pick == EnginePick::exact      ? fmt::format("create_queue gpu={} engine={}", r.gpu.value, r.engine.value)
         : r.pick == EnginePick::any_host ? fmt::format("create_queue gpu={} engine=any_host", r.gpu.value)
                                          : fmt::format("create_queue gpu={} engine=any_xgmi", r.gpu.value);
}

std::string place_of(const MemoryRequest& r) {
  return fmt::format("allocate where={} bytes={}", r.where ? fmt::format("gpu{}", r.where->value) : "host", r.bytes);
}

std::uint64_t engines_for(EnginePick pick, const Gpu& g) noexcept {
  const auto live = g.live_engines(), host = g.live_host_engines();
  return pick == EnginePick::any_host ? host : pick == EnginePick::any_xgmi ? live & ~host : live;
}

std::optional<Diagnostic> refuse(const QueueRequest& r, const Topology& t) {
  if (r.gpu.value >= t.gpus.size()) return no_gpu(place_of(r), r.gpu, t);
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{
        .where = place_of(r), .message = std::move(message), .hint = std::move(hint), .cause = Cause::bad_argument};
  };
  const auto& g = t.gpus[r.gpu.value];
  if (r.pick == EnginePick::exact && r.engine.value >= g.engines())
    return refused(
        fmt::format("gpu{} has no engine {}", r.gpu.value, r.engine.value),
        fmt::format(
            "it has {} engines: first {} for the host, then {} for xGMI; topology().engine_for chooses one for a peer",
            g.engines(), g.host_engines, g.xgmi_engines));
  if (r.pick == EnginePick::exact && (g.live_engines() >> r.engine.value & 1) == 0)
    return refused(
        fmt::format("engine {} of gpu{} is dead: nothing would execute the queue", r.engine.value, r.gpu.value),
        "choose another engine: the topology lists the dead ones, and engine_for (in a schedule: peer=) avoids them");
  if (r.pick != EnginePick::exact && engines_for(r.pick, g) == 0)
    return refused(fmt::format("gpu{} has no live engine of that kind", r.gpu.value),
                   fmt::format("it has {} for the host and {} for xGMI", g.host_engines, g.xgmi_engines));
  if (!std::has_single_bit(r.ring_bytes) || r.ring_bytes < kMinRing || r.ring_bytes > kMaxRing)
    return refused(fmt::format("a ring cannot have {} bytes", r.ring_bytes),
                   fmt::format("use a power of two from {} to {}", kMinRing, kMaxRing));
  if (r.priority < -3 || r.priority > 3)
    return refused(fmt::format("there is no priority {}", r.priority), "use -3 to 3");
  return {};
}

std::optional<Diagnostic> refuse(const MemoryRequest& r, const Topology& t) {
  if (r.where && r.where->value >= t.gpus.size()) return no_gpu(place_of(r), *r.where, t);
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{
        .where = place_of(r), .message = std::move(message), .hint = std::move(hint), .cause = Cause::bad_argument};
  };
  if (r.bytes == 0) return refused("the request is for 0 bytes", "request at least 1 byte");
  if (!std::has_single_bit(r.alignment) || r.alignment > std::uint64_t{1} << 40)
    return refused(fmt::format("the alignment {} is not a power of two up to 2^40", r.alignment),
                   "omit it for pages of 4096 bytes");
  const auto most = r.where ? t.gpus[r.where->value].memory_bytes : machine_bytes();
  if (most != 0 && r.bytes > most) {
    auto none =
        refused(fmt::format("out of memory: there are {} bytes in total", most), "free memory, or request less");
    none.cause = Cause::no_memory;
    return none;
  }
  return {};
}

void load_bytes(const std::byte* from, std::span<std::byte> to) noexcept {
  for (std::size_t i = 0; i < to.size();) {
    auto* at = const_cast<std::byte*>(from + i);
    if (to.size() - i >= 4 && reinterpret_cast<std::uintptr_t>(at) % 4 == 0) {
      const auto v = atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load(std::memory_order_acquire);
      std::memcpy(to.data() + i, &v, 4);
      i += 4;
    } else {
      to[i] = std::byte{atomic_ref(*reinterpret_cast<unsigned char*>(at)).load(std::memory_order_acquire)};
      ++i;
    }
  }
}

}}}  // namespace sdma::v0_3::detail

namespace sdma { inline namespace v0_3 {

Device::~Device() = default;
ForwardingDevice::~ForwardingDevice() = default;

Result<SharedHandle, Diagnostic> Device::share(const Memory&) {
  return Diagnostic{.where = "share",
                    .message = "this device cannot share memory with other processes",
                    .hint = "docs/processes.md lists the devices that can"};
}
Result<Memory, Diagnostic> Device::open_shared(const SharedHandle&) {
  return Diagnostic{.where = "open_shared",
                    .message = "this device cannot open memory of other processes",
                    .hint = "docs/processes.md lists the devices that can"};
}
namespace {
Diagnostic cannot(std::string where, std::string message) {
  return {.where = std::move(where),
          .message = std::move(message),
          .hint = "docs/processes.md lists the devices that can",
          .cause = Cause::bad_argument};
}
}  // namespace
Result<Dmabuf, Diagnostic> Device::export_dmabuf(const Memory&) {
  return cannot("export_dmabuf", "this device makes no DMABUFs");
}
Result<Memory, Diagnostic> Device::import_dmabuf(const DmabufRequest&) {
  return cannot("import_dmabuf", "this device takes no DMABUFs");
}
Result<IpcHandle, Diagnostic> Device::export_ipc(const Memory&) {
  return cannot("export_ipc", "this device has no IPC handles");
}
Result<Memory, Diagnostic> Device::import_ipc(const IpcHandle&, std::optional<GpuId>, std::uint64_t) {
  return cannot("import_ipc", "this device has no IPC handles");
}
Dmabuf::~Dmabuf() {
  if (fd_ >= 0) ::close(fd_);
}
std::optional<MemoryOwner> Device::origin(GpuVa) const { return {}; }

Errc Device::allow(GpuVa, std::uint64_t, Deadline) noexcept { return Errc::bad_argument; }

Result<Signal, Diagnostic> Device::signal_at(const Memory& m, std::uint64_t offset) const {
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{
        .where = fmt::format("signal_at offset={:#x}", offset), .message = std::move(message), .hint = std::move(hint)};
  };
  if (offset % 8 != 0) return refused("the offset is not a multiple of 8", "a signal is an aligned word of 64 bits");
  if (m.bytes() < 8 || offset > m.bytes() - 8)
    return refused(fmt::format("the memory has {} bytes", m.bytes()), "a signal needs the 8 bytes at its offset");
  const auto host = m.host();
  if (host.empty()) return refused("the host cannot reach this memory", "allocate it with host_access");
  return hooked({.word = reinterpret_cast<std::uint64_t*>(host.data() + offset), .va = m.va() + offset});
}

}}  // namespace sdma::v0_3
