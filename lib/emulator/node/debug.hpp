// SPDX-License-Identifier: MIT
#pragma once
// DBG_TRAP: what a debugger may ask of this process, and the runtime's part of the conversation (RUNTIME_ENABLE).
//
//   session    one at a time: ENABLE begins it, DISABLE or the end of the debugger's process ends it
//   remap      where a runtime is enabled, both unmap all queues of all GPUs and map them again, as the kernel does
//   runtime    while there is a session, RUNTIME_ENABLE raises an exception of the process,
//              and returns only after the debugger has answered with SEND_RUNTIME_EVENT. A
//              signal ends the call with EINTR, and so do 10 s; the next call continues
//
//   debugger:  ENABLE ............................ SEND_RUNTIME_EVENT
//   runtime:            RUNTIME_ENABLE (blocked) .................... returns
//
// Who may ask is checked elsewhere: debug_link.hpp. Operations on waves return the errno of a GPU without debugging.
// Call everything under the node's lock, except `vm_fault`. Results are 0 or an errno, except those of `answer`.
#include "../queues/server.hpp"
#include "queues.hpp"

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

namespace sdma::emulator {

class Debug {
 public:
  Debug(Exceptions&, Queues&, const SysfsNode&, Drive);
  ~Debug();
  Debug(const Debug&) = delete;
  Debug& operator=(const Debug&) = delete;

  /// Answers an operation. `data`: what goes to the caller's memory: a RuntimeInfo, or entries. For SUSPEND_QUEUES and
  /// RESUME_QUEUES, it has the caller's array before; the result is the number of queues, negated.
  /// `fd`: a descriptor of the debugger's file, which ENABLE keeps; -1: it has none.
  int answer(kfd::DebugTrap&, int fd, std::vector<std::byte>& data);
  bool session() const noexcept { return session_; }
  /// Ends the session. Nothing happens if there is none.
  void end() noexcept;
  /// Writes to the debugger's file that there are exceptions.
  void notify() noexcept;

  /// RUNTIME_ENABLE. Releases the lock while it waits.
  int set_runtime(const kfd::RuntimeEnable&, std::unique_lock<std::mutex>&);

  /// A GPU has stopped the queues of this process. Engine threads call it.
  void vm_fault(std::uint32_t gpu_id) noexcept;
  /// For a forked child: closes our descriptors.
  void abandon() noexcept;

 private:
  int enable(const kfd::DebugTrap&, int fd, std::vector<std::byte>& data);
  int suspend(bool suspended, std::vector<std::byte>& data) noexcept;
  int send(const kfd::DebugEvent&) noexcept;
  int query(kfd::DebugEvent&) noexcept;
  std::vector<kfd::DeviceEntry> devices() const;
  kfd::RuntimeInfo info() const noexcept;

  Exceptions& exceptions_;
  Queues& queues_;
  const SysfsNode& node_;
  const int patience_ms_;
  bool session_ = false;
  bool retry_ = false;  ///< the runtime's last call ended with EINTR
  int file_ = -1;       ///< the debugger's
  int answers_ = -1;    ///< an eventfd: how many answers to the runtime were not taken
  std::uint64_t r_debug_ = 0;
  std::uint32_t ttmps_ = 0;
  std::array<std::atomic<std::uint64_t>, 8> of_gpus_{};
  std::atomic<std::uint64_t> of_process_{0};
};

/// The answer of GET_PROCESS_APERTURES, for each GPU.
std::vector<kfd::Aperture> apertures();

}  // namespace sdma::emulator
