#pragma once
// Snapshots from files: dumps of rings, dumps in text, recordings, core files.
//
//   Snapshot s;
//   add(s, *load_dump("stuck.ring"), "stuck.ring");
//   add(s, text->dumps.front(), "umr.txt", {.rptr = 0x40, .wptr = 0x80});
//   add(s, *trace::load_json_lines("run.jsonl"), "run.jsonl");
//   s.words.add(GpuVa{0x7f0000001000}, 3, 4);              // what a polled word holds
//   const auto d = diagnose(s);
//
// Files differ in what they hold. A `.ring` has positions, the doorbell and the producer's own positions, and no memory. A text
// has dwords, and positions only if a tool printed them. A recording has the packets that an engine has begun, doorbells, and the
// last value of each signal, but not the packets that were never begun. Each function adds a note about what is missing.
//
// The kernel's devcoredump has the rings of the kernel's own SDMA queues, and none of a process: `add` says so in a note.
//
// An ELF core file has neither rings nor words, because the kernel does not dump mappings of a device. `core_notes` says which
// mappings of GPUs a core names, and where rings may have been. A core whose notes come from a ROCm debugger's core (NT_AMDGPU)
// has queues: read_core reads those.
//
// Everything here allocates, in proportion to its input. No shared state; any thread may call these functions. Errors: one
// Diagnostic with the name of the file.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/dump/place.hpp"
#include "sdma/dump/text.hpp"
#include "sdma/queue/dump.hpp"
#include "sdma/trace/trace.hpp"

#include <string_view>

namespace sdma::inline v0::doctor {

/// `name`: how reports call the queue.
void add(Snapshot&, const RingDump&, std::string_view name);
/// Positions that are given replace those of the text. bad: positions that the dump cannot have.
void add(Snapshot&, const TextDump&, std::string_view name, const RingPositions& = {}, Source = Source::user);
/// One queue for each lane that has packets.
void add(Snapshot&, const trace::Trace&, std::string_view name);

}  // namespace sdma::inline v0::doctor
