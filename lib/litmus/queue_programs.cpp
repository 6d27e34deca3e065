// SPDX-License-Identifier: MIT
// Litmus programs about one queue: the order in which its packets land.
#include "litmus.hpp"

namespace sdma::litmus {

namespace {

enum : std::uint32_t { kX, kY, kA, kB, kC, kFlag, kGo, kBarrier, kIb };

CopyLinear copy(World& w, std::uint32_t from, std::uint32_t to, std::uint32_t bytes = 4) {
  return {.src = w.va(from), .dst = w.va(to), .bytes = bytes};
}

}  // namespace

std::vector<Program> queue_programs() {
  std::vector<Program> all;

  all.push_back({.rule = "Q1",
                 .name = "two-copies",
                 .question = "Which of two copies to the same destination lands last?",
                 .setup =
                     [](World& w) {
                       w.store(kX, 1), w.store(kY, 2);
                       w.put(0, copy(w, kX, kA));
                       w.put(0, copy(w, kY, kA));
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kA) == 1 ? "first" : "second"; },
                 .outcomes = {{"second", true, true}, {"first", true, false}}});

  all.push_back({.rule = "Q1",
                 .name = "bytes-of-a-copy",
                 .question = "Which bytes of one copy become visible first?",
                 .engines = {0, 1},
                 .setup =
                     [](World& w) {
                       // Two words as one copy of 68 bytes: the last dword is the next word.
                       w.store(kX, 1), w.store(kY, 1);
                       w.put(0, copy(w, kX, kA, 68));
                       w.put(1, copy(w, kB, kC, 4));
                       w.barrier(1, kBarrier, 1);
                       w.put(1, copy(w, kA, kFlag, 4));
                       w.ring(0), w.ring(1);
                     },
                 .outcome =
                     [](World& w) {
                       const bool end = w.load(kC) == 1, begin = w.load(kFlag) == 1;  // the end is looked at first
                       return std::string(end ? "end" : "no end") + (begin ? ", begin" : ", no begin");
                     },
                 .outcomes = {{"no end, no begin", true, true},
                              {"no end, begin", true, true},
                              {"end, begin", true, true},
                              {"end, no begin", false, false}},
                 .parts = {.pieces = 2}});

  all.push_back({.rule = "Q2",
                 .name = "write-as-completion",
                 .question = "Does a WRITE after a copy show that the copy is complete?",
                 .engines = {0, 1},
                 .setup =
                     [](World& w) {
                       static constexpr std::uint32_t kOne[] = {1};
                       w.store(kX, 1);
                       w.put(0, copy(w, kX, kA));
                       w.put(0, Write{.dst = w.va(kFlag), .data = kOne});
                       w.put(1, PollMem{.addr = w.va(kFlag), .func = Compare::eq, .reference = 1});
                       w.put(1, copy(w, kA, kB));
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "new data" : "old data"; },
                 .outcomes = {{"new data", true, true}, {"old data", true, false}}});

  all.push_back({.rule = "Q3",
                 .name = "fence-as-completion",
                 .question = "Does a FENCE after a copy show that the copy is complete?",
                 .engines = {0, 1},
                 .setup =
                     [](World& w) {
                       w.store(kX, 1);
                       w.put(0, copy(w, kX, kA));
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.put(1, PollMem{.addr = w.va(kFlag), .func = Compare::eq, .reference = 1});
                       w.put(1, copy(w, kA, kB));
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "new data" : "old data"; },
                 .outcomes = {{"new data", true, true}},
                 .parts = {.split_stores = true}});

  all.push_back({.rule = "Q3",
                 .name = "fence-after-write",
                 .question = "Does a FENCE after a WRITE show that the WRITE is complete?",
                 .engines = {0, 1},
                 .setup =
                     [](World& w) {
                       static constexpr std::uint32_t kOne[] = {1};
                       w.put(0, Write{.dst = w.va(kA), .data = kOne});
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.put(1, PollMem{.addr = w.va(kFlag), .func = Compare::eq, .reference = 1});
                       w.put(1, copy(w, kA, kB));
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "new data" : "old data"; },
                 .outcomes = {{"new data", true, true}},
                 .parts = {.split_stores = true}});

