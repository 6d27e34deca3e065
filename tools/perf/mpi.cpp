// SPDX-License-Identifier: MIT
// libsdma-mpi: passes bytes between the processes that mpirun has started. The option mpi of the build provides it, and
// sdma perf loads it (world.hpp). A World calls MPI_Init at its begin, and MPI_Finalize at its end.
//
// Publishing is an MPI_Iallgather of the sizes and an MPI_Iallgatherv of the bytes: all ranks exchange equally often.
// Both are polled until the deadline, with the naps of other waits. It may be used any number of times.
//
// One object per process, on one thread. Errors: a Diagnostic when the others do not call it before the deadline; then
// the destructor ends all ranks, because MPI cannot take its call back. If a rank dies, mpirun ends the others.
#include "sdma/schedule/exchange.hpp"
#include "sdma/sync/wait.hpp"
#include "world.hpp"

#define OMPI_SKIP_MPICXX 1  // only the interface of C
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace collectives::perf { namespace {

/// Held for each call of MPI: the exchange and the transport have threads of their own.
std::mutex one_at_a_time;
using MpiLock = std::lock_guard<std::mutex>;
MPI_Comm of_transport = MPI_COMM_NULL;

class MpiExchange final : public sdma::Exchange {
 public:
  MpiExchange() {
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
  ~MpiExchange() override {
    if (broken_) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
  }
  /// May a second thread call MPI, as that of a MpiTransport does?
  bool threads() const noexcept { return threads_; }

  sdma::Result<void, sdma::Diagnostic> publish(std::span<const std::byte> mine, sdma::Deadline d) override {
    const int bytes = static_cast<int>(mine.size());
    broken_ = !completes(d, [&](MPI_Request* r) {
      return MPI_Iallgather(&bytes, 1, MPI_INT, bytes_.data(), 1, MPI_INT, MPI_COMM_WORLD, r);
    });
    int end = 0;
    for (std::size_t r = 0; r < bytes_.size(); ++r) begins_[r] = end, end += bytes_[r];
    all_.resize(static_cast<std::size_t>(end));
    broken_ = broken_ || !completes(d, [&](MPI_Request* r) {
                return MPI_Iallgatherv(mine.data(), bytes, MPI_BYTE, all_.data(), bytes_.data(), begins_.data(),
                                       MPI_BYTE, MPI_COMM_WORLD, r);
              });
    if (!broken_) return {};
    return sdma::Diagnostic{.where = "MPI",
                            .message = "the other ranks have not exchanged their bytes in time",
                            .hint = "a rank is stopped or overloaded: end all, and start fewer"};
  }
  sdma::Result<std::vector<std::byte>, sdma::Diagnostic> receive(std::uint32_t rank, sdma::Deadline) override {
    const auto at = all_.begin() + begins_[rank];
    return std::vector<std::byte>(at, at + bytes_[rank]);
  }

 private:
  /// Starts a collective call, and polls it.
  template <class Call> static bool completes(sdma::Deadline d, Call call) {
    MPI_Request request{};
    int done = 0;
    const auto good = [&](auto step) {
      const MpiLock lock(one_at_a_time);
      return step() == MPI_SUCCESS;
    };
    if (!good([&] { return call(&request); })) return false;
    for (sdma::Backoff backoff;;) {
      if (!good([&] { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); })) return false;
      if (done != 0) return true;
      if (!backoff.step(d)) return false;
    }
  }

  std::vector<std::byte> all_{};
  std::vector<int> bytes_{}, begins_{};  ///< of each rank in `all_`
  bool broken_ = false, threads_ = false;
};

/// Point to point between nodes: MPI_Isend, and MPI_Improbe with MPI_Mrecv, in a communicator of its own. Create it
/// after the MpiExchange, and destroy it before. Its calls and those of the exchange do not overlap, so that MPI
/// needs to be no more than MPI_THREAD_SERIALIZED. No rank has `ended`: if one dies, mpirun ends all.
class MpiTransport final : public sdma::Transport {
 public:
  /// What has not left by now was for ranks that have given up. MPI may still read it.
  ~MpiTransport() override {
    if (!out_->empty()) static_cast<void>(out_.release());
  }
  void send(std::uint32_t rank, std::vector<std::byte> message) override {
    const MpiLock lock(one_at_a_time);
    auto& s = out_->emplace_back(Sent{.bytes = std::move(message)});
    MPI_Isend(s.bytes.data(), static_cast<int>(s.bytes.size()), MPI_BYTE, static_cast<int>(rank), 0, of_transport,
              &s.request);
  }
  std::optional<Message> receive() override {
    const MpiLock lock(one_at_a_time);
    for (int done = 1; !out_->empty() && done != 0;) {
      MPI_Test(&out_->front().request, &done, MPI_STATUS_IGNORE);
      if (done != 0) out_->pop_front();
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
  std::uint64_t unsent() const noexcept override {
    std::uint64_t all = 0;
    for (const auto& s : *out_) all += s.bytes.size();
    return all;
  }
  bool ended(std::uint32_t) const noexcept override { return false; }

 private:
  struct Sent {
    std::vector<std::byte> bytes{};
    MPI_Request request{};
  };
  std::unique_ptr<std::deque<Sent>> out_ = std::make_unique<std::deque<Sent>>();
};

class MpiWorld final : public World {
 public:
  MpiWorld() {
    int n = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &n);
    rank_ = static_cast<std::uint32_t>(n);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    count_ = static_cast<std::uint32_t>(n);
    if (exchange_.threads()) transport_.emplace();
  }
  std::uint32_t rank() const noexcept override { return rank_; }
  std::uint32_t count() const noexcept override { return count_; }
  sdma::Exchange& exchange() noexcept override { return exchange_; }
  sdma::Transport* transport() noexcept override { return transport_ ? &*transport_ : nullptr; }

 private:
  MpiExchange exchange_;  // MPI_Init comes first, and MPI_Finalize last
  std::uint32_t rank_ = 0, count_ = 1;
  std::optional<MpiTransport> transport_{};
};

}}  // namespace collectives::perf

extern "C" [[gnu::visibility("default")]] collectives::perf::World* sdma_open_mpi() {
  return new collectives::perf::MpiWorld;
}
