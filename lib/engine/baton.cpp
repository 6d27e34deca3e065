// SPDX-License-Identifier: MIT
#include "baton.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Streams of random numbers: those of a node's pipelines and naps are below.
constexpr std::uint64_t kOrder = 16, kRanks = 17, kThreads = 1024;
constexpr auto kStuck = std::chrono::milliseconds(1);  // a run that is stuck asks this often whether it is over
constexpr std::uint32_t kMostTurns = 16;               // of others, while a thread lingers
constexpr std::uint32_t kInARow = 4;                   // actions of a process before another's turn, on average

thread_local Baton::Hand* held_here = nullptr;

}  // namespace

Baton::Baton(std::uint64_t seed, std::vector<std::unique_ptr<Agent>> queues, std::size_t threads,
             std::optional<Conductor::Seat> seat)
    : queues_(std::move(queues)),
      ranks_(queues_.size() + threads),
      order_(seed, kOrder),
      ranks_of_naps_(seed, kRanks),
      seat_(std::move(seat)) {
  for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<Thread>(seed, kThreads + i));
  if (seat_) seat_->join(seed);
}

Baton::Hand* Baton::held() noexcept { return held_here; }

bool Baton::ended() const {
  return std::all_of(threads_.begin(), threads_.end(), [](const auto& t) { return t->state == State::ended; });
}

void Baton::run(const std::function<bool()>& over) {
  if (seat_) run_in_turn(over);
  while (!ended())
    if (!act() && !wake_next()) look(over);
  if (ending_ || order_.choose(Choice::schedule, 2) == 0) return;
  while (act() || wake_next()) {}
}

bool Baton::act() {
  const auto all = queues_.size() + threads_.size();
  if (all == 0) return false;
  const auto first = order_.choose(Choice::schedule, static_cast<std::uint32_t>(all));
  for (std::size_t i = 0; i < all; ++i)
    if (step((first + i) % all)) return true;
  return false;
}

/// What could still change something is outside of this run.
void Baton::look(const std::function<bool()>& over) {
  std::this_thread::sleep_for(kStuck);
  if (over()) ending_ = true;
}

void Baton::run_in_turn(const std::function<bool()>& over) {
  for (;;) {
    const auto turn = seat_->comes();
    if (turn == Conductor::Turn::alone) ending_ = true;  // the rest of this run cannot be as its seed says
    if (turn == Conductor::Turn::alone || turn == Conductor::Turn::over) return;
    seat_->pass(take(turn, over));
  }
}

Conductor::Outcome Baton::take(Conductor::Turn turn, const std::function<bool()>& over) {
  bool acted = false;
  if (turn == Conductor::Turn::wake) acted = wake_next();
  else if (turn == Conductor::Turn::stuck) look(over);
  // Several actions in a row, as a rule: a turn of another process costs more than most of them.
  else
    while (act() && (acted = true) && order_.choose(Choice::schedule, kInARow) != 0) {}
  const auto next = first_sleeper();
  return {.acted = acted, .rank = next == ranks_.size() ? 0 : ranks_[next], .ended = ended()};
}

bool Baton::step(std::size_t agent) {
  if (agent < queues_.size()) return queues_[agent]->step();  // what is in flight lands while it sleeps
  auto& t = *threads_[agent - queues_.size()];
  if (t.state == State::ended || (t.state == State::asleep && !ending_)) return false;
  if (t.state == State::waiting && !ending_ && !(*t.ready)()) return false;
  return go(agent - queues_.size());
}

bool Baton::asleep(std::size_t agent) const {
  return agent < queues_.size() ? queues_[agent]->asleep() : threads_[agent - queues_.size()]->state == State::asleep;
}

std::size_t Baton::first_sleeper() {
  constexpr std::uint32_t kMostRank = 1'000'000'000;
  auto next = ranks_.size();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!asleep(i)) ranks_[i] = 0;
    else if (ranks_[i] == 0)
      ranks_[i] = 1 + ranks_of_naps_.choose(Choice::schedule, kMostRank) +
                  (i < queues_.size() && queues_[i]->wakes_last() ? kMostRank : 0);
    if (ranks_[i] != 0 && (next == ranks_.size() || ranks_[i] < ranks_[next])) next = i;
  }
  return next;
}

bool Baton::wake_next() {
  const auto next = first_sleeper();
  if (next == ranks_.size()) return false;
  if (next < queues_.size()) queues_[next]->awaken();
  else threads_[next - queues_.size()]->state = State::ready;
  ranks_[next] = 0;
  return true;
}

bool Baton::go(std::size_t thread) {
  std::unique_lock lock(mutex_);
  holder_ = thread;
  threads_[thread]->turn.notify_one();
  returned_.wait(lock, [&] { return holder_ == kNobody; });
  return true;
}

void Baton::missing(std::size_t thread) { threads_[thread]->state = State::ended; }

void Baton::give(std::size_t thread, State state) {
  std::unique_lock lock(mutex_);
  auto& t = *threads_[thread];
  t.state = state;
  holder_ = kNobody;
  returned_.notify_one();
  if (state == State::ended) return;
  t.turn.wait(lock, [&] { return holder_ == thread; });
  t.state = State::ready;
}

Baton::Hand::Hand(Baton& b, std::size_t thread) : baton_(b), index_(thread), outer_(held_here) {
  held_here = this;
  std::unique_lock lock(b.mutex_);
  b.threads_[thread]->turn.wait(lock, [&] { return b.holder_ == index_; });
}

Baton::Hand::~Hand() {
  held_here = outer_;
  baton_.give(index_, State::ended);
}

void Baton::Hand::pass() {
  baton_.give(index_, baton_.threads_[index_]->sleepiness.falls_asleep() ? State::asleep : State::ready);
}

void Baton::Hand::linger() {
  for (auto n = baton_.order_.choose(Choice::schedule, kMostTurns); n > 0 && !baton_.ending_; --n)
    baton_.give(index_, State::ready);
}

void Baton::Hand::until(const std::function<bool()>& ready) {
  auto& t = *baton_.threads_[index_];
  t.ready = &ready;
  baton_.give(index_, State::waiting);
  t.ready = nullptr;
}

}}}  // namespace sdma::v0_3::detail
