// SPDX-License-Identifier: MIT
// What the environment of a process says about its launcher: as each of them leaves it, nested, stale and broken.
#include "sdma/schedule/launcher.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>

#include "support/catch.hpp"

using namespace sdma;

namespace {

/// "NAME=VALUE NAME=VALUE": one environment.
std::map<std::string, std::string> settings(const std::string& text) {
  std::map<std::string, std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto one = text.substr(at, end - at);
    all[one.substr(0, one.find('='))] = one.substr(one.find('=') + 1);
    at = end + 1;
  }
  return all;
}

/// "1 of 4, local 1 of 2, srun: srun 7.0", "alone", or the error.
std::string said(const std::string& text) {
  const auto all = settings(text);
  const auto at = launched([&](const char* name) {
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  });
  if (!at) return to_string(at.error());
  if (!*at) return "alone";
  const auto& l = **at;
  const auto local = [](const auto& n) { return n ? std::to_string(*n) : std::string("?"); };
  return std::to_string(l.rank) + " of " + std::to_string(l.size) + ", local " + local(l.local_rank) + " of " +
         local(l.local_size) + ", " + l.launcher + ": " + l.job + (l.address.empty() ? "" : ", at " + l.address) +
         (l.address_taken ? ", taken" : "");
}

const std::string kOpenMpi =
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "
    "OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=99 PMIX_NAMESPACE=98 PMIX_RANK=1";
const std::string kHydra = "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2";
const std::string kTorchrun =
    "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none "
    "TORCHELASTIC_RESTART_COUNT=0 MASTER_ADDR=node0 MASTER_PORT=29500";
const std::string kFlux = "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_ID=f7";
const std::string kPals = "PALS_RANKID=1 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=2 PALS_APID=a7 PMI_RANK=1 PMI_SIZE=4";
const std::string kStep =
    "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_JOB_ID=7 "
    "SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=2(x2)";
const std::string kBatch = "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_JOB_ID=7";

struct Row {
  std::string environment, expected;
};

TEST_CASE("each launcher says which rank this is") {
  for (const auto& [environment, expected] : {
           Row{"", "alone"},
           {"HOME=/ PMI_FD=5", "alone"},
           {kOpenMpi, "1 of 4, local 1 of 2, Open MPI: Open MPI 98"},
           {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_MCA_ess_base_jobid=99",
            "1 of 4, local ? of ?, Open MPI: Open MPI 99"},
           {kHydra, "1 of 4, local 1 of 2, hydra: "},
           {"PMI_RANK=1 PMI_SIZE=4", "1 of 4, local ? of ?, PMI: "},
           {kPals, "1 of 4, local 1 of 2, PALS: PALS a7"},
           {kFlux, "1 of 4, local 1 of ?, Flux: Flux f7"},
           {kFlux + " PMI_RANK=1 PMI_SIZE=4", "1 of 4, local 1 of ?, Flux: Flux f7"},
           {kTorchrun, "1 of 4, local 1 of 2, torchrun: torchrun none node0:29500 0, at node0:29500"},
           {kTorchrun + " TORCHELASTIC_USE_AGENT_STORE=True",
            "1 of 4, local 1 of 2, torchrun: torchrun none node0:29500 0, at node0:29500, taken"},
           {"RANK=0 WORLD_SIZE=2", "0 of 2, local ? of ?, torchrun: "},
           {kStep, "1 of 4, local 1 of 2, srun: srun 7.0"},
           {"SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEPID=3 SLURM_JOB_ID=7", "1 of 4, local ? of ?, srun: srun 7.3"},
           {kStep + " PMI_RANK=1 PMI_SIZE=4 PMI_FD=99", "1 of 4, local 1 of 2, srun: srun 7.0"},
           {kStep + " PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.7.0", "1 of 4, local 1 of 2, srun: srun 7.0"},
           {kStep + " PALS_RANKID=1 PALS_APID=a7", "1 of 4, local 1 of 2, srun: srun 7.0"},
           {kOpenMpi + " MASTER_ADDR=node0 MASTER_PORT=1", "1 of 4, local 1 of 2, Open MPI: Open MPI 98, at node0:1"},
       }) {
    INFO(environment);
    CHECK(said(environment) == expected);
  }
}

TEST_CASE("srun lists how many tasks each node has") {
  const auto local = [](const std::string& list, const std::string& node) {
    const auto text =
        said("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=20 SLURM_NODEID=" + node + " SLURM_STEP_TASKS_PER_NODE=" + list);
    return text.substr(0, text.find(", srun"));
  };
  CHECK(local("4(x2),3", "0") == "0 of 20, local ? of 4");
  CHECK(local("4(x2),3", "1") == "0 of 20, local ? of 4");
  CHECK(local("4(x2),3", "2") == "0 of 20, local ? of 3");
  CHECK(local("1,2(x3),5", "4") == "0 of 20, local ? of 5");
  for (const auto* list : {"4(x2),3", "4(x", "4(xx2)", "four", "4(2)"})
    CHECK_THAT(local(list, "3"), Catch::Contains("has no number for SLURM_NODEID=3"));
}

