// SPDX-License-Identifier: MIT
#include "cache_programs.hpp"

namespace sdma::litmus {

namespace {

enum : std::uint32_t { kA, kB, kFlag, kSeen };

}  // namespace

// A kernel's part is played by the World. On the software engine an L2 of one line a word stands in for it, which keeps
// what a kernel stored until it is evicted, and what it loaded until a probe, which may or may not come.
std::vector<Program> cache_programs() {
  std::vector<Program> all;

  all.push_back({.rule = "C1",
                 .name = "dirty-line",
                 .question = "Does a copy read data that a compute kernel stored but did not write back?",
                 .setup = [](World&) {},
                 .host = {{.act =
                               [](World& w) {
                                 w.kernel_store(kA, 1);
                                 w.put(0, CopyLinear{.src = w.va(kA), .dst = w.va(kB), .bytes = 4});
                                 w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                                 w.ring(0);
                               }}},
                 .outcome = [](World& w) { return w.load(kB) == 1 ? "new data" : "old data"; },
                 .outcomes = {{"new data", true, true}, {"old data", false, false}}});

  all.push_back({.rule = "C2",
                 .name = "stale-line",
                 .question = "If a compute kernel has loaded a word and a copy then stores to it, does the kernel see "
                             "the new value without an invalidate?",
                 .setup =
                     [](World& w) {
                       w.store(kB, 1);
                       (void)w.kernel_load(kA);
                       w.put(0, CopyLinear{.src = w.va(kB), .dst = w.va(kA), .bytes = 4});
                       w.put(0, Fence{.addr = w.va(kFlag), .value = 1});
                       w.ring(0);
                     },
                 .host = {{.act = [](World& w) { w.store(kSeen, w.kernel_load(kA)); }, .when_stands = 0}},
                 .outcome = [](World& w) { return w.load(kSeen) == 1 ? "new data" : "old data"; },
                 .outcomes = {{"new data", true, true}, {"old data", false, false}}});
  return all;
}

}  // namespace sdma::litmus
