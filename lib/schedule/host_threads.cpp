// SPDX-License-Identifier: MIT
#include "host_threads.hpp"

#include "compare.hpp"
#include "contents.hpp"
#include "host_lane.hpp"
#include "samples.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/sync/wait.hpp"
#include "symbols.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

using namespace std::chrono_literals;

class HostThreads {
 public:
  HostThreads(RunState& run, Rounds& rounds)
      : run_(run),
        bound_(run.bound),
        s_(run.schedule),
        options_(run.options),
        numbers_(numbers_of(s_)),
        rounds_(rounds) {}

  void all() {
    const auto all = actors(s_);
    if (run_.held) {
      auto agents = run_.held->agents();
      if (run_.held_network)
        for (auto& a : run_.held_network->agents()) agents.push_back(std::move(a));
      std::optional<Conductor::Seat> seat;
      if (run_.team) seat.emplace(*run_.team->turns(), bound_.rank(), [this] { return run_.over(); });
      baton_.emplace(run_.held->seed(), std::move(agents), all.size(), std::move(seat));
    }
    if (all.size() == 1 && !baton_) return perform(all[0], 0);
    constexpr std::size_t kMostThreads = 1024;
    if (all.size() > kMostThreads)
      return run_.add(
          "run",
          fmt::format("the schedule has {} host threads and kernels, but a run can have {}", all.size(), kMostThreads),
          "put the actions of several hosts into one");
    // Joined even if there is no memory for the next one. (std::jthread would do this, but libc++ 14 lacks it.)
    struct Threads : std::vector<std::thread> {
      ~Threads() {
        for (auto& t : *this) t.join();
      }
    } threads;
    threads.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      try {
        threads.emplace_back([this, &all, i] { perform(all[i], i); });
      } catch (const std::system_error& e) {
        run_.stop = true;
        run_.add(all[i].title(), std::string("its thread cannot be created: ") + e.what());
        if (baton_) baton_->missing(i);
      }
    }
    if (baton_)
      baton_->run([this] {
        if (run_.fault()) run_.stop = true;  // asked here alone: no thread would see this fault again
        return run_.stop || run_.over();
      });
  }

 private:
  /// A host thread or a kernel's stand-in, and the lane that records it.
  struct Thread {
    const Actor& actor;
    bool times_rounds;  ///< the first host thread
    HostLane lane;
    std::uint32_t rank = 0;             ///< of the actor
    std::optional<Turn> turn{};         ///< with several ranks
    std::optional<Baton::Hand> hand{};  ///< of an adversarial run
    Deadline look{};                    ///< then it asks whether a rank is lost, even if it waits for none
    Samples samples{};
  };
  void perform(const Actor& a, std::size_t index) {
    Thread t{a, index == 0 && !a.kernel(), {options_.recorder, bound_, to_string(a.place), a.name}};
    if (baton_) t.hand.emplace(*baton_, index);
    if (run_.team) {
      t.rank = run_.team->ranks().of_actor(index);
      t.times_rounds = t.times_rounds && t.rank == bound_.rank();
      t.turn.emplace(*run_.team, index);
    }
    if (!actions(t, *a.actions, 0)) run_.stop = true;
    // The others take turns with this rank until its threads have ended, and theirs.
    if (run_.team && t.hand && run_.stop) run_.team->stop();
    if (run_.team) run_.team->ended(index, t.turn->step());
  }

  bool actions(Thread& t, const std::vector<Schedule::Action>& all, std::uint64_t round) {
    const auto& h = t.actor;
    using What = Schedule::Action::Kind;
    for (const auto& a : all) {
      if (run_.stop || late(h, a, round)) return false;
      std::uint64_t ranks = 0;
      if (t.hand) t.hand->pass();
      if (t.turn && !t.hand && t.look.passed()) {
        if (run_.fault()) return false;
        t.look = Deadline::in(kLook);
      }
      if (t.turn && a.kind != What::repeat) {
        ranks = run_.team->ranks().of(a, t.rank);
        if (!turn_comes(t, a, round, ranks)) return false;
        if ((ranks >> bound_.rank() & 1) == 0) {
          t.turn->end(ranks);
          continue;
        }
      }
      if (h.kernel()) rounds_.begins(false);
      bool ok = present(h, a, round);
      if (!ok) return false;
      switch (a.kind) {
        case What::submit: ok = submit(t, a); break;
        case What::set:
        case What::add: ok = set(t, a, round); break;
        case What::compute: ok = t.lane.during(a, [&] { return compute(t, a); }); break;
        case What::expect: ok = t.lane.during(a, [&] { return compare_now(h, a, round); }); break;
        case What::load: break;  // what it reads has no effect here
        case What::store: ok = t.lane.during(a, [&] { return store(a, round); }); break;
        case What::wait: ok = wait_for(t, a, round); break;
        case What::sample: sample(t, a); break;
        case What::alloc:
        case What::free:
        case What::map:
        case What::unmap:
        case What::export_handle:
        case What::close_handle: ok = t.lane.during(a, [&] { return manage(h, a, round); }); break;
        case What::rptr: ok = t.lane.during(a, [&] { return wait_rptr(t, a); }); break;
        case What::repeat:
          for (std::uint64_t i = 1; i <= a.rounds && ok; ++i)
            ok = !run_.stop && !late(h, a, i) && actions(t, a.body, i);
          break;
      }
      if (!ok) return false;
      if (ranks != 0) t.turn->end(ranks);
    }
    return true;
  }
  /// Is the memory that a thread uses there? If not, the run ends.
  bool present(const Actor& h, const Schedule::Action& a, std::uint64_t round) {
    if (!run_.live.any() || a.kind == Schedule::Action::Kind::repeat) return true;
    auto gone = run_.gone(a.range, a.old ? Schedule::Range{} : a.right, a.old ? Schedule::Sum{} : a.sum, h.place);
    if (gone.empty() && a.signal != GpuVa{}) gone = run_.live.gone(a.signal, h.place);
    return gone.empty() || fails(h, a, round, std::move(gone));
  }
  bool manage(const Actor& h, const Schedule::Action& a, std::uint64_t round) {
    auto wrong = run_.live.perform(a, h.title(), run_.deadline);
    return wrong.empty() || fails(h, a, round, std::move(wrong));
  }
  bool fails(const Actor& h, const Schedule::Action& a, std::uint64_t round, std::string why) {
    run_.add(where(h, a), std::move(why) + (round == 0 ? "" : fmt::format(", in round {}", round)));
    return false;
  }
  /// Waits for what other ranks have to do before this action.
  bool turn_comes(Thread& t, const Schedule::Action& a, std::uint64_t round, std::uint64_t ranks) {
    const auto stopped = [this] { return run_.stop || run_.fault(); };
    if (t.turn->begin(ranks, run_.deadline, [&] { return stopped() || run_.over(); })) return true;
    if (!stopped()) late(t.actor, a, round);
    return false;
  }

  /// Has the time ended? Each action and each round of a repeat asks, because neither need wait for anything.
  bool late(const Actor& h, const Schedule::Action& a, std::uint64_t round) {
    if (!run_.over()) return false;
    run_.add(where(h, a),
             fmt::format("the run has not ended after {}{}", run_.spent(),
                         round == 0 ? "" : fmt::format(", in round {}", round)),
             "allow more time (--timeout), or repeat less often", run_.queues());
    return true;
  }

  bool submit(Thread& t, const Schedule::Action& a) {
    rounds_.begins(false);
    for (const auto q : a.queues) {
      if (!bound_.owns(q)) continue;
      auto* const observer = t.lane.watch_submit(q);
      // If there are several pieces, some may be in the ring at the deadline: only a single piece can be retried.
      const bool one = bound_.packets(q).size_bytes() <= bound_.ring(q).memory().dwords.size_bytes() / 2;
      for (;;) {
        const auto done = bound_.submit(q, one && !t.hand ? slice() : run_.deadline, observer);
        if (done) break;
        const auto where = fmt::format("{}: submit {}", t.actor.title(), queue_name(s_.queues[q]));
        if (done.error() == Errc::epoch_overflow) {
          const auto epoch = bound_.epoch(q) + 1;
          run_.add(where, fmt::format("a value of epoch {} does not fit in its field", epoch),
                   "polls and fences hold 32 bits: restart the schedule before that epoch");
          return false;
        }
        if (done.error() != Errc::timed_out) return run_.add(where, std::string(message(done.error()))), false;
        if (run_.fault() || run_.stop) return false;
        if (one && !run_.over()) continue;
        run_.add(where, fmt::format("the ring stayed full for {}", run_.spent()),
                 "give the queue a larger ring: ring=", run_.queues());
        return false;
      }
    }
    return true;
  }

  std::string where(const Actor& h, const Schedule::Action& a) const {
    const auto line = options_.map ? options_.map->action(s_, a).line : 0;
    const auto text = to_text(s_, a);  // a repeat has its body in further lines
    return fmt::format("{}{}: {}", h.title(), line == 0 ? "" : fmt::format(", line {}", line),
                       text.substr(0, text.find('\n')));
  }

  /// The value of an action in this round; nothing, and a finding, if the signal does not hold it.
  std::optional<std::uint64_t> value(Thread& t, const Schedule::Action& a, std::uint64_t round) {
    const auto bits = s_.signals[find_symbol(s_, a.signal)->index].bits;
    const auto v = t.samples.at(a.value, round);
    if (bits == 64 || v <= ~std::uint32_t{}) return v;
    run_.add(where(t.actor, a), too_wide(v, round));
    return {};
  }
  void sample(Thread& t, const Schedule::Action& a) {
    const auto seen = bound_.value(find_symbol(s_, a.signal)->index);
    t.samples.set(a.value.sample, seen);
    t.lane.sampled(a, seen);
  }

  bool set(Thread& t, const Schedule::Action& a, std::uint64_t round) {
    const auto v = value(t, a, round);
    if (!v) return false;
    if (!t.actor.kernel()) rounds_.begins(true);
    const auto i = find_symbol(s_, a.signal)->index;
    t.lane.set(a, *v, [&] {
      if (a.kind == Schedule::Action::Kind::add) return bound_.add(i, *v);
      bound_.set(i, *v);
      return *v;
    });
    return true;
  }

  /// Takes at least the kernel's time, unless the run ends first. In virtual time, only turns pass.
  bool compute(Thread& t, const Schedule::Action& a) const {
    if (t.hand) return t.hand->linger(), !run_.stop;
    const auto end = Deadline::Clock::now() + std::chrono::nanoseconds(a.ns);
    for (auto now = Deadline::Clock::now(); now < end && !run_.stop && !run_.over(); now = Deadline::Clock::now())
      std::this_thread::sleep_until(std::min(end, slice().at));
    return !run_.stop;
  }
  bool store(const Schedule::Action& a, std::uint64_t round) const {
    // First, too: a store of the value that the host last saw would get lost where an engine has stored since.
    run_.flush_host_path();
    const auto to = bound_.bytes(a.range);
    if (a.sum) {
      const auto sum = added(a.sum, [&](const auto& part) { return bound_.bytes(part); });
      std::copy(sum.begin(), sum.end(), to.begin());
    } else {
      detail::store(a, options_.seed, round, numbers_, to);
    }
    run_.flush_host_path();
    return true;
  }

  bool wait_for(Thread& t, const Schedule::Action& a, std::uint64_t round) {
    const auto& h = t.actor;
    const auto v = value(t, a, round);
    if (!v) return false;
    const auto i = find_symbol(s_, a.signal)->index;
    t.lane.begin_wait(a, *v);
    for (;;) {
      if (reached(t, i, a.func, *v)) {
        if (t.times_rounds) rounds_.waited();
        return t.lane.end_wait(), true;
      }
      if (run_.stop || run_.fault() || !present(h, a, round)) return false;
      if (!run_.over()) continue;
      run_.add(where(h, a),
               fmt::format("{} is {} after {}{}{}", name_of(s_, a.signal), bound_.value(i), run_.spent(),
                           a.value.plus.factor == 0 ? "" : fmt::format(", in round {}", round),
                           a.value.sample.empty() ? "" : fmt::format(", with {}: it waits for {}", a.value.sample, *v)),
               "", run_.queues());
      return false;
    }
  }

  /// What was submitted when the wait began; another thread may submit more.
  bool wait_rptr(Thread& t, const Schedule::Action& a) {
    const auto& h = t.actor;
    const auto& ring = bound_.ring(a.queues.front());
    const auto all = ring.positions().committed;
    if (t.hand) t.hand->until([&] { return ring.positions().read >= all; });
    while (ring.positions().read < all) {
      for (Backoff backoff; ring.positions().read < all && backoff.step(slice());) {}
      if (run_.stop || run_.fault()) return false;
      if (ring.positions().read >= all || !run_.over()) continue;
      run_.add(where(h, a), fmt::format("the engine has not read everything after {}", run_.spent()), "",
               run_.queues());
      return false;
    }
    return true;
  }

  bool compare_now(const Actor& h, const Schedule::Action& a, std::uint64_t round) {
    if (!options_.contents) return true;
    run_.flush_host_path();
    std::uint64_t wrong = 0;
    std::vector<std::byte> sum;
    auto text = difference(s_, a.range, bound_.bytes(a.range), run_.expected(a, sum), &wrong);
    if (text.empty()) return true;
    run_.add(where(h, a), std::move(text) + (round == 0 ? "" : fmt::format(", in round {}", round)));
    run_.add_wrong(wrong);
    return false;
  }

  /// Short waits one after another, so that a fault or the failure of another thread ends them.
  Deadline slice() const noexcept { return run_.deadline.within(kLook); }
  bool reached(Thread& t, std::size_t i, Compare func, std::uint64_t reference) const {
    const auto d = slice();
    if (t.hand) {
      t.hand->until([&] { return holds(bound_.value(i), func, reference); });
      return holds(bound_.value(i), func, reference);
    }
    if (!s_.signals[i].at) return wait(bound_.signal(i), func, reference, d).has_value();
    // A word inside a buffer may have neighbours, so only its own bits are read; nothing wakes this thread.
    for (Backoff backoff;;) {
      if (holds(bound_.value(i), func, reference)) return true;
      if (!backoff.step(d)) return false;
    }
  }

  RunState& run_;
  const Bound& bound_;
  const Schedule& s_;
  const RunOptions& options_;
  const Numbers numbers_;
  Rounds& rounds_;
  std::optional<Baton> baton_{};  ///< of an adversarial run
};

}  // namespace

void perform(RunState& run, Rounds& rounds) { HostThreads{run, rounds}.all(); }

}}}  // namespace sdma::v0_3::detail
