// SPDX-License-Identifier: MIT
#include "launch.hpp"

#include "json/exit.hpp"
#include "output.hpp"
#include "program.hpp"
#include "ranks.hpp"
#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/meet.hpp"
#include "world.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace collectives::perf {
namespace {

using namespace sdma;
using namespace sdma::tool;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kRankPatience{60};  ///< beside the time of a round

/// Ranks that have met over sockets.
class MetWorld final : public World {
 public:
  MetWorld(const Launched& at, Meeting meeting)
      : rank_(at.rank),
        size_(at.size),
        meeting_(std::move(meeting)),
        exchange_(meeting_.exchange()),
        transport_(meeting_.transport()) {}
  std::uint32_t rank() const noexcept override { return rank_; }
  std::uint32_t count() const noexcept override { return size_; }
  Exchange& exchange() noexcept override { return exchange_; }
  Transport* transport() noexcept override { return &transport_; }

 private:
  std::uint32_t rank_, size_;
  Meeting meeting_;  // closes the sockets, last
  SocketExchange exchange_;
  SocketTransport transport_;
};

using OpenedWorld = Result<std::unique_ptr<World>, Diagnostic>;

OpenedWorld open_mpi(const std::filesystem::path& module, const Launched& at) {
  // Open MPI loads modules of its own, which find its symbols only so.
  void* const library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  auto* const open = library ? reinterpret_cast<OpenWorld*>(::dlsym(library, kOpenWorld)) : nullptr;
  if (!open) {
    const char* const why = ::dlerror();
    return Diagnostic{
        .where = module.string(),
        .message = fmt::format("cannot be loaded: {}", why ? why : "unknown"),
        .hint = "install the MPI that it was built with, or connect the ranks without it: --meet=HOST:PORT"};
  }
  std::unique_ptr<World> world(open());
  if (auto same = same_world(at, world->rank(), world->count()); !same) return std::move(same.error());
  return world;
}

OpenedWorld open_world(const Request& request, const Launched& at) {
  const bool of_mpi = at.launcher == "Open MPI" || at.launcher == "hydra" || at.launcher == "PMI";
  if (of_mpi && request.meet.empty())
    if (const auto module = library_beside_program("libsdma-mpi.so", "tools/perf"); !module.empty())
      return open_mpi(module, at);
  auto met = meet(at, Deadline::in(kRankPatience), {.address = request.meet});
  if (!met) return std::move(met.error());
  return std::unique_ptr<World>(std::make_unique<MetWorld>(at, *std::move(met)));
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

LaunchedEnd perform_launched(const Request& request, const Launched& at) {
  const auto world = open_world(request, at);
  if (!world) {
    report(world.error());
    return {{kUsage}, true};
  }
  listen();  // until here, Ctrl-C ends a rank that waits for the others
  auto& w = **world;
  const auto settings = settings_of(request, asks_for_hardware(request) ? hardware() : std::nullopt, at.size);
  Ranks ranks(w.exchange(), at.rank, at.size, request.timeout + kRankPatience);
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
