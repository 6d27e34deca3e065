// SPDX-License-Identifier: MIT
// The driver's debugfs, which only root may read:
//
//   /sys/kernel/debug/kfd/mqds     the descriptors of the sDMA queues of all processes that use a node
//
// The text is that of sdma/dump/descriptors.hpp. Not shown: descriptors
// of compute queues, and `hqds`, the registers of mapped queues.
#include "../../../kfd/abi.hpp"
#include "../../real.hpp"
#include "../shown.hpp"
#include "parts.hpp"
#include "processes.hpp"

#include "sdma/dump/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <memory>

namespace sdma::emulator {
namespace {

constexpr const char* kMqds = "/sys/kernel/debug/kfd/mqds";
constexpr int kAttempts = 1000;

/// The queues of one moment; none if they change all the time.
bool read_queues(int arena, ShownQueues& out) noexcept {
  const auto version = [&] {
    std::uint64_t v = 1;
    return SDMA_REAL(pread)(arena, &v, sizeof v, kShownQueuesOffset) == sizeof v ? v : 1;
  };
  for (int i = 0; i < kAttempts; ++i) {
    const auto before = version();
    if (before % 2 == 0 && SDMA_REAL(pread)(arena, &out, sizeof out, kShownQueuesOffset) == sizeof out &&
        version() == before)
      return true;
  }
  return false;
}

QueueDescriptor descriptor_of(const ShownQueue& q, std::uint64_t pid) {
  QueueDescriptor d{.process = static_cast<std::uint32_t>(pid)};
  if (q.gpu < tree().node().gpus.size()) d.device = tree().node().gpus[q.gpu].gpu_id;
  constexpr std::uint64_t kRegisterAlignment = 256;  // the register has no room for the low bits
  d.set("ring_base", q.ring - q.ring % kRegisterAlignment);
  d.set("ring_bytes", q.ring_bytes);
  d.set("rptr", q.rptr);
  d.set("wptr", q.wptr);
  d.set("rptr_va", q.rptr_va);
  d.set("engine", q.engine);
  d.set("queue", q.slot);
  return d;
}

std::string mqds(std::uint64_t) {
  QueueDescriptors all;
  const auto shown = std::make_unique<ShownQueues>();
  for (const auto pid : node_processes()) {
    const int arena = open_arena(pid);
    if (arena < 0) continue;
    if (read_queues(arena, *shown))
      for (std::size_t i = 0; i < std::min<std::size_t>(shown->count, shown->queues.size()); ++i)
        all.queues.push_back(descriptor_of(shown->queues[i], pid));
    ::close(arena);
  }
  return to_debugfs(all);
}

}  // namespace

void add_debugfs(Tree& t) { t.add(kMqds, {.kind = Kind::text, .root_only = true, .live = mqds}); }

}  // namespace sdma::emulator
