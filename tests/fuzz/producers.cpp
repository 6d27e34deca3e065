// SPDX-License-Identifier: MIT
// Several threads produce into one ring while an engine reads it: every packet is executed once, in its producer's
// order, and no dword is read that was not published. The input says what each producer does; the machine says when.
//
//   input   [ how ][ start ][ engine ] then actions, dealt to the producers in turn
//   how     % 4 + 1: producers;  4: the ring has 1024 dwords, not 256;  8: the engine watches wptr;
//           % 3 of its high bits: ordering
//   start   where in the ring, and where among all positions, the first packet lies
//   action  a slot of up to 24 fences with room to spare, published
//           whole or in part, given up, or kept open until the next one
//
// Halfway, the ring object is destroyed, and a new one continues on the same memory, while the engine still reads.
#include "../queue/memory.hpp"
#include "engine/pipeline.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/packets/sync.hpp"
#include "space.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

using namespace sdma;
using fuzz::require;

namespace {

constexpr std::size_t kProducers = 4, kHead = 3, kMostActions = 400;
constexpr std::uint64_t kPitch = 8;  ///< between the words of two producers

/// What the engine has executed.
struct Executed {
  std::array<std::uint32_t, kProducers> next{};

  static void begin(void* self, const PacketEvent& e) noexcept {
    if (e.view.is<Nop>()) return;
    require(e.view.is<Fence>());
    const auto f = decode<Fence>(e.view.dwords);
    require(f.addr.value % kPitch == 0 && f.addr.value / kPitch < kProducers);
    require(f.value == ++static_cast<Executed*>(self)->next[f.addr.value / kPitch]);
  }
};

/// One producer. It keeps at most one slot open while it reserves the next.
struct Producer {
  Ring<Producers::many>& ring;
  const std::uint64_t me;
  std::uint32_t& sent;  ///< fences published or in the open slot
  struct Open {
    Slot slot;
    std::size_t used;
  };
  std::optional<Open> open{};

  void close() {
    if (open) ring.publish(open->slot, open->used);
    open.reset();
  }
  void act(std::uint8_t action) {
    const std::uint32_t fences = 1 + action % 24, spare = action / 24;
    const std::uint32_t size = length(Fence{});
    const auto kind = action % 7;
    auto slot = ring.reserve(fences * size + spare);
    for (Deadline limit = Deadline::in(std::chrono::seconds(60)); !slot; slot = ring.reserve(fences * size + spare)) {
      require(slot.error() == Errc::no_space && !limit.passed());
      close();  // the engine cannot pass an open slot
      std::this_thread::yield();
    }
    std::size_t used = 0;
    if (kind != 5)
      for (auto* at = slot->dwords.data(); used < fences * size; used += size)
        at = encode_to(Fence{.addr = GpuVa{me * kPitch}, .value = ++sent}, at);
    if (kind == 6) {
      close();
      open = Open{*slot, used};
      return;
    }
    // The engine sees slots in the order of reserve, so the open one may be published after this one.
    ring.publish(*slot, used);
    close();
  }
};

/// Reads the ring as an engine does, and poisons what it has read before the producers may have it again.
class Engine {
 public:
  Engine(test::Memory& m, const RingMemory& ring, Ordering o, std::uint64_t seed)
      : m_(m), word_(ring.doorbell ? ring.doorbell : ring.wptr), rptr_(m.rptr), read_(m.rptr) {
    pipeline_.emplace(PipelineConfig{.ring = ring.dwords,
                                     .rptr = &rptr_,
                                     .reader = &space_.reader,
                                     .ordering = o,
                                     .seed = seed,
                                     .sleeps = true,
                                     .hooks = {.context = &executed_, .begin = Executed::begin}});
  }
  /// Until all of `sent` is executed.
  void run(const std::atomic<bool>& ends) {
    const auto limit = Deadline::in(std::chrono::seconds(60));
    for (std::uint32_t budget = 1;; budget = budget % 9 + 1) {
      const bool last = ends.load(std::memory_order_acquire);
      pipeline_->doorbell(order::Native::load(word_, std::memory_order_acquire));
      const auto p = pipeline_->step(budget);
      require(p != Progress::stopped);
      if (pipeline_->asleep()) pipeline_->awaken();
      for (; read_ != rptr_; read_ += 4) m_.dwords[read_ / 4 % m_.dwords.size()] = test::kPoison;
      order::Native::store(&m_.rptr, rptr_, std::memory_order_release);
      if (p == Progress::idle && last) return;
      if (p == Progress::idle) std::this_thread::yield();
      require(!limit.passed());
    }
  }
  const Executed& executed() const { return executed_; }
  /// The value of this producer's last fence.
  std::uint32_t word(std::size_t producer) {
    std::uint32_t v = 0;
    std::memcpy(&v, space_.low.begin() + producer * kPitch, sizeof v);
    return v;
  }

 private:
  test::Memory& m_;
  const std::uint64_t* word_;
  fuzz::Space space_;
  Executed executed_;
  std::uint64_t rptr_, read_;
  std::optional<Pipeline> pipeline_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size <= kHead) return 0;
  const auto how = data[0];
  const std::size_t producers = 1 + how % kProducers, dwords = (how & 4) != 0 ? 1024 : 256;
  const std::uint64_t start =
      std::uint64_t{data[1]} * 4 + (data[1] % 2 == 0 ? 0 : (std::uint64_t{1} << 32) - dwords * 2);
  const std::span actions{data + kHead, std::min(size - kHead, kMostActions)};

  test::Memory memory(dwords, start);
  auto config = memory.ring();
  if ((how & 8) != 0) config.doorbell = nullptr;
  std::array<std::uint32_t, kProducers> sent{};
  std::atomic<bool> ends{false};
  Engine engine{memory, config, static_cast<Ordering>(how / 16 % 3), data[2]};
  std::thread reader([&] { engine.run(ends); });
  for (const auto part : {actions.first(actions.size() / 2), actions.subspan(actions.size() / 2)}) {
    Ring<Producers::many> ring{config};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < producers; ++t)
      threads.emplace_back([&, t] {
        Producer p{.ring = ring, .me = t, .sent = sent[t]};
        for (std::size_t i = t; i < part.size(); i += producers) p.act(part[i]);
        p.close();
      });
    for (auto& t : threads) t.join();
  }
  ends.store(true, std::memory_order_release);
  reader.join();
  for (std::size_t t = 0; t < kProducers; ++t) {
    require(engine.executed().next[t] == sent[t]);
    if (sent[t] != 0) require(engine.word(t) == sent[t]);
  }
  return 0;
}
