// SPDX-License-Identifier: MIT
#include "mpi.hpp"

#include "sdma/core/number.hpp"
#include "sdma/sync/wait.hpp"

#include <cstdlib>

#ifdef COLLECTIVE_PERF_MPI
#define OMPI_SKIP_MPICXX 1  // only the interface of C
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace collectives::perf {

using namespace sdma;

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

#ifdef COLLECTIVE_PERF_MPI

namespace {

bool completes(MPI_Request& r, Deadline d) {
  int done = 0;
  for (Backoff backoff; MPI_Test(&r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0;)
    if (!backoff.step(d)) return false;
  return done != 0;
}

}  // namespace

const bool MpiExchange::kBuilt = true;

MpiExchange::MpiExchange() {
  int count = 1;
  MPI_Init(nullptr, nullptr);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  bytes_.resize(static_cast<std::size_t>(count));
  begins_.resize(bytes_.size());
}
MpiExchange::~MpiExchange() {
  if (broken_) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
}

Result<void, Diagnostic> MpiExchange::publish(std::span<const std::byte> mine, Deadline d) {
  const int bytes = static_cast<int>(mine.size());
  MPI_Request request{};
  broken_ = MPI_Iallgather(&bytes, 1, MPI_INT, bytes_.data(), 1, MPI_INT, MPI_COMM_WORLD, &request) != MPI_SUCCESS ||
            !completes(request, d);
  int end = 0;
  for (std::size_t r = 0; r < bytes_.size(); ++r) begins_[r] = end, end += bytes_[r];
  all_.resize(static_cast<std::size_t>(end));
  broken_ = broken_ ||
            MPI_Iallgatherv(mine.data(), bytes, MPI_BYTE, all_.data(), bytes_.data(), begins_.data(), MPI_BYTE,
                            MPI_COMM_WORLD, &request) != MPI_SUCCESS ||
            !completes(request, d);
  if (!broken_) return {};
  return Diagnostic{.where = "MPI",
                    .message = "the other ranks have not exchanged their bytes in time",
                    .hint = "a rank is stopped or overloaded: end all, and start fewer"};
}

Result<std::vector<std::byte>, Diagnostic> MpiExchange::receive(std::uint32_t rank, Deadline) {
  const auto at = all_.begin() + begins_[rank];
  return std::vector<std::byte>(at, at + bytes_[rank]);
}

#else

const bool MpiExchange::kBuilt = false;
MpiExchange::MpiExchange() = default;
MpiExchange::~MpiExchange() = default;
Result<void, Diagnostic> MpiExchange::publish(std::span<const std::byte>, Deadline) { return {}; }
Result<std::vector<std::byte>, Diagnostic> MpiExchange::receive(std::uint32_t, Deadline) {
  return std::vector<std::byte>{};
}

#endif

}  // namespace collectives::perf
