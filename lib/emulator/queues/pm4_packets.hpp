// SPDX-License-Identifier: MIT
#pragma once
// PM4 packets of a compute queue, as gfx9 encodes them: opcodes, lengths and fields. Each is described here only.
//
//   get(w, write_data::kDestination)      // the bits of one field
//   pair(w, 2)                            // 64 bits in dwords 2 and 3, usually an address
//
//   header   31:30 = 3, 29:16 dwords after the header - 1, 15:8 opcode;  NOP with 0x3fff there: the header alone
//
// `w` is anything that returns dword i of the packet for w[i]. No errors.
#include "sdma/packets/poll.hpp"

#include <cstdint>

namespace sdma::emulator::pm4 {

enum Opcode : std::uint32_t {
  kNop = 0x10,
  kDispatchDirect = 0x15,
  kDispatchIndirect = 0x16,
  kAtomicMem = 0x1e,
  kPredExec = 0x23,
  kWriteData = 0x37,
  kWaitRegMem = 0x3c,
  kIndirectBuffer = 0x3f,
  kCopyData = 0x40,
  kEventWrite = 0x46,
  kReleaseMem = 0x49,
  kAcquireMem = 0x58,
  kSetShReg = 0x76,
  kWaitRegMem64 = 0x93,
};

/// The least number of dwords with which a packet can be executed.
constexpr std::uint32_t shortest(std::uint32_t opcode) noexcept {
  switch (opcode) {
    case kAtomicMem:
    case kWaitRegMem64: return 9;
    case kReleaseMem:
    case kAcquireMem:
    case kWaitRegMem: return 7;
    case kCopyData: return 6;
    case kWriteData: return 5;
    case kIndirectBuffer: return 4;
    case kSetShReg: return 3;
    case kPredExec:
    case kEventWrite: return 2;
    default: return 1;
  }
}
constexpr const char* opcode_name(std::uint32_t opcode) noexcept {
  switch (opcode) {
    case kNop: return "NOP";
    case kDispatchDirect: return "DISPATCH_DIRECT";
    case kDispatchIndirect: return "DISPATCH_INDIRECT";
    case kAtomicMem: return "ATOMIC_MEM";
    case kPredExec: return "PRED_EXEC";
    case kWriteData: return "WRITE_DATA";
    case kWaitRegMem: return "WAIT_REG_MEM";
    case kIndirectBuffer: return "INDIRECT_BUFFER";
    case kCopyData: return "COPY_DATA";
    case kEventWrite: return "EVENT_WRITE";
    case kReleaseMem: return "RELEASE_MEM";
    case kAcquireMem: return "ACQUIRE_MEM";
    case kSetShReg: return "SET_SH_REG";
    case kWaitRegMem64: return "WAIT_REG_MEM64";
    default: return "unknown";
  }
}

struct Field {
  std::uint32_t dword, low, bits;
};
template <class Words> constexpr std::uint32_t get(const Words& w, Field f) noexcept {
  return static_cast<std::uint32_t>(w[f.dword] >> f.low & ((std::uint64_t{1} << f.bits) - 1));
}
template <class Words> constexpr std::uint64_t pair(const Words& w, std::uint64_t at) noexcept {
  return w[at] | std::uint64_t{w[at + 1]} << 32;
}

inline constexpr Field kType{0, 30, 2}, kCount{0, 16, 14}, kOpcode{0, 8, 8};
inline constexpr std::uint32_t kPacketType = 3, kHeaderAlone = 0x3fff;
/// Places that several packets name by the same numbers.
enum Place : std::uint32_t { kRegister = 0, kMemorySync = 1, kL2 = 2, kImmediate = 5, kMemory = 5, kGpuClock = 9 };

/// The dwords of a packet. 0: the header alone.
template <class Words> constexpr std::uint64_t length(const Words& w) noexcept {
  const auto count = get(w, kCount);
  return get(w, kOpcode) == kNop && count == kHeaderAlone ? 1 : std::uint64_t{count} + 2;
}

namespace write_data {  // 2-3 address;  4.. data
inline constexpr Field kDestination{1, 8, 4}, kOneAddress{1, 16, 1}, kEngine{1, 30, 2};
inline constexpr std::uint32_t kAddress = 2, kFirst = 4;
}  // namespace write_data

namespace indirect_buffer {  // 1-2 address
inline constexpr Field kDwords{3, 0, 20}, kChain{3, 20, 1};
inline constexpr std::uint32_t kAddress = 1;
inline constexpr std::uint64_t kAddressBits = (std::uint64_t{1} << 48) - 1;
}  // namespace indirect_buffer

namespace release_mem {  // 3-4 address;  5-6 data;  7: the interrupt's number
inline constexpr Field kEventIndex{1, 8, 4}, kDestination{2, 16, 2}, kInterrupt{2, 24, 3}, kData{2, 29, 3};
inline constexpr std::uint32_t kAddress = 3, kValue = 5, kContext = 7;
enum EventIndex : std::uint32_t { kEndOfPipe = 5, kShaderDone = 6 };
enum Destination : std::uint32_t { kToMemory = 0, kToL2 = 1 };
enum Interrupt : std::uint32_t { kNone, kOnly, kAfterWrite, kDataAfterWrite, kAlways };
enum Data : std::uint32_t { kNoData, kLow, kBoth, kClock };
}  // namespace release_mem

namespace wait {  // memory: 2-3 address;  write, wait: 2 and 3 registers;  4 reference, 5 mask;  64 bits: 4-5, 6-7
inline constexpr Field kFunction{1, 0, 3}, kSpace{1, 4, 2}, kOperation{1, 6, 2};
inline constexpr std::uint32_t kAddress = 2, kRequest = 2, kDone = 3, kReference = 4, kMask = 5, kMask64 = 6;
enum Space : std::uint32_t { kInRegister, kInMemory };
enum Operation : std::uint32_t { kWait = 0, kWriteAndWait = 1, kPreemptable = 3 };
/// The registers with which a queue flushes the host data path. User queues may write no others.
inline constexpr std::uint32_t kHdpFlushRequest = 0xe26, kHdpFlushDone = 0xe27;
/// The comparisons are those of the sDMA poll, with the same numbers: Compare.
constexpr bool known(std::uint32_t function) noexcept { return function <= static_cast<std::uint32_t>(Compare::gt); }
}  // namespace wait

namespace copy_data {  // 2-3 source;  4-5 destination
inline constexpr Field kSource{1, 0, 4}, kDestination{1, 8, 4}, kBoth{1, 16, 1};
inline constexpr std::uint32_t kFrom = 2, kTo = 4;
}  // namespace copy_data

namespace atomic_mem {  // 2-3 address;  4-5 operand;  6-7 compared
inline constexpr Field kOperation{1, 0, 7}, kLoop{1, 8, 4};
inline constexpr std::uint32_t kAddress = 2, kValue = 4, kCompare = 6;
}  // namespace atomic_mem

namespace pred_exec {
inline constexpr Field kDwords{1, 0, 14}, kXccs{1, 24, 8};
}

namespace event_write {  // two dwords: flushes and waits only;  more: counters, which are written to an address
inline constexpr std::uint32_t kDwords = 2;
}

namespace set_sh_reg {  // 2.. values
inline constexpr Field kFirst{1, 0, 16};
inline constexpr std::uint32_t kValues = 2, kCodeLow = 0x20c, kCodeHigh = 0x20d;
inline constexpr std::uint64_t kCodeUnit = 256;  ///< the registers count in it
}  // namespace set_sh_reg

}  // namespace sdma::emulator::pm4
