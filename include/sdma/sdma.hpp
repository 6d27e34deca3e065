// SPDX-License-Identifier: MIT
#pragma once
// The heart: what a program needs to put packets into a ring of an sDMA engine, and to wait for them.
//
//   producer                    memory that both see                  engine
//   Writer, Ring::submit -----> ring   [poll|copy|copy|atomic|....] --> reads packets, moves bytes
//   Ring::publish ------------> wptr   how far the ring is written
//                        \----> doorbell --------------------------> looks at wptr
//   Ring::reserve <------------ rptr   how far the ring was read <-- says nothing about the bytes
//   wait, Timeline <----------- signal a 64-bit word <-------------- Fence, Atomic: all before it is complete
//                      set ---> signal ---------------------------> PollMem: holds back all after it
//
// In the order of use:
//
//   #include "sdma/sdma.hpp"
//   using namespace sdma;
//
//   // 1  The memory of a queue: of KFD, ROCr, a software device (device/device.hpp), or an array in a test.
//   RingMemory memory{.dwords = ring_dwords, .rptr = rptr, .wptr = wptr, .doorbell = doorbell};
//   if (auto why = validate(memory); !why.empty()) return fail(why);
//   Ring<> ring{memory};                                              // Ring<Producers::many>: any threads
//
//   // 2  A word that both sides see, and values of it that only grow.
//   Signal done{.word = word, .va = GpuVa::of(word)};
//   Timeline rounds{done};
//
//   // 3  Packets. A few of them are one call: checked, one slot, one doorbell, all or none.
//   auto e = ring.submit(CopyLinear{.src = a, .dst = b, .bytes = 4096}, Atomic{.addr = done.va, .value = 1});
//
//   // 4  More of them: a slot, a writer, recipes. Long copies become as many packets as they need.
//   const auto epoch = rounds.next();                                 // Errc::epoch_overflow after 2^32 - 1
//   const Writer::Copy copy{.src = a, .dst = b, .bytes = 5ull << 30};
//   const auto slot = ring.reserve(dwords_of(copy) + dwords_of<PollMem, Atomic>());
//   if (!slot) return slot.error();                                   // no_space: try again later
//   Writer w{slot->dwords};
//   acquire(w, go, 1);                                                // waits for another queue, or for this program
//   w.copy(copy);
//   complete_with_atomic(w, done.va, 1);
//   ring.publish(*slot, w.error() == Errc::ok ? w.position_dwords() : 0);   // 0 abandons the slot
//
//   // 5  Wait: with the value, or at the deadline with a report of what the queue was doing.
//   if (auto v = rounds.wait(*epoch, Deadline::in(200ms), ring); !v) return fail(v.error());
//
// What does not hold, although it looks so: rptr past a packet does not mean that it is complete; two copies of one
// queue have no order; a copy and the fence of another queue have none (docs/sync.md, docs/ordering.md).
//
//   which header                has what
//   core/units.hpp              GpuVa, GpuId, EngineId
//   core/result.hpp             Errc, and Result<T>: a value, or why there is none
//   core/deadline.hpp           Deadline: every wait has one
//   packets/copy.hpp            CopyLinear, CopyBroadcast, CopySwap, CopySubwindow, ...
//   packets/write.hpp           WriteLinear, Fill
//   packets/sync.hpp            Fence, Atomic, Timestamp, Trap
//   packets/poll.hpp            PollMem: hold the queue until a word has a value
//   packets/control.hpp         Nop, Indirect, CondExec
//   packets/generation.hpp      Generation: packets of other engines than those of MI300X
//   queue/ring.hpp              RingMemory, Ring: reserve, publish, submit
//   stream/writer.hpp           Writer: packets and long copies into a span; dwords_of: how long must a slot be?
//   sync/signal.hpp             Signal: the word
//   sync/recipes.hpp            acquire, complete_with_atomic, complete_with_fence, full_barrier, interrupt
//   sync/wait.hpp               wait, wait_all, wait_any, Backoff
//   sync/timeline.hpp           Timeline: epochs
//   sync/submission.hpp         Submission: waits for room; longer than a slot
//   queue/queue.hpp             Queue: a ring that its owner destroys
//
// Not here, because not every program needs them: sync/hsa.hpp (signals of ROCr), sync/stream_order.hpp (streams of HIP
// and CUDA), sync/device.hpp (kernels that put), stream/frame.hpp (packets that are built once), stream/fixed_frame.hpp
// (packets that the compiler builds), queue/reset.hpp (rings after the reset of an engine), stream/reader.hpp (from
// dwords to packets); in the compiled library, stream/text.hpp (packets as text) and device/open.hpp (queues of this
// machine). forward.hpp has the names without the types.
//
// Everything here is header-only, depends on the standard library alone, compiles with -fno-exceptions -fno-rtti, and
// allocates nothing. Threads, ordering and errors: each header says it at its top.
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/generation.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"
#include "sdma/queue/queue.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/signal.hpp"
#include "sdma/sync/submission.hpp"
#include "sdma/sync/timeline.hpp"
#include "sdma/sync/wait.hpp"
