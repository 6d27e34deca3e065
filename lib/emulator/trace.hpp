// SPDX-License-Identifier: MIT
#pragma once
// Records what the node does: the JSON Lines of docs/trace.md, one line per event. Each line is written at once, so a
// killed program leaves a readable trace. A FILE that ends in .bin gets the same events as a binary recording
// (trace/records_writer.hpp), which costs a fraction, and has no names of variables. The first process with an event
// writes FILE; each further one creates FILE.PID or, if that exists, FILE.PID-1, FILE.PID-2 ...: no process writes to a
// file with contents.
//
//   sdma trace --follow FILE        follows events from another terminal;
//                                   SDMA_EMULATE_WATCH=1: the same lines on stderr
//
// Addresses have the names of SDMA_EMULATE_NAMES, and those of the program's variables; see symbols.hpp. A range is
// named when an event first has one of its addresses.
//
// Tracing is off unless SDMA_EMULATE_TRACE names a file or SDMA_EMULATE_WATCH is 1. Any thread may call these
// functions; they write one event at a time. Tracing never stops the program: an event that cannot be written is lost,
// and the file counts it (trace/lines_writer.hpp).
#include "../engine/pipeline.hpp"

#include <cstdint>

namespace sdma::emulator {

/// Compute queues count as an engine after all sDMA engines of a GPU.
inline constexpr EngineId kComputeEngine{63};

bool trace_on() noexcept;
/// The GPUs of this process use its own addresses, so the program's variables have names in recordings (symbols.hpp).
void trace_own_addresses() noexcept;
void trace_queue(GpuId, EngineId, std::uint64_t queue, std::uint64_t ring_bytes, bool created) noexcept;
void trace_doorbell(GpuId, EngineId, std::uint64_t queue, std::uint64_t position) noexcept;
void trace_packet(GpuId, EngineId, const PacketEvent&, bool begins) noexcept;
void trace_fault(const Fault&) noexcept;

}  // namespace sdma::emulator
