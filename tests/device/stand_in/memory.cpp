// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include "host_memory.hpp"
#include "virtual_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace stand_in {

Where where(Pointer at) noexcept {
  if (VirtualMemory::get().reserved(at)) return Where::gpu;
  return HostMemory::get().find(at, 1) ? Where::pinned : Where::pageable;
}

std::optional<Piece> find_memory(Pointer at, std::size_t bytes, int device, Use use) {
  if (auto p = VirtualMemory::get().find(at, bytes, device, use)) return p;
  return HostMemory::get().find(at, bytes);
}

bool readable(Pointer at) noexcept {
  char byte = 0;
  const iovec to{&byte, 1}, from{reinterpret_cast<void*>(at), 1};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

}  // namespace stand_in
