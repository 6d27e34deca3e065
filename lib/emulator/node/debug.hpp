// SPDX-License-Identifier: MIT
#pragma once
// DBG_TRAP: what a debugger may ask of this process, and the runtime's part of the conversation (RUNTIME_ENABLE).
//
//   session    one at a time: ENABLE begins it, DISABLE or the end of the debugger's process ends it
//   remap      where a runtime is enabled, both unmap all queues of all GPUs and map them again, as the kernel does
//   runtime    while there is a session, RUNTIME_ENABLE raises an exception of the process,
//              and returns only after the debugger has answered with SEND_RUNTIME_EVENT; or
//              with EINTR after a signal or 10 s, and the next call then continues
//
//   debugger:  ENABLE ............................ SEND_RUNTIME_EVENT
//   runtime:            RUNTIME_ENABLE (blocked) .................... returns
//
// A process that is debugged before it has a node has no queues: its debugger keeps a Debug for it until then.
//
// Who may ask is checked elsewhere: debug_link.hpp. Operations on waves return the errno of a GPU without debugging.
// Call everything under the node's lock, except `vm_fault`. Results are 0 or an errno, except those of `answer`.
#include "../../device/properties.hpp"
#include "../queues/server.hpp"
#include "object_file.hpp"
#include "queues.hpp"
#include "tree.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace sdma::emulator {

