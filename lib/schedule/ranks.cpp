// SPDX-License-Identifier: MIT
// Starts the ranks of a schedule as forks of this process, and collects the answer of each.
#include "sdma/schedule/exchange.hpp"

#include "../core/write_all.hpp"
#include "../engine/conductor.hpp"
#include "sdma/core/deadline.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sdma { inline namespace v0_3 {
namespace {

using Work = std::function<std::string(std::uint32_t, Exchange&, Transport&)>;

/// A stream socket between each two ranks.
class Mesh {
 public:
  explicit Mesh(std::uint32_t n) : sockets_(n, std::vector<int>(n, -1)) {}
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh() { close_all(~0u); }

  /// An errno, or 0.
  int open() {
    for (std::size_t a = 0; a < sockets_.size(); ++a)
      for (std::size_t b = a + 1; b < sockets_.size(); ++b) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
        sockets_[a][b] = ends[0];
        sockets_[b][a] = ends[1];
      }
    return 0;
  }
  std::size_t size() const noexcept { return sockets_.size(); }
  const std::vector<int>& of(std::uint32_t rank) const noexcept { return sockets_[rank]; }
  /// Closes the ends of all ranks but this one.
  void close_all(std::uint32_t but) {
    for (std::uint32_t r = 0; r < sockets_.size(); ++r)
      for (auto& fd : sockets_[r])
        if (r != but && fd >= 0) ::close(std::exchange(fd, -1));
  }

 private:
  std::vector<std::vector<int>> sockets_;  ///< [rank][other]
};

