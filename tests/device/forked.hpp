// SPDX-License-Identifier: MIT
#pragma once
// What a fork leaves of a device: the child has nothing, and ends; the parent goes on.
//
//   forked(std::move(device), soon, [&](int& bad) { ... });    what else the child must be refused and gives back
#include "sdma/device/device.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>

namespace sdma::test {

/// `soon` gives a Deadline. `more` gets the number of calls in the child that were not refused, and adds its own.
template <class D, class Soon, class More> void forked(std::unique_ptr<D> d, Soon soon, More more) {
  auto memory = *d->allocate({.bytes = 4096});
  auto event = *d->create_event();
  auto done = *d->create_signal();
  auto q = *d->create_queue({});
  Ring<> ring{q.memory()};
  const auto child = fork();
  if (child == 0) {
    int bad = 0;
    const auto in = [](int ms) { return Deadline::in(std::chrono::milliseconds(ms)); };
    std::array<std::byte, 4> bytes{};
    bad += d->create_queue({}).has_value();
    bad += d->allocate({.bytes = 1}).has_value();
    bad += d->create_signal().has_value();
    bad += d->create_event().has_value();
    bad += d->wait_event(event, in(1)) == Errc::ok;
    bad += d->wait_fault(in(1)).has_value();
    bad += d->clock(GpuId{0}).has_value();
    bad += d->peek(memory.va(), bytes) == Errc::ok;
    bad += d->flush_host_writes(GpuId{0}) == Errc::ok;
    more(bad);
    q.reset();
    memory.reset();
    event.reset();
    done.reset();
    d.reset();
    _exit(bad);
  }
  REQUIRE(child > 0);
  int status = -1;
  const auto end = soon();
  pid_t ended = 0;
  for (Backoff b; ended == 0 && b.step(end);) ended = waitpid(child, &status, WNOHANG);
  REQUIRE(ended == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  REQUIRE(ring.submit(Fence{.addr = done->va, .value = 3}) == Errc::ok);
  CHECK(wait(*done, Compare::eq, 3, soon(), ring));
}

}  // namespace sdma::test
