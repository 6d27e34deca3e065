// SPDX-License-Identifier: MIT
#pragma once
// Compute queues without shaders: AQL packets that synchronise are
// executed, and a kernel dispatch is refused unless its effect is known.
//
//   barrier-and, barrier-or    wait for their signals, then complete
//   barrier-value (AMD)        waits for a value, then completes
//   PM4 buffer (AMD)           its packets are executed: see pm4.hpp
//   ROCr's own copies, fills   are executed: see blit.hpp
//   HIP's own copies, fills    are executed: see hip_kernels.hpp
//   other kernel dispatches    never complete: the queue stops with an error that the runtime reports, and a message on
//                              stderr names the dispatch. With --kernels=skip
//                              they complete without effect: see skipped.hpp
//   agent dispatches,          stop the queue
//   whatever else is unknown
//
// A packet is complete before the next one begins, so barrier bits and fence scopes need nothing more. A completed
// packet first leaves the ring (its slot becomes invalid, then read_dispatch_id passes it), then its signal is
// completed with the steps of a command processor: write timestamps, decrement the value, write the mailbox, raise the
// interrupt. A program that wakes thus finds the packet consumed. All addresses are the GPU's. The GPU's server serves
// the queue; see hw_queue.hpp.
#include "../trace.hpp"
#include "blit.hpp"
#include "code_object.hpp"
#include "effect.hpp"
#include "field.hpp"
#include "hip_kernels.hpp"
#include "pm4.hpp"
#include "pm4_packets.hpp"
#include "skipped.hpp"

#include <cinttypes>
#include <cstdio>
#include <optional>

namespace sdma::emulator::aql {

inline constexpr std::size_t kPacketBytes = 64;
enum Type : std::uint8_t { kVendor = 0, kInvalid = 1, kKernel = 2, kBarrierAnd = 3, kAgent = 4, kBarrierOr = 5 };
enum VendorFormat : std::uint8_t { kPm4Buffer = 1, kBarrierValue = 2 };
// Bytes within a packet.
inline constexpr std::size_t kFormat = 2, kGrid = 12, kObject = 32, kArguments = 40, kSignal = 56;
inline constexpr std::size_t kJump = 4, kJumpDwords = 4, kRest = 20;  // of a vendor packet with a PM4 buffer
inline constexpr std::uint32_t kRestDwords = 10;
// Bytes within an amd_signal_t.
inline constexpr std::size_t kValue = 8, kMailbox = 16, kEventId = 24, kStart = 32, kEnd = 40, kSignalBytes = 64;
// From read_dispatch_id to queue_inactive_signal, within an amd_queue_t.
inline constexpr std::uint64_t kInactiveSignal = 64;
// Bytes within the header of a queue's save area: where a runtime wants its exceptions, and their event.
inline constexpr std::size_t kExceptions = 24, kExceptionEvent = 32, kSaveHeaderBytes = 40;
template <class T> T* word(std::byte* at, std::size_t offset) noexcept { return reinterpret_cast<T*>(at + offset); }
inline std::int64_t value_of(std::byte* signal) noexcept {
  return __atomic_load_n(word<std::int64_t>(signal, kValue), __ATOMIC_ACQUIRE);
}

class AqlQueue final : public HwQueue {
 public:
  /// `rptr_va`: the address of read_dispatch_id, from which the other fields of the queue are found.
  explicit AqlQueue(ComputeConfig c)
      : HwQueue(c.id, kComputeEngine, c.doorbell, c.wptr),
        c_(std::move(c)),
        read_(__atomic_load_n(c_.rptr, __ATOMIC_ACQUIRE)) {}
  Progress step() noexcept override {
    if (stopped_) return Progress::stopped;
    const AddressSpace::Reader::Section section(*c_.reader);
    const auto published = __atomic_load_n(c_.wptr, __ATOMIC_ACQUIRE);
    if (read_ >= published) return Progress::idle;
    const auto ring = std::as_writable_bytes(c_.ring);
    auto* at = ring.data() + read_ * kPacketBytes % ring.size();
    if (!std::exchange(begun_, true)) began_ = host_ticks();
    const auto done = packet(at);
    begun_ = done == Done::more;
    std::byte* s = nullptr;
    if (done == Done::complete) {
      const auto handle = field<std::uint64_t>(at, kSignal);
      if (handle != 0 && !(s = signal(handle, Access::read_write))) return Progress::stopped;
      __atomic_store_n(word<std::uint16_t>(at, 0), std::uint16_t{kInvalid}, __ATOMIC_RELEASE);
      __atomic_store_n(c_.rptr, ++read_, __ATOMIC_RELEASE);
    }
    pm4_.notify();
    if (s) complete(s);
    switch (done) {
      case Done::not_written: return Progress::idle;  // its producer rings again
      case Done::waits: return Progress::waiting;
      case Done::stopped: return Progress::stopped;
      default: return Progress::progressed;
    }
  }

