#pragma once
// Go: the host threads of a bound schedule, from first contents to expectations.
//
//   RunReport r = run(*bound, {.timeout = 5s, .seed = 7});
//   for (const auto& f : r.findings) puts(to_string(f).c_str());
//
//   1. fills      buffers by `init` or an input; signals with their first values; epochs begin at 1
//   2. remembers  what expectations call `old`
//   3. runs       a thread for each host block: submit, set, wait, repeat
//   4. checks     when all have ended: which bytes of which buffer differ
//
// A wait that does not end by the timeout is a finding with the stall report of every queue that has not read all its packets;
// a fault of a queue is a finding as soon as it is seen. Either stops all host threads, and nothing is compared.
// A Bound may run many times. After a run that did not end, its queues may still stand: make a new one.
//
// Contents depend on the seed, the number of the buffer and nothing else. A schedule that expects a finding of a checker is
// not run: its only finding says so. Blocks the calling thread; one run at a time a Bound. Allocates.
#include "sdma/schedule/bind.hpp"

#include <chrono>

namespace sdma {
inline namespace v0 {

struct RunOptions {
  struct Input {
    std::string name{};              ///< "gpu0.in"
    std::vector<std::byte> bytes{};  ///< its first bytes; what is behind them is as `init` says
  };
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);  ///< of the whole run
  std::uint64_t seed = 0;
  std::vector<Input> inputs{};
};

struct RunReport {
  std::vector<Diagnostic> findings{};
  std::chrono::nanoseconds elapsed{};  ///< of step 3
  explicit operator bool() const noexcept { return findings.empty(); }
};

RunReport run(const Bound&, const RunOptions& = {});

}  // namespace v0
}  // namespace sdma
