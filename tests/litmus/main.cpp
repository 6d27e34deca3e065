// SPDX-License-Identifier: MIT
// litmus [--device=soft|kfd|cuda|rocr] [--seeds=N] [--runs=N] [RULE|NAME...]
// Runs each program and prints how often each outcome was seen. On the software engine: once with every sequence of
// choices in each ordering, which must give exactly the outcomes of the table, and with N seeds of the whole model,
// which must give no other. On the kernel driver's device: N runs of each program that needs no kernel, which must give
// no outcome that the table does not have. Exit code: 0 as the table says, 1 not so, 2 usage.
#include "cache_programs.hpp"
#include "litmus/device.hpp"
#include "sdma/device/open.hpp"
#include "soft.hpp"
#include "support/enumerator.hpp"

#include <charconv>
#include <cstdio>
#include <map>
#include <set>

using namespace sdma;
using namespace sdma::litmus;

namespace {

using Histogram = std::map<std::string, std::uint64_t, std::less<>>;

/// Programs are small: a search that does not end has a bug, in the program or in the model.
constexpr std::uint64_t kMostRuns = 5'000'000;

bool allowed(const Program& p, Ordering o, std::string_view outcome) {
  for (const auto& e : p.outcomes)
    if (e.outcome == outcome) return o == Ordering::adversarial || (o == Ordering::rocr ? e.rocr : e.strict);
  return false;
}

void print(const Program& p, const char* how, const Histogram& seen) {
  std::printf("%-4.*s %-32.*s %-22s", static_cast<int>(p.rule.size()), p.rule.data(), static_cast<int>(p.name.size()),
              p.name.data(), how);
  const char* separator = "";
  for (const auto& [outcome, n] : seen) {
    std::printf("%s%s: %llu", separator, outcome.c_str(), static_cast<unsigned long long>(n));
    separator = ", ";
  }
  std::printf("\n");
}

/// Are all outcomes that the table has for this ordering seen, and no other?
bool as_expected(const Program& p, Ordering o, const Histogram& seen, bool all) {
  bool good = true;
  for (const auto& [outcome, n] : seen)
    if (!allowed(p, o, outcome)) std::printf("  NOT ALLOWED: %s\n", outcome.c_str()), good = false;
  for (const auto& e : p.outcomes)
    if (all && allowed(p, o, e.outcome) && !seen.contains(e.outcome))
      std::printf("  NOT SEEN: %.*s\n", static_cast<int>(e.outcome.size()), e.outcome.data()), good = false;
  return good;
}

bool run_on_soft(const Program& p, std::uint64_t seeds) {
  bool good = true;
  for (auto o : {Ordering::strict, Ordering::rocr, Ordering::adversarial}) {
    Histogram seen;
    test::Enumerator every;
    do {
      ++seen[SoftWorld(p, o, every, false).run()];
    } while (every.next() && every.runs() < kMostRuns);
    const std::string label = std::string(name(o)) + ", every";
    print(p, label.c_str(), seen);
    if (every.runs() >= kMostRuns) std::printf("  TOO MANY RUNS\n"), good = false;
    good = as_expected(p, o, seen, true) && good;
    if (o == Ordering::strict) continue;
    Histogram sampled;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      Seeded random(seed);
      ++sampled[SoftWorld(p, o, random, true).run()];
    }
    const std::string sampled_label = std::string(name(o)) + ", seeds";
    print(p, sampled_label.c_str(), sampled);
    good = as_expected(p, o, sampled, false) && good;
  }
  return good;
}

bool needs_kernel(const Program& p) { return p.rule.starts_with('C'); }

bool maps_vram(Device& d) {
  const auto some = d.allocate({.where = GpuId{0}, .bytes = 4096, .purpose = Purpose::words});
  return some && !some->host().empty();
}

bool run_on_device(Device& d, DeviceKind kind, const Program& p, std::uint64_t runs) {
  Histogram seen;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const auto world = DeviceWorld::on(d, p);
    if (!world) return std::fprintf(stderr, "litmus: %s\n", to_string(world.error()).c_str()), false;
    ++seen[(*world)->run()];
  }
  print(p, std::string(name(kind)).c_str(), seen);
  return as_expected(p, Ordering::adversarial, seen, false);
}

int usage(const char* what) {
  std::fprintf(stderr,
               "litmus: %s\nusage: litmus [--device=soft|kfd|cuda|rocr] [--seeds=N] [--runs=N] [RULE|NAME...]\n", what);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 2000, runs = 100;
  auto kind = DeviceKind::soft;
  std::set<std::string, std::less<>> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--seeds=") || arg.starts_with("--runs=")) {
      const auto number = arg.substr(arg.find('=') + 1);
      auto& to = arg.starts_with("--seeds=") ? seeds : runs;
      if (std::from_chars(number.data(), number.data() + number.size(), to).ec != std::errc{})
        return usage("--seeds and --runs need a number");
    } else if (arg.starts_with("--device=")) {
      const auto named = device_kind(arg.substr(arg.find('=') + 1));
      if (!named) return usage("a device is soft, kfd, cuda or rocr");
      kind = *named;
    } else if (arg.starts_with("-")) {
      return usage("no such option");
    } else {
      wanted.emplace(arg);
    }
  }
  auto programs = queue_programs();
  for (auto* more : {&engine_programs, &cache_programs})
    for (auto& p : (*more)()) programs.push_back(std::move(p));
  std::unique_ptr<Device> device;
  if (kind != DeviceKind::soft) {
    auto d = open_device(kind);
    if (!d) return std::fprintf(stderr, "%s\n", to_string(d.error()).c_str()), 2;
    device = std::move(*d);
  }
  bool good = true, found = wanted.empty();
  for (const auto& p : programs) {
    if (!wanted.empty() && !wanted.contains(p.rule) && !wanted.contains(p.name)) continue;
    found = true;
    if (device && (needs_kernel(p) || (p.vram && !maps_vram(*device)))) continue;
    good = (device ? run_on_device(*device, kind, p, runs) : run_on_soft(p, seeds)) && good;
  }
  if (!found) return usage("no such rule or program");
  return good ? 0 : 1;
}
