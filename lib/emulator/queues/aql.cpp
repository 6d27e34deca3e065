#include "aql.hpp"

#include "../trace.hpp"
#include "blit.hpp"

#include "sdma/engine/execute.hpp"

#include <cinttypes>
#include <cstdio>

namespace sdma::emulator {
namespace {

constexpr std::size_t kPacketBytes = 64;
enum Type : std::uint8_t { kVendor = 0, kInvalid = 1, kKernel = 2, kBarrierAnd = 3, kAgent = 4, kBarrierOr = 5 };
enum VendorFormat : std::uint8_t { kPm4Buffer = 1, kBarrierValue = 2 };

// Bytes within an amd_signal_t.
constexpr std::size_t kValue = 8, kMailbox = 16, kEventId = 24, kStart = 32, kEnd = 40, kSignalBytes = 64;
// From read_dispatch_id to queue_inactive_signal, within an amd_queue_t.
constexpr std::uint64_t kInactiveSignal = 64;
/// The runtime reports this as "invalid code object".
constexpr std::int64_t kNoCode = 8;

template <class T> T* word(std::byte* at, std::size_t offset) noexcept { return reinterpret_cast<T*>(at + offset); }

}  // namespace

AqlQueue::AqlQueue(ComputeConfig c)
    : HwQueue(c.id, kComputeEngine, c.doorbell, c.wptr),
      c_(std::move(c)),
      read_(__atomic_load_n(c_.rptr, __ATOMIC_ACQUIRE)) {}

Progress AqlQueue::step() noexcept {
  if (stopped_) return Progress::stopped;
  const AddressSpace::Reader::Section section(*c_.reader);
  const auto published = __atomic_load_n(c_.wptr, __ATOMIC_ACQUIRE);
  if (read_ >= published) return Progress::idle;
  const auto ring = std::as_writable_bytes(c_.ring);
  auto* at = ring.data() + read_ * kPacketBytes % ring.size();
  const auto p = packet(at);
  if (p != Progress::progressed || moved_ != 0) return p;
  __atomic_store_n(word<std::uint16_t>(at, 0), std::uint16_t{kInvalid}, __ATOMIC_RELEASE);
  __atomic_store_n(c_.rptr, ++read_, __ATOMIC_RELEASE);
  return p;
}

Progress AqlQueue::packet(std::byte* at) noexcept {
  const auto header = __atomic_load_n(word<std::uint16_t>(at, 0), __ATOMIC_ACQUIRE);
  if (moved_ == 0) began_ = host_ticks();
  switch (header & 0xff) {
    case kInvalid: return Progress::idle;  // reserved but not written yet: its producer rings again
    case kBarrierAnd:
    case kBarrierOr: {
      bool all = true, any = false, named = false;
      for (std::size_t i = 0; i < 5; ++i) {
        const auto signal = field<std::uint64_t>(at, 8 + i * 8);
        if (signal == 0) continue;
        bool mapped = true;
        const bool zero = signal_is_zero(signal, &mapped);
        if (!mapped) return fault(signal);
        named = true;
        all = all && zero;
        any = any || zero;
      }
      if ((header & 0xff) == kBarrierAnd ? !all : named && !any) return Progress::waiting;
      break;
    }
    case kVendor: {
      const auto format = field<std::uint8_t>(at, 2);
      if (format == kBarrierValue) {
        const auto signal = field<std::uint64_t>(at, 8);
        auto* s = signal == 0 ? nullptr : c_.reader->at(GpuVa{signal}, kSignalBytes, Access::read);
        if (signal != 0 && !s) return fault(signal);
        const auto value =
            s ? __atomic_load_n(word<std::int64_t>(s, kValue), __ATOMIC_ACQUIRE) & field<std::int64_t>(at, 24) : 0;
        const auto wanted = field<std::int64_t>(at, 16);
        const bool met[] = {value == wanted, value != wanted, value < wanted, value >= wanted};
        if (s && !met[field<std::uint32_t>(at, 32) & 3]) return Progress::waiting;
      } else if (format != kPm4Buffer) {
        return refuse(at, "vendor packet");
      }
      break;
    }
    case kKernel: {
      GpuVa missing{};
      const auto blit = run_blit(at, *c_.reader, &moved_, &missing);
      if (blit == Blit::more) return Progress::progressed;
      moved_ = 0;
      if (blit == Blit::unmapped) return fault(missing.value);
      if (blit == Blit::not_ours) return refuse(at, "kernel dispatch");
      break;
    }
    case kAgent: return refuse(at, "agent dispatch");
    default: return refuse(at, "packet of an unknown type");
  }
  complete(field<std::uint64_t>(at, 56), began_);
  return stopped_ ? Progress::stopped : Progress::progressed;
}

bool AqlQueue::signal_is_zero(std::uint64_t handle, bool* mapped) noexcept {
  auto* s = c_.reader->at(GpuVa{handle}, kSignalBytes, Access::read);
  *mapped = s != nullptr;
  return s && __atomic_load_n(word<std::int64_t>(s, kValue), __ATOMIC_ACQUIRE) == 0;
}

void AqlQueue::complete(std::uint64_t handle, std::uint64_t began) noexcept {
  if (handle == 0) return;
  auto* s = c_.reader->at(GpuVa{handle}, kSignalBytes, Access::read_write);
  if (!s) return (void)fault(handle);
  *word<std::uint64_t>(s, kStart) = began;
  *word<std::uint64_t>(s, kEnd) = host_ticks();
  update(s, [](std::int64_t* value) { __atomic_fetch_sub(value, 1, __ATOMIC_RELEASE); });
}

/// Calls `change` with the signal's value, then raises the signal's event.
template <class Change> void AqlQueue::update(std::byte* signal, Change change) noexcept {
  // Read everything before the value changes, because a waiter may then free the signal at once.
  const auto mailbox = field<std::uint64_t>(signal, kMailbox);
  const auto event = field<std::uint32_t>(signal, kEventId);
  change(word<std::int64_t>(signal, kValue));
  if (mailbox == 0) return;
  if (auto* slot = c_.reader->at(GpuVa{mailbox}, 8, Access::write)) {
    __atomic_store_n(word<std::uint64_t>(slot, 0), std::uint64_t{event}, __ATOMIC_RELEASE);
    c_.events->interrupt(event);
  }
}

/// Stops the queue as a command processor does on an error, and reports the packet that cannot run here.
Progress AqlQueue::refuse(const std::byte* at, const char* what) noexcept {
  stopped_ = true;
  std::fprintf(stderr,
               "sdma emulator: gpu %u queue %u: %s #%" PRIu64
               " cannot run: this node has DMA engines and no shaders "
               "(kernel object 0x%" PRIx64 ", grid %u x %u x %u, arguments at 0x%" PRIx64 "); the queue stops\n",
               c_.gpu.value, id, what, read_, field<std::uint64_t>(at, 32), field<std::uint32_t>(at, 12),
               field<std::uint32_t>(at, 16), field<std::uint32_t>(at, 20), field<std::uint64_t>(at, 40));
  auto* handle = c_.reader->at(c_.rptr_va + kInactiveSignal, 8, Access::read);
  if (!handle) return Progress::stopped;
  const auto signal = field<std::uint64_t>(handle, 0);
  auto* s = signal == 0 ? nullptr : c_.reader->at(GpuVa{signal}, kSignalBytes, Access::read_write);
  if (s) update(s, [](std::int64_t* value) { __atomic_store_n(value, kNoCode, __ATOMIC_RELEASE); });
  return Progress::stopped;
}

Progress AqlQueue::fault(std::uint64_t va) noexcept {
  stopped_ = true;
  std::fprintf(stderr,
               "sdma emulator: gpu %u queue %u: AQL packet #%" PRIu64 ": 0x%" PRIx64 " is not mapped for this GPU\n",
               c_.gpu.value, id, read_, va);
  c_.vm_fault(GpuVa{va});
  return Progress::stopped;
}

}  // namespace sdma::emulator
