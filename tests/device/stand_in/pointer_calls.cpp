// SPDX-License-Identifier: MIT
// Memory as cudaMalloc and frameworks have it, host memory that is pinned later, and what the driver says of a pointer.
#include "calls.hpp"
#include "context.hpp"
#include "host_memory.hpp"
#include "virtual_memory.hpp"

namespace stand_in {
namespace {

Status allocate(Pointer* out, std::size_t bytes) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  return out && bytes != 0 ? VirtualMemory::get().allocate(out, bytes, c->device()) : kInvalidValue;
}

Status free_gpu(Pointer at) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  wait_for_all();
  return VirtualMemory::get().free(at);
}

Status host_register(void* at, std::size_t bytes, unsigned flags) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  const auto p = reinterpret_cast<Pointer>(at);
  if (bytes == 0 || flags > 3 || !readable(p) || !readable(p + bytes - 1)) return kInvalidValue;
  return HostMemory::get().pin(at, bytes);
}

Status host_unregister(void* at) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  if (!HostMemory::get().registered(at)) return kNotRegistered;
  wait_for_all();
  return HostMemory::get().free(at);
}

Status pointer_attribute(void* out, int attribute, Pointer at) {
  const auto gpu = VirtualMemory::get().range(at);
  const auto host = gpu ? std::nullopt : HostMemory::get().range(at);
  if (!out || (!gpu && !host)) return kInvalidValue;
  switch (attribute) {
    case abi::kMemoryType: *static_cast<unsigned*>(out) = gpu ? 2 : abi::kHostMemory; return kSuccess;
    case abi::kOrdinalOf: *static_cast<int*>(out) = gpu ? gpu->device : 0; return kSuccess;
    case abi::kRangeStart: *static_cast<Pointer*>(out) = gpu ? gpu->start : host->first; return kSuccess;
    case abi::kRangeBytes: *static_cast<std::size_t*>(out) = gpu ? gpu->bytes : host->second; return kSuccess;
  }
  return kInvalidValue;
}

Status enable_peer(abi::Context of, unsigned flags) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  const auto* const peer = known_context(of);
  if (!peer || peer == c || flags != 0) return kInvalidValue;
  return VirtualMemory::get().open_way(c->device(), peer->device()) ? kSuccess : abi::kPeerAlreadyEnabled;
}

}  // namespace

std::span<const Entry> pointer_calls() {
  static const Entry all[] = {
      {"cuMemAlloc", function<"cuMemAlloc", allocate>()},
      {"cuMemFree", function<"cuMemFree", free_gpu>()},
      {"cuMemHostRegister", function<"cuMemHostRegister", host_register>()},
      {"cuMemHostUnregister", function<"cuMemHostUnregister", host_unregister>()},
      {"cuPointerGetAttribute", function<"cuPointerGetAttribute", pointer_attribute>()},
      {"cuCtxEnablePeerAccess", function<"cuCtxEnablePeerAccess", enable_peer>()},
  };
  return all;
}

}  // namespace stand_in
