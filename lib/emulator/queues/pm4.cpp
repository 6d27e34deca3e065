// SPDX-License-Identifier: MIT
#include "pm4.hpp"

#include "../../engine/execute.hpp"
#include "pm4_packets.hpp"
#include "skipped.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>

namespace sdma::emulator::pm4 {

Pm4::Result Pm4::step(Words w, std::uint64_t position) noexcept {
  position_ = position;
  if (buffer_) return run_buffer();
  const auto dwords = length_of(w);
  if (dwords == 0) return {Progress::stopped, 0};
  w.count = dwords;
  if (get(w, kOpcode) == kIndirectBuffer && xccs() != 0) {
    if (!enter(w)) return {Progress::stopped, 0};
    return run_buffer();
  }
  const auto s = packet(w, kRing);
  if (s == Status::complete) return {Progress::progressed, dwords};
  return {s == Status::waits ? Progress::waiting : Progress::stopped, 0};
}

std::uint64_t Pm4::length_of(const Words& w) noexcept {
  const auto header = w[0];
  const auto dwords = length(w);
  const char* why = get(w, kType) != kPacketType         ? "not a packet of type 3"
                    : dwords > w.count                   ? "a packet that extends beyond the published dwords"
                    : dwords < shortest(get(w, kOpcode)) ? "a packet that is too short"
                                                         : nullptr;
  if (!why) return dwords;
  refuse(header, why);
  return 0;
}

bool Pm4::enter(const Words& w) noexcept {
  if (get(w, indirect_buffer::kChain) != 0) {
    refuse(w[0], "a chain of indirect buffers");
    return false;
  }
  buffer_ = Buffer{.va = pair(w, indirect_buffer::kAddress) & indirect_buffer::kAddressBits,
                   .dwords = get(w, indirect_buffer::kDwords),
                   .jump = w.count};
  return true;
}

Pm4::Result Pm4::run_buffer() noexcept {
  auto& b = *buffer_;
  Words rest{};
  if (b.dwords != 0) {
    const auto* at = memory(b.va, b.dwords * 4, 4, Access::read);
    if (!at) return {Progress::stopped, 0};
    rest = {{reinterpret_cast<const std::uint32_t*>(at), b.dwords}, b.done, b.dwords - b.done};
  }
  for (std::uint32_t n = 0; n < kBatch && rest.count != 0 && !interrupt_; ++n) {
    const auto dwords = length_of(rest);
    if (dwords == 0) return {Progress::stopped, 0};
    auto w = rest;
    w.count = dwords;
    const auto s = packet(w, kBuffer);
    if (s == Status::stopped) return {Progress::stopped, 0};
    if (s == Status::waits) return {n == 0 ? Progress::waiting : Progress::progressed, 0};
    rest = rest.after(dwords);
    b.done += dwords;
  }
  if (rest.count != 0) return {Progress::progressed, 0};
  const auto jump = b.jump;
  buffer_.reset();
  predicates_[kBuffer] = {};
  passed(kRing, jump);
  return {Progress::progressed, jump};
}

Pm4::Status Pm4::packet(Words w, Level level) noexcept {
  if (get(w, kOpcode) == kPredExec) {
    predicates_[level] = {get(w, pred_exec::kDwords), get(w, pred_exec::kXccs)};
    return Status::complete;
  }
  const auto s = xccs() == 0 ? Status::complete : execute(w);
  if (s == Status::complete) passed(level, w.count);
  return s;
}

Pm4::Status Pm4::execute(Words w) noexcept {
  switch (get(w, kOpcode)) {
    case kNop:
    case kAcquireMem: return Status::complete;
    case kWriteData: return write_data(w);
    case kCopyData: return copy_data(w);
    case kAtomicMem: return atomic(w);
    case kWaitRegMem: return wait(w, false);
    case kWaitRegMem64: return wait(w, true);
    case kReleaseMem: return release(w);
    case kDispatchDirect:
    case kDispatchIndirect: return dispatch(w);
    case kIndirectBuffer: return refuse(w[0], "an indirect buffer within another");
    case kEventWrite:
      return w.count == event_write::kDwords ? Status::complete : refuse(w[0], "an event that writes counters");
    case kSetShReg: {
      const auto first = get(w, set_sh_reg::kFirst);
      for (std::uint64_t i = set_sh_reg::kValues; i < w.count; ++i) {
        const auto reg = first + (i - set_sh_reg::kValues);
        if (reg == set_sh_reg::kCodeLow) code_[0] = w[i];
        if (reg == set_sh_reg::kCodeHigh) code_[1] = w[i];
      }
      return Status::complete;
    }
    default: return refuse(w[0], "a packet that this node does not support");
  }
}

Pm4::Status Pm4::write_data(Words w) noexcept {
  const auto destination = get(w, write_data::kDestination);
  if (destination != kMemory && destination != kL2) return refuse(w[0], "a destination that is not memory");
  if (get(w, write_data::kEngine) != 0) return refuse(w[0], "an engine that is not the queue's own");
  const auto data = w.after(write_data::kFirst);
  const bool one = get(w, write_data::kOneAddress) != 0;
  auto* to = memory(pair(w, write_data::kAddress), (one ? 1 : data.count) * 4, 4, Access::write);
  if (!to) return Status::stopped;
  for (std::uint64_t i = 0; i < data.count; ++i)
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(to) + (one ? 0 : i), data[i], __ATOMIC_RELEASE);
  return Status::complete;
}

