// SPDX-License-Identifier: MIT
// A rule that nothing can break is no rule: each order of order.hpp weakened, and each step of the protocol left out or
// changed, must break a promise in one of the scenarios.
#include "ring_mutants.hpp"
#include "scenarios.hpp"
#include "support/catch.hpp"

#include <map>

using namespace model;

namespace {

struct Found {
  const char* scenario = nullptr;
  std::string failure{};
};

template <template <sdma::Producers, class> class RingOf> Found first_failure(const std::vector<Scenario>& list) {
  for (const auto& s : list)
    if (const auto o = play<RingOf>(s); !o.failure.empty()) return {s.name, o.failure};
  return {};
}

/// The ring as it is, and the one whose tickets come round.
Found first_failure() {
  auto f = first_failure<sdma::few_slots::Ring>(few_slot_scenarios());
  return f.scenario ? f : first_failure<sdma::Ring>(scenarios());
}

std::vector<std::memory_order> weaker(std::memory_order o) {
  if (o == std::memory_order_acq_rel) return {std::memory_order_acquire, std::memory_order_release};
  return {std::memory_order_relaxed};
}
const char* name(std::memory_order o) {
  return o == std::memory_order_acquire ? "acquire" : o == std::memory_order_release ? "release" : "relaxed";
}

void weaken(const char* constant, std::memory_order& order) {
  const auto right = order;
  for (auto o : weaker(right)) {
    order = o;
    const auto found = first_failure();
    order = right;
    std::printf("%-12s %-8s %-24s %s\n", constant, name(o), found.scenario ? found.scenario : "SURVIVES",
                found.failure.c_str());
    INFO(constant << " weakened to " << name(o));
    CHECK(found.scenario != nullptr);
  }
}
#define WEAKEN(constant) weaken(#constant, Model::constant)

}  // namespace

TEST_CASE("each memory order is needed: weakened, it breaks a promise") {
  WEAKEN(kWptr);
  WEAKEN(kDoorbell);
  WEAKEN(kRptr);
  WEAKEN(kSeenRead);
  WEAKEN(kTellRead);
  WEAKEN(kSeenWptr);
  WEAKEN(kTurn);
  WEAKEN(kLeave);
  WEAKEN(kFront);
  WEAKEN(kPass);
  WEAKEN(kCommit);
  WEAKEN(kCommitted);
}

TEST_CASE("each step of the protocol is needed: changed, it breaks a promise") {
  const auto kill = [](const char* mutant, auto run) {
    const Found found = run();
    std::printf("%-26s %-24s %s\n", mutant, found.scenario ? found.scenario : "SURVIVES", found.failure.c_str());
    std::fflush(stdout);
    INFO(mutant);
    CHECK(found.scenario != nullptr);
  };
#define KILL(mutant)                                                                 \
  kill(#mutant, [] {                                                                 \
    auto f = first_failure<sdma::mutant::Ring>(scenarios());                         \
    return f.scenario ? f : first_failure<sdma::mutant::Ring>(few_slot_scenarios()); \
  });
  SDMA_MUTANTS(KILL)
}

TEST_CASE("each lane must flush its dwords, and the lanes must meet before the stores and after them") {
  const auto kill = [](const char* mutant, auto& rule, auto broken) {
    const auto found = (rule = broken, first_failure<sdma::Ring>(wave_scenarios()));
    std::printf("%-26s %-24s %s\n", mutant, found.scenario ? found.scenario : "SURVIVES", found.failure.c_str());
    INFO(mutant);
    CHECK(found.scenario != nullptr);
  };
  kill("lanes do not flush", Model::leader_flushes, false);
  Model::leader_flushes = true;
  kill("no barrier before", Lanes::skipped, 1);
  kill("no barrier after", Lanes::skipped, 0);
  Lanes::skipped = 2;
}

TEST_CASE("with few open slots, tickets come round and nothing is lost") {
  for (const auto& s : few_slot_scenarios()) {
    const auto o = play<sdma::few_slots::Ring>(s);
    std::printf("%-28s %10lu states\n", s.name, o.states);
    INFO(s.name);
    for (const auto& line : o.trace) UNSCOPED_INFO(line);
    CHECK(o.failure == "");
    CHECK((o.complete && o.ends > 0));
  }
}