  all.push_back({.rule = "Q3",
                 .name = "fence-in-vram",
                 .question = "Does a FENCE whose word is in VRAM show that a copy to host memory is complete?",
                 .engines = {0, 1},
                 .setup =
                     [](World& w) {
                       w.store(kX, 1);
                       w.put(0, copy(w, kX, kA));
                       w.put(0, Fence{.addr = w.va(World::kVram), .value = 1});
                       w.put(1, PollMem{.addr = w.va(World::kVram), .func = Compare::eq, .reference = 1});
                       w.put(1, copy(w, kA, kB));
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "new data" : "old data"; },
                 .outcomes = {{"new data", true, true}, {"old data", false, false}},
                 .parts = {.split_stores = true},
                 .vram = true});

  all.push_back({.rule = "Q5",
                 .name = "copy-after-fence",
                 .question = "May a copy after a FENCE change what a copy before the FENCE reads?",
                 .setup =
                     [](World& w) {
                       w.store(kA, 1), w.store(kC, 2);
                       w.put(0, copy(w, kA, kB));
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.put(0, copy(w, kC, kA));
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "held back" : "overtook"; },
                 .outcomes = {{"held back", true, true}, {"overtook", false, false}}});

  all.push_back({.rule = "Q7",
                 .name = "copy-after-barrier",
                 .question = "May a copy after FENCE(w, n), POLL(w == n) change what a copy before the FENCE reads?",
                 .setup =
                     [](World& w) {
                       w.store(kA, 1), w.store(kC, 2);
                       w.put(0, copy(w, kA, kB));
                       w.barrier(0, kBarrier, 1);
                       w.put(0, copy(w, kC, kA));
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "held back" : "overtook"; },
                 .outcomes = {{"held back", true, true}},
                 .parts = {.split_stores = true}});

