#include "node.hpp"

#include <pthread.h>
#include <atomic>

namespace sdma::emulator {
namespace {

std::atomic<Node*> the_node{nullptr};
pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/// In the child, the parent's node is dropped without its destructor, because its locks may be held and its threads do not exist.
void forget() noexcept {
  if (auto* n = the_node.exchange(nullptr)) n->arena.abandon();
  making = PTHREAD_MUTEX_INITIALIZER;
}

}  // namespace

Node::Node(Drive drive) : memory(arena, tree().node()), queues(memory, events, tree().node(), drive) {}

Node* Node::made() noexcept { return the_node.load(std::memory_order_acquire); }

Node* Node::get() {
  if (auto* n = made()) return n;
  pthread_mutex_lock(&making);
  auto* n = made();
  if (!n) {
    static const int once =
        pthread_atfork([] { pthread_mutex_lock(&making); }, [] { pthread_mutex_unlock(&making); }, forget);
    (void)once;
    n = new Node;
    if (n->arena.fd() < 0) {
      delete n;
      n = nullptr;
    }
    the_node.store(n, std::memory_order_release);
  }
  pthread_mutex_unlock(&making);
  return n;
}

std::optional<Device> device_of(int fd) noexcept {
  auto* n = Node::made();
  const auto d = descriptor_of(fd, n ? &n->arena : nullptr);
  if (!d) return std::nullopt;
  return Device{*d, d->ours ? n : nullptr};
}

}  // namespace sdma::emulator
