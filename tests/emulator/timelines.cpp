// SPDX-License-Identifier: MIT
// A runtime that drives KFD itself, without ROCr and without AQL: on each GPU a compute queue of PM4, which is bound to
// an indirect buffer, and an sDMA queue. Both wait for, post and time signals of a timeline, and wake the host by an
// event. No kernel is dispatched. Run under `sdma emulate`.
#include "../../lib/device/kfd/raw_client.hpp"
#include "pm4_words.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"

#include "support/catch.hpp"

#include <memory>
#include <numeric>
#include <vector>

using namespace sdma::raw;
using namespace pm4_words;
using namespace sdma;

namespace {

/// A signal of the timeline: a value that only grows, and a timestamp.
struct Signal {
  static constexpr std::uint64_t kBytes = 64, kTime = 8;
  const Memory& memory;
  std::uint64_t at;
  std::uint64_t va() const { return memory.va + at; }
  std::uint32_t value() const { return __atomic_load_n(memory.as<std::uint32_t>(at), __ATOMIC_ACQUIRE); }
  std::uint64_t time() const { return *memory.as<std::uint64_t>(at + kTime); }
};

/// What the queues of a process share: the event that they raise, and its mailbox.
struct Shared {
  Client client{};
  Memory signals = client.allocate(4096);
  std::uint32_t event{};
  std::uint64_t mailbox{};
  Shared() {
    const auto& page = event_page(client);
    kfd::CreateEvent e{};
    e.auto_reset = 1;
    REQUIRE(call(client.kfd, Nr::create_event, e) == 0);
    event = e.event_id;
    mailbox = page.va + e.slot * 8;
  }
  ~Shared() {
    kfd::EventId e{.event_id = event, .pad = 0};
    call(client.kfd, Nr::destroy_event, e);
    client.free(signals);
  }
  Signal signal(std::uint64_t n) const { return {signals, n * Signal::kBytes}; }
  /// Blocks until the signal has the value. An event that came early costs one more wait.
  bool wait(const Signal& s, std::uint32_t value) {
    kfd::EventData data{};
    data.event_id = event;
    for (int i = 0; i < 100 && s.value() < value; ++i) {
      kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data),
                        .count = 1,
                        .wait_for_all = 0,
                        .timeout_ms = 200,
                        .result = 0};
      REQUIRE(call(client.kfd, Nr::wait_events, w) == 0);
    }
    return s.value() >= value;
  }
};

/// A compute queue: commands are collected in a buffer, and the ring gets a jump to it.
class Compute {
 public:
  Compute(Shared& s, std::uint32_t gpu) : shared_(s), queue_(s.client, gpu, kfd::kQueueCompute, 0, 1 << 16) {
    REQUIRE(queue_.error == 0);
    xccs_ = s.client.node.gpus[gpu].xcc;
    buffer_ = s.client.allocate(1 << 16, gpu);
  }
  ~Compute() {
    queue_.destroy();
    shared_.client.free(buffer_);
  }
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  Compute& memory_barrier() {
    packet(0x3c, {5u | 1u << 6, 0xe26, 0xe27, ~0u, ~0u, 4});            // the HDP
    return packet(0x58, {0x3fu << 22 | 3u << 15, ~0u, ~0u, 0, 0, 10});  // ACQUIRE_MEM
  }
  Compute& wait(const Signal& s, std::uint32_t value) {
    return packet(0x3c, {5u | 1u << 4, low(s.va()), high(s.va()), value, ~0u, 4});
  }
  Compute& timestamp(const Signal& s) {
    const auto va = s.va() + Signal::kTime;
    return on_first_xcc([&] { release(va, 0, 3, 0, 0); });
  }
  Compute& signal(const Signal& s, std::uint32_t value) {
    return on_first_xcc([&] {
      release(s.va(), value, 1, 2, 0);
      release(shared_.mailbox, shared_.event, 1, 2, shared_.event);
    });
  }
  /// All XCCs meet: each adds one, and waits until the sum is a multiple of their number.
  Compute& xcc_barrier(std::uint64_t a, std::uint64_t b) {
    for (const auto va : {a, b}) {
      packet(0x1e, {0x0f, low(va), high(va), 1, 0, 0, 0, 16});
      packet(0x3c, {3u | 1u << 4, low(va), high(va), 0, xccs_ - 1, 4});
    }
    return *this;
  }
  void submit() {
    const auto dwords = static_cast<std::uint32_t>(commands_.size());
    REQUIRE((used_ + dwords) * 4 <= buffer_.bytes);
    const auto at = used_ * 4;
    std::copy(commands_.begin(), commands_.end(), buffer_.as<std::uint32_t>(at));
    used_ += dwords;
    commands_.clear();
    const auto va = buffer_.va + at;
    for (const auto d : {3u << 30 | 2u << 16 | 0x3fu << 8, low(va), high(va), dwords | 1u << 23})
      queue_.ring.as<std::uint32_t>()[written_++ % (queue_.ring.bytes / 4)] = d;
    __atomic_store_n(queue_.pointers.as<std::uint64_t>(64), written_, __ATOMIC_RELEASE);
    __atomic_store_n(queue_.doorbell, written_, __ATOMIC_RELEASE);
  }

