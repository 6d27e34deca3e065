// SPDX-License-Identifier: MIT
// litmus [--device=soft|kfd|cuda|rocr] [--seeds=N] [--runs=N] [--list] [RULE|NAME|FILE.litmus...]
// Runs each program and prints how often each outcome was seen. On the software engine: once with every sequence of
// choices in each ordering, which must give exactly the outcomes of the program, and with N seeds of the whole model,
// which must give no other. On the kernel driver's device: N runs of each program that needs no kernel, which must give
// no outcome that the program does not have. --list prints the programs instead, as rows of docs/litmus.md.
// Exit code: 0 as the programs say, 1 not so, 2 usage or a file with errors.
#include "litmus/device.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/device/open.hpp"
#include "soft.hpp"
#include "support/enumerator.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

using namespace sdma;
using namespace sdma::litmus;

namespace {

using Histogram = std::map<std::string, std::uint64_t, std::less<>>;

/// Programs are small: a search that does not end has a bug, in the program or in the model.
constexpr std::uint64_t kMostRuns = 5'000'000;

bool allowed(const Expected* e, Ordering o) {
  return e && (o == Ordering::adversarial || (o == Ordering::rocr ? e->rocr : e->strict));
}

void print(const Program& p, const char* how, const Histogram& seen) {
  std::printf("%-4s %-32s %-22s", p.rule.c_str(), p.name.c_str(), how);
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
    if (!allowed(p.find(outcome), o)) std::printf("  NOT ALLOWED: %s\n", outcome.c_str()), good = false;
  for (const auto& e : p.outcomes)
    if (all && allowed(&e, o) && !seen.contains(e.name)) std::printf("  NOT SEEN: %s\n", e.name.c_str()), good = false;
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

void list(const Program& p) {
  const auto has_comma = [](const Expected& o) { return o.name.find(',') != o.name.npos; };
  const bool commas = std::any_of(p.outcomes.begin(), p.outcomes.end(), has_comma);
  std::printf("| %s | %s | %s |", p.rule.c_str(), p.name.c_str(), p.question.c_str());
  const char* separator = " ";
  for (const auto& o : p.outcomes) {
    const char* flags = o.strict && o.rocr ? " (s r)" : o.strict ? " (s)" : o.rocr ? " (r)" : "";
    std::printf("%s%s%s", separator, o.name.c_str(), flags);
    separator = commas ? "; " : ", ";
  }
  std::printf(" |\n");
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
               "litmus: %s\nusage: litmus [--device=soft|kfd|cuda|rocr] [--seeds=N] [--runs=N] [--list] "
               "[RULE|NAME|FILE.litmus...]\n",
               what);
  return 2;
}

/// Adds the program of a file, or prints what is wrong with it.
bool add_file(const std::string& path, std::vector<Program>& programs) {
  const auto text = read_file(path);
  if (!text) return std::fprintf(stderr, "%s\n", to_string(text.error()).c_str()), false;
  auto program = read_program(*text, path);
  if (program) return programs.push_back(std::move(*program)), true;
  for (const auto& e : program.error()) std::fprintf(stderr, "%s\n", to_string(e).c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 2000, runs = 100;
  auto kind = DeviceKind::soft;
  bool only_list = false, readable = true;
  std::set<std::string, std::less<>> wanted;
  std::vector<Program> programs;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--seeds=") || arg.starts_with("--runs=")) {
      const auto number = parse_count(arg.substr(arg.find('=') + 1));
      if (!number) return usage("--seeds and --runs need a number");
      (arg.starts_with("--seeds=") ? seeds : runs) = *number;
    } else if (arg.starts_with("--device=")) {
      const auto named = device_kind(arg.substr(arg.find('=') + 1));
      if (!named) return usage("a device is soft, kfd, cuda or rocr");
      kind = *named;
    } else if (arg == "--list") {
      only_list = true;
    } else if (arg.starts_with("-")) {
      return usage("no such option");
    } else if (arg.ends_with(".litmus")) {
      readable = add_file(argv[i], programs) && readable;
    } else {
      wanted.emplace(arg);
    }
  }
  if (!readable) return 2;
  const bool all = wanted.empty() && programs.empty();
  const auto given = programs.size();
  for (auto& p : shipped_programs())
    if (all || wanted.contains(p.rule) || wanted.contains(p.name)) programs.push_back(std::move(p));
  if (!wanted.empty() && programs.size() == given) return usage("no such rule or program");
  if (only_list) return std::for_each(programs.begin(), programs.end(), list), 0;
  std::unique_ptr<Device> device;
  if (kind != DeviceKind::soft) {
    auto d = open_device(kind);
    if (!d) return std::fprintf(stderr, "%s\n", to_string(d.error()).c_str()), 2;
    device = std::move(*d);
  }
  bool good = true;
  for (const auto& p : programs) {
    if (device && !DeviceWorld::refused(*device, p).empty()) continue;
    good = (device ? run_on_device(*device, kind, p, runs) : run_on_soft(p, seeds)) && good;
  }
  return good ? 0 : 1;
}
