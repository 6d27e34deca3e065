// SPDX-License-Identifier: MIT
// Litmus programs about engines: what one queue of an engine does to another.
#include "litmus.hpp"

namespace sdma::litmus {

namespace {

enum : std::uint32_t { kA, kB, kC, kD, kFlag, kGo, kBarrier, kDone };

}  // namespace

std::vector<Program> engine_programs() {
  std::vector<Program> all;

  all.push_back({.rule = "X2",
                 .name = "poll-and-release-on-one-engine",
                 .question = "If a POLL waits for another queue of the same engine, does that queue run?",
                 .engines = {2, 2},
                 .setup =
                     [](World& w) {
                       w.put(0, PollMem{.addr = w.va(kFlag), .func = Compare::eq, .reference = 1});
                       w.put(0, Fence{.addr = w.va(kDone), .value = 1});
                       w.put(1, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kDone) == 1 ? "done" : "stalled"; },
                 .outcomes = {{"done", true, true}, {"stalled", false, false}},
                 .release = kFlag,
                 .parts = {.holding_polls = true}});

  all.push_back({.rule = "X3",
                 .name = "poll-and-release-on-two-engines",
                 .question = "If a POLL waits for a queue of another engine, does that queue run?",
                 .engines = {2, 4},
                 .setup =
                     [](World& w) {
                       w.put(0, PollMem{.addr = w.va(kFlag), .func = Compare::eq, .reference = 1});
                       w.put(0, Fence{.addr = w.va(kDone), .value = 1});
                       w.put(1, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kDone) == 1 ? "done" : "stalled"; },
                 .outcomes = {{"done", true, true}},
                 .parts = {.holding_polls = true}});

  // An exchange that nobody could see the middle of never shows "new, old": A exchanged, and later B not yet.
  all.push_back(
      {.rule = "X7",
       .name = "half-a-swap",
       .question = "Can a reader see one buffer of a SWAP exchanged, and afterwards see the other not yet exchanged?",
       .engines = {2, 4},
       .setup =
           [](World& w) {
             w.store(kA, 1), w.store(kB, 2);
             w.put(0, CopySwap{.a = w.va(kA), .b = w.va(kB), .bytes = 64});
             w.put(1, CopyLinear{.src = w.va(kA), .dst = w.va(kC), .bytes = 4});
             w.barrier(1, kBarrier, 1);
             w.put(1, CopyLinear{.src = w.va(kB), .dst = w.va(kD), .bytes = 4});
             w.ring(0), w.ring(1);
           },
       .outcome =
           [](World& w) {
             return std::string(w.load(kC) == 2 ? "A new" : "A old") + (w.load(kD) == 1 ? ", B new" : ", B old");
           },
       .outcomes = {{"A old, B old", true, true},
                    {"A old, B new", true, true},
                    {"A new, B new", true, true},
                    {"A new, B old", false, false}},
       .parts = {.split_stores = true}});

  all.push_back({.rule = "H9",
                 .name = "full-ring",
                 .question = "Does the engine distinguish a ring that is full to its last dword from an empty one?",
                 .setup =
                     [](World& w) {
                       const auto fence = length(Fence{});
                       w.put(0, Nop{.dwords = static_cast<std::uint32_t>(w.ring_dwords() - fence)});
                       w.put(0, Fence{.addr = w.va(kDone), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kDone) == 1 ? "executed" : "taken for empty"; },
                 .outcomes = {{"executed", true, true}, {"taken for empty", false, false}}});

  all.push_back(
      {.rule = "E6",
       .name = "rptr-at-a-poll",
       .question = "Is rptr before or after a POLL while the POLL waits?",
       .setup =
           [](World& w) {
             w.put(0, Nop{.dwords = 4});
             w.put(0, PollMem{.addr = w.va(kGo), .func = Compare::eq, .reference = 1});
             w.ring(0);
           },
       .host = {{.act = [](World& w) { w.store(kDone, static_cast<std::uint32_t>(w.rptr(0) / 4)); }, .when_stands = 0}},
       .outcome =
           [](World& w) {
             const auto at = w.load(kDone);
             return at == 4 ? "before the poll" : at == 4 + length(PollMem{}) ? "after the poll" : "elsewhere";
           },
       .outcomes = {{"before the poll", true, true}, {"after the poll", false, false}},
       .release = kGo,
       .parts = {.late_rptr = true}});

  all.push_back({.rule = "H8",
                 .name = "rptr-as-completion",
                 .question = "If rptr is past a copy, is the copy complete?",
                 .engines = {2},
                 .setup =
                     [](World& w) {
                       w.store(kA, 1);
                       w.put(0, CopyLinear{.src = w.va(kA), .dst = w.va(kB), .bytes = 4});
                       w.ring(0);
                     },
                 .host = {{.act =
                               [](World& w) {
                                 const bool read = w.rptr(0) / 4 == length(CopyLinear{});
                                 w.store(kDone, !read ? 1 : w.load(kB) == 1 ? 2 : 3);
                               }}},
                 .outcome =
                     [](World& w) {
                       const auto seen = w.load(kDone);
                       return seen == 1 ? "not read" : seen == 2 ? "read and done" : "read, not done";
                     },
                 .outcomes = {{"not read", true, true}, {"read and done", true, true}, {"read, not done", true, false}},
                 .parts = {.late_rptr = true}});
  return all;
}

}  // namespace sdma::litmus
