// SPDX-License-Identifier: MIT
#include "mpi.hpp"

#include "sdma/sync/wait.hpp"

#include <deque>
#include <mutex>

#define OMPI_SKIP_MPICXX 1  // only the interface of C
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace collectives::perf {

using namespace sdma;

namespace {

/// Held for each call of MPI: the exchange and the transport have threads of their own.
std::mutex one_at_a_time;
using Lock = std::lock_guard<std::mutex>;
MPI_Comm of_transport = MPI_COMM_NULL;

bool test(MPI_Request& r, bool& ok) {
  const Lock lock(one_at_a_time);
  int done = 0;
  ok = MPI_Test(&r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  return done != 0;
}
bool completes(MPI_Request& r, Deadline d) {
  bool ok = true;
  for (Backoff backoff; !test(r, ok);)
    if (!ok || !backoff.step(d)) return false;
  return true;
}
/// Starts a collective call.
template <class Call> bool begins(Call call) {
  const Lock lock(one_at_a_time);
  return call() == MPI_SUCCESS;
}

}  // namespace

MpiExchange::MpiExchange() {
  int count = 1;
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
  // Here, because all ranks have to call it: one may end before it knows whether there are nodes.
  MPI_Comm_dup(MPI_COMM_WORLD, &of_transport);
  threads_ = threads >= MPI_THREAD_SERIALIZED;
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
  broken_ = !begins([&] {
    return MPI_Iallgather(&bytes, 1, MPI_INT, bytes_.data(), 1, MPI_INT, MPI_COMM_WORLD, &request);
  }) || !completes(request, d);
  int end = 0;
  for (std::size_t r = 0; r < bytes_.size(); ++r) begins_[r] = end, end += bytes_[r];
  all_.resize(static_cast<std::size_t>(end));
  broken_ = broken_ || !begins([&] {
              return MPI_Iallgatherv(mine.data(), bytes, MPI_BYTE, all_.data(), bytes_.data(), begins_.data(), MPI_BYTE,
                                     MPI_COMM_WORLD, &request);
            }) ||
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

struct MpiTransport::State {
  struct Sent {
    std::vector<std::byte> bytes{};
    MPI_Request request{};
  };
  std::deque<Sent> out{};
};

MpiTransport::MpiTransport() : state_(std::make_unique<State>()) {}
/// What has not left by now was for ranks that have given up. MPI may still read it.
MpiTransport::~MpiTransport() {
  if (!state_->out.empty()) static_cast<void>(state_.release());
}

void MpiTransport::send(std::uint32_t rank, std::vector<std::byte> message) {
  const Lock lock(one_at_a_time);
  auto& s = state_->out.emplace_back(State::Sent{.bytes = std::move(message)});
  MPI_Isend(s.bytes.data(), static_cast<int>(s.bytes.size()), MPI_BYTE, static_cast<int>(rank), 0, of_transport,
            &s.request);
}

std::optional<Transport::Message> MpiTransport::receive() {
  const Lock lock(one_at_a_time);
  for (int done = 1; !state_->out.empty() && done != 0;) {
    MPI_Test(&state_->out.front().request, &done, MPI_STATUS_IGNORE);
    if (done != 0) state_->out.pop_front();
  }
  int found = 0, bytes = 0;
  MPI_Message message{};
  MPI_Status status{};
  if (MPI_Improbe(MPI_ANY_SOURCE, 0, of_transport, &found, &message, &status) != MPI_SUCCESS || found == 0) return {};
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  Message m{.from = static_cast<std::uint32_t>(status.MPI_SOURCE)};
  m.bytes.resize(static_cast<std::size_t>(bytes));
  MPI_Mrecv(m.bytes.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  return m;
}

std::uint64_t MpiTransport::unsent() const noexcept {
  std::uint64_t all = 0;
  for (const auto& s : state_->out) all += s.bytes.size();
  return all;
}

}  // namespace collectives::perf
