#pragma once
// What the node did, as it happens: the JSON Lines of docs/trace.md, a line an event, written at once, so that a program that
// is killed leaves a trace that can be read. The first process that has something to tell writes FILE, all others FILE.PID.
//
//   sdma trace --follow FILE        a live queue, from another terminal; SDMA_EMULATE_WATCH=1: the same lines on stderr
//
// Off unless SDMA_EMULATE_TRACE names a file or SDMA_EMULATE_WATCH is 1. Any thread; one event at a time. The program goes before
// its trace: an event that cannot be written is lost, and the file counts it (trace/lines.hpp).
#include "sdma/engine/pipeline.hpp"

#include <cstdint>
#include <string_view>

namespace sdma::emulator {

bool trace_on() noexcept;
void trace_queue(GpuId, EngineId, std::uint64_t queue, std::uint64_t ring_bytes, bool created) noexcept;
void trace_doorbell(GpuId, EngineId, std::uint64_t queue, std::uint64_t position) noexcept;
void trace_packet(GpuId, EngineId, const PacketEvent&, bool begins) noexcept;
void trace_fault(const Fault&) noexcept;

}  // namespace sdma::emulator
