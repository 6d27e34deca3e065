// SPDX-License-Identifier: MIT
#pragma once
// A node, a planned collective and its run, or the test's end with the reason: what the tests of collectives share.
#include "collectives/collectives.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

#include <memory>
#include <string>

namespace collectives::test {

using namespace sdma;
using namespace std::chrono_literals;

inline constexpr Ordering kOrderings[] = {Ordering::strict, Ordering::rocr, Ordering::adversarial};

inline std::unique_ptr<SoftDevice> node(Ordering o = Ordering::strict, std::uint64_t seed = 0) {
  auto d = SoftDevice::open({.ordering = o, .seed = seed});
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

inline Plan planned(const Options& o) {
  auto p = collectives::plan(o);
  if (!p) FAIL(to_string(p.error()));
  return *std::move(p);
}

inline Run prepared(const Plan& p, Device& d, const BindOptions& o = {}) {
  auto r = Run::prepare(p, d, o);
  if (!r) {
    for (const auto& e : r.error()) UNSCOPED_INFO(to_string(e));
    FAIL("does not bind");
  }
  return *std::move(r);
}

inline Deadline soon() { return Deadline::in(60s); }

/// What is wrong after so many rounds; "" if nothing is. Leaves no round waiting that it has published.
inline std::string rounds(Run& r, unsigned n, std::uint64_t seed = 1) {
  for (unsigned i = 0; i < n; ++i) {
    if (r.ahead() == 0)
      if (auto e = r.refill(soon()); !e) return to_string(e.error());
    r.fill(seed + i);
    if (auto e = r.start(soon()); !e) return to_string(e.error());
    if (auto e = r.wait(soon()); !e) return to_string(e.error());
    if (const auto c = r.check(); !c) return std::to_string(c.wrong) + " wrong: " + c.first;
  }
  return {};
}

/// The options in words, for a test that fails.
inline std::string describe(const Options& o) {
  return std::string(name(o.collective)) + " " + std::string(name(o.variant)) + " N=" + std::to_string(o.gpus) +
         " bytes=" + std::to_string(o.bytes) + " prelaunch=" + std::string(name(o.prelaunch)) +
         " completion=" + std::string(name(o.completion)) + " packet=" + std::to_string(o.packet_bytes);
}

}  // namespace collectives::test
