// SPDX-License-Identifier: MIT
// Pinned host memory, and the GPUs' virtual memory, which other processes may open.
#include "calls.hpp"
#include "context.hpp"
#include "host_memory.hpp"
#include "settings.hpp"
#include "virtual_memory.hpp"

namespace stand_in {
namespace {

constexpr unsigned kHostFlags = 7;  ///< portable, mapped, write-combined

/// A live device, as far as it has a context.
Status usable(const abi::Location& l) {
  if (l.type != 1 || l.id < 0 || l.id >= settings().gpus) return kInvalidValue;
  const auto* c = context_of(l.id);
  return c ? c->status() : kSuccess;
}

Status host_allocate(void** out, std::size_t bytes, unsigned flags) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  return out && flags <= kHostFlags ? HostMemory::get().allocate(out, bytes) : kInvalidValue;
}

Status host_free(void* at) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  if (where(reinterpret_cast<Pointer>(at)) != Where::pinned) return kInvalidValue;
  wait_for_all();
  return HostMemory::get().free(at);
}

Status granularity(std::size_t* out, const abi::MemoryProperties* p, int option) {
  if (!out || !p || p->type != 1 || option < 0 || option > 1) return kInvalidValue;
  if (const auto code = usable(p->location)) return code;
  *out = VirtualMemory::kGranularity;
  return kSuccess;
}

Status create(abi::Handle* out, std::size_t bytes, const abi::MemoryProperties* p, unsigned long long flags) {
  if (!out || !p || p->type != 1 || (p->handle_types & ~abi::kFileDescriptor) != 0 || p->windows || flags != 0)
    return kInvalidValue;
  if (const auto code = usable(p->location)) return code;
  return VirtualMemory::get().create(out, bytes, p->location.id, p->handle_types != 0);
}

Status release(abi::Handle h) { return VirtualMemory::get().release(h); }

Status export_memory(void* to, abi::Handle h, int type, unsigned long long flags) {
  if (!to || type != abi::kFileDescriptor || flags != 0) return kInvalidValue;
  return VirtualMemory::get().export_file(h, static_cast<int*>(to));
}

Status import_memory(abi::Handle* out, void* from, int type) {
  if (!out || type != abi::kFileDescriptor) return kInvalidValue;
  return VirtualMemory::get().import_file(out, static_cast<int>(reinterpret_cast<std::intptr_t>(from)));
}

Status reserve(Pointer* out, std::size_t bytes, std::size_t alignment, Pointer at, unsigned long long flags) {
  return out && flags == 0 ? VirtualMemory::get().reserve(out, bytes, alignment, at) : kInvalidValue;
}

Status unreserve(Pointer at, std::size_t bytes) { return VirtualMemory::get().unreserve(at, bytes); }

Status map(Pointer at, std::size_t bytes, std::size_t offset, abi::Handle h, unsigned long long flags) {
  return flags == 0 ? VirtualMemory::get().map(at, bytes, offset, h) : kInvalidValue;
}

Status unmap(Pointer at, std::size_t bytes) { return VirtualMemory::get().unmap(at, bytes); }

Status set_access(Pointer at, std::size_t bytes, const abi::MemoryAccess* access, std::size_t count) {
  if (!access || count == 0) return kInvalidValue;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto code = usable(access[i].location)) return code;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto code = VirtualMemory::get().set_access(at, bytes, access[i].location.id, access[i].flags))
      return code;
  return kSuccess;
}

}  // namespace

std::span<const Entry> memory_calls() {
  static const Entry all[] = {
      {"cuMemHostAlloc", function<"cuMemHostAlloc", host_allocate>()},
      {"cuMemFreeHost", function<"cuMemFreeHost", host_free>()},
      {"cuMemGetAllocationGranularity", function<"cuMemGetAllocationGranularity", granularity>()},
      {"cuMemCreate", function<"cuMemCreate", create>()},
      {"cuMemRelease", function<"cuMemRelease", release>()},
      {"cuMemExportToShareableHandle", function<"cuMemExportToShareableHandle", export_memory>()},
      {"cuMemImportFromShareableHandle", function<"cuMemImportFromShareableHandle", import_memory>()},
      {"cuMemAddressReserve", function<"cuMemAddressReserve", reserve>()},
      {"cuMemAddressFree", function<"cuMemAddressFree", unreserve>()},
      {"cuMemMap", function<"cuMemMap", map>()},
      {"cuMemUnmap", function<"cuMemUnmap", unmap>()},
      {"cuMemSetAccess", function<"cuMemSetAccess", set_access>()},
  };
  return all;
}

}  // namespace stand_in
