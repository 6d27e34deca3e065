// SPDX-License-Identifier: MIT
#pragma once
// A node that breaks some rules: a software node, and a relay between the rings that programs see and its engines'.
//
//   auto d = broken_node({Break::fences_overtake}, {.gpus = 2, .ordering = Ordering::rocr});
//
// A relay passes on what a doorbell publishes, changed as the break says. It consumes at once, so rptr is at wptr.
// Threads: as Device. Errors: those of SoftDevice.
#include "sdma/device/soft.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/sync/wait.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

namespace sdma::test {

enum class Break {
  fences_overtake,  ///< a fence lands long before the copies before it
  atomics_lost,     ///< an atomic has no effect
  rptr_early,       ///< rptr is past a copy long before the copy is complete
  dead_engine,      ///< engine 1 executes nothing
  wrong_byte,       ///< one byte in 2^20 of what copies store is missing
  hanging_engine,   ///< engine 3 stops at its second packet
  short_copies,     ///< the last byte of each copy is missing
};
using Breaks = std::set<Break>;
inline std::string_view name(Break b) {
  constexpr std::string_view kNames[] = {"fences overtake", "atomics lost",   "rptr early",  "dead engine",
                                         "wrong byte",      "hanging engine", "short copies"};
  return kNames[static_cast<std::size_t>(b)];
}

class BrokenNode final : public Device {
 public:
  BrokenNode(Breaks b, std::unique_ptr<SoftDevice> d)
      : breaks_(std::move(b)),
        d_(std::move(d)),
        slow_(*d_->allocate({.bytes = 2 * kSlow})),
        never_(*d_->allocate({.bytes = 64})) {}

  const Topology& topology() const noexcept override { return d_->topology(); }
  Result<Memory, Diagnostic> allocate(const MemoryRequest& r) override { return d_->allocate(r); }
  using Device::create_signal;
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) override { return d_->create_signal(r); }
  Result<Event, Diagnostic> create_event() override { return d_->create_event(); }
  Result<Queue, Diagnostic> create_queue(const QueueRequest& r) override {
    auto q = d_->create_queue(r);
    if (!q) return q;
    auto own = std::make_unique<Relay>(*this, std::move(*q), r.ring_bytes);
    RingMemory m = own->queue.memory();
    m.dwords = own->ring.as<std::uint32_t>();
    m.dwords = m.dwords.first(r.ring_bytes / 4);
    m.rptr = &own->words[0];
    m.wptr = &own->words[4];
    m.doorbell = nullptr;
    m.on_doorbell = [](void* relay, std::uint64_t wptr) noexcept { static_cast<Relay*>(relay)->pass(wptr); };
    m.on_doorbell_context = own.get();
    const auto gpu = own->queue.gpu();
    const auto engine = own->queue.engine();
    return Queue(
        Lease([](void* relay, std::uint64_t) noexcept { delete static_cast<Relay*>(relay); }, own.release(), 0), m, gpu,
        engine);
  }
  Errc wait_event(const Event& e, Deadline d) noexcept override { return d_->wait_event(e, d); }
  Result<Fault> wait_fault(Deadline d) noexcept override { return d_->wait_fault(d); }
  std::optional<Fault> fault(const Queue&) const noexcept override { return {}; }
  Errc flush_host_writes(GpuId g) const noexcept override { return d_->flush_host_writes(g); }
  Errc peek(GpuVa va, std::span<std::byte> to) const noexcept override { return d_->peek(va, to); }
  Result<Clock> clock(GpuId g) const noexcept override { return d_->clock(g); }

 private:
  static constexpr std::uint64_t kSlow = 1 << 22;  ///< bytes whose copy takes a while
  static constexpr std::uint64_t kOften = 1 << 20;

  struct Relay {
    BrokenNode& node;
    Queue queue;
    Ring<> inner;
    Memory ring;
    alignas(64) std::array<std::uint64_t, 8> words{};
    std::uint64_t passed = 0, packets = 0;
    bool hangs = false;

