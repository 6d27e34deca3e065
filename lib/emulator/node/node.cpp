// SPDX-License-Identifier: MIT
#include "node.hpp"

#include "../inside.hpp"
#include "../node_options.hpp"
#include "../trace.hpp"

#include <pthread.h>
#include <atomic>

namespace sdma::emulator {
namespace {

std::atomic<Node*> the_node{nullptr};
pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/// In the child, the parent's node is dropped without its destructor,
/// because its locks may be held and its threads do not exist.
void forget() noexcept {
  if (auto* n = the_node.exchange(nullptr)) {
    n->arena.abandon();
    n->shared.abandon();
    n->smi.abandon();
    n->debug.abandon();
    n->debug_port.abandon();
    n->debugged.abandon();
  }
  making = PTHREAD_MUTEX_INITIALIZER;
}
void before_fork() noexcept {
  pthread_mutex_lock(&making);
  if (auto* n = the_node.load()) {
    n->arena.before_fork();
    n->smi.before_fork();
  }
}
void after_fork() noexcept {
  if (auto* n = the_node.load()) {
    n->smi.after_fork();
    n->arena.after_fork();
  }
  pthread_mutex_unlock(&making);
}

}  // namespace

Node::Node(Drive drive)
    : shared(options().machine),
      memory(arena, shared, tree().node()),
      queues(memory, events, exceptions, tree().node(), drive),
      debug(exceptions, &queues, tree().node(), drive) {
  trace_own_addresses();
}

int Node::open_drm(std::uint32_t minor, int flags) {
  const std::lock_guard lock(mutex);
  drm_files.sweep(arena);
  return arena.open_node(drm_tag(minor, ++serial_), flags);
}

Node* Node::made() noexcept { return the_node.load(std::memory_order_acquire); }

Node* Node::get() {
  if (auto* n = made()) return n;
  pthread_mutex_lock(&making);
  const std::unique_ptr<pthread_mutex_t, void (*)(pthread_mutex_t*)> locked(
      &making, [](pthread_mutex_t* m) { pthread_mutex_unlock(m); });
  if (auto* n = made()) return n;
  static const int once = pthread_atfork(before_fork, after_fork, forget);
  (void)once;
  auto n = std::make_unique<Node>();
  if (n->arena.fd() < 0) return nullptr;
  the_node.store(n.get(), std::memory_order_release);
  n->debug_port.open(*n);
  return n.release();
}

std::optional<Device> device_of(int fd) noexcept {
  const Inside work;
  if (!work.first()) return std::nullopt;
  auto* n = Node::made();
  const auto d = descriptor_of(fd, n ? &n->arena : nullptr);
  if (!d) return std::nullopt;
  return Device{*d, d->ours ? n : nullptr};
}

}  // namespace sdma::emulator