  all.push_back({.rule = "Q9",
                 .name = "expired-poll",
                 .question = "Does a queue continue after a finite POLL has expired?",
                 .setup =
                     [](World& w) {
                       w.put(0, PollMem{.addr = w.va(kGo), .func = Compare::eq, .reference = 1, .retry = 2});
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kFlag) == 1 ? "continues" : "stalled"; },
                 .outcomes = {{"stalled", true, true}, {"continues", true, true}}});

  all.push_back({.rule = "Q9",
                 .name = "endless-poll",
                 .question = "Does a POLL whose retry count is 0xfff expire?",
                 .setup =
                     [](World& w) {
                       w.put(0, PollMem{.addr = w.va(kGo), .func = Compare::eq, .reference = 1, .retry = 0xfff});
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kFlag) == 1 ? "expired" : "waits"; },
                 .outcomes = {{"waits", true, true}},
                 .release = kGo});

  // The words begin as 0, and a clock that runs is never 0.
  all.push_back({.rule = "Q10",
                 .name = "timestamp-after-copy",
                 .question = "Does a TIMESTAMP wait for an earlier copy?",
                 .engines = {0, 1},
                 .setup =
                     [](World& w) {
                       w.store(kX, 1);
                       w.put(0, copy(w, kX, kA));
                       w.put(0, Timestamp{.addr = w.va(kFlag)});
                       w.put(1, PollMem{.addr = w.va(kFlag), .func = Compare::ne, .reference = 0});
                       w.put(1, copy(w, kA, kB));
                       w.ring(0), w.ring(1);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "waits" : "does not wait"; },
                 .outcomes = {{"waits", true, true}},
                 .parts = {.split_stores = true}});

  all.push_back({.rule = "Q12",
                 .name = "cond-exec-of-a-fence",
                 .question = "Does COND_EXEC see what an earlier FENCE of its queue stored, without a wait?",
                 .setup =
                     [](World& w) {
                       w.put(0, Fence{.addr = w.va(kA), .value = 1});
                       w.put(0, CondExec{.addr = w.va(kA), .reference = 1, .dwords = length(Fence{})});
                       w.put(0, Fence{.addr = w.va(kB), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "executed" : "skipped"; },
                 .outcomes = {{"executed", true, true}, {"skipped", false, false}}});

  all.push_back({.rule = "Q12",
                 .name = "cond-exec-after-fence",
                 .question = "Does COND_EXEC see what an earlier copy wrote, if there is only a FENCE between them?",
                 .setup =
                     [](World& w) {
                       w.store(kX, 1);
                       w.put(0, copy(w, kX, kA));
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.put(0, CondExec{.addr = w.va(kA), .reference = 1, .dwords = length(Fence{})});
                       w.put(0, Fence{.addr = w.va(kB), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "executed" : "skipped"; },
                 .outcomes = {{"executed", true, true}, {"skipped", false, false}}});

  all.push_back({.rule = "Q12",
                 .name = "cond-exec-after-barrier",
                 .question = "Does COND_EXEC see what an earlier copy wrote, if there is a full barrier between them?",
                 .setup =
                     [](World& w) {
                       w.store(kX, 1);
                       w.put(0, copy(w, kX, kA));
                       w.barrier(0, kBarrier, 1);
                       w.put(0, CondExec{.addr = w.va(kA), .reference = 1, .dwords = length(Fence{})});
                       w.put(0, Fence{.addr = w.va(kB), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "executed" : "skipped"; },
                 .outcomes = {{"executed", true, true}}});

  // The value of a Fence is its last dword.
  all.push_back({.rule = "Q13",
                 .name = "patched-ring",
                 .question = "Is a packet after a POLL fetched before the POLL is satisfied?",
                 .setup =
                     [](World& w) {
                       w.put(0, PollMem{.addr = w.va(kGo), .func = Compare::eq, .reference = 1});
                       w.put(0, Fence{.addr = w.va(kA), .value = 1});
                       w.ring(0);
                     },
                 .host = {{.act =
                               [](World& w) {
                                 const std::uint64_t value = length(PollMem{}) + length(Fence{}) - 1;
                                 w.patch(0, value, 2);
                                 w.store(kGo, 1);
                               },
                           .when_stands = 0}},
                 .outcome = [](World& w) { return w.load(kA) == 1 ? "fetched ahead" : "patch seen"; },
                 .outcomes = {{"patch seen", true, true}, {"fetched ahead", false, false}},
                 .parts = {.prefetch = true}});

  all.push_back({.rule = "Q13",
                 .name = "patched-ib",
                 .question = "Is an indirect buffer after a POLL fetched before the POLL is satisfied?",
                 .setup =
                     [](World& w) {
                       const auto fence = encode(Fence{.addr = w.va(kA), .value = 1});
                       for (std::uint32_t i = 0; i < fence.size(); ++i) w.store_dword(kIb, i, fence[i]);
                       w.put(0, PollMem{.addr = w.va(kGo), .func = Compare::eq, .reference = 1});
                       w.put(0, Indirect{.base = w.va(kIb), .dwords = static_cast<std::uint32_t>(fence.size())});
                       w.ring(0);
                     },
                 .host = {{.act =
                               [](World& w) {
                                 w.store_dword(kIb, static_cast<std::uint32_t>(length(Fence{}) - 1), 2);
                                 w.store(kGo, 1);
                               },
                           .when_stands = 0}},
                 .outcome = [](World& w) { return w.load(kA) == 1 ? "fetched ahead" : "patch seen"; },
                 .outcomes = {{"patch seen", true, true}, {"fetched ahead", false, false}},
                 .parts = {.prefetch = true}});

  all.push_back({.rule = "Q18",
                 .name = "copy-after-nop",
                 .question = "May a copy after a NOP change what a copy before the NOP reads?",
                 .setup =
                     [](World& w) {
                       w.store(kA, 1), w.store(kC, 2);
                       w.put(0, copy(w, kA, kB));
                       w.put(0, Nop{});
                       w.put(0, copy(w, kC, kA));
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0);
                     },
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "held back" : "overtook"; },
                 .outcomes = {{"held back", true, true}, {"overtook", true, false}}});

  return all;
}

}  // namespace sdma::litmus