 private:
  /// An error: its number in the queue's own signal, and its bit among the driver's exceptions.
  struct Error {
    std::int64_t number{};
    std::uint64_t exception{};
    static const Error no_code, bad_packet;
  };
  enum class Done : std::uint8_t { complete, more, waits, not_written, stopped };

  void rung(std::uint64_t) noexcept override {}
  Done packet(std::byte* at) noexcept {
    const auto type = static_cast<std::uint8_t>(__atomic_load_n(word<std::uint16_t>(at, 0), __ATOMIC_ACQUIRE));
    switch (type) {
      case kInvalid: return Done::not_written;
      case kBarrierAnd:
      case kBarrierOr: return barrier(at, type == kBarrierAnd);
      case kVendor:
        switch (field<std::uint8_t>(at, kFormat)) {
          case kPm4Buffer: return pm4_buffer(at);
          case kBarrierValue: return barrier_value(at);
          default: return refuse("vendor packet", "its format is not known");
        }
      case kKernel: return kernel(at);
      case kAgent: return refuse("agent dispatch", "this node has no agent that serves it");
      default: return refuse("packet", "its type is not known");
    }
  }
  Done barrier(const std::byte* at, bool all_of_them) noexcept {
    bool all = true, any = false, named = false;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto handle = field<std::uint64_t>(at, 8 + i * 8);
      if (handle == 0) continue;
      auto* s = signal(handle, Access::read);
      if (!s) return Done::stopped;
      const bool zero = value_of(s) == 0;
      named = true;
      all = all && zero;
      any = any || zero;
    }
    return (all_of_them ? all : any || !named) ? Done::complete : Done::waits;
  }
  Done barrier_value(const std::byte* at) noexcept {
    const auto handle = field<std::uint64_t>(at, 8);
    if (handle == 0) return Done::complete;
    auto* s = signal(handle, Access::read);
    if (!s) return Done::stopped;
    const auto value = value_of(s) & field<std::int64_t>(at, 24), wanted = field<std::int64_t>(at, 16);
    const bool met[] = {value == wanted, value != wanted, value < wanted, value >= wanted};
    const auto condition = field<std::uint32_t>(at, 32);
    if (condition >= std::size(met)) return refuse("barrier-value packet", "its condition is not known");
    return met[condition] ? Done::complete : Done::waits;
  }
  Done pm4_buffer(const std::byte* at) noexcept {
    const auto* jump = reinterpret_cast<const std::uint32_t*>(at + kJump);
    if (pm4::get(jump, pm4::kOpcode) != pm4::kIndirectBuffer || field<std::uint32_t>(at, kRest) != kRestDwords)
      return refuse("vendor packet", "its PM4 is not a jump to a buffer");
    const auto r = pm4_.step({{jump, kJumpDwords}, 0, kJumpDwords}, read_ * kPacketBytes + kJump);
    if (r.progress == Progress::stopped) {
      stopped_ = true;
      return pm4_.faulted() ? Done::stopped : stop(Error::bad_packet);
    }
    return r.dwords != 0 ? Done::complete : r.progress == Progress::waiting ? Done::waits : Done::more;
  }
  Done kernel(const std::byte* at) noexcept {
    if (!effect_) {
      const GpuVa object{field<std::uint64_t>(at, kObject)};
      const auto name = kernel_at(object, *c_.reader);
      const auto hip = name ? hip_kernel(name.view(), at, *c_.reader) : HipKernel{};
      effect_ = hip.effect;
      if (!effect_ && !name) effect_ = rocr_blit(at, *c_.reader);
      if (!effect_ && skips_kernels()) {
        skip_kernel(c_.gpu, id, name, object);
        return Done::complete;
      }
      if (!effect_)
        return refuse_kernel(at, name, hip.refusal ? hip.refusal : "this node has DMA engines and no shaders");
    }
    GpuVa missing{};
    switch (effect_->step(*c_.reader, &missing)) {
      case Effect::Step::more: return Done::more;
      case Effect::Step::waits: return Done::waits;
      case Effect::Step::unmapped: return fault(missing.value);
      case Effect::Step::complete: break;
    }
    effect_.reset();
    return Done::complete;
  }
  /// Null: not mapped, and the queue has stopped.
  std::byte* signal(std::uint64_t handle, Access access) noexcept {
    auto* s = handle % 8 == 0 ? c_.reader->at(GpuVa{handle}, kSignalBytes, access) : nullptr;
    if (!s) (void)fault(handle);
    return s;
  }
  void complete(std::byte* s) noexcept {
    *word<std::uint64_t>(s, kStart) = began_;
    *word<std::uint64_t>(s, kEnd) = host_ticks();
    update(s, [](std::int64_t* value) { __atomic_fetch_sub(value, 1, __ATOMIC_RELEASE); });
  }
  /// Calls `change` with the signal's value, then raises the signal's event.
  template <class Change> void update(std::byte* signal, Change change) noexcept {
    // Read everything before the value changes, because a waiter may then free the signal at once.
    const auto mailbox = field<std::uint64_t>(signal, kMailbox);
    const auto event = field<std::uint32_t>(signal, kEventId);
    change(word<std::int64_t>(signal, kValue));
    if (mailbox == 0) return;
    if (auto* slot = mailbox % 8 == 0 ? c_.reader->at(GpuVa{mailbox}, 8, Access::write) : nullptr) {
      __atomic_store_n(word<std::uint64_t>(slot, 0), std::uint64_t{event}, __ATOMIC_RELEASE);
      c_.events->interrupt(event);
    }
  }
  Done refuse(const char* what, const char* why) noexcept {
    std::fprintf(stderr, "sdma emulator: gpu %u queue %u: %s #%" PRIu64 " cannot run: %s; the queue stops\n",
                 c_.gpu.value, id, what, read_, why);
    return stop(Error::bad_packet);
  }
  Done refuse_kernel(const std::byte* at, const KernelName& name, const char* why) noexcept {
    const PrintableName text(name);
    std::fprintf(stderr,
                 "sdma emulator: gpu %u queue %u: kernel dispatch #%" PRIu64
                 "%s%s cannot run: %s (kernel object 0x%" PRIx64 ", grid %u x %u x %u, arguments at 0x%" PRIx64
                 "); the queue stops\n",
                 c_.gpu.value, id, read_, name ? " of " : "", text.text.data(), why, field<std::uint64_t>(at, kObject),
                 field<std::uint32_t>(at, kGrid), field<std::uint32_t>(at, kGrid + 4),
                 field<std::uint32_t>(at, kGrid + 8), field<std::uint64_t>(at, kArguments));
    return stop(Error::no_code);
  }
  /// Stops the queue as a command processor does on an error: the queue's own signal gets the error's number. Its
  /// interrupt makes the driver report the exception to a runtime that has asked for it.
  Done stop(const Error& error) noexcept {
    stopped_ = true;
    report(error.exception);
    auto* handle = c_.reader->at(c_.rptr_va + kInactiveSignal, 8, Access::read);
    if (!handle) return Done::stopped;
    const auto signal = field<std::uint64_t>(handle, 0);
    auto* s = signal == 0 ? nullptr : c_.reader->at(GpuVa{signal}, kSignalBytes, Access::read_write);
    if (s) update(s, [&](std::int64_t* value) { __atomic_store_n(value, error.number, __ATOMIC_RELEASE); });
    return Done::stopped;
  }
  void report(std::uint64_t exception) noexcept {
    if (c_.exceptions) c_.exceptions->raise(exceptions, exception);
    const auto* area = c_.save_area.value == 0 ? nullptr : c_.reader->at(c_.save_area, kSaveHeaderBytes, Access::read);
    if (!area) return;
    const auto to = field<std::uint64_t>(area, kExceptions);
    const auto event = field<std::uint32_t>(area, kExceptionEvent);
    auto* all = to == 0 || to % 8 != 0 ? nullptr : c_.reader->at(GpuVa{to}, 8, Access::read_write);
    if (!all) return;
    __atomic_fetch_or(word<std::uint64_t>(all, 0), exception, __ATOMIC_RELEASE);
    (void)c_.events->set(event);
  }
  Done fault(std::uint64_t va) noexcept {
    stopped_ = true;
    std::fprintf(stderr,
                 "sdma emulator: gpu %u queue %u: AQL packet #%" PRIu64 ": 0x%" PRIx64 " is not mapped for this GPU\n",
                 c_.gpu.value, id, read_, va);
    c_.vm_fault(GpuVa{va});
    return Done::stopped;
  }

  ComputeConfig c_;
  Pm4 pm4_{c_};
  std::optional<Effect> effect_{};  ///< of the present packet, which has begun
  std::uint64_t began_ = 0;         ///< ticks
  std::uint64_t read_;
  bool begun_ = false, stopped_ = false;
};

/// A runtime reports these as "invalid code object" and "invalid packet format".
inline constexpr AqlQueue::Error AqlQueue::Error::no_code{8, std::uint64_t{1} << 17};
inline constexpr AqlQueue::Error AqlQueue::Error::bad_packet{32, std::uint64_t{1} << 19};

}  // namespace sdma::emulator::aql

namespace sdma::emulator {
using aql::AqlQueue;
}