/// A rank may get SIGINT twice: a terminal sends it to all processes, and so does this process to its ranks.
void keep_handler() {
  struct sigaction action {};
  if (::sigaction(SIGINT, nullptr, &action) != 0) return;
  action.sa_flags &= ~static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

constexpr int kThrown = 127;  ///< the exit code of a rank whose work has thrown
/// Milliseconds of a wait: between two questions whether to proceed, and without any.
constexpr long kGlance = 100, kLongestNap = 1'000'000;

class Processes {
 public:
  /// `nodes`: with a Transport.
  Processes(std::uint32_t n, bool nodes)
      : exchange_(n), transport_(nodes ? n : 0), conductor_(detail::Conductor::shared(n)), children_(n) {}
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const auto& c : children_)
      if (c.process > 0) ::kill(c.process, SIGKILL);
    for (std::uint32_t r = 0; r < children_.size(); ++r) (void)reap(r);
    for (const auto& c : children_)
      if (c.answer >= 0) ::close(c.answer);
    for (const int fd : ended_)
      if (fd >= 0) ::close(fd);
  }

  /// An errno, or 0.
  int start(const Work& work) {
    if (::pipe2(ended_, O_CLOEXEC) != 0) return errno;
    if (const int error = exchange_.open(); error != 0) return error;
    if (const int error = transport_.open(); error != 0) return error;
    if (!conductor_) return ENOMEM;
    const auto parent = ::getpid();
    for (std::uint32_t r = 0; r < children_.size(); ++r) {
      auto& c = children_[r];
      c.answer = ::memfd_create("sdma-answer", MFD_CLOEXEC);
      if (c.answer < 0) return errno;
      c.process = ::fork();
      if (c.process < 0) return errno;
      if (c.process > 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      keep_handler();
      exchange_.close_all(r);
      transport_.close_all(r);
      be(r, work);
    }
    exchange_.close_all(~0u);
    transport_.close_all(~0u);
    ::close(std::exchange(ended_[1], -1));
    return 0;
  }

  std::vector<RankEnd> wait(std::chrono::nanoseconds patience, const std::function<bool()>& proceed) {
    std::vector<std::uint32_t> order;
    std::optional<Deadline> last;
    bool sent = false;
    for (std::uint8_t rank = 0;;) {
      pollfd p{.fd = ended_[0], .events = POLLIN, .revents = 0};
      const long most = proceed && !sent ? kGlance : kLongestNap;
      const auto left = last ? std::chrono::duration_cast<std::chrono::milliseconds>(last->left()).count() + 1 : most;
      const int ready = ::poll(&p, 1, static_cast<int>(std::min<long>(left, most)));
      if (!sent && proceed && !proceed()) {
        sent = true;
        for (const auto& c : children_) ::kill(c.process, SIGINT);
        if (!last) last = Deadline::in(patience);
      }
      if (ready < 0 && errno == EINTR) continue;
      if (ready > 0) {
        if (::read(ended_[0], &rank, 1) != 1) break;  // all have ended
        order.push_back(rank);
        if (!last) last = Deadline::in(patience);
      } else if (last && last->passed()) {
        break;
      }
    }
    std::vector<RankEnd> out;
    for (std::uint32_t r = 0; r < children_.size(); ++r)
      if (const auto process = children_[r].process; std::find(order.begin(), order.end(), r) == order.end())
        out.push_back({.rank = r, .end = fmt::format("rank {}: its process {} {}", r, process, end(r, patience))});
    for (const auto r : order) out.push_back({.rank = r, .answer = answer(r)});
    return out;
  }

 private:
  struct Child {
    pid_t process = -1;
    int answer = -1;  ///< a file in memory
  };

  [[noreturn]] void be(std::uint32_t rank, const Work& work) {
    try {
      SocketExchange exchange(exchange_.of(rank), conductor_.get());
      SocketTransport transport(transport_.size() == 0 ? std::vector<int>() : transport_.of(rank));
      const auto text = work(rank, exchange, transport);
      if (detail::write_all(children_[rank].answer, text) != 0) ::_exit(1);
      const auto byte = static_cast<std::uint8_t>(rank);
      ::_exit(::write(ended_[1], &byte, 1) == 1 ? 0 : 1);
    } catch (const std::exception& e) {  // it must not get into the copy of the caller that this process also is
      fmt::print(stderr, "rank {}: {}\n", rank, e.what());
    } catch (...) {
      fmt::print(stderr, "rank {}: its work has thrown, and not a std::exception\n", rank);
    }
    ::_exit(kThrown);
  }

  int reap(std::uint32_t rank) {
    int status = 0;
    auto& process = children_[rank].process;
    if (process <= 0) return 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {}
    process = -1;
    return status;
  }
  std::string end(std::uint32_t rank, std::chrono::nanoseconds patience) {
    // Its end of the pipe may have closed a moment before the process can be waited for, but not seconds.
    auto& process = children_[rank].process;
    siginfo_t info{};
    const auto d = Deadline::in(std::chrono::seconds(1));
    while (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
      if (d.passed()) {
        ::kill(process, SIGKILL);
        (void)reap(rank);
        return fmt::format("did not end {} after another rank, and was killed",
                           std::chrono::duration_cast<std::chrono::milliseconds>(patience));
      } else {
        (void)::poll(nullptr, 0, 1);
      }
    const int status = reap(rank);
    if (WIFSIGNALED(status))
      return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    return fmt::format("ended with code {} before it had an answer", WEXITSTATUS(status));
  }
  std::string answer(std::uint32_t rank) const {
    std::string out;
    char some[4096];
    for (;;) {
      const auto n = ::pread(children_[rank].answer, some, sizeof some, static_cast<off_t>(out.size()));
      if (n > 0) out.append(some, static_cast<std::size_t>(n));
      else if (n == 0 || errno != EINTR) return out;
    }
  }

  Mesh exchange_, transport_;
  std::unique_ptr<detail::Conductor, detail::Conductor::Unmap> conductor_;
  std::vector<Child> children_;
  int ended_[2] = {-1, -1};  ///< a pipe: each rank writes its number when it has an answer
};

Result<std::vector<RankEnd>, Diagnostic> started(std::uint32_t ranks, bool nodes, std::chrono::nanoseconds patience,
                                                 const Work& work, const std::function<bool()>& proceed) {
  Processes all(ranks, nodes);
  if (const int error = all.start(work); error != 0)
    return Diagnostic{.where = fmt::format("--ranks={}", ranks),
                      .message = fmt::format("the processes cannot be started: {}", std::strerror(error)),
                      .hint = error == EMFILE ? "raise the limit of descriptors (ulimit -n), or use fewer ranks"
                                              : "end other processes, or use fewer ranks"};
  return all.wait(patience, proceed);
}

}  // namespace

Result<std::vector<RankEnd>, Diagnostic> in_ranks(std::uint32_t ranks, std::chrono::nanoseconds patience,
                                                  const std::function<std::string(std::uint32_t, Exchange&)>& work,
                                                  const std::function<bool()>& proceed) {
  const auto alone = [&](std::uint32_t rank, Exchange& exchange, Transport&) { return work(rank, exchange); };
  return started(ranks, false, patience, alone, proceed);
}
Result<std::vector<RankEnd>, Diagnostic> in_ranks(std::uint32_t ranks, std::chrono::nanoseconds patience,
                                                  const Work& work, const std::function<bool()>& proceed) {
  return started(ranks, true, patience, work, proceed);
}

}}  // namespace sdma::v0_3
