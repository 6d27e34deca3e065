#include "pm4.hpp"

#include "../trace.hpp"

#include "sdma/engine/execute.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace sdma::emulator {
namespace {

enum Opcode : std::uint32_t {
  kNop = 0x10,
  kDispatchDirect = 0x15,
  kDispatchIndirect = 0x16,
  kWriteData = 0x37,
  kIndirectBuffer = 0x3f,
  kReleaseMem = 0x49,
  kAcquireMem = 0x58,
};

struct Field {
  std::uint32_t dword, low, bits;
};
constexpr Field kType{0, 30, 2}, kCount{0, 16, 14}, kOpcode{0, 8, 8};
constexpr Field kDestination{1, 8, 4}, kOneAddress{1, 16, 1};
constexpr Field kInterrupt{2, 24, 3}, kData{2, 29, 3};
constexpr Field kBufferDwords{3, 0, 20};
constexpr std::uint32_t kPacketType = 3, kHeaderAlone = 0x3fff;
enum Destination : std::uint32_t { kCache = 2, kMemory = 5 };
enum Data : std::uint32_t { kNoData, kLow, kBoth, kClock };

template <class Words> constexpr std::uint32_t get(const Words& w, Field f) noexcept {
  return w[f.dword] >> f.low & ((1u << f.bits) - 1);
}
template <class Words> constexpr std::uint64_t pair(const Words& w, std::uint64_t at) noexcept {
  return w[at] | std::uint64_t{w[at + 1]} << 32;
}
constexpr std::uint32_t shortest(std::uint32_t opcode) noexcept {
  switch (opcode) {
    case kWriteData: return 5;
    case kIndirectBuffer: return 4;
    case kReleaseMem:
    case kAcquireMem: return 7;
    default: return 1;
  }
}

}  // namespace

Pm4Queue::Pm4Queue(ComputeConfig c) : HwQueue(c.id, kComputeEngine, c.doorbell, c.wptr), c_(std::move(c)) {}

Progress Pm4Queue::step() noexcept {
  if (stopped_) return Progress::stopped;
  const auto pending = (written_ - read_) % c_.ring.size();
  if (pending == 0) return Progress::idle;
  const AddressSpace::Reader::Section section(*c_.reader);
  const auto dwords = packet({c_.ring, read_ % c_.ring.size(), pending}, false);
  if (dwords == 0) return Progress::stopped;
  read_ += dwords;
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(c_.rptr), static_cast<std::uint32_t>(read_ % c_.ring.size()),
                   __ATOMIC_RELEASE);
  return Progress::progressed;
}

std::uint64_t Pm4Queue::packet(Words w, bool indirect) noexcept {
  const auto header = w[0], opcode = get(w, kOpcode), count = get(w, kCount);
  if (get(w, kType) != kPacketType) return refuse(header, "not a packet of type 3");
  const std::uint64_t dwords = opcode == kNop && count == kHeaderAlone ? 1 : std::uint64_t{count} + 2;
  if (dwords > w.count) return refuse(header, "a packet that extends beyond the published dwords");
  if (dwords < shortest(opcode)) return refuse(header, "a packet that is too short");
  w.count = dwords;
  bool ok = true;
  switch (opcode) {
    case kNop:
    case kAcquireMem: break;
    case kWriteData: ok = write_data(w); break;
    case kReleaseMem: ok = release(w); break;
    case kIndirectBuffer: ok = indirect ? refuse(header, "an indirect buffer within another") : run_buffer(w); break;
    case kDispatchDirect:
    case kDispatchIndirect: ok = refuse(header, "a kernel dispatch: this node has DMA engines and no shaders"); break;
    default: ok = refuse(header, "a packet that this node does not support");
  }
  return ok ? dwords : 0;
}

bool Pm4Queue::write_data(Words w) noexcept {
  const auto destination = get(w, kDestination);
  if (destination != kMemory && destination != kCache) return refuse(w[0], "WRITE_DATA to a register");
  const auto data = w.behind(4);
  const bool one = get(w, kOneAddress) != 0;
  auto* to = memory(pair(w, 2), (one ? 1 : data.count) * 4, Access::write);
  if (!to) return false;
  for (std::uint64_t i = 0; i < data.count; ++i)
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(to) + (one ? 0 : i), data[i], __ATOMIC_RELEASE);
  return true;
}

bool Pm4Queue::release(Words w) noexcept {
  const auto kind = get(w, kData), interrupt = get(w, kInterrupt);
  if (kind > kClock) return refuse(w[0], "RELEASE_MEM of an unsupported counter");
  if (kind != kNoData) {
    auto* to = memory(pair(w, 3), kind == kLow ? 4 : 8, Access::write);
    if (!to) return false;
    if (kind == kLow) __atomic_store_n(reinterpret_cast<std::uint32_t*>(to), w[5], __ATOMIC_RELEASE);
    else
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), kind == kClock ? host_ticks() : pair(w, 5),
                       __ATOMIC_RELEASE);
  }
  if (interrupt == 1 || interrupt == 2) c_.events->interrupt(w.count > 7 ? w[7] : 0);
  return true;
}

bool Pm4Queue::run_buffer(Words w) noexcept {
  const auto dwords = get(w, kBufferDwords);
  if (dwords == 0) return true;
  const auto* at = memory(pair(w, 1), dwords * std::uint64_t{4}, Access::read);
  if (!at) return false;
  Words rest{{reinterpret_cast<const std::uint32_t*>(at), dwords}, 0, dwords};
  while (rest.count != 0) {
    const auto n = packet(rest, true);
    if (n == 0) return false;
    rest = rest.behind(n);
  }
  return true;
}

/// Null: not mapped, and the queue has stopped.
std::byte* Pm4Queue::memory(std::uint64_t va, std::uint64_t bytes, Access access) noexcept {
  auto* at = va % 4 == 0 ? c_.reader->at(GpuVa{va}, bytes, access) : nullptr;
  if (at) return at;
  stopped_ = true;
  std::fprintf(
      stderr, "sdma emulator: gpu %u queue %u: PM4 packet at 0x%" PRIx64 ": 0x%" PRIx64 " is not mapped for this GPU\n",
      c_.gpu.value, id, read_ * 4, va);
  c_.vm_fault(GpuVa{va});
  return nullptr;
}

bool Pm4Queue::refuse(std::uint32_t header, const char* why) noexcept {
  stopped_ = true;
  std::fprintf(stderr, "sdma emulator: gpu %u queue %u: PM4 packet at 0x%" PRIx64 " (0x%08x): %s; the queue stops\n",
               c_.gpu.value, id, read_ * 4, header, why);
  c_.events->hw_exception();
  return false;
}

}  // namespace sdma::emulator
