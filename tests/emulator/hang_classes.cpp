// SPDX-License-Identifier: MIT
// A program that hangs in the way that its argument names, for `sdma doctor PID`: hang_classes CLASS. The classes are
// those of docs/doctor.md; `cycle-2`, `cycle-3` and `cycle-8` are cycles of so many queues, and `slow` is a healthy
// queue that copies for ever. Its queues are made with ioctls alone. It prints its process id when its queues are in
// that state, and then waits to be killed.
#include "../../lib/device/kfd/raw_client.hpp"
#include "attachable.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

using namespace sdma::raw;
using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kBytes = 4096;

/// A queue whose producer may do anything wrong: packets, wptr and doorbell are written one by one.
class Line {
 public:
  Line(Client& c, std::uint32_t gpu, std::uint32_t engine) : queue_(c, gpu, kfd::kQueueSdmaByEngine, engine) {
    if (queue_.error == 0) return;
    std::printf("engine %u: error %d\n", engine, queue_.error);
    std::exit(2);
  }
  template <class... P> Line& put(const P&... p) {
    const auto one = [&](const auto& packet) {
      std::uint32_t d[64];
      const auto n = static_cast<std::size_t>(encode_to(packet, d) - d);
      for (std::size_t i = 0; i < n; ++i) put_dword(d[i]);
    };
    (one(p), ...);
    return *this;
  }
  Line& put_dword(std::uint32_t v) {
    auto& m = ring();
    m.dwords[at_ / 4 % m.dwords.size()] = v;
    at_ += 4;
    return *this;
  }
  Line& pad(std::uint64_t to) {
    while (at_ < to) put(Nop{1});
    return *this;
  }
  void wptr(std::uint64_t v) { order::Native::store(ring().wptr, v, std::memory_order_release); }
  void ring_bell(std::uint64_t v) { order::Native::store(ring().doorbell, v, std::memory_order_release); }
  void publish(std::uint64_t v) { wptr(v), ring_bell(v); }
  void publish() { publish(at_); }
  /// Until rptr is there; hardware may keep it before or after a poll that waits, so give the position before it.
  void reached(std::uint64_t v) {
    for (int i = 0; i < 10'000 && order::Native::load(ring().rptr, std::memory_order_acquire) < v; ++i)
      std::this_thread::sleep_for(1ms);
  }
  std::uint64_t at() const { return at_; }
  std::uint64_t bytes() { return ring().dwords.size_bytes(); }
  std::uint32_t& dword(std::uint64_t at) { return ring().dwords[at / 4]; }
  Queue& queue() { return queue_; }

 private:
  RingMemory& ring() {
    if (memory_.dwords.empty()) memory_ = queue_.memory();
    return memory_;
  }
  Queue queue_;
  RingMemory memory_{};
  std::uint64_t at_ = 0;
};

struct Stage {
  Client client;
  Memory data = client.allocate(2 * kBytes), words = client.allocate(kBytes), more_words = client.allocate(kBytes);
  std::vector<std::unique_ptr<Line>> lines;

  /// Every queue has an engine of its own.
  Line& line() {
    const auto n = static_cast<std::uint32_t>(lines.size());
    return *lines.emplace_back(std::make_unique<Line>(client, n % 2, n / 2));
  }
  GpuVa word(std::uint64_t i) const { return words.gpu(i * 64); }
  void set(std::uint64_t i, std::uint32_t v) const {
    __atomic_store_n(words.as<std::uint32_t>(i * 64), v, __ATOMIC_RELEASE);
  }
  CopyLinear copy() const { return {.src = data.gpu(), .dst = data.gpu(kBytes), .bytes = kBytes}; }
  PollMem poll(std::uint64_t i, std::uint32_t v = 1) const {
    return {.addr = word(i), .func = Compare::ge, .reference = v};
  }
  Fence fence(std::uint64_t i, std::uint32_t v = 1) const { return {.addr = word(i), .value = v}; }
};

void cycle(Stage& s, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) s.line().put(s.poll(i), s.fence((i + 1) % n)).publish();
}

