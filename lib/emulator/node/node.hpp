#pragma once
// What one process has of the node: its memory, events and queues. Made when the process first opens a device of ours; it
// lives until the process ends, as it does in the kernel, whatever descriptors are closed meanwhile.
//
//   open("/dev/kfd")    -> Node::get().open_node(0, flags)
//   ioctl(fd, 'K' ...)  -> device_of(fd) -> kfd_ioctl(node, ...)
//
//   fork   the child starts without a node: descriptors that it inherited answer EBADF, as the kernel does, and the first
//          open makes a node of its own. Locks and threads of the parent are left alone.
//   exit   nothing to do: the arena goes with the last descriptor, threads go with the process.
//
// Locks: `mutex` serialises ioctls, except waiting for events; no engine thread ever takes it.
#include "../queues/events.hpp"
#include "arena.hpp"
#include "memory.hpp"
#include "queues.hpp"
#include "tree.hpp"

#include <mutex>
#include <optional>

namespace sdma::emulator {

class Node {
 public:
  /// One that is nobody's yet: for tests, and for `get`. One whose servers have threads is never destroyed.
  explicit Node(Drive = Drive::thread);
  /// That of this process, made if there is none; null if there is no memory for it.
  static Node* get();
  /// That of this process if it was made.
  static Node* made() noexcept;

  int open_node(std::uint64_t tag, int flags) const noexcept { return arena.open_node(tag, flags); }

  Arena arena;
  std::mutex mutex;
  Events events;
  Memory memory;
  Queues queues;
  bool runtime_enabled = false;  ///< a runtime has said so to debuggers; once a process
};

/// A descriptor of a device, or of memory that was passed on, and the node of this process that it belongs to.
struct Device : Descriptor {
  Node* node{};  ///< null: inherited through a fork, or another process's
};
std::optional<Device> device_of(int fd) noexcept;

/// Answers an ioctl as the kernel would: 0 or an errno.
int kfd_ioctl(Node&, unsigned long request, void* argument);
/// `process`: null in a forked child that has opened no device yet, and so uses none of the GPU's memory.
int drm_ioctl(Node* process, std::uint32_t minor, unsigned long request, void* argument);
/// Which GPU a DRM node with this minor is of: a primary or a render node; none of ours: their number or more.
std::size_t gpu_of_minor(std::uint32_t minor) noexcept;

}  // namespace sdma::emulator
