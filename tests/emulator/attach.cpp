// SPDX-License-Identifier: MIT
// The queues of a live process, as sdma/doctor/attach.hpp finds them. Part of the program of debugger.cpp.
#include "sdma/doctor/attach.hpp"
#include "../../lib/device/kfd/raw_client.hpp"
#include "debuggee.hpp"
#include "sdma/core/file.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/dump/descriptors.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/stream/reader.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace sdma;
using namespace std::chrono_literals;
using doctor::Snapshot;

namespace {

constexpr const char* kMqds = "/sys/kernel/debug/kfd/mqds";
constexpr doctor::AttachOptions kAttach{.attach = true, .watch = 1ms};

Snapshot snapshot_of(int pid) {
  auto s = doctor::examine(pid, kAttach);
  INFO((s ? "" : to_string(s.error())));
  REQUIRE(s);
  return std::move(*s);
}
std::string refusal(int pid, const doctor::AttachOptions& o = kAttach) {
  const auto s = doctor::examine(pid, o);
  return s ? "examined" : s.error().message;
}
bool has_note(const Snapshot& s, std::string_view part) {
  return std::any_of(s.notes.begin(), s.notes.end(), [&](auto& n) { return n.find(part) != n.npos; });
}
template <class T> Errc peek(const Snapshot& s, std::uint64_t va, T& value) {
  return s.peek(GpuVa{va}, std::as_writable_bytes(std::span(&value, 1)));
}

bool is_root() { return ::geteuid() == 0; }

}  // namespace

TEST_CASE("a queue at a poll: its ring, its positions, its word, as they are in its process") {
  Debuggee t;
  t.tell(Order::poll, 7);
  t.tell(Order::post, 6);
  const auto s = snapshot_of(t.state.pid);
  REQUIRE(s.queues.size() == 1);
  const auto& q = s.queues[0];
  CHECK(s.from.starts_with("process " + std::to_string(t.state.pid) + " ("));
  CHECK(q.name == "gpu 0 queue 0");
  REQUIRE(q.gpu);
  CHECK(q.gpu.value == GpuId{0});
  CHECK(q.ring_va.value == GpuVa{t.state.ring});
  CHECK(q.ring_va.from == doctor::Source::driver);
  CHECK(q.ring.size() == 1024);
  CHECK(q.ring_bytes.value == 4096);
  REQUIRE(q.rptr);
  REQUIRE(q.rptr_first);
  REQUIRE(q.wptr);
  CHECK(q.rptr.from == doctor::Source::memory);
  CHECK(q.rptr.value <= q.wptr.value);
  CHECK(q.wptr.value == length(PollMem{}) * 4);
  CHECK(q.engines.value == 16);
  // Only root may read the debugfs that names the engine.
  CHECK(static_cast<bool>(q.engine) == is_root());
  if (is_root()) CHECK(q.engine.value == EngineId{0});
  CHECK(!q.doorbell);
  CHECK(has_note(s, "engines of the queues are not known") != is_root());
  CHECK(q.exceptions.value == kfd::exception_bit(kfd::kExceptionQueueNew));
  const auto first = Reader{q.ring}.next();
  REQUIRE(first.is<PollMem>());
  CHECK(decode<PollMem>(first.dwords).addr == GpuVa{t.state.word});
  CHECK(decode<PollMem>(first.dwords).reference == 7);
  CHECK(s.all_queues);
  CHECK(s.watched_ns >= 1'000'000);
  CHECK(!has_note(s, "runtime"));

  std::uint32_t word = 0;
  CHECK(peek(s, t.state.word, word) == Errc::ok);
  CHECK(word == 6);
  // Not mapped, and a doorbell: neither is read.
  CHECK(peek(s, 64, word) == Errc::unmapped);
  CHECK(peek(s, ~std::uint64_t{0} - 1, word) == Errc::unmapped);
  CHECK(peek(s, t.state.doorbell, word) == Errc::unmapped);
  const auto in = [&](std::uint64_t va) {
    return std::find_if(s.ranges.begin(), s.ranges.end(), [&](auto& r) { return va - r.va.value < r.bytes; });
  };
  REQUIRE(in(t.state.doorbell) != s.ranges.end());
  CHECK(in(t.state.doorbell)->kind == doctor::Range::Kind::doorbell);
  CHECK(in(t.state.ring)->name == "ring of gpu 0 queue 0");
  CHECK(in(t.state.word)->name == "memory of the driver");
  CHECK(in(64) == s.ranges.end());
}