const std::map<std::string, std::function<void(Stage&)>> kClasses{
    {"never-written", [](Stage& s) { s.line().put(s.poll(0), s.copy()).publish(); }},
    {"wrong-value",
     [](Stage& s) {
       auto wanted = s.poll(0, 2);
       wanted.func = Compare::eq;
       s.line().put(wanted, s.copy()).publish();
       s.line().put(s.copy(), s.fence(0, 1)).publish();
     }},
    {"wrong-half",
     [](Stage& s) {
       auto high = s.poll(0);
       high.addr = high.addr + 4;
       s.line().put(high, s.copy()).publish();
       s.line().put(Atomic{.addr = s.word(0), .value = 1}).publish();
     }},
    {"beyond-mask",
     [](Stage& s) {
       s.line()
           .put(PollMem{.addr = s.word(0), .func = Compare::eq, .reference = 511, .mask = 0xff}, s.copy())
           .publish();
     }},
    {"stale-epoch",
     [](Stage& s) {
       s.line().put(s.poll(0, 1), s.poll(0, 2), s.copy()).publish();
       s.line().put(s.fence(0, 1), s.copy(), s.fence(0, 1)).publish();
     }},
    {"cycle-2", [](Stage& s) { cycle(s, 2); }},
    {"cycle-3", [](Stage& s) { cycle(s, 3); }},
    {"cycle-8", [](Stage& s) { cycle(s, 8); }},
    {"one-engine", [](Stage& s) { s.line().put(s.poll(0), s.copy(), s.fence(0)).publish(); }},
    {"doorbell-not-rung",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.copy(), s.fence(0)).wptr(q.at());
     }},
    {"wptr-not-stored",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.copy(), s.fence(0)).ring_bell(q.at());
       q.reached(q.at());
     }},
    {"wptr-inside-packet",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.fence(0), s.copy()).publish(q.at() - 8);
     }},
    {"cut-by-wrap",
     [](Stage& s) {
       auto& q = s.line();
       q.pad(q.bytes() - 12).publish();
       q.reached(q.at());
       q.put(s.copy(), s.fence(0)).publish();
     }},
    {"unknown-opcode",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.copy()).put_dword(0xee).put(s.fence(0)).publish();
     }},
    {"header-overwritten",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.copy(), s.poll(0));
       const auto header = q.at();
       q.put(s.copy(), s.fence(1)).publish();
       q.reached(length(s.copy()) * 4);
       q.dword(header) = 0xdeadbeef;
       s.set(0, 1);
     }},
    {"overrun",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.poll(0)).pad(q.bytes() + 64).publish();
     }},
    {"full-ring",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.poll(0)).pad(q.bytes() - 4).publish();
     }},
    {"fault",
     [](Stage& s) {
       auto bad = s.copy();
       bad.src = GpuVa{0x123456789000};
       s.line().put(bad, s.fence(0)).publish();
     }},
    {"destroyed",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.copy(), s.poll(0), s.copy()).publish();
       q.reached(length(s.copy()) * 4);
       s.line().put(s.copy(), s.fence(1)).publish();
       q.queue().destroy();
     }},
    {"no-such-engine", [](Stage& s) { s.lines.emplace_back(std::make_unique<Line>(s.client, 0, 16)); }},
    {"poll-expired",
     [](Stage& s) {
       auto finite = s.poll(0);
       finite.retry = 10;
       s.line().put(finite, s.copy()).publish();
     }},
    {"wrong-word",
     [](Stage& s) {
       s.line().put(s.poll(1), s.copy()).publish();
       s.line().put(s.copy(), Fence{.addr = s.more_words.gpu(64), .value = 1}).publish();
     }},
    {"no-mailbox",
     [](Stage& s) {
       auto& q = s.line();
       q.put(s.fence(0), Trap{.context = 3}).publish();
       q.reached(q.at());
     }},
    {"slow",
     [](Stage& s) {
       auto& q = s.line();
       std::thread([&s, &q] {
         for (;;) {
           q.put(s.copy()).publish();
           q.reached(q.at() > 512 ? q.at() - 512 : 0);
         }
       }).detach();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  let_others_attach();
  const auto way = argc == 2 ? kClasses.find(argv[1]) : kClasses.end();
  if (way == kClasses.end()) {
    std::puts("usage: hang_classes CLASS, one of:");
    for (const auto& [name, how] : kClasses) std::printf("  %s\n", name.c_str());
    return 2;
  }
  static Stage stage;
  way->second(stage);
  std::printf("%d\n", static_cast<int>(::getpid()));
  std::fflush(stdout);
  for (;;) ::pause();
}
