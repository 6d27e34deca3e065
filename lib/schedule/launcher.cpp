// SPDX-License-Identifier: MIT
#include "sdma/schedule/launcher.hpp"

#include "../core/words.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {
namespace {

Diagnostic wrong_environment(std::string message, std::string hint) {
  return {.where = "the environment", .message = std::move(message), .hint = std::move(hint)};
}

/// A launcher, and the names of its variables; null: it has none.
struct Launcher {
  const char *name, *rank, *size, *local_rank, *local_size;
};
constexpr Launcher kOpenMpi{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Launcher kHydra{"hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Launcher kPmi{"PMI", "PMI_RANK", "PMI_SIZE", nullptr, nullptr};
constexpr Launcher kPals{"PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"};
constexpr Launcher kFlux{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr};
constexpr Launcher kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Launcher kSrun{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr};

class Variables {
 public:
  explicit Variables(const Environment& from) : from_(from ? from : Environment(&Variables::of_process)) {}

  /// "" if it is not set: no launcher sets an empty variable.
  std::string value(const char* name) const {
    const char* const v = name ? from_(name) : nullptr;
    return v ? v : "";
  }
  bool has(const char* name) const { return !value(name).empty(); }
  std::string setting(const char* name) const { return fmt::format("{}={}", name, value(name)); }

  Result<std::optional<std::uint32_t>, Diagnostic> number(const char* name) const {
    if (!has(name)) return std::optional<std::uint32_t>();
    const auto n = detail::whole_number<std::uint32_t>(value(name));
    if (n) return n;
    return wrong_environment(fmt::format("{} is not a number", setting(name)),
                             fmt::format("a launcher sets {}; if none does, unset it: env -u {}", name, name));
  }

  /// What this launcher says; nothing if it has not set its names.
  Result<std::optional<Launched>, Diagnostic> says(const Launcher& l) const {
    const auto rank = number(l.rank), size = number(l.size), local_rank = number(l.local_rank),
               local_size = number(l.local_size);
    for (const auto* n : {&rank, &size, &local_rank, &local_size})
      if (!*n) return n->error();
    if (!*rank && !*size) return std::optional<Launched>();
    if (!*rank || !*size) {
      const auto *const there = *rank ? l.rank : l.size, *const lacks = *rank ? l.size : l.rank;
      return wrong_environment(
          fmt::format("{} is set, and {} is not", setting(there), lacks),
          fmt::format("{} sets both: start the program with it, or without: env -u {}", l.name, there));
    }
    Launched at{.rank = **rank, .size = **size, .local_rank = *local_rank, .local_size = *local_size};
    at.launcher = l.name;
    at.rank_variable = setting(l.rank);
    at.size_variable = setting(l.size);
    if (at.rank >= at.size)
      return wrong_environment(fmt::format("{} is not below {}", at.rank_variable, at.size_variable),
                               fmt::format("ranks count from 0: start the program with {}, or unset both", l.name));
    return std::optional(std::move(at));
  }

 private:
  static const char* of_process(const char* name) { return std::getenv(name); }
  Environment from_;
};

/// How many tasks of a list like 4(x2),3 are on a node.
std::optional<std::uint32_t> tasks_of_node(std::string_view list, std::uint32_t node) {
  for (auto part : detail::between_commas(list)) {
    std::optional<std::uint32_t> times = 1;
    if (const auto bracket = part.find("(x"); bracket != part.npos && part.ends_with(')')) {
      times = detail::whole_number<std::uint32_t>(part.substr(bracket + 2, part.size() - bracket - 3));
      part = part.substr(0, bracket);
    }
    const auto tasks = detail::whole_number<std::uint32_t>(part);
    if (!tasks || !times) return {};
    if (node < *times) return tasks;
    node -= *times;
  }
  return {};
}

using Claim = Result<std::optional<Launched>, Diagnostic>;

Claim of_open_mpi(const Variables& e) {
  auto at = e.says(kOpenMpi);
  if (at && *at) (*at)->job = e.value(e.has("PMIX_NAMESPACE") ? "PMIX_NAMESPACE" : "OMPI_MCA_ess_base_jobid");
  return at;
}

Claim of_pmi(const Variables& e) {
  if (e.has("PMI_ID") && e.has("PMI_PORT") && !e.has("PMI_RANK"))
    return wrong_environment(
        fmt::format("{} and {} are set, and PMI_RANK and PMI_SIZE are not", e.setting("PMI_ID"), e.setting("PMI_PORT")),
        "start mpiexec.hydra without -pmi-port: with it, the environment does not have the number of ranks");
  return e.says(e.has(kHydra.local_size) ? kHydra : kPmi);
}

/// Without PMI_SIZE, only another launcher knows how many there are.
Claim of_pals(const Variables& e) {
  if (!e.has(kPals.rank) || !e.has(kPals.size)) return std::optional<Launched>();
  auto at = e.says(kPals);
  if (at && *at) (*at)->job = e.value("PALS_APID");
  return at;
}

Claim of_flux(const Variables& e) {
  auto at = e.says(kFlux);
  if (at && *at) (*at)->job = e.value("FLUX_JOB_ID");
  return at;
}

Claim of_torchrun(const Variables& e) {
  auto at = e.says(kTorchrun);
  if (at && *at && e.has("TORCHELASTIC_RUN_ID") && e.has("MASTER_ADDR"))
    (*at)->job = fmt::format("{} {}:{} {}", e.value("TORCHELASTIC_RUN_ID"), e.value("MASTER_ADDR"),
                             e.value("MASTER_PORT"), e.value("TORCHELASTIC_RESTART_COUNT"));
  return at;
}

Claim of_srun(const Variables& e) {
  auto l = kSrun;
  if (e.has("SLURM_STEP_NUM_TASKS")) l.size = "SLURM_STEP_NUM_TASKS";
  const auto* const step = e.has("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
  if (!e.has(step) && l.size == kSrun.size) return std::optional<Launched>();  // a batch script, or a shell of salloc
  auto at = e.says(l);
  if (!at || !*at) return at;
  if (e.has("SLURM_JOB_ID") && e.has(step)) (*at)->job = e.value("SLURM_JOB_ID") + "." + e.value(step);
  const auto node = e.number("SLURM_NODEID");
  if (!node) return node.error();
  if (constexpr const char* kTasks = "SLURM_STEP_TASKS_PER_NODE"; *node && e.has(kTasks)) {
    (*at)->local_size = tasks_of_node(e.value(kTasks), **node);
    if (!(*at)->local_size)
      return wrong_environment(
          fmt::format("{} has no number for {}", e.setting(kTasks), e.setting("SLURM_NODEID")),
          fmt::format("srun sets both, as in 4(x2),3: start the program with it, or unset {}", kTasks));
  }
  return at;
}

/// Does a hydra, or another server of PMI, still talk with this process?
bool pmi_is_left_over(const Variables& e) {
  const auto fd = detail::whole_number<int>(e.value("PMI_FD"));
  struct stat s {};
  return e.has("PMI_FD") && !(fd && ::fstat(*fd, &s) == 0 && S_ISSOCK(s.st_mode));
}

bool same_rank(const Launched& a, const Launched& b) { return a.rank == b.rank && a.size == b.size; }
std::string said_by(const Launched& at) {
  return fmt::format("{} and {} ({}) say rank {} of {}", at.rank_variable, at.size_variable, at.launcher, at.rank,
                     at.size);
}
std::string name_of_variable(const std::string& setting) { return setting.substr(0, setting.find('=')); }

/// Each launcher that has set its names, in the order of trust.
Result<std::vector<Launched>, Diagnostic> claims_of(const Variables& e) {
  std::vector<Launched> all;
  for (const auto& one : {of_open_mpi, of_pmi, of_pals, of_flux, of_torchrun, of_srun}) {
    auto at = one(e);
    if (!at && all.empty()) return at.error();
    if (at && *at) all.push_back(std::move(**at));
  }
  const auto of_pmi_server = [](const Launched& at) { return at.rank_variable.starts_with("PMI_RANK="); };
  if (all.size() > 1 && pmi_is_left_over(e)) std::erase_if(all, of_pmi_server);
  // PMI is what several launchers speak: the one that has started this process says more about it.
  if (all.size() > 1 && all.front().launcher == kPmi.name) {
    const auto names = [&](const Launched& at) { return at.launcher != kTorchrun.name && same_rank(at, all.front()); };
    const auto named = std::find_if(all.begin() + 1, all.end(), names);
    if (named != all.end()) std::swap(all.front(), *named);
  }
  return all;
}

/// A rank without a size counts if srun, which knows the size, agrees.
Result<void, Diagnostic> check_rank_alone(const Variables& e, const std::vector<Launched>& all) {
  for (const char* const name : {"PMIX_RANK", kPals.rank}) {
    if (!e.has(name) || (!all.empty() && all.front().launcher != kSrun.name)) continue;
    const auto rank = e.number(name);
    if (!rank) return rank.error();
    if (all.empty())
      return wrong_environment(fmt::format("{} is set, and nothing says how many ranks there are", e.setting(name)),
                               fmt::format("set RANK and WORLD_SIZE, or start the program without a launcher: "
                                           "env -u {}",
                                           name));
    if (**rank != all.front().rank)
      return wrong_environment(
          fmt::format("{}, and {}", e.setting(name), said_by(all.front())),
          fmt::format("a launcher inside a step of srun does not say how many ranks it has started: set RANK and "
                      "WORLD_SIZE, or unset {}",
                      name));
  }
  return {};
}

Result<void, Diagnostic> check_local(const Launched& at) {
  const auto most = at.local_size.value_or(at.size);
  if (most != 0 && most <= at.size && at.local_rank.value_or(0) < most) return {};
  return wrong_environment(fmt::format("{} says that this process is number {} of the {} on this host, and {}",
                                       at.launcher, at.local_rank.value_or(0), most, said_by(at)),
                           "variables of two launchers are mixed: unset those of the outer one (env -u NAME)");
}

}  // namespace

Result<std::optional<Launched>, Diagnostic> launched(const Environment& environment) {
  const Variables e(environment);
  auto all = claims_of(e);
  if (!all) return all.error();
  if (const auto good = check_rank_alone(e, *all); !good) return good.error();
  if (all->empty()) return std::optional<Launched>();
  auto at = std::move(all->front());
  for (auto other = all->begin() + 1; other != all->end(); ++other)
    if (!same_rank(at, *other) && other->launcher != kSrun.name && other->size != 1)
      return wrong_environment(
          fmt::format("{}, and {}", said_by(at), said_by(*other)),
          fmt::format("one launcher has started the other: unset the variables of the outer one (env -u {} -u {}, or "
                      "-u {} -u {})",
                      name_of_variable(at.rank_variable), name_of_variable(at.size_variable),
                      name_of_variable(other->rank_variable), name_of_variable(other->size_variable)));
  if (at.size == 1) return std::optional<Launched>();
  if (const auto good = check_local(at); !good) return good.error();
  if (!at.job.empty()) at.job = at.launcher + " " + at.job;
  if (e.has("MASTER_ADDR") && e.has("MASTER_PORT"))
    at.address = fmt::format("{}:{}", e.value("MASTER_ADDR"), e.value("MASTER_PORT"));
  at.address_taken = e.value("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return std::optional(std::move(at));
}

Result<void, Diagnostic> same_world(const Launched& at, std::uint32_t mpi_rank, std::uint32_t mpi_size) {
  if (at.rank == mpi_rank && at.size == mpi_size) return {};
  return Diagnostic{
      .where = fmt::format("rank {}", at.rank),
      .message = fmt::format("{}, and MPI says rank {} of {}", said_by(at), mpi_rank, mpi_size),
      .hint = fmt::format("the program's MPI is not that of the launcher: start it with the mpirun of its own MPI{}",
                          mpi_size == 1 ? ", or without MPI" : "")};
}

}}  // namespace sdma::v0_3
