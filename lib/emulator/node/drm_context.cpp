// SPDX-License-Identifier: MIT
// Contexts of a DRM file. The node has no rings of graphics that a
// context could submit to, so no context ever causes or sees a reset.
#include "drm_file.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

namespace sdma::emulator {
namespace {

constexpr std::size_t kMostContexts = 4096;

bool capable(unsigned capability) noexcept {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[capability / 32].effective >> capability % 32 & 1) != 0;
}

}  // namespace

int DrmFile::context(drm::Context& a) {
  using drm::Context;
  const auto it = contexts_.find(a.id);
  switch (a.op) {
    case Context::kAllocate: {
      if (a.flags != 0) return EINVAL;
      // A priority that does not exist is taken as the normal one, as in the kernel.
      const bool high = a.priority > Context::kNormalPriority && a.priority <= Context::kHighestPriority;
      if (high && !capable(CAP_SYS_NICE)) return EACCES;
      if (contexts_.size() >= kMostContexts) return ENOSPC;
      std::uint32_t id = 1;
      for (const auto& [used, clocks] : contexts_) id += used == id;
      contexts_.emplace(id, 0);
      a = {.op = id};
      return 0;
    }
    case Context::kFree:
      if (a.flags != 0 || it == contexts_.end()) return EINVAL;
      contexts_.erase(it);
      return 0;
    case Context::kQueryState:
    case Context::kQueryState2:
      if (a.flags != 0 || it == contexts_.end()) return EINVAL;
      a = {};
      return 0;
    case Context::kGetClocks:
      if (a.flags != 0 || it == contexts_.end()) return EINVAL;
      a = {.op = it->second};
      return 0;
    case Context::kSetClocks:
      if ((a.flags & ~Context::kClocksMask) != 0 || a.flags > Context::kHighestClocks || it == contexts_.end())
        return EINVAL;
      it->second = a.flags;
      return 0;
    default: return EINVAL;
  }
}

}  // namespace sdma::emulator
