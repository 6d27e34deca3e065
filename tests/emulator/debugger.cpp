// SPDX-License-Identifier: MIT
// DBG_TRAP: what the kernel checks, what a debugger sees of another process, and how a runtime waits for it. Run under
// `sdma emulate --gpus=2`.
#include "../../lib/device/kfd/raw_client.hpp"
#include "attachable.hpp"
#include "debuggee.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <thread>

using namespace sdma::raw;
using namespace sdma;
using namespace std::chrono_literals;

namespace {

using kfd::DebugOp;

// --- The process that is debugged ------------------------------------------------------------------------------------

std::atomic<int> arrived{0};
void on_signal(int) { ++arrived; }

struct Target {
  Client c{};
  std::vector<std::unique_ptr<Queue>> queues{};
  Memory word = c.allocate(4096);
  std::atomic<int> ended{-1};
  std::thread runtime{};

  int set_runtime(std::uint32_t mode) {
    kfd::RuntimeEnable r{.r_debug = 0x1234'5678, .mode = mode, .capabilities = 0};
    return call(c.kfd, Nr::runtime_enable, r);
  }
  State state(int result = 0) const {
    State s{.queues = static_cast<std::uint32_t>(queues.size()), .result = result, .pid = ::getpid()};
    s.word = word.va;
    if (queues.empty()) return s;
    const auto& q = *queues.back();
    s.ring = q.ring.va;
    s.rptr = q.pointers.va;
    s.wptr = q.pointers.va + 64;
    s.doorbell = reinterpret_cast<std::uint64_t>(q.doorbell);
    s.id = q.id;
    return s;
  }
  void store_wptr() {
    auto m = queues.back()->memory();
    std::uint64_t unseen = 0;
    m.doorbell = &unseen;
    Ring<> ring(m);
    auto* const value = word.as<std::uint32_t>();
    __atomic_store_n(value, 0u, __ATOMIC_RELEASE);
    REQUIRE(ring.submit(Fence{.addr = word.gpu(), .value = 1}) == Errc::ok);
  }
  bool landed(std::chrono::milliseconds patience) const {
    const auto until = Deadline::in(patience);
    while (!until.passed())
      if (__atomic_load_n(word.as<std::uint32_t>(), __ATOMIC_ACQUIRE) == 1) return true;
    return false;
  }
  void poll(std::uint32_t reference) {
    Ring<> ring(queues.back()->memory());
    REQUIRE(ring.submit(PollMem{.addr = word.gpu(), .reference = reference}) == Errc::ok);
  }
  void release(std::uint32_t value) {
    Ring<> ring(queues.back()->memory());
    REQUIRE(ring.submit(Fence{.addr = word.gpu(), .value = value}) == Errc::ok);
  }
  /// Blocks signals nowhere: each has to arrive before the next one is sent.
  int alarms() {
    pollfd p{.fd = Child::kLink, .events = POLLIN, .revents = 0};
    const auto leader = ::pthread_self();
    std::atomic<bool> stop{false};
    std::atomic<int> sent{0};
    arrived = 0;
    std::thread sender([&] {
      for (; !stop; ++sent) {
        ::pthread_kill(leader, SIGUSR1);
        const auto until = Deadline::in(10s);
        while (arrived == sent && !until.passed()) std::this_thread::yield();
      }
    });
    while (::poll(&p, 1, 1000) != 1) {}
    stop = true;
    sender.join();
    return arrived == sent ? sent.load() : -1;
  }
  int churn() {
    pollfd p{.fd = Child::kLink, .events = POLLIN, .revents = 0};
    int n = 0;
    for (; ::poll(&p, 1, 0) == 0; ++n) Queue q(c, static_cast<std::uint32_t>(n % 2), kfd::kQueueSdma);
    return n;
  }
};

}  // namespace

TEST_CASE("(process) is debugged", "[.]") {
  let_others_attach();
  struct sigaction a {};
  a.sa_handler = on_signal;
  ::sigaction(SIGUSR1, &a, nullptr);
  Target t;
  for (;;) {
    const auto order = receive<Order>(Child::kLink);
    int result = 0;
    switch (order.what) {
      case Order::queue:
        t.queues.push_back(std::make_unique<Queue>(t.c, order.number % 2, kfd::kQueueSdmaByEngine, order.number / 2));
        result = t.queues.back()->error;
        break;
      case Order::destroy: t.queues.pop_back(); break;
      case Order::store_wptr: t.store_wptr(); break;
      case Order::landed: result = t.landed(std::chrono::milliseconds(order.number)); break;
      case Order::set_runtime: result = t.set_runtime(order.number); break;
      case Order::begin_runtime:
        t.ended = -1;
        if (t.runtime.joinable()) t.runtime.join();
        t.runtime = std::thread([&t, mode = order.number] { t.ended = t.set_runtime(mode); });
        break;
      case Order::runtime_ended: result = t.ended; break;
      case Order::interrupt: ::pthread_kill(t.runtime.native_handle(), SIGUSR1); break;
      case Order::poll: t.poll(order.number); break;
      case Order::release: t.release(order.number); break;
      case Order::post: __atomic_store_n(t.word.as<std::uint32_t>(), order.number, __ATOMIC_RELEASE); break;
      case Order::alarms:
        send(Child::kLink, t.state());
        result = t.alarms();
        break;
      case Order::churn:
        send(Child::kLink, t.state());
        result = t.churn();
        break;
      case Order::end:
        if (t.runtime.joinable()) t.runtime.join();
        send(Child::kLink, t.state());
        return;
    }
    send(Child::kLink, t.state(result));
  }
}

namespace {

// --- The debugger ----------------------------------------------------------------------------------------------------

int kfd_of_this_process() {
  static const Client c;
  return c.kfd;
}

struct Debugger {
  std::uint32_t pid{};
  int file = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  explicit Debugger(std::uint32_t of) : pid(of) {}
  ~Debugger() { ::close(file); }
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  int trace() const { return ::ptrace(PTRACE_SEIZE, static_cast<pid_t>(pid), nullptr, nullptr) == 0 ? 0 : errno; }
  int ask(DebugOp op, kfd::DebugTrap a = {}) const { return ask(a, op); }
  int ask(kfd::DebugTrap& a, DebugOp op) const {
    a.pid = pid;
    a.op = static_cast<std::uint32_t>(op);
    return call(kfd_of_this_process(), Nr::dbg_trap, a);
  }
  /// SUSPEND_QUEUES or RESUME_QUEUES: how many, or -errno.
  int change(std::vector<std::uint32_t>& ids, bool suspends) const {
    kfd::DebugTrap a;
    const auto at = reinterpret_cast<std::uint64_t>(ids.data());
    const auto count = static_cast<std::uint32_t>(ids.size());
    if (suspends) a.suspend = {.exceptions = 0, .ids = at, .count = count, .grace = 0};
    else a.resume = {.ids = at, .count = count, .pad = 0};
    a.pid = pid;
    a.op = static_cast<std::uint32_t>(suspends ? DebugOp::suspend_queues : DebugOp::resume_queues);
    const int n = ::ioctl(kfd_of_this_process(), kfd::request<kfd::DebugTrap>(Nr::dbg_trap, kfd::kBoth), &a);
    return n < 0 ? -errno : n;
  }
  int enable(std::uint64_t exceptions = 0, kfd::RuntimeInfo* info = nullptr) const {
    kfd::DebugTrap a;
    a.enable = {.exceptions = exceptions,
                .info = reinterpret_cast<std::uint64_t>(info),
                .info_bytes = info ? static_cast<std::uint32_t>(sizeof *info) : 0,
                .fd = static_cast<std::uint32_t>(file)};
    const int error = ask(a, DebugOp::enable);
    if (error == 0) CHECK(a.enable.info_bytes == sizeof(kfd::RuntimeInfo));
    return error;
  }
  int disable() const { return ask(DebugOp::disable); }
  template <class Entry>
  int snapshot(DebugOp op, std::vector<Entry>& entries, std::uint32_t& exist, std::uint64_t clear = 0) const {
    kfd::DebugTrap a;
    a.snapshot = {.clear = clear,
                  .entries = reinterpret_cast<std::uint64_t>(entries.data()),
                  .count = static_cast<std::uint32_t>(entries.size()),
                  .entry_bytes = sizeof(Entry)};
    const int error = ask(a, op);
    exist = a.snapshot.count;
    return error;
  }
  std::vector<kfd::QueueEntry> queues(std::uint64_t clear = 0) const {
    std::vector<kfd::QueueEntry> all(kfd::kMaxQueues);
    std::uint32_t exist = 0;
    REQUIRE(snapshot(DebugOp::queue_snapshot, all, exist, clear) == 0);
    REQUIRE(exist <= all.size());
    all.resize(exist);
    return all;
  }
  int answer_runtime() const {
    kfd::DebugTrap a;
    a.event = {.exceptions = kfd::exception_bit(kfd::kExceptionRuntime), .gpu_id = 0, .queue_id = 0};
    return ask(a, DebugOp::send_runtime_event);
  }
};

constexpr std::uint64_t kNew = kfd::exception_bit(kfd::kExceptionQueueNew);
constexpr std::uint64_t kRuntime = kfd::exception_bit(kfd::kExceptionRuntime);

}  // namespace

TEST_CASE("who may debug, and in which order: EPERM, EINVAL, EBADF, EFAULT, EALREADY, ESRCH") {
  Debuggee t;
  const Debugger d(t.pid());
  // Nobody traces it. DISABLE needs no tracer, but a session.
  CHECK(d.enable() == EPERM);
  CHECK(d.ask(DebugOp::queue_snapshot) == EPERM);
  CHECK(d.ask(DebugOp::send_runtime_event) == EPERM);
  CHECK(d.disable() == EINVAL);

  REQUIRE(d.trace() == 0);
  for (auto op = static_cast<std::uint32_t>(DebugOp::disable); op < 20; ++op) {
    INFO(op);
    CHECK(d.ask(static_cast<DebugOp>(op)) == EINVAL);  // before ENABLE
  }
  std::vector<kfd::QueueEntry> early(1);
  std::uint32_t exist = 0;
  CHECK(d.snapshot(DebugOp::queue_snapshot, early, exist) == EINVAL);
  kfd::DebugTrap a;
  a.enable.fd = 12345;
  CHECK(d.ask(a, DebugOp::enable) == EBADF);
  kfd::RuntimeInfo info{.r_debug = 7, .state = 7, .ttmps = 7};
  a.enable = {.exceptions = 0, .info = 16, .info_bytes = sizeof info, .fd = static_cast<std::uint32_t>(d.file)};
  CHECK(d.ask(a, DebugOp::enable) == EFAULT);
  CHECK(d.enable(0, &info) == 0);
  CHECK(info.r_debug == 0);
  CHECK(info.state == kfd::kRuntimeDisabled);
  CHECK(d.enable() == EALREADY);
  a.enable.fd = 12345;
  CHECK(d.ask(a, DebugOp::enable) == EALREADY);

  // The thread that traces is the debugger, not its process.
  int of_another = 0;
  std::thread([&] { of_another = d.ask(DebugOp::query_debug_event); }).join();
  CHECK(of_another == EPERM);

  CHECK(d.ask(DebugOp::set_exceptions_enabled) == 0);
  CHECK(d.ask(DebugOp::query_debug_event) == EAGAIN);
  for (const auto op : {DebugOp::set_wave_launch_override, DebugOp::set_wave_launch_mode, DebugOp::suspend_queues,
                        DebugOp::resume_queues, DebugOp::set_address_watch, DebugOp::clear_address_watch})
    CHECK(d.ask(op) == EACCES);  // no runtime
  CHECK(d.ask(DebugOp::set_flags) == EACCES);
  CHECK(d.ask(DebugOp::query_exception_info) == ENODATA);
  CHECK(d.ask(static_cast<DebugOp>(15)) == EINVAL);
  kfd::DebugTrap violation;
  violation.event = {.exceptions = kfd::exception_bit(kfd::kExceptionMemoryViolation), .gpu_id = 1, .queue_id = 0};
  CHECK(d.ask(violation, DebugOp::send_runtime_event) == ENODEV);
  CHECK(d.disable() == 0);
  CHECK(d.disable() == EINVAL);
  CHECK(d.enable() == 0);
  std::thread([&] { of_another = d.disable(); }).join();
  CHECK(of_another == 0);

  CHECK(Debugger(0).enable() == ESRCH);
  CHECK(Debugger(0x7fff'fff0).enable() == ESRCH);
  Child without_node("(process) opens a device when it is asked to");
  CHECK(Debugger(receive<std::uint32_t>(without_node.link())).enable() == ESRCH);
  without_node.kill();
}

TEST_CASE("(process) opens a device when it is asked to", "[.]") {
  send(Child::kLink, static_cast<std::uint32_t>(::getpid()));
  (void)receive<int>(Child::kLink);
  Target t;
  send(Child::kLink, t.set_runtime(1));
  t.queues.push_back(std::make_unique<Queue>(t.c, 1, kfd::kQueueSdma));
  send(Child::kLink, t.queues.back()->error);
  (void)receive<int>(Child::kLink);
}

TEST_CASE("a debugger that traces a process begins its session before the process opens a device") {
  Child process("(process) opens a device when it is asked to");
  const Debugger d(receive<std::uint32_t>(process.link()));
  CHECK(d.enable() == ESRCH);  // it does not trace it
  REQUIRE(d.trace() == 0);
  CHECK(d.disable() == ESRCH);
  CHECK(d.ask(DebugOp::query_debug_event) == ESRCH);
  kfd::DebugTrap a;
  a.enable.fd = 12345;
  CHECK(d.ask(a, DebugOp::enable) == EBADF);
  CHECK(d.ask(DebugOp::query_debug_event) == ESRCH);
  kfd::RuntimeInfo info{.r_debug = 7, .state = 7, .ttmps = 7};
  int ends[2]{};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  a.enable = {.exceptions = 0,
              .info = reinterpret_cast<std::uint64_t>(&info),
              .info_bytes = sizeof info,
              .fd = static_cast<std::uint32_t>(ends[1])};
  CHECK(d.ask(a, DebugOp::enable) == 0);
  ::close(ends[1]);
  CHECK(info.state == kfd::kRuntimeDisabled);
  CHECK(d.enable() == EALREADY);
  int of_another = 0;
  std::thread([&] { of_another = d.ask(DebugOp::query_debug_event); }).join();
  CHECK(of_another == EPERM);
  CHECK(d.queues().empty());
  std::vector<kfd::DeviceEntry> devices(8);
  std::uint32_t exist = 0;
  CHECK(d.snapshot(DebugOp::device_snapshot, devices, exist) == 0);
  CHECK(exist == 2);
  CHECK(d.ask(DebugOp::suspend_queues) == EACCES);
  CHECK(d.ask(DebugOp::query_debug_event) == EAGAIN);
  a = {};
  a.exceptions = kNew | kRuntime;
  REQUIRE(d.ask(a, DebugOp::set_exceptions_enabled) == 0);

  // From here on, the process itself answers.
  send(process.link(), 1);
  char byte = 0;
  CHECK(::read(ends[0], &byte, 1) == 1);
  a = {};
  CHECK(d.ask(a, DebugOp::query_debug_event) == 0);
  CHECK(a.event.exceptions == kRuntime);
  CHECK(d.answer_runtime() == 0);
  CHECK(receive<int>(process.link()) == 0);
  CHECK(receive<int>(process.link()) == 0);
  CHECK(d.queues().size() == 1);
  CHECK(d.enable() == EALREADY);
  // The process has the last descriptor of the pipe. DISABLE closes it.
  CHECK(d.disable() == 0);
  while (::read(ends[0], &byte, 1) == 1) {}
  ::close(ends[0]);
  send(process.link(), 1);
  CHECK(process.status() == 0);
}

TEST_CASE("a session that ends before the process opens a device leaves nothing for it") {
  Child process("(process) opens a device when it is asked to");
  const Debugger d(receive<std::uint32_t>(process.link()));
  REQUIRE(d.trace() == 0);
  CHECK(d.enable() == 0);
  CHECK(d.disable() == 0);
  CHECK(d.disable() == ESRCH);
  send(process.link(), 1);
  CHECK(receive<int>(process.link()) == 0);  // without a debugger, RUNTIME_ENABLE does not wait
  CHECK(receive<int>(process.link()) == 0);
  CHECK(d.disable() == EINVAL);
  send(process.link(), 1);
  CHECK(process.status() == 0);
}

TEST_CASE("a process debugs itself without a tracer") {
  const Debugger self(static_cast<std::uint32_t>(::getpid()));
  CHECK(self.disable() == EINVAL);
  CHECK(self.enable() == 0);
  CHECK(self.enable() == EALREADY);
  CHECK(self.queues().empty());
  CHECK(self.disable() == 0);
}

TEST_CASE("a snapshot: where each queue is, how many exist, and entries of every size") {
  Debuggee t;
  std::map<std::uint32_t, State> made{{t.state.id, t.state}};
  for (const std::uint32_t where : {1u, 2u, 5u}) {
    t.tell(Order::queue, where);
    made[t.state.id] = t.state;
  }
  const Debugger d(t.pid());
  REQUIRE(d.trace() == 0);
  REQUIRE(d.enable() == 0);
  std::set<std::uint32_t> gpus;
  const auto all = d.queues();
  REQUIRE(all.size() == made.size());
  for (const auto& q : all) {
    REQUIRE(made.count(q.queue_id) == 1);
    const auto& m = made[q.queue_id];
    CHECK(q.ring == m.ring);
    CHECK(q.rptr == m.rptr);
    CHECK(q.wptr == m.wptr);
    CHECK(q.ring_bytes == 4096);
    CHECK(q.type == kfd::kQueueSdmaByEngine);
    CHECK(q.exceptions == kNew);
    gpus.insert(q.gpu_id);
  }
  CHECK(gpus.size() == 2);

  // More queues than room, room but no entry size, short entries, long entries, and a bad pointer.
  std::vector<kfd::QueueEntry> two(3);
  kfd::DebugTrap a;
  a.snapshot = {.clear = 0, .entries = reinterpret_cast<std::uint64_t>(two.data()), .count = 2, .entry_bytes = 64};
  CHECK(d.ask(a, DebugOp::queue_snapshot) == 0);
  CHECK(a.snapshot.count == 4);
  CHECK(two[1].ring == all[1].ring);
  CHECK(two[2].ring == 0);
  a.snapshot.count = 2;
  a.snapshot.entry_bytes = 0;
  CHECK(d.ask(a, DebugOp::queue_snapshot) == EINVAL);
  CHECK(a.snapshot.count == 0);
  std::uint64_t shorts[4]{};
  a.snapshot = {.clear = 0, .entries = reinterpret_cast<std::uint64_t>(shorts), .count = 2, .entry_bytes = 16};
  CHECK(d.ask(a, DebugOp::queue_snapshot) == 0);
  CHECK(a.snapshot.entry_bytes == 16);
  CHECK(shorts[1] == all[0].ring);
  CHECK(shorts[3] == all[1].ring);
  std::array<std::byte, 200> longs{};
  a.snapshot = {.clear = 0, .entries = reinterpret_cast<std::uint64_t>(longs.data()), .count = 2, .entry_bytes = 100};
  CHECK(d.ask(a, DebugOp::queue_snapshot) == 0);
  CHECK(a.snapshot.entry_bytes == sizeof(kfd::QueueEntry));
  kfd::QueueEntry second;
  std::memcpy(&second, longs.data() + 100, sizeof second);
  CHECK(second.ring == all[1].ring);
  CHECK(longs[64] == std::byte{0});
  a.snapshot = {.clear = 0, .entries = 16, .count = 1, .entry_bytes = 64};
  CHECK(d.ask(a, DebugOp::queue_snapshot) == EFAULT);

  // A clear mask clears what it names, of those that are returned.
  CHECK(d.queues(kNew).front().exceptions == kNew);
  CHECK(d.queues().front().exceptions == 0);

  std::vector<kfd::DeviceEntry> devices(4);
  std::uint32_t exist = 0;
  REQUIRE(d.snapshot(DebugOp::device_snapshot, devices, exist) == 0);
  REQUIRE(exist == 2);
  for (std::size_t g = 0; g < 2; ++g) {
    CHECK(gpus.count(devices[g].gpu_id) == 1);
    CHECK(devices[g].vendor_id == 0x1002);
    CHECK(devices[g].gfx_target == 90402);
    CHECK(devices[g].simds > 0);
    CHECK(devices[g].gpuvm_limit > devices[g].gpuvm_base);
  }
  CHECK(d.disable() == 0);
}

TEST_CASE("ENABLE and DISABLE map all queues anew where a runtime is enabled, and only there") {
  for (const std::uint32_t mode : {0u, 1u}) {
    INFO(mode);
    Debuggee t;
    t.tell(Order::destroy);
    REQUIRE(t.tell(Order::set_runtime, mode) == 0);
    t.tell(Order::queue);
    t.tell(Order::store_wptr);
    CHECK(t.tell(Order::landed, 50) == 0);  // nobody has rung
    const Debugger d(t.pid());
    REQUIRE(d.trace() == 0);
    kfd::RuntimeInfo info{};
    REQUIRE(d.enable(0, &info) == 0);
    CHECK(info.state == mode);
    CHECK(info.r_debug == (mode == 0 ? 0 : 0x1234'5678));
    CHECK(t.tell(Order::landed, mode == 0 ? 50 : 10'000) == static_cast<int>(mode));
    if (mode == 1) {
      CHECK(d.ask(DebugOp::set_address_watch) == ENODEV);
      t.tell(Order::store_wptr);
      CHECK(t.tell(Order::landed, 50) == 0);
    }
    REQUIRE(d.disable() == 0);
    CHECK(t.tell(Order::landed, mode == 0 ? 50 : 10'000) == static_cast<int>(mode));
  }
}

TEST_CASE("a debugger suspends queues until it resumes them or ends its session") {
  Debuggee t;
  t.tell(Order::destroy);
  REQUIRE(t.tell(Order::set_runtime, 1) == 0);
  t.tell(Order::queue);
  const auto id = t.state.id;
  const Debugger d(t.pid());
  REQUIRE(d.trace() == 0);
  REQUIRE(d.enable() == 0);
  constexpr auto kInvalid = kfd::kDebugQueueInvalid;
  // New to the debugger, and a number that no queue has.
  std::vector<std::uint32_t> ids{id, 99};
  CHECK(d.change(ids, true) == 0);
  CHECK(ids == std::vector{id | kInvalid, 99 | kInvalid});
  CHECK(d.queues(kNew).size() == 1);
  for (const bool ended : {false, true}) {
    INFO(ended);
    ids = {99, id};
    CHECK(d.change(ids, true) == 1);
    CHECK(ids == std::vector{99 | kInvalid, id});
    t.tell(Order::store_wptr);
    t.tell(Order::release, 1);  // rings the doorbell
    CHECK(t.tell(Order::landed, 50) == 0);
    ids = {id};
    if (ended) CHECK(d.disable() == 0);
    else CHECK(d.change(ids, false) == 1);
    CHECK(t.tell(Order::landed, 10'000) == 1);
  }
  REQUIRE(d.enable() == 0);
  kfd::DebugTrap bad;
  bad.suspend = {.exceptions = 0, .ids = 16, .count = 1, .grace = 0};
  CHECK(d.ask(bad, DebugOp::suspend_queues) == EFAULT);
  bad.suspend = {.exceptions = 0, .ids = 16, .count = 1'000'000, .grace = 0};
  CHECK(d.ask(bad, DebugOp::suspend_queues) == ENOMEM);
}

TEST_CASE("while there is a debugger, a runtime waits for it to answer, also at its end") {
  Debuggee t;
  t.tell(Order::destroy);
  const Debugger d(t.pid());
  REQUIRE(d.trace() == 0);
  REQUIRE(d.enable() == 0);
  for (const std::uint32_t mode : {1u, 0u}) {
    t.tell(Order::begin_runtime, mode);
    // Without a subscription, the debugger is not notified, and nothing is reported.
    std::this_thread::sleep_for(20ms);
    std::uint64_t notified = 0;
    CHECK(t.tell(Order::runtime_ended) == -1);
    CHECK(d.ask(DebugOp::query_debug_event) == EAGAIN);
    CHECK(::eventfd_read(d.file, &notified) == -1);
    kfd::DebugTrap a;
    a.exceptions = kRuntime;
    REQUIRE(d.ask(a, DebugOp::set_exceptions_enabled) == 0);
    // On a busy machine, the runtime begins only now.
    REQUIRE(soon([&] { return a.event = {}, d.ask(a, DebugOp::query_debug_event) == 0; }));
    CHECK(a.event.exceptions == kRuntime);
    a.event = {.exceptions = kRuntime, .gpu_id = 0, .queue_id = 0};
    REQUIRE(d.ask(a, DebugOp::query_debug_event) == 0);  // clears it
    a.event = {};
    CHECK(d.ask(a, DebugOp::query_debug_event) == EAGAIN);
    a.exceptions = 0;
    REQUIRE(d.ask(a, DebugOp::set_exceptions_enabled) == 0);
    CHECK(d.answer_runtime() == 0);
    CHECK(soon([&] { return t.tell(Order::runtime_ended) == 0; }));
  }
  CHECK(d.disable() == 0);
}

TEST_CASE("a debugger is notified of what it has asked for") {
  Debuggee t;
  const Debugger d(t.pid());
  REQUIRE(d.trace() == 0);
  int ends[2]{};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  kfd::DebugTrap a;
  a.enable = {.exceptions = kNew, .info = 0, .info_bytes = 0, .fd = static_cast<std::uint32_t>(ends[1])};
  REQUIRE(d.ask(a, DebugOp::enable) == 0);
  ::close(ends[1]);
  t.tell(Order::queue);
  char byte = 0;
  CHECK(::read(ends[0], &byte, 1) == 1);
  CHECK(byte == '.');
  a.event = {.exceptions = kNew, .gpu_id = 0, .queue_id = 0};
  CHECK(d.ask(a, DebugOp::query_debug_event) == 0);
  CHECK(a.event.exceptions == kNew);
  CHECK(a.event.gpu_id != 0);
  // The node has the last descriptor of the pipe. DISABLE closes it.
  CHECK(d.disable() == 0);
  while (::read(ends[0], &byte, 1) == 1) {}
  ::close(ends[0]);
}

TEST_CASE("a runtime's wait ends at a signal, and the next call continues; without a debugger, it does not wait") {
  Debuggee t;
  t.tell(Order::destroy);
  const Debugger d(t.pid());
  REQUIRE(d.trace() == 0);
  REQUIRE(d.enable() == 0);
  t.tell(Order::begin_runtime, 1);
  CHECK(soon([&] {
    t.tell(Order::interrupt);
    return t.tell(Order::runtime_ended) == EINTR;
  }));
  t.tell(Order::begin_runtime, 1);  // not EBUSY
  CHECK(d.answer_runtime() == 0);
  CHECK(soon([&] { return t.tell(Order::runtime_ended) == 0; }));
  CHECK(t.tell(Order::set_runtime, 1) == EBUSY);

  t.tell(Order::begin_runtime, 0);
  CHECK(soon([&] {
    t.tell(Order::interrupt);
    return t.tell(Order::runtime_ended) == EINTR;
  }));
  REQUIRE(d.disable() == 0);
  CHECK(t.tell(Order::set_runtime, 0) == 0);
}

TEST_CASE("(process) debugs", "[.]") {
  const auto pid = receive<std::uint32_t>(Child::kLink);
  const Debugger d(pid);
  send(Child::kLink, d.trace());
  send(Child::kLink, d.enable());
  char end = 0;
  (void)!::read(Child::kLink, &end, 1);
}

TEST_CASE("two debuggers: the second is refused until the first has ended, however that happens") {
  Debuggee t;
  const Debugger d(t.pid());
  {
    Child first("(process) debugs");
    send(first.link(), t.pid());
    CHECK(receive<int>(first.link()) == 0);
    CHECK(receive<int>(first.link()) == 0);
    CHECK(d.trace() == EPERM);
    CHECK(d.enable() == EPERM);
    CHECK(d.disable() == 0);  // needs no tracer, as in the kernel
    CHECK(d.disable() == EINVAL);
  }
  {
    Child first("(process) debugs");
    send(first.link(), t.pid());
    CHECK(receive<int>(first.link()) == 0);
    CHECK(receive<int>(first.link()) == 0);
    CHECK(d.ask(DebugOp::queue_snapshot) == EPERM);
    first.kill();
  }
  REQUIRE(soon([&] { return d.trace() == 0; }));
  CHECK(soon([&] { return d.enable() == 0; }));  // once the node has noticed that the first is gone
  CHECK(d.queues().size() == 1);
}

TEST_CASE("(process) debugs as another user", "[.]") {
  const auto pid = receive<std::uint32_t>(Child::kLink);
  const Debugger d(pid);
  (void)kfd_of_this_process();
  REQUIRE(::setgid(65534) == 0);
  REQUIRE(::setuid(65534) == 0);
  send(Child::kLink, d.trace());
  send(Child::kLink, d.enable());
}

TEST_CASE("another user is refused") {
  if (::getuid() != 0) return;  // only root can become another user
  Debuggee t;
  Child other("(process) debugs as another user");
  send(other.link(), t.pid());
  CHECK(receive<int>(other.link()) == EPERM);
  CHECK(receive<int>(other.link()) == EPERM);
}

TEST_CASE("64 queues, and snapshots while queues are created and destroyed") {
  Debuggee t;
  for (std::uint32_t i = 1; i < 64; ++i) REQUIRE(t.tell(Order::queue, i % 32) == 0);
  const Debugger d(t.pid());
  REQUIRE(d.trace() == 0);
  REQUIRE(d.enable() == 0);
  CHECK(d.queues().size() == 64);
  t.begin(Order::churn);
  t.end();
  std::size_t least = 1000, most = 0;
  const auto until = Deadline::in(20s);
  for (int n = 0; n < 200 || (least == most && !until.passed()); ++n) {
    std::set<std::uint32_t> ids;
    const auto all = d.queues();
    for (const auto& q : all) {
      CHECK(q.ring != 0);
      CHECK(ids.insert(q.queue_id).second);
    }
    least = std::min(least, all.size());
    most = std::max(most, all.size());
    if (n % 10 == 0) {
      REQUIRE(d.disable() == 0);
      REQUIRE(d.enable() == 0);
    }
  }
  CHECK(least == 64);
  CHECK(most == 65);
  t.begin(Order::destroy);
  CHECK(t.end() > 0);  // of churn
  t.end();
  CHECK(d.queues().size() == 63);
}

TEST_CASE("a process that ends while it is debugged: ESRCH") {
  auto t = std::make_unique<Debuggee>();
  const Debugger d(t->pid());
  REQUIRE(d.trace() == 0);
  REQUIRE(d.enable() == 0);
  bool told = false;
  std::thread end([&] { told = t->try_begin(Order::end) && t->try_end(); });
  int error = 0;
  soon([&] {
    std::vector<kfd::QueueEntry> all(4);
    std::uint32_t exist = 0;
    error = d.snapshot(DebugOp::queue_snapshot, all, exist);
    return error != 0;
  });
  const int disabled = d.disable();
  end.join();
  t->over = true;
  CHECK(told);
  CHECK(error == ESRCH);
  CHECK(disabled == ESRCH);
}

TEST_CASE("memory of the driver does not answer process_vm_readv, and answers /proc/PID/mem") {
  Debuggee t;
  const auto pid = static_cast<pid_t>(t.pid());
  std::uint64_t value = 1;
  const iovec mine{&value, sizeof value}, theirs{reinterpret_cast<void*>(t.state.rptr), sizeof value};
  CHECK(::process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == -1);
  CHECK(errno == EFAULT);
  CHECK(::process_vm_writev(pid, &mine, 1, &theirs, 1, 0) == -1);
  CHECK(errno == EFAULT);
  const int mem = ::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(mem >= 0);
  CHECK(::pread(mem, &value, sizeof value, static_cast<off_t>(t.state.rptr)) == sizeof value);
  CHECK(value == 0);
  ::close(mem);
}
