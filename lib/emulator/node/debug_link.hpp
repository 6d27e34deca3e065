// SPDX-License-Identifier: MIT
#pragma once
// How DBG_TRAP reaches the process that it is about. The node of each process is in that process, so a thread of it
// answers the debuggers of others, through a socket whose name is the arena's inode. The kernel answers by itself;
// here, a process whose threads are all stopped does not answer (ETIMEDOUT after 10 s).
//
//   debugger:  ioctl(kfd, DBG_TRAP, {.pid = 4711, ...}) -> debug_trap -> socket -> DebugPort of 4711 -> Debug::answer
//
//   checks     by the thread that answers: the caller has to trace the leader of the process (PTRACE_SEIZE,
//              PTRACE_ATTACH), except for DISABLE. A process may debug itself
//   early      a debugger may ENABLE before the process that it traces has opened /dev/kfd. It keeps the session. When
//              the process creates its node, it asks the process that traces it, and takes the session over
//   session    the connection of a successful ENABLE stays open; when
//              it ends, the debugger has ended, and so does the session
//   file       a descriptor of the debugger's file travels with ENABLE
//   copies     are made in the debugger's process, because pointers are of that process
//
// ESRCH: no such process, or one that does not use a node. EPERM: it may not be examined, or is not traced by this
// thread. Any thread may call these functions. Nothing waits longer than 10 s.
#include "../../kfd/abi.hpp"

#include <sys/types.h>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace sdma::emulator {

class Node;

/// Answers the debuggers of other processes.
class DebugPort {
 public:
  DebugPort() = default;
  DebugPort(const DebugPort&) = delete;
  DebugPort& operator=(const DebugPort&) = delete;
  /// Starts the thread, which runs until the process ends. Without memory for it, no other process can debug this one.
  void open(Node&) noexcept;
  /// For a forked child: closes our descriptors.
  void abandon() noexcept;

 private:
  static void* run(void* node) noexcept;
  void serve(Node&) noexcept;
  void answer_one(Node&, int connection) noexcept;
  int take_session(Node&) noexcept;

  int listener_ = -1, bell_ = -1;
  int session_ = -1;  ///< used only by the thread
  ino_t inode_{};
};

/// The sessions of this process with others: the connections that keep them, and those with processes without a node.
class DebugSessions {
 public:
  DebugSessions();
  ~DebugSessions();
  DebugSessions(const DebugSessions&) = delete;
  DebugSessions& operator=(const DebugSessions&) = delete;
  void keep(std::uint32_t pid, int connection);
  void close(std::uint32_t pid) noexcept;
  void abandon() noexcept;
  /// Answers for a process that has no node yet. ESRCH: there is no session with it, and this call does not begin one.
  int answer(kfd::DebugTrap&, bool traced, std::vector<std::byte>& data);
  /// Ends an early session, so that the process itself begins it: its arguments, and the debugger's file. -1: none.
  int hand_over(std::uint32_t pid, kfd::DebugTrap& enable) noexcept;

 private:
  struct Early;
  std::mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<Early>> early_;
  std::map<std::uint32_t, int> connections_;
};

/// The ioctl. Called without the node's lock.
int debug_trap(Node& own, kfd::DebugTrap&);

}  // namespace sdma::emulator