TEST_CASE("the inner launcher wins where the outer one can be told") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const auto alive = " PMI_FD=" + std::to_string(ends[0]);
  const std::string outer = " PMI_RANK=3 PMI_SIZE=9 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=9";
  for (const auto& [environment, expected] : {
           Row{kBatch, "alone"},  // not in a step: a program beside mpirun
           {"SLURM_NTASKS=8 SLURM_JOB_ID=7", "alone"},
           {kBatch + " " + kOpenMpi, "1 of 4, local 1 of 2, Open MPI: Open MPI 98"},
           {kBatch + " " + kHydra + alive, "1 of 4, local 1 of 2, hydra: "},
           {kBatch + " SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 " + kTorchrun,  // one agent per node
            "1 of 4, local 1 of 2, torchrun: torchrun none node0:29500 0, at node0:29500"},
           {kBatch + " SLURM_STEP_ID=0 " + kHydra, "1 of 4, local 1 of 2, hydra: "},  // srun starts its proxies
           {kOpenMpi + outer + " PMI_FD=9999", "1 of 4, local 1 of 2, Open MPI: Open MPI 98"},
           {kStep + outer + " PMI_FD=9999", "1 of 4, local 1 of 2, srun: srun 7.0"},
           {kTorchrun + " PMI_RANK=0 PMI_SIZE=1 PMI_FD=none",
            "1 of 4, local 1 of 2, torchrun: torchrun none node0:29500 0, at node0:29500"},
           {outer.substr(1) + " PMI_FD=9999", "3 of 9, local 3 of 9, hydra: "},  // nothing else: a wrapper closed it
           {kOpenMpi + " FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1", "1 of 4, local 1 of 2, Open MPI: Open MPI 98"},
           {kOpenMpi + " RANK=1 WORLD_SIZE=4", "1 of 4, local 1 of 2, Open MPI: Open MPI 98"},
           {kOpenMpi + " RANK=first", "1 of 4, local 1 of 2, Open MPI: Open MPI 98"},
           {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "alone"},
           {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 " + kStep, "alone"},
       }) {
    INFO(environment);
    CHECK(said(environment) == expected);
  }
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a process that hydra talks to is not one that Open MPI has started") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  CHECK_THAT(said(kOpenMpi + " PMI_RANK=0 PMI_SIZE=2 PMI_FD=" + std::to_string(ends[0])),
             Catch::Contains("one launcher has started the other"));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("what contradicts itself is an error that names the variables") {
  for (const auto& [environment, expected] : {
           Row{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_RANK=1 is set, and OMPI_COMM_WORLD_SIZE is not"},
           {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_SIZE=2 is set, and OMPI_COMM_WORLD_RANK is not"},
           {"OMPI_COMM_WORLD_RANK=1 " + kHydra, "OMPI_COMM_WORLD_RANK=1 is set, and"},
           {"PMI_RANK=1", "hint: PMI sets both: start the program with it, or without: env -u PMI_RANK"},
           {"PMI_SIZE=2", "PMI_SIZE=2 is set, and PMI_RANK is not"},
           {"RANK=1", "RANK=1 is set, and WORLD_SIZE is not"},
           {"WORLD_SIZE=2", "WORLD_SIZE=2 is set, and RANK is not"},
           {"SLURM_PROCID=1 SLURM_STEP_ID=0", "SLURM_PROCID=1 is set, and SLURM_NTASKS is not"},
           {"PMI_RANK=4 PMI_SIZE=4", "PMI_RANK=4 is not below PMI_SIZE=4"},
           {"RANK=two WORLD_SIZE=4", "RANK=two is not a number"},
           {"RANK=-1 WORLD_SIZE=4", "RANK=-1 is not a number"},
           {"RANK=0 WORLD_SIZE=4294967296", "WORLD_SIZE=4294967296 is not a number"},
           {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=x", "LOCAL_RANK=x is not a number"},
           {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=3", "is number 1 of the 3 on this host"},
           {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1", "is number 1 of the 1 on this host"},
           {"PMI_ID=1 PMI_PORT=node0:4711", "hint: start mpiexec.hydra without -pmi-port"},
           {"PMI_ID=1 PMI_PORT=node0:4711 " + kStep, "PMI_ID=1 and PMI_PORT=node0:4711 are set"},
           {"PMIX_RANK=1", "PMIX_RANK=1 is set, and nothing says how many ranks there are"},
           {"PALS_RANKID=1", "PALS_RANKID=1 is set, and nothing says how many ranks there are"},
           {kStep + " PMIX_RANK=3",
            "PMIX_RANK=3, and SLURM_PROCID=1 and SLURM_STEP_NUM_TASKS=4 (srun) say rank 1 of 4"},
           {kOpenMpi + " RANK=0 WORLD_SIZE=2",
            "OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=4 (Open MPI) say rank 1 of 4, and RANK=0 and WORLD_SIZE=2 "
            "(torchrun) say rank 0 of 2"},
           {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 " + kTorchrun,
            "env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE, or -u RANK -u WORLD_SIZE"},
       }) {
    INFO(environment);
    const auto text = said(environment);
    CHECK_THAT(text, Catch::Contains("the environment: error: ") && Catch::Contains(expected));
    CHECK_THAT(text, Catch::Contains("\n  hint: "));
  }
}

TEST_CASE("the environment of the process is read where none is given") {
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  const auto at = launched();
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  REQUIRE(at);
  REQUIRE(*at);
  CHECK((*at)->rank == 2);
  CHECK((*at)->rank_variable == "OMPI_COMM_WORLD_RANK=2");
}

TEST_CASE("two worlds are an error") {
  Launched at{.rank = 1, .size = 2};
  at.launcher = "hydra";
  at.rank_variable = "PMI_RANK=1";
  at.size_variable = "PMI_SIZE=2";
  CHECK(same_world(at, 1, 2));
  CHECK_FALSE(same_world(at, 0, 2));
  const auto two = same_world(at, 0, 1);
  REQUIRE_FALSE(two);
  CHECK(
      to_string(two.error()) ==
      "rank 1: error: PMI_RANK=1 and PMI_SIZE=2 (hydra) say rank 1 of 2, and MPI says rank 0 of 1\n"
      "  hint: the program's MPI is not that of the launcher: start it with the mpirun of its own MPI, or without MPI");
}

}  // namespace
