#include "node.hpp"

#include "../real.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <atomic>
#include <cstring>

#include <cstdio>

namespace sdma::emulator {
namespace {

std::atomic<Node*> the_node{nullptr};
pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/// In the child: the parent's node is not ours. It is forgotten, not destroyed: its locks may be held, its threads are gone.
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

bool names_arena(const char* link) noexcept {
  char name[64], ours[32];
  const auto length = SDMA_REAL(readlink)(link, name, sizeof name - 1);
  if (length <= 0) return false;
  name[length] = 0;
  std::snprintf(ours, sizeof ours, "/memfd:%s ", kMemfdName);
  return std::strncmp(name, ours, std::strlen(ours)) == 0;
}

std::optional<Device> device_of(int fd) noexcept {
  struct stat s {};
  // Our memfd is a regular file without a name; almost everything else is not.
  if (fd < 0 || SDMA_REAL(fstat)(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_nlink != 0) return std::nullopt;
  auto* n = Node::made();
  const bool own = n && n->arena.owns(s.st_dev, s.st_ino);
  if (!own) {
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (!names_arena(link)) return std::nullopt;
  }
  const auto at = SDMA_REAL(lseek)(fd, 0, SEEK_CUR);
  return Device{own ? n : nullptr, at < 0 ? 0 : static_cast<std::uint64_t>(at)};
}

}  // namespace sdma::emulator
