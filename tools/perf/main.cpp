// SPDX-License-Identifier: MIT
// collective_perf: times and verifies the DMA collectives, in the conventions of nccl-tests and rccl-tests.
//
//   collective_perf -b 1K -e 64M -f 2 -g 8 -n 20 -w 5 -c 1 --csv=ag.csv --json=ag.json --plot=ag.svg
//
//   settings.hpp  words to Settings          sweep.hpp       one size in one way
//   report.hpp    what is printed and saved  companions.hpp  other libraries, energy, a matrix product meanwhile
//
// The table goes to standard output, with '#' before every line that is not a row. Errors and, on a terminal, the
// progress go to standard error. After Ctrl-C, a closed pipe or a full disk, the sweep ends after the current round,
// and results are written.
#include "core/program.hpp"
#include "program.hpp"
#include "ranks.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/exchange.hpp"
#include "watchdog.hpp"
#ifdef COLLECTIVE_PERF_MPI
#include "mpi.hpp"
#endif

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

namespace collectives::perf { namespace {

using namespace sdma;
using namespace std::chrono_literals;

int answered(const Answer& a) {
  const auto said = save_file("-", a.text);
  if (said) return kOk;
  if (reader_gone(said.error())) return kPipe;
  return report(said.error()), kInput;
}

constexpr std::chrono::seconds kRankPatience{60};  ///< beside the time of a round

/// The processes that share the GPUs: started here.
int run_ranks(Settings s) {
  // The ranks end their sweep at Ctrl-C, and this process waits for them.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  const auto patience = s.timeout + kRankPatience;
  const auto of_rank = [&](std::uint32_t rank, Exchange& exchange) {
    listen();
    Ranks ranks(exchange, rank, s.processes, patience);
    s.ranks = &ranks;
    const auto ended = perform(s);  // this process ends without destructors
    return fmt::format("{} {}", ended.code, ended.error ? to_string(*ended.error) : "");
  };
  const auto of_node = [&](std::uint32_t rank, Exchange& exchange, Transport& transport) {
    s.transport = &transport;
    return of_rank(rank, exchange);
  };
  const auto all =
      s.ranks_per_node.grouped() ? in_ranks(s.processes, patience, of_node) : in_ranks(s.processes, patience, of_rank);
  if (!all) return report(all.error()), kInput;
  if (!all->front().answer) return report({.message = all->front().end}), kWrong;
  for (const auto& r : *all)
    if (r.rank == 0) {
      const auto space = r.answer->find(' ');
      if (space + 1 < r.answer->size()) std::fputs((r.answer->substr(space + 1) + "\n").c_str(), stderr);
      return std::stoi(*r.answer);
    }
  return kWrong;
}

/// What mpirun has told this process in its environment; one rank without it.
struct Launched {
  std::uint32_t rank = 0, count = 1;
};
Launched launched() {
  // Those of Open MPI, and of MPICH and what is derived from it.
  for (const auto& [rank, count] :
       {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}}) {
    const auto* const r = std::getenv(rank);
    const auto* const n = std::getenv(count);
    const auto at = r ? parse_count(r) : std::nullopt, of = n ? parse_count(n) : std::nullopt;
    if (at && of && *at < *of) return {static_cast<std::uint32_t>(*at), static_cast<std::uint32_t>(*of)};
  }
  return {};
}

/// One of the processes that mpirun has started.
#ifdef COLLECTIVE_PERF_MPI
Ended run_launched(const Launched& at, int argc, char** argv) {
  MpiExchange exchange;
  auto given = parse(argc, argv, at.count);
  auto* const s = std::get_if<Settings>(&given);
  Ranks ranks(exchange, at.rank, at.count, (s ? s->timeout : 0s) + kRankPatience);
  const auto end = [&](Ended e) {
    if (e.error && at.rank == 0) report(*e.error);
    return e;
  };
  const auto refuse = [&](int code, std::optional<Diagnostic> why) {
    auto all = ranks.end(code, std::move(why));
    return end({all.code, std::move(all.error)});
  };
  if (const auto* wrong = std::get_if<Diagnostic>(&given)) return refuse(kUsage, *wrong);
  if (const auto* answer = std::get_if<Answer>(&given)) return refuse(at.rank == 0 ? answered(*answer) : kOk, {});
  if (s->ranks_per_node.grouped() && !exchange.threads())
    return refuse(kUsage, Diagnostic{.where = "--ranks-per-node",
                                     .message = "this MPI lets one thread of a process call it",
                                     .hint = "use one that has MPI_THREAD_SERIALIZED"});
  std::optional<MpiTransport> transport;
  s->ranks = &ranks;
  if (s->ranks_per_node.grouped()) s->transport = &transport.emplace();
  return end(perform(*s));
}
#else
Ended run_launched(const Launched& at, int, char**) {
  if (at.rank == 0)
    report({.where = fmt::format("mpirun -np {}", at.count),
            .message = "this program is built without MPI",
            .hint = fmt::format("build it with -Dmpi=enabled, or let it start the processes: --ranks={}", at.count)});
  return {kUsage};
}
#endif

int run(int argc, char** argv) {
  keep_standard_descriptors();
  listen();
  if (const auto at = launched(); at.count > 1) {
    const auto ended = run_launched(at, argc, argv);
    // mpirun ends all ranks when one fails, and drops what rank 0 has just printed: so rank 0 alone has the code.
    const int code = at.rank == 0 ? ended.code : kOk;
    if (ended.at_once) end_at_once(code);
    return code;
  }
  const auto given = parse(argc, argv);
  if (const auto* wrong = std::get_if<Diagnostic>(&given)) return report(*wrong), kUsage;
  if (const auto* answer = std::get_if<Answer>(&given)) return answered(*answer);
  const auto& settings = std::get<Settings>(given);
  return settings.processes > 1 ? run_ranks(settings) : perform(settings).code;
}

}}  // namespace collectives::perf

int main(int argc, char** argv) {
  try {
    return collectives::perf::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "collective_perf: error: %s\n", e.what());
    return collectives::perf::kInput;
  }
}
