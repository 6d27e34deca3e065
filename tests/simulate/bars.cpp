// SPDX-License-Identifier: MIT
// The two tables that the machine is fitted to: the all-gather's, and the shares of one copy.
#include "collectives/plan.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/measurements.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>

using namespace sdma;
using collectives::Collective;
using collectives::Prelaunch;
using collectives::Variant;

namespace {

constexpr std::uint64_t K = 1024, M = K * K;

double ns(Collective c, Variant v, bool prelaunch, std::uint64_t bytes, const MachineDescription& m) {
  const auto p = collectives::plan({.collective = c,
                                    .variant = v,
                                    .prelaunch = prelaunch ? Prelaunch::shared : Prelaunch::off,
                                    .gpus = 8,
                                    .bytes = bytes,
                                    .in_place = v == Variant::swap});
  REQUIRE(p);
  const auto t = simulate(p->schedule, m);
  REQUIRE(t);
  double phases = 0;
  for (const auto x : t->phase_ns) phases += x;
  CHECK(phases == Approx(t->ns));
  return t->ns;
}

const Measurements& published() {
  static const auto m = [] {
    auto read = read_measurements(SDMA_SOURCE_ROOT "/share/published/dma-latte.csv");
    for (const auto& d : read ? std::vector<Diagnostic>{} : read.error()) UNSCOPED_INFO(to_string(d));
    REQUIRE(read);
    return std::move(*read);
  }();
  return m;
}
double speed_up(const std::string& variant, bool prelaunch, std::uint64_t bytes) {
  const auto* o = published().find("dma-latte/all_gather_" + variant + ".sdma",
                                   "chunk=" + size_text(bytes / 8) + (prelaunch ? " prelaunch=1" : ""), "speed_up");
  REQUIRE(o);
  return o->value;
}

constexpr std::uint64_t kSizes[] = {K,     4 * K, 16 * K, 64 * K, 128 * K, 256 * K, 512 * K,
                                    1 * M, 2 * M, 4 * M,  16 * M, 64 * M,  256 * M, K* M};
constexpr std::pair<Variant, bool> kColumns[] = {
    {Variant::pcpy, true}, {Variant::bcst, false}, {Variant::bcst, true}, {Variant::b2b, false}, {Variant::b2b, true}};

}  // namespace

TEST_CASE("the all-gather table within 8 % on average, all but one cell within 25 %, and the best variant right",
          "[long]") {
  const auto m = *mi300x_machine();
  double sum = 0;
  for (const auto bytes : kSizes) {
    const auto base = ns(Collective::all_gather, Variant::pcpy, false, bytes, m);
    double model[5], measured[5];
    for (std::size_t i = 0; i < 5; ++i) {
      const auto [variant, prelaunch] = kColumns[i];
      model[i] = base / ns(Collective::all_gather, variant, prelaunch, bytes, m);
      measured[i] = speed_up(std::string(collectives::name(variant)), prelaunch, bytes);
      const auto error = std::abs(model[i] / measured[i] - 1);
      INFO(bytes << " bytes, column " << i << ": " << model[i] << " against " << measured[i]);
      // Published as slower than without prelaunch, and than both its neighbours: docs/reproduction.md.
      if (bytes != 512 * K || i != 4) CHECK(error <= 0.25);
      sum += error;
    }
    INFO(bytes << " bytes");
    CHECK(std::max_element(model, model + 5) - model == std::max_element(measured, measured + 5) - measured);
  }
  CHECK(sum / (5 * std::size(kSizes)) <= 0.08);
}

TEST_CASE("shares of the four phases of one copy within 5 points") {
  const auto m = *mi300x_machine(2);
  int shares = 0;
  for (const auto& o : published().observations) {
    if (o.kind != Observation::Kind::share) continue;
    ++shares;
    const auto t = simulate(*o.schedule, m);
    REQUIRE(t);
    INFO(o.id);
    CHECK(std::abs(100 * t->phase_ns[static_cast<std::size_t>(o.phase)] / t->ns - o.value) <= 5);
  }
  CHECK(shares == 15 * 4);
}

TEST_CASE("the schedules of the published table take as long as the plans of the collectives", "[long]") {
  const auto m = *mi300x_machine();
  for (const std::uint64_t bytes : {K, 64 * K, 512 * K, 16 * M, K * M})
    for (const auto& [variant, prelaunch] : kColumns) {
      const auto* o = published().find("dma-latte/all_gather_" + std::string(collectives::name(variant)) + ".sdma",
                                       "chunk=" + size_text(bytes / 8) + (prelaunch ? " prelaunch=1" : ""), "speed_up");
      REQUIRE(o);
      INFO(o->id);
      CHECK(simulate(*o->schedule, m)->ns ==
            Approx(ns(Collective::all_gather, variant, prelaunch, bytes, m)).epsilon(1e-9));
      CHECK(simulate(*o->baseline, m)->ns ==
            Approx(ns(Collective::all_gather, Variant::pcpy, false, bytes, m)).epsilon(1e-9));
    }
}

TEST_CASE("what the page says of the all-to-all holds: large swaps deliver one link's rate, medium ones no less") {
  const auto m = *mi300x_machine();
  const auto ratio = [&](std::uint64_t bytes) {
    return ns(Collective::all_to_all, Variant::pcpy, false, bytes, m) /
           ns(Collective::all_to_all, Variant::swap, false, bytes, m);
  };
  CHECK(ratio(K * M) == Approx(0.5).margin(0.03));
  CHECK(ratio(256 * M) == Approx(0.6).margin(0.03));
  CHECK(ratio(16 * M) > ratio(K * M));
}
