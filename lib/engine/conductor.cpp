// SPDX-License-Identifier: MIT
#include "conductor.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <new>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::uint64_t kTurns = 19;                   // a stream of random numbers
constexpr auto kLook = std::chrono::milliseconds(20);  // a process that waits asks this often whether one is lost

}  // namespace

void Conductor::Unmap::operator()(Conductor* c) const noexcept { ::munmap(c, sizeof *c); }

std::unique_ptr<Conductor, Conductor::Unmap> Conductor::shared(std::uint32_t processes) noexcept {
  auto* const at = ::mmap(nullptr, sizeof(Conductor), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::unique_ptr<Conductor, Unmap>(new (at) Conductor(processes));
}

void Conductor::set(std::uint32_t process, Turn t) noexcept {
  given_.store({.run = run_, .process = static_cast<std::uint16_t>(process), .turn = t}, std::memory_order_release);
  if (t == Turn::over)
    for (std::uint32_t p = 0; p < processes_; ++p) waiting_[p].wake();
  else waiting_[process].wake();
}

void Conductor::give(std::uint64_t among, Turn t) noexcept {
  for (auto n = order_.choose(Choice::schedule, static_cast<std::uint32_t>(std::popcount(among))); n > 0; --n)
    among &= among - 1;
  set(static_cast<std::uint32_t>(std::countr_zero(among)), t);
}

std::optional<std::uint32_t> Conductor::next_to_wake() const noexcept {
  std::optional<std::uint32_t> next;
  for (std::uint32_t p = 0; p < processes_; ++p)
    if (ranks_[p] != 0 && (!next || ranks_[p] < ranks_[*next])) next = p;
  return next;
}

void Conductor::Seat::join(std::uint64_t seed) noexcept {
  if (process_ == 0) c_->seed_ = seed;
  c_->ids_[process_].store(::getpid(), std::memory_order_relaxed);
  const auto n = c_->joined_.fetch_add(1, std::memory_order_acq_rel);
  run_ = static_cast<std::uint32_t>(n / c_->processes_) + 1;
  if ((n + 1) % c_->processes_ != 0) return;
  c_->idle_ = c_->ended_ = 0;
  c_->ranks_ = {};
  c_->run_ = run_;
  c_->order_ = Seeded(c_->seed_, kTurns);
  c_->to_the_end_ = c_->order_.choose(Choice::schedule, 2) != 0;
  c_->give(c_->all(), Turn::act);
}

/// Has a process that had joined ended?
bool Conductor::Seat::lost() const noexcept {
  for (std::uint32_t p = 0; p < c_->processes_; ++p) {
    const auto id = c_->ids_[p].load(std::memory_order_relaxed);
    if (id == 0 || id == ::getpid()) continue;
    const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
    if (fd < 0 && errno == ESRCH) return true;
    if (fd < 0) continue;  // then the time of this process ends the wait
    pollfd ended{.fd = fd, .events = POLLIN, .revents = 0};
    const bool gone = ::poll(&ended, 1, 0) == 1;
    ::close(fd);
    if (gone) return true;
  }
  return false;
}

Conductor::Turn Conductor::Seat::comes() {
  for (;;) {
    const auto ticket = c_->waiting_[process_].ticket();
    if (c_->broken_.load(std::memory_order_acquire)) return Turn::alone;
    const auto now = c_->given_.load(std::memory_order_acquire);
    if (now.run == run_ && (now.turn == Turn::over || now.process == process_)) return now.turn;
    const auto d = Deadline::in(kLook);
    c_->waiting_[process_].sleep(ticket, d);
    if (!d.passed() || !(lost() || over_())) continue;
    c_->broken_.store(true, std::memory_order_release);
    return Turn::alone;
  }
}

void Conductor::Seat::pass(const Outcome& o) noexcept {
  const auto me = std::uint64_t{1} << process_;
  const bool stuck = c_->given_.load(std::memory_order_relaxed).turn == Turn::stuck;
  if (o.ended) c_->ended_ |= me;
  c_->ranks_[process_] = o.rank;
  if (o.acted || stuck) c_->idle_ = 0;
  else c_->idle_ |= me;
  const auto next = c_->next_to_wake();
  const bool quiet = c_->idle_ == c_->all() && !next;
  if (c_->ended_ == c_->all() && (quiet || !c_->to_the_end_)) return c_->set(process_, Turn::over);
  if (c_->idle_ != c_->all()) return c_->give(c_->all() & ~c_->idle_, Turn::act);
  if (next) return c_->set(*next, Turn::wake);
  c_->give(c_->all(), Turn::stuck);
}

}}}  // namespace sdma::v0_3::detail