Pm4::Status Pm4::copy_data(Words w) noexcept {
  const auto source = get(w, copy_data::kSource), destination = get(w, copy_data::kDestination);
  const bool wide = get(w, copy_data::kBoth) != 0;
  if (destination != kMemorySync && destination != kL2 && destination != kMemory)
    return refuse(w[0], "a destination that is not memory");
  std::uint64_t value = pair(w, copy_data::kFrom);
  switch (source) {
    case kImmediate: break;
    case kGpuClock: value = host_ticks(); break;
    case kMemorySync:
    case kL2: {
      const auto* from = memory(value, wide ? 8 : 4, wide ? 8 : 4, Access::read);
      if (!from) return Status::stopped;
      value = wide ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_ACQUIRE)
                   : __atomic_load_n(reinterpret_cast<const std::uint32_t*>(from), __ATOMIC_ACQUIRE);
      break;
    }
    default: return refuse(w[0], "a source that is neither memory, a constant nor the GPU's clock");
  }
  return store(pair(w, copy_data::kTo), value, wide) ? Status::complete : Status::stopped;
}

Pm4::Status Pm4::atomic(Words w) noexcept {
  const auto code = get(w, atomic_mem::kOperation);
  const auto known = std::any_of(grammar::names<AtomicOp>.begin(), grammar::names<AtomicOp>.end(),
                                 [&](const auto& n) { return n.value == code; });
  if (!known) return refuse(w[0], "an operation that is not known");
  if (get(w, atomic_mem::kLoop) != 0) return refuse(w[0], "a loop");
  const Atomic a{.addr = GpuVa{pair(w, atomic_mem::kAddress)},
                 .op = static_cast<AtomicOp>(code),
                 .value = pair(w, atomic_mem::kValue),
                 .compare = pair(w, atomic_mem::kCompare)};
  if (!memory(a.addr.value, width(a.op), width(a.op), Access::read_write)) return Status::stopped;
  Machine m{.memory = *c_.reader, .state = clock_};
  for (int n = std::popcount(xccs()); n > 0; --n) (void)sdma::execute(a, m);
  return Status::complete;
}

Pm4::Status Pm4::wait(Words w, bool wide) noexcept {
  const auto function = get(w, wait::kFunction), space = get(w, wait::kSpace), operation = get(w, wait::kOperation);
  if (!wait::known(function)) return refuse(w[0], "a comparison that is not known");
  if (space == wait::kInRegister) {
    const auto request = w[wait::kRequest], done = w[wait::kDone];
    if (!wide && operation == wait::kWriteAndWait && request == wait::kHdpFlushRequest && done == wait::kHdpFlushDone)
      return Status::complete;  // there is no data path to flush
    char why[96];
    std::snprintf(why, sizeof why, "registers 0x%x and 0x%x, which are not those of an HDP flush", request, done);
    return refuse(w[0], operation == wait::kWriteAndWait ? why : "a register");
  }
  if (space != wait::kInMemory) return refuse(w[0], "a space that is not known");
  if (operation != wait::kWait && operation != wait::kPreemptable)
    return refuse(w[0], "an operation that memory does not have");
  const std::uint64_t bytes = wide ? 8 : 4;
  const auto* at = memory(pair(w, wait::kAddress), bytes, bytes, Access::read);
  if (!at) return Status::stopped;
  const auto value = wide ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE)
                          : __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
  const auto reference = wide ? pair(w, wait::kReference) : w[wait::kReference];
  const auto mask = wide ? pair(w, wait::kMask64) : w[wait::kMask];
  return holds(value & mask, static_cast<Compare>(function), reference) ? Status::complete : Status::waits;
}

