// SPDX-License-Identifier: MIT
#include "launch.hpp"

#include "exit.hpp"
#include "output.hpp"
#include "program.hpp"
#include "ranks.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/exchange.hpp"
#include "world.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace collectives::perf {
namespace {

using namespace sdma;
using namespace sdma::tool;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kRankPatience{60};  ///< beside the time of a round

/// The module for MPI, if it is built or installed.
Result<std::unique_ptr<World>, Diagnostic> open_mpi() {
  const auto path = library_beside_program("libsdma-mpi.so", "tools/perf");
  if (path.empty())
    return Diagnostic{.where = "MPI",
                      .message = "libsdma-mpi.so lies neither beside this program nor where it was installed",
                      .hint = "build it with -Dmpi=enabled, or let sdma perf start the processes: --ranks=N"};
  // Open MPI loads modules of its own, which find its symbols only so.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  auto* const open = library ? reinterpret_cast<OpenWorld*>(::dlsym(library, kOpenWorld)) : nullptr;
  if (!open) {
    const char* const why = ::dlerror();
    return Diagnostic{.where = path.string(),
                      .message = fmt::format("cannot be loaded: {}", why ? why : "unknown"),
                      .hint = "install the MPI that it was built with, or use --ranks=N"};
  }
  return std::unique_ptr<World>(open());
}

}  // namespace

int perform_in_ranks(const Settings& given) {
  auto s = given;
  // The ranks end their sweep at Ctrl-C, and this process waits for them.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  const auto patience = s.timeout + kRankPatience;
  const auto of_rank = [&](std::uint32_t rank, Exchange& exchange) {
    listen();
    Ranks ranks(exchange, rank, s.processes, patience);
    s.ranks = &ranks;
    const auto ended = perform(s);  // this process ends without destructors
    return fmt::format("{} {}", ended.code, ended.error ? line_of(*ended.error) : "");
  };
  const auto of_node = [&](std::uint32_t rank, Exchange& exchange, Transport& transport) {
    s.transport = &transport;
    return of_rank(rank, exchange);
  };
  const auto all =
      s.ranks_per_node.grouped() ? in_ranks(s.processes, patience, of_node) : in_ranks(s.processes, patience, of_rank);
  if (!all) return report(all.error()), kInput;
  if (!all->front().answer) return report({.message = all->front().end}), kRefuted;
  for (const auto& r : *all)
    if (r.rank == 0) {
      const auto space = r.answer->find(' ');
      std::fputs(r.answer->substr(space + 1).c_str(), stderr);
      return std::stoi(*r.answer);
    }
  return kRefuted;
}

Result<Launched, Diagnostic> launched() {
  // Those of Open MPI, and of MPICH and what is derived from it.
  for (const auto& [rank, count] :
       {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}}) {
    const auto* const r = std::getenv(rank);
    const auto* const n = std::getenv(count);
    const auto at = r ? parse_count(r) : std::nullopt, of = n ? parse_count(n) : std::nullopt;
    if (at && of && *at < *of) return Launched{static_cast<std::uint32_t>(*at), static_cast<std::uint32_t>(*of)};
  }
  return Launched{};
}

LaunchedEnd perform_launched(const Request& request, const Launched& at) {
  auto world = open_mpi();
  const auto lost = [&](const Diagnostic& why) {
    report(why);
    return LaunchedEnd{{kUsage}, true};
  };
  if (!world) return at.rank == 0 ? lost(world.error()) : LaunchedEnd{{kUsage}, true};
  auto& w = **world;
  if (w.rank() != at.rank || w.count() != at.count)
    return lost({.where = fmt::format("rank {}", at.rank),
                 .message = fmt::format("the launcher's rank {} of {} is rank {} of {} of MPI", at.rank, at.count,
                                        w.rank(), w.count()),
                 .hint = "start it with the mpirun of the MPI that libsdma-mpi.so is linked with"});
  const auto settings = settings_of(request, asks_for_hardware(request) ? hardware() : std::nullopt, at.count);
  Ranks ranks(w.exchange(), at.rank, at.count, request.timeout + kRankPatience);
  const auto end = [&](Ended e) {
    if (e.error && at.rank == 0) report(*e.error);
    return LaunchedEnd{std::move(e)};
  };
  const auto refuse = [&](int code, std::optional<Diagnostic> why) {
    auto all = ranks.end(code, std::move(why));
    return end({all.code, std::move(all.error)});
  };
  if (!settings) return refuse(kUsage, settings.error());
  auto s = *settings;
  if (s.ranks_per_node.grouped() && !w.transport())
    return refuse(kUsage, Diagnostic{.where = "--ranks-per-node",
                                     .message = "this MPI lets one thread of a process call it",
                                     .hint = "use one that has MPI_THREAD_SERIALIZED"});
  s.ranks = &ranks;
  if (s.ranks_per_node.grouped()) s.transport = w.transport();
  return end(perform(s));
}

std::optional<DeviceKind> hardware_before_a_fork() {
  const auto all = in_ranks(1, 0s, [](std::uint32_t, Exchange&) {
    const auto found = hardware();
    return found ? std::string(name(*found)) : "";
  });
  return all && all->front().answer ? device_kind(*all->front().answer) : std::nullopt;
}

}  // namespace collectives::perf