TEST_CASE("without a session, nothing in the process changes, and a note says what is missing") {
  Debuggee t;
  t.tell(Order::destroy);
  REQUIRE(t.tell(Order::set_runtime, 1) == 0);
  t.tell(Order::queue);
  t.tell(Order::store_wptr);
  const auto s = doctor::examine(t.state.pid, {.watch = 1ms});
  REQUIRE(s);
  CHECK(s->queues.size() == is_root());
  CHECK(!s->all_queues);
  CHECK(has_note(*s, is_root() ? "no addresses of write pointers" : "no queue was examined"));
  if (is_root()) {
    CHECK(s->queues[0].name == "gpu 0 queue 0 (engine 0 slot 0)");
    CHECK(s->queues[0].ring_va.value == GpuVa{t.state.ring});
    CHECK(s->queues[0].rptr);
    CHECK(!s->queues[0].wptr);
  }
  CHECK(t.tell(Order::landed, 50) == 0);

  // With one, the doorbell that was not rung is made up for.
  const auto attached = snapshot_of(t.state.pid);
  CHECK(attached.queues.size() == 1);
  CHECK(has_note(attached, "a doorbell was lost before"));
  CHECK(t.tell(Order::landed, 10'000) == 1);
}

TEST_CASE("debugfs shows root the queues of all processes, and which engine each is on") {
  if (!is_root()) {
    CHECK(::open(kMqds, O_RDONLY) == -1);
    CHECK(errno == EACCES);
    CHECK(::access(kMqds, R_OK) == -1);
    return;
  }
  Debuggee a, b;
  a.tell(Order::queue, 2 * 5 + 1);  // engine 5 of GPU 1
  b.tell(Order::poll, 7);
  b.tell(Order::queue, 2 * 0);  // both queues of GPU 0 were unmapped for it
  const auto mine = [&](const Debuggee& d) {
    const auto text = read_file(kMqds);
    REQUIRE(text);
    auto all = read_descriptors(*text, kMqds);
    REQUIRE(all);
    std::erase_if(all->queues, [&](auto& q) { return q.process != d.pid(); });
    return all->queues;
  };
  auto of_a = mine(a);
  REQUIRE(of_a.size() == 2);
  CHECK(of_a[0].engine() == 0u);
  CHECK(of_a[1].engine() == 5u);
  CHECK(of_a[1].queue() == 0u);
  CHECK(of_a[0].device != of_a[1].device);
  CHECK(of_a[1].value("ring_base") == a.state.ring);
  CHECK(of_a[1].value("ring_bytes") == 4096u);
  CHECK(of_a[1].value("rptr_va") == a.state.rptr);
  const auto of_b = mine(b);
  REQUIRE(of_b.size() == 2);
  CHECK(of_b[0].value("wptr") == length(PollMem{}) * 4);
  // The slots of an engine are those of all processes.
  CHECK(of_a[0].queue() == 0u);
  CHECK(of_b[0].queue() == 1u);
  CHECK(of_b[1].queue() == 2u);
  CHECK(of_b[1].value("wptr") == 0u);
  a.tell(Order::destroy);
  CHECK(mine(a).size() == 1);
  struct stat s {};
  REQUIRE(::stat(kMqds, &s) == 0);
  CHECK((s.st_mode & 0777) == 0400);
}

TEST_CASE("a poll and its release on one engine") {
  if (!is_root()) return;  // the engines are not known
  Debuggee t;
  const auto options = std::string(std::getenv("SDMA_EMULATE_ORDER") ? std::getenv("SDMA_EMULATE_ORDER") : "");
  bool held = false;
  // Whether a poll that waits keeps its engine is not documented: the adversarial order decides it for each poll.
  for (std::uint32_t engine = 1; engine < 16 && !held; ++engine) {
    t.tell(Order::queue, 2 * engine);
    t.tell(Order::poll, 100 + engine);
    const auto ring = t.state.ring;
    t.tell(Order::queue, 2 * engine);
    t.tell(Order::release, 100 + engine);
    auto s = doctor::examine(t.state.pid, {.attach = true, .watch = 50ms});
    REQUIRE(s);
    const auto d = diagnose(*s);
    const auto& f = d.findings.front();
    // A poll that is over, whose word has changed since, is not decided.
    if (d.verdict() != doctor::Verdict::hung) continue;
    held = true;
    INFO(to_text(d));
    CHECK(f.what == doctor::HangClass::one_engine);
    REQUIRE(f.queue);
    CHECK(s->queues[*f.queue].ring_va.value == GpuVa{ring});
    CHECK(s->queues[*f.queue].engine.value == EngineId{engine});
    CHECK(s->queues[*f.queue].engine.from == doctor::Source::driver);
    REQUIRE(f.release.place);
    CHECK(f.release.place->queue == *f.queue + 1);
    // The queue that would release it hangs for that reason, and for no other. Earlier ones are not accused.
    for (const auto& other : d.findings)
      if (other.queue == *f.queue + 1) CHECK(other.what == doctor::HangClass::follows);
      else CHECK((&other == &f || other.basis == doctor::Basis::guessed));
    CHECK(std::any_of(d.findings.begin(), d.findings.end(), [&](auto& x) { return x.queue == *f.queue + 1; }));
  }
  CHECK(held == (options == "adversarial"));
}

TEST_CASE("a queue that moves while it is watched") {
  // A busy machine may read the queue for the first time only after the post, or end before it: then all takes longer.
  for (auto delay = 100ms;; delay *= 4) {
    Debuggee t;
    t.tell(Order::poll, 7);
    std::thread post([&] {
      std::this_thread::sleep_for(delay);
      t.tell(Order::post, 7);
    });
    const auto s = doctor::examine(t.state.pid, {.attach = true, .watch = 10 * delay});
    post.join();
    REQUIRE(s);
    REQUIRE(s->queues.size() == 1);
    const auto& q = s->queues[0];
    if (delay < 6s && (q.rptr_first.value != 0 || q.rptr.value != q.wptr.value)) continue;
    CHECK(q.rptr_first.value == 0);
    CHECK(q.rptr.value == q.wptr.value);
    break;
  }
}

TEST_CASE("a sentence for each process that cannot be examined") {
  CHECK(refusal(0x7fff'fff0) == "there is no such process");
  CHECK(refusal(0) == "there is no such process");
  CHECK(refusal(-1) == "there is no such process");
  struct stat init {};
  const bool may = is_root() || (::stat("/proc/1", &init) == 0 && init.st_uid == ::geteuid());
  CHECK(refusal(1) == (may ? "does not use a GPU: it has not opened /dev/kfd" : "this user may not examine it"));
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  CHECK(soon([&] { return refusal(ended) == "has ended, and its parent has not noticed"; }));
  ::waitpid(ended, nullptr, 0);

  Debuggee t;
  Child first("(process) debugs");
  send(first.link(), t.state.pid);
  CHECK(receive<int>(first.link()) == 0);
  CHECK(receive<int>(first.link()) == 0);
  CHECK(refusal(t.state.pid).find("is debugged by process ") == 0);
  first.kill();
  CHECK(soon([&] { return refusal(t.state.pid) == "examined"; }));
}

TEST_CASE("(process) examines", "[.]") {
  const auto pid = receive<int>(Child::kLink);
  const auto user = receive<unsigned>(Child::kLink);
  if (user != 0) REQUIRE((::setgid(user) == 0 && ::setuid(user) == 0));
  send(Child::kLink, refusal(pid) == "this user may not examine it" && (user == 0 || !read_file(kMqds)));
  for (int n = 0; n < 20; ++n) {
    const auto why = refusal(pid);
    send(Child::kLink, why == "examined" ? 1 : why.find("is debugged") == 0 ? 2 : 3);
  }
}

TEST_CASE("another user may not examine a process") {
  if (::getuid() != 0) return;  // only root can become another user
  Debuggee t;
  Child other("(process) examines");
  send(other.link(), t.state.pid);
  send(other.link(), 65534u);
  CHECK(receive<bool>(other.link()));
  for (int n = 0; n < 20; ++n) CHECK(receive<int>(other.link()) == 3);
}

TEST_CASE("two at once: each is answered") {
  Debuggee t;
  for (std::uint32_t i = 1; i < 64; ++i) REQUIRE(t.tell(Order::queue, i % 32) == 0);
  Child a("(process) examines"), b("(process) examines");
  for (const auto* c : {&a, &b}) {
    send(c->link(), t.state.pid);
    send(c->link(), 0u);
  }
  for (const auto* c : {&a, &b}) CHECK(!receive<bool>(c->link()));
  for (int n = 0; n < 20; ++n)
    for (const auto* c : {&a, &b}) CHECK(receive<int>(c->link()) == 1);
  CHECK(snapshot_of(t.state.pid).queues.size() == 64);
}

TEST_CASE("the process ends, and queues come and go, while it is examined") {
  Debuggee t;
  t.begin(Order::churn);
  t.end();
  for (int n = 0; n < 50; ++n) {
    const auto s = snapshot_of(t.state.pid);
    REQUIRE(!s.queues.empty());
    CHECK(s.queues[0].rptr);
    for (const auto& q : s.queues)
      if (!q.rptr && !q.wptr && q.ring.empty()) CHECK(has_note(s, q.name + " cannot be read"));
  }
  const auto pid = t.state.pid;
  bool told = false;
  std::thread end([&] {
    told = t.try_begin(Order::end) && t.try_end() && t.try_end();
    t.over = true;
  });
  const bool gone = soon([&] {
    const auto why = refusal(pid);
    return why == "has ended" || why == "there is no such process" || why.find("has ended,") == 0;
  });
  end.join();
  CHECK(told);
  CHECK(gone);
}

TEST_CASE("no signal of the process is lost, and none waits, while it is examined again and again") {
  Debuggee t;
  t.begin(Order::alarms);
  t.end();
  for (int n = 0; n < 100; ++n) CHECK(snapshot_of(t.state.pid).queues.size() == 1);
  t.begin(Order::post);
  CHECK(t.end() > 0);
  t.end();
}

TEST_CASE("a runtime that comes and goes while the process is examined does not wait for ever") {
  Debuggee t;
  t.tell(Order::destroy);
  const auto pid = t.state.pid;
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, failed{0}, slow{0};
  std::thread runtime([&] {
    for (; !stop; calls += 2)
      for (const std::uint32_t mode : {1u, 0u}) {
        // One answer is in reserve, which covers one call before the session ends. No runtime is faster than this.
        std::this_thread::sleep_for(5ms);
        const auto began = std::chrono::steady_clock::now();
        failed += !t.try_begin(Order::set_runtime, mode) || !t.try_end() || t.state.result != 0;
        slow += std::chrono::steady_clock::now() - began >= 60s;
      }
  });
  int answered = 0;
  const auto until = Deadline::in(20s);
  for (int n = 0; n < 200 || (answered == 0 && !until.passed()); ++n)
    answered += has_note(snapshot_of(pid), "was answered");
  stop = true;
  runtime.join();
  CHECK(failed == 0);
  CHECK(slow == 0);
  CHECK(answered > 0);
  CHECK(calls > 0);
}
