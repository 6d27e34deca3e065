// SPDX-License-Identifier: MIT
// must not compile: nodiscard
// with: -Werror=unused-result
// Each line alone loses what is wrong with a run, a schedule, a packet or a queue.
#include "sdma/check/check.hpp"
#include "sdma/device/kfd.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/stream/rules.hpp"
#include "sdma/sync/wait.hpp"

using namespace sdma;

void wrong(const Schedule& s, const Bound& b, const RingMemory& ring, std::span<std::uint32_t> dwords, Profile profile,
           Backoff backoff) {
  run(b);                               // refused
  check(s);                             // refused
  as_expected(s, {});                   // refused
  profile.set("fence=full");            // refused
  problems(s);                          // refused
  expects_finding(s);                   // refused
  store_epoch(s.queues[0], 1, dwords);  // refused
  check_stream(dwords);                 // refused
  check(Nop{});                         // refused
  fits(Nop{});                          // refused
  validate(ring);                       // refused
  backoff.step({});                     // refused
  KfdDevice::missing();                 // refused
  Ring<>{ring}.submit(Nop{});           // refused
}