Pm4::Status Pm4::release(Words w) noexcept {
  const auto data = get(w, release_mem::kData), interrupt = get(w, release_mem::kInterrupt);
  const auto index = get(w, release_mem::kEventIndex), destination = get(w, release_mem::kDestination);
  if (index != release_mem::kEndOfPipe && index != release_mem::kShaderDone)
    return refuse(w[0], "an event that is not an end of work");
  if (destination > release_mem::kToL2) return refuse(w[0], "a destination that is not memory");
  if (data > release_mem::kClock) return refuse(w[0], "a counter that is not the GPU's clock");
  if (interrupt > release_mem::kAlways) return refuse(w[0], "a conditional interrupt");
  if (data != release_mem::kNoData &&
      !store(pair(w, release_mem::kAddress), data == release_mem::kClock ? host_ticks() : pair(w, release_mem::kValue),
             data != release_mem::kLow))
    return Status::stopped;
  if (interrupt != release_mem::kNone && interrupt != release_mem::kDataAfterWrite)
    interrupt_ = w.count > release_mem::kContext ? w[release_mem::kContext] : 0;
  return Status::complete;
}

Pm4::Status Pm4::dispatch(Words w) noexcept {
  if (skips_kernels()) {
    skip_code(c_.gpu, c_.id, GpuVa{pair(code_, 0) * set_sh_reg::kCodeUnit}, *c_.reader);
    return Status::complete;
  }
  return refuse(w[0], "a kernel dispatch: this node has DMA engines and no shaders");
}

std::uint32_t Pm4::xccs() const noexcept {
  auto all = (std::uint32_t{1} << c_.xccs) - 1;
  for (const auto& p : predicates_)
    if (p.dwords != 0) all &= p.xccs;
  return all;
}

void Pm4::passed(Level level, std::uint64_t dwords) noexcept {
  auto& p = predicates_[level];
  p.dwords -= std::min(p.dwords, dwords);
}

std::byte* Pm4::memory(std::uint64_t va, std::uint64_t bytes, std::uint64_t alignment, Access access) noexcept {
  auto* at = va % alignment == 0 ? c_.reader->at(GpuVa{va}, bytes, access) : nullptr;
  if (at) return at;
  print_place();
  faulted_ = true;
  std::fprintf(stderr, ": 0x%" PRIx64 " is not %s\n", va,
               va % alignment == 0 ? "mapped for this GPU" : "aligned for the access");
  c_.vm_fault(GpuVa{va});
  return nullptr;
}

bool Pm4::store(std::uint64_t va, std::uint64_t value, bool wide) noexcept {
  auto* to = memory(va, wide ? 8 : 4, wide ? 8 : 4, Access::write);
  if (!to) return false;
  if (wide) __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), value, __ATOMIC_RELEASE);
  else __atomic_store_n(reinterpret_cast<std::uint32_t*>(to), static_cast<std::uint32_t>(value), __ATOMIC_RELEASE);
  return true;
}

Pm4::Status Pm4::refuse(std::uint32_t header, const char* why) noexcept {
  const std::uint32_t words[] = {header};
  print_place();
  std::fprintf(stderr, " (0x%08x, %s): %s; the queue stops\n", header, opcode_name(get(words, kOpcode)), why);
  return Status::stopped;
}

void Pm4::print_place() const noexcept {
  std::fprintf(stderr, "sdma emulator: gpu %u queue %u: PM4 packet at 0x%" PRIx64, c_.gpu.value, c_.id, position_);
  if (buffer_) std::fprintf(stderr, " -> 0x%" PRIx64, buffer_->va + buffer_->done * 4);
}

}  // namespace sdma::emulator::pm4
