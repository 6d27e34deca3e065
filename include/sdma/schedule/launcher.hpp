// SPDX-License-Identifier: MIT
#pragma once
// What a launcher (mpirun, mpiexec, srun, torchrun, flux run) tells each of its processes in the environment, without
// MPI: which rank it is, and of how many.
//
//   const auto at = launched();
//   if (!at) return fail(at.error());                  // "RANK=1 is set, and WORLD_SIZE is not", and what to do
//   if (*at) return as_rank((*at)->rank, (*at)->size); // one of several
//   return alone();                                    // no launcher, or one process of it
//
//   launcher      rank                    size                              on this host
//   Open MPI      OMPI_COMM_WORLD_RANK    OMPI_COMM_WORLD_SIZE              OMPI_COMM_WORLD_LOCAL_RANK, _LOCAL_SIZE
//   hydra, PMI    PMI_RANK                PMI_SIZE                          MPI_LOCALRANKID, MPI_LOCALNRANKS
//   PALS          PALS_RANKID             PMI_SIZE                          PALS_LOCAL_RANKID, PALS_LOCAL_SIZE
//   Flux          FLUX_TASK_RANK          FLUX_JOB_SIZE                     FLUX_TASK_LOCAL_ID
//   torchrun      RANK                    WORLD_SIZE                        LOCAL_RANK, LOCAL_WORLD_SIZE
//   srun          SLURM_PROCID            SLURM_STEP_NUM_TASKS, or else     SLURM_LOCALID; of SLURM_STEP_TASKS_PER_NODE
//                                         SLURM_NTASKS                      the number at SLURM_NODEID
//
// A launcher inside another one leaves the outer one's names. The table is the order of trust: the first launcher that
// has set its names counts. A later one may say something else if it can be the outer one:
//
//   srun                             it starts the daemons of other launchers, and a batch script has its names; these
//                                    count only in a step (SLURM_STEP_ID, SLURM_STEP_NUM_TASKS)
//   a launcher of one process        that process has started the inner launcher
//   PMI_FD is not an open socket     an outer hydra has left PMI_RANK and PMI_SIZE
//
// Every other contradiction is an error, as are a rank without a size, a size without a rank, a rank that is too large,
// and what is not a number: two launchers that both could have started the process need a decision of the user.
//
// `launched` reads the environment, and asks whether PMI_FD is an open socket; nothing else. Any thread, as long as no
// thread changes the environment. Errors: a Diagnostic names the variables, with their values, and says what to do.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sdma { inline namespace v0_3 {

/// A process that a launcher has started as one of several.
struct Launched {
  std::uint32_t rank{};                       ///< from 0
  std::uint32_t size{};                       ///< how many there are, at least 2
  std::optional<std::uint32_t> local_rank{};  ///< among the ranks of this host, if that is known
  std::optional<std::uint32_t> local_size{};  ///< how many are on this host, if that is known
  std::string launcher{};                     ///< "Open MPI", "hydra", "PMI", "PALS", "Flux", "torchrun" or "srun"
  /// Names the job: the same text in all its ranks, and another one in other jobs. "": the launcher names it nowhere.
  ///   Open MPI   PMIX_NAMESPACE, or else OMPI_MCA_ess_base_jobid         PALS   PALS_APID      Flux   FLUX_JOB_ID
  ///   srun       SLURM_JOB_ID.SLURM_STEP_ID                              hydra  none
  ///   torchrun   TORCHELASTIC_RUN_ID, the address, and TORCHELASTIC_RESTART_COUNT
  std::string job{};
  std::string address{};                         ///< "MASTER_ADDR:MASTER_PORT", if both are set: for `meet`
  bool address_taken{};                          ///< torchrun's agent listens there (TORCHELASTIC_USE_AGENT_STORE=True)
  std::string rank_variable{}, size_variable{};  ///< which said so: "PMI_RANK=1", "PMI_SIZE=2"
};

/// The value of a variable, or null.
using Environment = std::function<const char*(const char* name)>;
/// How a launcher has started this process; nothing if none has, or as the only one. Without an argument, reads the
/// environment of the process.
Result<std::optional<Launched>, Diagnostic> launched(const Environment& = {});

/// Is the world of the launcher also that of MPI, with the rank and the size that MPI has? A program that was built
/// with another MPI than the launcher's is rank 0 of 1 in each process, and would run once in each of them.
Result<void, Diagnostic> same_world(const Launched&, std::uint32_t mpi_rank, std::uint32_t mpi_size);

}}  // namespace sdma::v0_3