 private:
  Compute& packet(std::uint32_t opcode, std::initializer_list<std::uint32_t> body) {
    commands_.push_back(3u << 30 | static_cast<std::uint32_t>(body.size() - 1) << 16 | opcode << 8);
    commands_.insert(commands_.end(), body);
    return *this;
  }
  void release(std::uint64_t va, std::uint64_t value, std::uint32_t data, std::uint32_t interrupt,
               std::uint32_t context) {
    packet(0x49, {0x14u | 5u << 8 | 1u << 15 | 1u << 19, data << 29 | interrupt << 24, low(va), high(va), low(value),
                  high(value), context});
  }
  template <class Fn> Compute& on_first_xcc(Fn fn) {
    if (xccs_ > 1) packet(0x23, {1u << 24});
    const auto predicate = commands_.size() - 1, before = commands_.size();
    fn();
    if (xccs_ > 1) commands_[predicate] |= static_cast<std::uint32_t>(commands_.size() - before);
    return *this;
  }

  Shared& shared_;
  Queue queue_;
  Memory buffer_;
  std::vector<std::uint32_t> commands_{};
  std::uint32_t xccs_ = 1;
  std::uint64_t used_ = 0, written_ = 0;
};

/// An sDMA queue with the same operations.
class Copies {
 public:
  Copies(Shared& s, std::uint32_t gpu)
      : shared_(s), queue_(s.client, gpu, kfd::kQueueSdma, 0, 1 << 16), ring_(queue_.memory()) {
    REQUIRE(queue_.error == 0);
  }
  void copy(const Signal& after, std::uint32_t value, GpuVa dst, GpuVa src, std::uint32_t bytes, const Signal& begun,
            const Signal& done, std::uint32_t posts) {
    REQUIRE(
        ring_.submit(
            PollMem{.addr = GpuVa{after.va()}, .func = Compare::ge, .reference = value},
            Timestamp{.addr = GpuVa{begun.va() + Signal::kTime}}, CopyLinear{.src = src, .dst = dst, .bytes = bytes},
            Timestamp{.addr = GpuVa{done.va() + Signal::kTime}}, Fence{.addr = GpuVa{done.va()}, .value = posts},
            Fence{.addr = GpuVa{shared_.mailbox}, .value = shared_.event}, Trap{.context = shared_.event}) == Errc::ok);
  }

 private:
  Shared& shared_;
  Queue queue_;
  Ring<> ring_;
};

}  // namespace

TEST_CASE("a compute queue posts a timeline, and the host sleeps until it has") {
  Shared shared;
  const auto s = shared.signal(0), t = shared.signal(1);
  Compute q(shared, 0);
  for (std::uint32_t n = 1; n <= 50; ++n) {
    q.memory_barrier().timestamp(s).wait(s, n - 1).timestamp(t).signal(s, n).submit();
    REQUIRE(shared.wait(s, n));
    CHECK(s.time() != 0);
    CHECK(t.time() >= s.time());
  }
}

TEST_CASE("a compute queue stalls until the host posts") {
  Shared shared;
  const auto gate = shared.signal(0), s = shared.signal(1);
  Compute q(shared, 0);
  q.wait(gate, 3).signal(s, 1).submit();
  for (std::uint32_t v = 0; v < 3; ++v) {
    __atomic_store_n(shared.signals.as<std::uint32_t>(gate.at), v, __ATOMIC_RELEASE);
    ::usleep(2000);
    CHECK(s.value() == 0);
  }
  __atomic_store_n(shared.signals.as<std::uint32_t>(gate.at), 3u, __ATOMIC_RELEASE);
  CHECK(shared.wait(s, 1));
}

TEST_CASE("all XCCs meet at a barrier") {
  Shared shared;
  const auto s = shared.signal(0), a = shared.signal(1), b = shared.signal(2);
  Compute q(shared, 0);
  for (std::uint32_t n = 1; n <= 5; ++n) q.xcc_barrier(a.va(), b.va()).signal(s, n).submit();
  REQUIRE(shared.wait(s, 5));
  CHECK(a.value() == 5 * shared.client.node.gpus[0].xcc);
  CHECK(b.value() == a.value());
}

TEST_CASE("compute and copy queues of all GPUs wait for each other, through a timeline") {
  Shared shared;
  auto& c = shared.client;
  const auto gpus = static_cast<std::uint32_t>(c.node.gpus.size());
  constexpr std::uint32_t kBytes = 1 << 20;
  std::vector<Memory> memory;
  std::vector<std::unique_ptr<Compute>> compute;
  std::vector<std::unique_ptr<Copies>> copies;
  for (std::uint32_t g = 0; g < gpus; ++g) {
    memory.push_back(c.allocate(kBytes, g, kfd::kVram));
    compute.push_back(std::make_unique<Compute>(shared, g));
    copies.push_back(std::make_unique<Copies>(shared, g));
  }
  auto host = c.allocate(kBytes);
  const auto line = shared.signal(0), begun = shared.signal(1), done = shared.signal(2);
  std::uint32_t at = 0;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    std::iota(host.as<std::uint32_t>(), host.as<std::uint32_t>() + kBytes / 4, round * 1000);
    auto from = host.gpu();
    for (std::uint32_t g = 0; g < gpus; ++g) {
      // The copy begins when the compute queue has posted, and the next compute queue waits for the copy.
      compute[g]->memory_barrier().wait(line, at).signal(line, at + 1).submit();
      copies[g]->copy(line, at + 1, memory[g].gpu(), from, kBytes, begun, done, at + 2);
      compute[(g + 1) % gpus]->wait(done, at + 2).signal(line, at + 2).submit();
      from = memory[g].gpu();
      at += 2;
    }
    REQUIRE(shared.wait(line, at));
    for (std::uint32_t i = 0; i < kBytes / 4; i += 997)
      REQUIRE(memory.back().as<std::uint32_t>()[i] == round * 1000 + i);
    CHECK(done.time() >= begun.time());
    CHECK(begun.time() != 0);
  }
  compute.clear();
  copies.clear();
  for (auto& m : memory) c.free(m);
  c.free(host);
}
