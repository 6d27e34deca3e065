// SPDX-License-Identifier: MIT
#include "debug_session.hpp"

#include "../core/descriptor.hpp"
#include "../engine/signals_blocked.hpp"
#include "process.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using kfd::DebugOp;
using Step = Listing::Step;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(1);

constexpr std::uint64_t kRuntimeCall = kfd::exception_bit(kfd::kExceptionRuntime);

/// The calls about one process.
class Calls {
 public:
  Calls(int kfd, int pid) noexcept : kfd_(kfd), pid_(pid) {}
  /// 0 or an errno. EAGAIN is an answer of QUERY_DEBUG_EVENT, so only EINTR is repeated.
  int operator()(DebugOp op, kfd::DebugTrap& a) const noexcept {
    a.pid = static_cast<std::uint32_t>(pid_);
    a.op = static_cast<std::uint32_t>(op);
    int status = 0;
    do {
      status = ::ioctl(kfd_, kfd::request<kfd::DebugTrap>(kfd::Nr::dbg_trap), &a);
    } while (status == -1 && errno == EINTR);
    return status == -1 ? errno : 0;
  }
  int operator()(DebugOp op) const noexcept {
    kfd::DebugTrap a;
    return (*this)(op, a);
  }

 private:
  int kfd_, pid_;
};

int take_snapshot(const Calls& call, std::vector<kfd::QueueEntry>& queues) {
  // Queues may be created between the calls, so there is room for more than exist.
  std::size_t room = 64;
  for (int tries = 0; tries < 8; ++tries) {
    queues.assign(room, {});
    kfd::DebugTrap a;
    a.snapshot = {.clear = 0,
                  .entries = reinterpret_cast<std::uint64_t>(queues.data()),
                  .count = static_cast<std::uint32_t>(room),
                  .entry_bytes = sizeof(kfd::QueueEntry)};
    if (const int error = call(DebugOp::queue_snapshot, a)) return error;
    if (a.snapshot.count <= room) return queues.resize(a.snapshot.count), 0;
    room = a.snapshot.count + 64;
  }
  return EAGAIN;
}

/// Lets a call of the runtime return that waits for the debugger. One answer more than was asked for covers a call that
/// comes between the question and the end of the session: nothing would wake it afterwards.
bool answer_runtime(const Calls& call) noexcept {
  kfd::DebugTrap a;
  a.exceptions = kRuntimeCall;
  (void)call(DebugOp::set_exceptions_enabled, a);
  a.event = {.exceptions = kRuntimeCall, .gpu_id = 0, .queue_id = 0};
  const bool waits = call(DebugOp::query_debug_event, a) == 0 && (a.event.exceptions & kRuntimeCall) != 0;
  for (int answers = waits ? 2 : 1; answers > 0; --answers) {
    a.event = {.exceptions = kRuntimeCall, .gpu_id = 0, .queue_id = 0};
    (void)call(DebugOp::send_runtime_event, a);
  }
  return waits;
}

/// `tracer`: who traced the process when that was last the reason for an error.
int seize(int pid, int& tracer) {
  const auto until = Clock::now() + kPatience;
  int others = 0;  // how many attempts failed without a tracer: one may have ended before it was asked for
  for (;;) {
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0) return 0;
    const int error = errno;
    tracer = error == EPERM ? tracer_of(pid) : 0;
    others += tracer == 0;
    if (error != EPERM || others > 3 || Clock::now() > until) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Listing list_in_this_thread(int pid) {
  Listing l;
  const auto fail = [&](Step step, int error) { return l.step = step, l.error = error, std::move(l); };
  const detail::Descriptor kfd(::open("/dev/kfd", O_RDWR | O_CLOEXEC)), file(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (kfd.get() < 0 || file.get() < 0) return fail(Step::open, errno);
  kfd::GetVersion v;
  if (::ioctl(kfd.get(), kfd::request<kfd::GetVersion>(kfd::Nr::get_version, kfd::kOut), &v) != 0)
    return fail(Step::version, errno);
  if (v.major != kfd::kMajor || v.minor < kfd::kDebugMinor) return fail(Step::version, ENOTTY);
  if (const int error = seize(pid, l.tracer)) return fail(Step::trace, error);
  const Calls call(kfd.get(), pid);
  kfd::RuntimeInfo info;
  kfd::DebugTrap a;
  a.enable = {.exceptions = 0,
              .info = reinterpret_cast<std::uint64_t>(&info),
              .info_bytes = sizeof info,
              .fd = static_cast<std::uint32_t>(file.get())};
  if (const int error = call(DebugOp::enable, a)) return fail(Step::enable, error);
  l.remapped = info.state != kfd::kRuntimeDisabled;
  const int error = take_snapshot(call, l.queues);
  l.answered_runtime = answer_runtime(call);
  (void)call(DebugOp::disable);
  return error == 0 ? std::move(l) : fail(Step::snapshot, error);
}

}  // namespace

Listing list_queues(int pid) {
  Listing l;
  pid_t thread = 0;
  {
    const sdma::detail::SignalsBlocked blocked;
    // Tracing ends with the thread. PTRACE_DETACH would need the process to stop, and would interrupt its system calls.
    std::thread([&] {
      thread = ::gettid();
      l = list_in_this_thread(pid);
    }).join();
  }
  const auto until = Clock::now() + kPatience;
  while (tracer_of(pid) == thread && Clock::now() < until) std::this_thread::yield();
  return l;
}

}}}  // namespace sdma::v0_3::doctor
