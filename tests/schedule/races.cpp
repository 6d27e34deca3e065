// SPDX-License-Identifier: MIT
// Races between queues as they occur in practice: the files of `races`, each with its fix (`--set fixed=1`). An
// adversarial run shows each of them with several of the first hundred seeds (of three hundred, where the machine is
// busy), and never blames the fixed schedule.
#include "support.hpp"
#include "support/sanitizer.hpp"

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

/// Without delays, none of these seeds shows some of the races, and one or two show others, by the timing of threads.
const std::uint64_t kSeeds = tries(std::uint64_t{100});
constexpr std::uint64_t kBusySeeds = 300;
constexpr int kShown = 4;

/// A queue that sleeps too long, or a deadlock, ends the run at `timeout`.
std::string run_file(const std::string& name, bool fixed, std::uint64_t seed, std::chrono::nanoseconds timeout) {
  const auto s = parse(read("tests/schedule/races/" + name + ".sdma"), {.set = {{"fixed", fixed ? "1" : "0"}}});
  const auto d = node(4, Ordering::adversarial, seed);
  return lines(run(link(s, *d), {.time_limit = timeout, .seed = seed}).findings);
}

void shows(const std::string& name, const std::string& how) {
  INFO(name);
  int shown = 0;
  std::uint64_t seed = 0;
  // The thread sanitizer stops at the race, so there only the fixed schedule runs.
  for (; seed < kBusySeeds && shown < kShown && !thread_sanitizer(); ++seed) {
    const auto found = run_file(name, false, seed, 200ms);
    // A run that a busy machine has not ended in time shows nothing.
    if (found.empty() || (found.find(how) == found.npos && found.find("after 200ms") != found.npos)) continue;
    INFO("seed " << seed << ": " << found);
    CHECK(found.find(how) != found.npos);
    ++shown;
  }
  CHECK((thread_sanitizer() || shown == kShown));
  for (seed = 0; seed < kSeeds; ++seed) REQUIRE(run_file(name, true, seed, 60s) == "");
}

}  // namespace

TEST_CASE("an adversarial run delays whole queues, and hosts: races between them show") {
  shows("fence_twice", "host.word is 1");
  shows("late_fill", "bytes differ: gpu1.out[");
  shows("shared_cell", "bytes differ: gpu2.out[");
  shows("signal_elsewhere", "bytes differ: gpu1.out[");
  shows("slot_reused", "bytes differ: gpu1.out[");
  shows("store_after_submit", "gpu0.got is 0");
  shows("staged_copy", "bytes differ: gpu1.out[");
  shows("table_rewritten", "gpu0.got1 is 22");
}

TEST_CASE("a poll that keeps its engine from the queue that it waits for shows, too") {
  shows("own_engine", "host.done is 0 after 200ms");
}