    Relay(BrokenNode& n, Queue q, std::uint64_t bytes)
        : node(n),
          queue(std::move(q)),
          inner(queue.memory()),
          ring(*n.d_->allocate({.bytes = bytes, .alignment = 4096})) {}

    template <class P> void give(const P& p) {
      offer([&] { return inner.submit(p) != Errc::no_space; });
    }
    void give_dwords(std::span<const std::uint32_t> d) {
      offer([&] {
        auto slot = inner.reserve(d.size());
        if (!slot) return false;
        std::copy(d.begin(), d.end(), slot->dwords.begin());
        inner.publish(*slot, d.size());
        return true;
      });
    }
    /// A queue that hangs loses what does not fit, and everything after it.
    template <class F> void offer(F taken) {
      const auto end = Deadline::in(std::chrono::seconds(1));
      for (Backoff b; !hangs && !taken();) hangs = !b.step(end);
    }
    void pass(std::uint64_t wptr) noexcept {
      const auto all = ring.as<std::uint32_t>().first(queue.memory().dwords.size());
      std::vector<std::uint32_t> now;
      for (; passed < wptr; passed += 4) now.push_back(all[passed / 4 % all.size()]);
      if (!(node.breaks(Break::dead_engine) && queue.engine() == EngineId{1})) change(now);
      std::atomic_ref(words[0]).store(wptr, std::memory_order_release);
    }
    void slow() {
      for (int i = 0; i < 4; ++i)
        give(CopyLinear{.src = node.slow_.va(), .dst = node.slow_.va() + kSlow, .bytes = kSlow});
    }
    void change(std::span<const std::uint32_t> now) {
      std::vector<std::span<const std::uint32_t>> late;  // copies that a fence overtakes
      const auto flush = [&] {
        for (const auto& d : late) give_dwords(d);
        late.clear();
      };
      for (Reader r{now}; r;) {
        const auto v = r.next();
        const bool copy = v.is<CopyLinear>();
        if (node.breaks(Break::hanging_engine) && queue.engine() == EngineId{3} && ++packets == 2)
          give(PollMem{.addr = node.never_.va(), .func = Compare::eq, .reference = 1});
        if (node.breaks(Break::atomics_lost) && v.is<Atomic>()) continue;
        if (node.breaks(Break::rptr_early) && copy) slow();
        if ((node.breaks(Break::wrong_byte) || node.breaks(Break::short_copies)) && copy) {
          auto p = decode<CopyLinear>(v.dwords);
          if (((node.copied_ += p.bytes) >= kOften || node.breaks(Break::short_copies)) && p.bytes > 1) {
            node.copied_ = 0;
            --p.bytes;
            give(p);
            continue;
          }
        }
        if (node.breaks(Break::fences_overtake) && copy) {
          late.push_back(v.dwords);
        } else if (node.breaks(Break::fences_overtake) && v.is<Fence>() && !late.empty()) {
          give_dwords(v.dwords);
          slow();
          barrier();
          flush();
        } else {
          flush();
          give_dwords(v.dwords);
        }
      }
      flush();
    }
    /// What was slow is complete before what follows.
    void barrier() {
      const auto word = node.never_.va() + 8;
      const auto n = ++node.barriers_;
      give(Fence{.addr = word, .value = n});
      give(PollMem{.addr = word, .func = Compare::ge, .reference = n});
    }
  };

  bool breaks(Break b) const { return breaks_.contains(b); }

  Breaks breaks_;
  std::unique_ptr<SoftDevice> d_;
  Memory slow_, never_;
  std::atomic<std::uint64_t> copied_{0};
  std::atomic<std::uint32_t> barriers_{0};
};

inline std::unique_ptr<Device> broken_node(Breaks b, const SoftOptions& o) {
  return std::make_unique<BrokenNode>(std::move(b), *SoftDevice::open(o));
}

}  // namespace sdma::test
