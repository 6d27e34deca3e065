// SPDX-License-Identifier: MIT
#include "debug.hpp"

#include "../../device/properties.hpp"
#include "object_file.hpp"
#include "tree.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace sdma::emulator {
namespace {

using kfd::DebugOp;

constexpr std::uint64_t kRuntimeBit = kfd::exception_bit(kfd::kExceptionRuntime);
constexpr std::uint64_t kViolationBit = kfd::exception_bit(kfd::kExceptionMemoryViolation);
constexpr std::uint64_t kDeviceNewBit = kfd::exception_bit(kfd::kExceptionDeviceNew);

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
bool take(std::atomic<std::uint64_t>& status, std::uint64_t subscribed, kfd::DebugEvent& e) noexcept {
  const auto raised = status.load(std::memory_order_acquire);
  if ((raised & subscribed) == 0) return false;
  status.fetch_and(~e.exceptions);
  e.exceptions = raised;
  return true;
}

}  // namespace

Debug::Debug(Exceptions& x, Queues& q, const SysfsNode& n, Drive drive)
    : exceptions_(x), queues_(q), node_(n), patience_ms_(drive == Drive::thread ? 10'000 : 0) {
  for (auto& status : of_gpus_) status = kDeviceNewBit;
}

Debug::~Debug() { abandon(); }

void Debug::abandon() noexcept {
  for (int* fd : {&file_, &answers_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

int Debug::answer(kfd::DebugTrap& a, int fd, std::vector<std::byte>& data) {
  const auto op = static_cast<DebugOp>(a.op);
  if (op == DebugOp::enable) return enable(a, fd, data);
  if (!session_) return EINVAL;
  switch (op) {
    case DebugOp::disable: end(); return 0;
    case DebugOp::send_runtime_event: return send(a.event);
    case DebugOp::set_exceptions_enabled: exceptions_.subscribe(a.exceptions); return 0;
    case DebugOp::query_debug_event: return query(a.event);
    case DebugOp::queue_snapshot: {
      const auto all = queues_.entries();
      return snapshot(
          a.snapshot, all, data, [&](std::size_t i) -> auto& { return queues_.exceptions(all[i].queue_id); });
    }
    case DebugOp::device_snapshot:
      return snapshot(
          a.snapshot, devices(), data, [&](std::size_t i) -> auto& { return of_gpus_[i]; });
    case DebugOp::suspend_queues:
    case DebugOp::resume_queues: return suspend(op == DebugOp::suspend_queues, data);
    case DebugOp::set_wave_launch_override:
    case DebugOp::set_wave_launch_mode:
    case DebugOp::set_address_watch:
    case DebugOp::clear_address_watch: return queues_.runtime() ? ENODEV : EACCES;
    case DebugOp::set_flags: return EACCES;
    case DebugOp::query_exception_info: return ENODATA;
    default: return EINVAL;
  }
}

kfd::RuntimeInfo Debug::info() const noexcept {
  return {
      .r_debug = r_debug_, .state = queues_.runtime() ? kfd::kRuntimeEnabled : kfd::kRuntimeDisabled, .ttmps = ttmps_};
}

int Debug::enable(const kfd::DebugTrap& a, int fd, std::vector<std::byte>& data) {
  if (session_) return EALREADY;
  if (fd < 0) return EBADF;
  const auto now = info();
  append(data, std::span(&now, 1));
  if (answers_ < 0) answers_ = away(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC));
  if (answers_ < 0) return ENOMEM;
  file_ = fd;
  session_ = true;
  exceptions_.begin(a.enable.exceptions);
  if (queues_.runtime()) queues_.remap();
  return 0;
}

int Debug::suspend(bool suspended, std::vector<std::byte>& data) noexcept {
  if (!queues_.runtime()) return EACCES;
  // As a view: an array of bytes from a vector is aligned for every number.
  return -queues_.suspend({reinterpret_cast<std::uint32_t*>(data.data()), data.size() / sizeof(std::uint32_t)},
                          suspended);
}

void Debug::end() noexcept {
  if (!std::exchange(session_, false)) return;
  exceptions_.end();
  queues_.resume();
  if (queues_.runtime()) queues_.remap();
  ::close(std::exchange(file_, -1));
}

void Debug::notify() noexcept {
  pollfd p{.fd = file_, .events = POLLOUT, .revents = 0};
  // A debugger that does not read has been notified already.
  if (file_ >= 0 && ::poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0) (void)!::write(file_, ".", 1);
}

int Debug::send(const kfd::DebugEvent& e) noexcept {
  const bool known = std::any_of(node_.gpus.begin(), node_.gpus.end(), [&](auto& g) { return g.gpu_id == e.gpu_id; });
  if ((e.exceptions & kViolationBit) != 0 && !known) return ENODEV;
  if ((e.exceptions & kRuntimeBit) != 0) (void)::eventfd_write(answers_, 1);
  return 0;
}

int Debug::query(kfd::DebugEvent& e) noexcept {
  const auto subscribed = exceptions_.subscribed();
  e.gpu_id = e.queue_id = 0;
  for (const auto& q : queues_.entries())
    if (take(queues_.exceptions(q.queue_id), subscribed, e)) {
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

std::vector<kfd::DeviceEntry> Debug::devices() const {
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

int Debug::set_runtime(const kfd::RuntimeEnable& a, std::unique_lock<std::mutex>& lock) {
  const bool on = (a.mode & kfd::kRuntimeOn) != 0, was_on = queues_.runtime();
  const bool again = std::exchange(retry_, false) && on == was_on;
  if (!again) {
    if (const int error = queues_.set_runtime(on)) return error;
    r_debug_ = on ? a.r_debug : 0;
    ttmps_ = on && (a.mode & kfd::kRuntimeTtmps) != 0;
  }
  if (!session_) return 0;
  if (!again) {
    if (on || was_on) queues_.remap();
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

void Debug::vm_fault(std::uint32_t gpu_id) noexcept {
  for (std::size_t g = 0; g < node_.gpus.size() && g < of_gpus_.size(); ++g)
    if (node_.gpus[g].gpu_id == gpu_id) exceptions_.raise(of_gpus_[g], kViolationBit);
}

}  // namespace sdma::emulator