inline constexpr std::uint64_t kRuntimeBit = kfd::exception_bit(kfd::kExceptionRuntime);
inline constexpr std::uint64_t kViolationBit = kfd::exception_bit(kfd::kExceptionMemoryViolation);
inline constexpr std::uint64_t kDeviceNewBit = kfd::exception_bit(kfd::kExceptionDeviceNew);
template <class T> void append(std::vector<std::byte>& to, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// GET_QUEUE_SNAPSHOT and GET_DEVICE_SNAPSHOT. `status(i)`: the exceptions of entry i.
template <class Entry, class Status>
int snapshot(kfd::DebugSnapshot& a, const std::vector<Entry>& all, std::vector<std::byte>& data, Status status) {
  const auto room = std::exchange(a.count, 0);
  if (a.entry_bytes == 0) return EINVAL;
  const auto n = std::min<std::size_t>(room, all.size());
  append(data, std::span(all).first(n));
  for (std::size_t i = 0; i < n; ++i) status(i).fetch_and(~a.clear);
  a.count = static_cast<std::uint32_t>(all.size());
  a.entry_bytes = std::min<std::uint32_t>(a.entry_bytes, sizeof(Entry));
  return 0;
}

/// Takes the exceptions of one source, if it has one that the debugger has asked for.
inline bool take(std::atomic<std::uint64_t>& status, std::uint64_t subscribed, kfd::DebugEvent& e) noexcept {
  const auto raised = status.load(std::memory_order_acquire);
  if ((raised & subscribed) == 0) return false;
  status.fetch_and(~e.exceptions);
  e.exceptions = raised;
  return true;
}

/// The answer of GET_PROCESS_APERTURES, for each GPU.
std::vector<kfd::Aperture> apertures();

class Debug {
 public:
  Debug(Exceptions& x, Queues* q, const SysfsNode& n, Drive drive)
      : exceptions_(x), queues_(q), node_(n), patience_ms_(drive == Drive::thread ? 10'000 : 0) {
    for (auto& status : of_gpus_) status = kDeviceNewBit;
  }
  ~Debug() { abandon(); }
  Debug(const Debug&) = delete;
  Debug& operator=(const Debug&) = delete;

  /// Answers an operation. `data`: what goes to the caller's memory: a RuntimeInfo, or entries. For SUSPEND_QUEUES and
  /// RESUME_QUEUES, it has the caller's array before; the result is the number of queues, negated.
  /// `fd`: a descriptor of the debugger's file, which ENABLE keeps; -1: it has none.
  int answer(kfd::DebugTrap& a, int fd, std::vector<std::byte>& data) {
    const auto op = static_cast<kfd::DebugOp>(a.op);
    if (op == kfd::DebugOp::enable) return enable(a, fd, data);
    if (!session_) return EINVAL;
    switch (op) {
      case kfd::DebugOp::disable: end(); return 0;
      case kfd::DebugOp::send_runtime_event: return send(a.event);
      case kfd::DebugOp::set_exceptions_enabled: exceptions_.subscribe(a.exceptions); return 0;
      case kfd::DebugOp::query_debug_event: return query(a.event);
      case kfd::DebugOp::queue_snapshot: {
        const auto all = queues();
        return snapshot(
            a.snapshot, all, data, [&](std::size_t i) -> auto& { return queues_->exceptions(all[i].queue_id); });
      }
      case kfd::DebugOp::device_snapshot:
        return snapshot(
            a.snapshot, devices(), data, [&](std::size_t i) -> auto& { return of_gpus_[i]; });
      case kfd::DebugOp::suspend_queues:
      case kfd::DebugOp::resume_queues: return suspend(op == kfd::DebugOp::suspend_queues, data);
      case kfd::DebugOp::set_wave_launch_override:
      case kfd::DebugOp::set_wave_launch_mode:
      case kfd::DebugOp::set_address_watch:
      case kfd::DebugOp::clear_address_watch: return runtime() ? ENODEV : EACCES;
      case kfd::DebugOp::set_flags: return EACCES;
      case kfd::DebugOp::query_exception_info: return ENODATA;
      default: return EINVAL;
    }
  }
  bool session() const noexcept { return session_; }
  /// Ends the session. Nothing happens if there is none.
  void end() noexcept {
    if (!std::exchange(session_, false)) return;
    exceptions_.end();
    if (queues_) queues_->resume();
    if (runtime()) queues_->remap();
    ::close(std::exchange(file_, -1));
  }
  /// Ends a session that another Debug continues. Returns the debugger's file.
  int hand_over(kfd::DebugTrap& enable) noexcept {
    enable.op = static_cast<std::uint32_t>(kfd::DebugOp::enable);
    enable.enable.exceptions = exceptions_.subscribed();
    session_ = false;
    return std::exchange(file_, -1);
  }
  /// Writes to the debugger's file that there are exceptions.
  void notify() noexcept {
    pollfd p{.fd = file_, .events = POLLOUT, .revents = 0};
    // A debugger that does not read has been notified already.
    if (file_ >= 0 && ::poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0) (void)!::write(file_, ".", 1);
  }

  /// RUNTIME_ENABLE. Releases the lock while it waits.
  int set_runtime(const kfd::RuntimeEnable& a, std::unique_lock<std::mutex>& lock) {
    const bool on = (a.mode & kfd::kRuntimeOn) != 0, was_on = runtime();
    const bool again = std::exchange(retry_, false) && on == was_on;
    if (!again) {
      if (const int error = queues_->set_runtime(on)) return error;
      r_debug_ = on ? a.r_debug : 0;
      ttmps_ = on && (a.mode & kfd::kRuntimeTtmps) != 0;
    }
    if (!session_) return 0;
    if (!again) {
      if (on || was_on) queues_->remap();
      exceptions_.raise(of_process_, kRuntimeBit);
    }
    const int answers = answers_;
    lock.unlock();
    pollfd p{.fd = answers, .events = POLLIN, .revents = 0};
    std::uint64_t one = 0;
    const bool answered = ::poll(&p, 1, patience_ms_) == 1 && ::eventfd_read(answers, &one) == 0;
    lock.lock();
    retry_ = !answered;
    return answered ? 0 : EINTR;
  }

  /// A GPU has stopped the queues of this process. Engine threads call it.
  void vm_fault(std::uint32_t gpu_id) noexcept {
    for (std::size_t g = 0; g < node_.gpus.size() && g < of_gpus_.size(); ++g)
      if (node_.gpus[g].gpu_id == gpu_id) exceptions_.raise(of_gpus_[g], kViolationBit);
  }
  /// For a forked child: closes our descriptors.
  void abandon() noexcept {
    for (int* fd : {&file_, &answers_})
      if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }

 private:
  bool runtime() const noexcept { return queues_ && queues_->runtime(); }
  std::vector<kfd::QueueEntry> queues() const { return queues_ ? queues_->entries() : std::vector<kfd::QueueEntry>(); }
  int enable(const kfd::DebugTrap& a, int fd, std::vector<std::byte>& data) {
    if (session_) return EALREADY;
    if (fd < 0) return EBADF;
    const auto now = info();
    append(data, std::span(&now, 1));
    if (answers_ < 0) answers_ = away(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC));
    if (answers_ < 0) return ENOMEM;
    file_ = fd;
    session_ = true;
    exceptions_.begin(a.enable.exceptions);
    if (runtime()) queues_->remap();
    return 0;
  }
  int suspend(bool suspended, std::vector<std::byte>& data) noexcept {
    if (!runtime()) return EACCES;
    // As a view: an array of bytes from a vector is aligned for every number.
    return -queues_->suspend({reinterpret_cast<std::uint32_t*>(data.data()), data.size() / sizeof(std::uint32_t)},
                             suspended);
  }
  int send(const kfd::DebugEvent& e) noexcept {
    const bool known = std::any_of(node_.gpus.begin(), node_.gpus.end(), [&](auto& g) { return g.gpu_id == e.gpu_id; });
    if ((e.exceptions & kViolationBit) != 0 && !known) return ENODEV;
    if ((e.exceptions & kRuntimeBit) != 0) (void)::eventfd_write(answers_, 1);
    return 0;
  }
  int query(kfd::DebugEvent& e) noexcept {
    const auto subscribed = exceptions_.subscribed();
    e.gpu_id = e.queue_id = 0;
    for (const auto& q : queues())
      if (take(queues_->exceptions(q.queue_id), subscribed, e)) {
        e.gpu_id = q.gpu_id;
        e.queue_id = q.queue_id;
        return 0;
      }
    for (std::size_t g = 0; g < node_.gpus.size() && g < of_gpus_.size(); ++g)
      if (take(of_gpus_[g], subscribed, e)) {
        e.gpu_id = node_.gpus[g].gpu_id;
        return 0;
      }
    if (take(of_process_, subscribed, e)) return 0;
    e.exceptions = 0;
    return EAGAIN;
  }
  std::vector<kfd::DeviceEntry> devices() const {
    std::vector<kfd::DeviceEntry> all;
    const auto where = apertures();
    for (std::size_t g = 0; g < node_.gpus.size() && g < of_gpus_.size(); ++g) {
      const auto& gpu = node_.gpus[g];
      const auto* file = tree().find(fmt::format("{}/nodes/{}/properties", kSysfsTopology, gpu.kfd_node));
      const sdma::detail::Properties all_of(file ? contents(*file) : std::string());
      const auto of = [&](std::string_view name) { return all_of.u32(name); };
      const auto& w = where[g];
      all.push_back({.exceptions = of_gpus_[g].load(std::memory_order_acquire),
                     .lds_base = w.lds_base,
                     .lds_limit = w.lds_limit,
                     .scratch_base = w.scratch_base,
                     .scratch_limit = w.scratch_limit,
                     .gpuvm_base = w.gpuvm_base,
                     .gpuvm_limit = w.gpuvm_limit,
                     .gpu_id = gpu.gpu_id,
                     .location_id = gpu.location_id,
                     .vendor_id = of("vendor_id"),
                     .device_id = gpu.device_id,
                     .subsystem_vendor_id = of("vendor_id"),
                     .subsystem_device_id = gpu.device_id,
                     .firmware = gpu.firmware,
                     .gfx_target = of("gfx_target_version"),
                     .simds = of("simd_count"),
                     .waves_per_simd = of("max_waves_per_simd"),
                     .arrays = of("array_count"),
                     .arrays_per_engine = of("simd_arrays_per_engine"),
                     .xccs = of("num_xcc"),
                     .capability = of("capability"),
                     .debug_properties = of("debug_prop")});
    }
    return all;
  }
  kfd::RuntimeInfo info() const noexcept {
    return {.r_debug = r_debug_, .state = runtime() ? kfd::kRuntimeEnabled : kfd::kRuntimeDisabled, .ttmps = ttmps_};
  }

  Exceptions& exceptions_;
  Queues* const queues_;
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

}  // namespace sdma::emulator
