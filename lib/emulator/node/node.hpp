// SPDX-License-Identifier: MIT
#pragma once
// The state of the node for one process: its memory, events and queues. It is created when the process first opens one
// of our devices, and lives until the process ends, as in the kernel, even if all descriptors are closed.
//
//   open("/dev/kfd")    -> Node::get().open_kfd(flags)
//   ioctl(fd, 'K' ...)  -> device_of(fd) -> kfd_ioctl(node, ...)
//
//   fork   the child starts without a node: inherited descriptors answer EBADF, as in the kernel, and its first open
//          creates its own node. It does not touch locks and threads of the parent.
//   exit   needs no action: the arena is freed with the last descriptor, and threads end with the process.
//
// Locks: `mutex` serialises ioctls, except waits for events. Engine threads never take it.
#include "../queues/events.hpp"
#include "arena.hpp"
#include "debug.hpp"
#include "debug_link.hpp"
#include "drm_file.hpp"
#include "memory_objects.hpp"
#include "queues.hpp"
#include "shared_limits.hpp"
#include "smi.hpp"
#include "svm.hpp"
#include "tree.hpp"

#include <mutex>
#include <optional>

namespace sdma::emulator {

class Node {
 public:
  /// A node without a process: for tests, and for `get`. A node whose servers have threads is never destroyed.
  explicit Node(Drive = Drive::thread);
  /// The node of this process, created at the first call; null if there is no memory for it.
  static Node* get();
  /// The node of this process; null if it was not created.
  static Node* made() noexcept;

  int open_kfd(int flags) const noexcept { return arena.open_node(kTag, flags); }
  int open_drm(std::uint32_t minor, int flags);

  Arena arena;
  SharedLimits shared;
  std::mutex mutex;
  Smi smi;
  Exceptions exceptions;
  Events events{[this](const kfd::MemoryException& f) {
    smi.vm_fault(f.gpu_id);
    debug.vm_fault(f.gpu_id);
    memory.show_fault(memory.index(f.gpu_id), GpuVa{f.va});
  }};
  Memory memory;
  Svm svm{memory};
  DrmFiles drm_files{memory};
  Queues queues;
  Debug debug;
  DebugPort debug_port;    ///< where debuggers of other processes ask
  DebugSessions debugged;  ///< the processes that this process debugs

 private:
  std::uint32_t serial_ = 0;
};

/// A descriptor of a device or of exported memory, and the node of this process that it belongs to.
struct Device : Descriptor {
  Node* node{};  ///< null: inherited through a fork, or from another process
};
std::optional<Device> device_of(int fd) noexcept;

/// Answers an ioctl as the kernel does: 0 or an errno; a negative value is a result that is not an error, negated. If
/// there is no memory for it, the answer is ENOMEM, and nothing has changed.
int kfd_ioctl(Node&, unsigned long request, void* argument);
/// `process`: null in a forked child that has not opened a device yet, and therefore uses no GPU memory. A file of
/// another process answers questions, but has neither buffers nor contexts here (EBADF).
int drm_ioctl(Node* process, const Descriptor&, unsigned long request, void* argument);
int dmabuf_ioctl(unsigned long request, void* argument) noexcept;
/// The index of the GPU whose primary or render node has this minor; at least the number of GPUs if there is none.
std::size_t gpu_of_minor(std::uint32_t minor) noexcept;

}  // namespace sdma::emulator
