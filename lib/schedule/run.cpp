// SPDX-License-Identifier: MIT
#include "sdma/schedule/run.hpp"

#include "compare.hpp"
#include "contents.hpp"
#include "host_lane.hpp"
#include "old_bytes.hpp"
#include "rounds.hpp"
#include "samples.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/sync/describe.hpp"
#include "sdma/sync/wait.hpp"
#include "sums.hpp"
#include "symbols.hpp"
#include "team.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

namespace sdma::inline v0 {
namespace {

using namespace detail;
using namespace std::chrono_literals;

class Runner {
 public:
  Runner(const Bound& b, const RunOptions& o)
      : bound_(b),
        s_(b.schedule()),
        options_(o),
        numbers_(numbers_of(s_)),
        deadline_(Deadline::in(o.timeout)),
        team_(team_of(b)) {}

  RunReport run() {
    const auto all = actors(s_);
    const auto reads = std::find_if(all.begin(), all.end(), [](const Actor& a) { return waits_for_rptr(*a.actions); });
    if (reads != all.end() && !bound_.device().rptr_is_of_engines())
      add(reads->title(), "the rptr of this device does not say what an engine has read, so the schedule is not run",
          "wait for a fence or an atomic instead");
    else if (!s_.kernels.empty() && !bound_.device().kernels_stand_in())
      add("kernel " + to_string(s_.kernels[0].place) + "." + s_.kernels[0].name,
          "this device cannot start the kernels of a schedule, so the schedule is not run",
          "run it on the software device, where a thread of the host stands in for each kernel");
    else if (expects_finding(s_))
      add("expect finding", "this schedule contains a deliberate error for a checker, so it is not run");
    else if (bound_.restart(deadline_) != Errc::ok)
      add("run", "queues of an earlier run have not finished", "bind the schedule again");
    else go();
    if (team_ && stop_) team_->stop();
    return std::move(report_);
  }

 private:
  void add(std::string where, std::string message, std::string hint = "", std::string excerpt = "") {
    const std::lock_guard lock(mutex_);
    report_.findings.push_back({.where = std::move(where),
                                .message = std::move(message),
                                .hint = std::move(hint),
                                .excerpt = std::move(excerpt)});
  }

  void go() {
    if (options_.contents) first_contents();
    set_signals();
    if (!report_.findings.empty()) {
      stop_ = true;
      return;
    }
    if (!meet()) return;
    if (options_.contents) old_.remember();
    if (!meet()) return;
    if (options_.recorder) options_.recorder->name(bound_.names());
    flush_host_path();
    const auto begin = Deadline::Clock::now();
    deadline_ = Deadline::in(options_.timeout);
    threads();
    report_.elapsed = Deadline::Clock::now() - begin;
    rounds_.ended();
    report_.round = rounds_.last();
    fault();
    flush_host_path();
    if (!report_.findings.empty()) {
      stop_ = true;
      return;
    }
    if (!meet()) return;
    if (options_.contents)
      for (const auto& e : s_.expectations)
        if (has(e.left.va)) check(e);
    static_cast<void>(meet());  // the others have compared what is this rank's
  }

  /// Waits until all ranks have come here.
  bool meet() {
    if (!team_) return true;
    if (team_->barrier(Deadline::in(options_.timeout), [this] { return fault(); })) return true;
    if (report_.findings.empty())
      add("run", fmt::format("a rank has not come this far after {}", timeout()), "see what the other ranks report");
    stop_ = true;
    return false;
  }
  /// Is the buffer or signal at this link address of this rank?
  bool has(GpuVa link) const { return !team_ || team_->has(*find_symbol(s_, link)); }

  /// Makes the host's stores to GPU memory visible to engines, and engines' stores visible to the host.
  void flush_host_path() const {
    for (std::uint32_t g = 0; g < bound_.device().topology().gpus.size(); ++g)
      static_cast<void>(bound_.device().flush_host_writes(GpuId{g}));
  }

  Schedule::Range whole(std::size_t buffer) const { return {link_buffer(buffer), s_.buffers[buffer].bytes}; }

  void first_contents() {
    fill(s_, options_.seed, [this](std::size_t i) {
      const auto bytes = bound_.bytes(whole(i));
      return has(link_buffer(i)) ? bytes : bytes.first(0);
    });
    for (const auto& in : options_.inputs) input(in);
  }
  void set_signals() const {
    for (std::size_t i = 0; i < s_.signals.size(); ++i)
      if (has(link_signal(i))) bound_.set(i, s_.signals[i].value);
  }

  void input(const RunOptions::Input& in) {
    for (std::size_t i = 0; i < s_.buffers.size(); ++i) {
      if (name_of(s_, SymbolOffset{false, i, 0}) != in.name) continue;
      if (!has(link_buffer(i))) return;
      const auto to = bound_.bytes(whole(i));
      if (in.bytes.size() > to.size())
        return add("input " + in.name,
                   fmt::format("{} bytes do not fit: the buffer has {}", in.bytes.size(), to.size()));
      std::copy(in.bytes.begin(), in.bytes.end(), to.begin());
      return;
    }
    add("input " + in.name, "there is no such buffer", "sdma fmt --flat lists them");
  }

  void threads() {
    const auto all = actors(s_);
    if (all.size() == 1) return perform(all[0], 0);
    constexpr std::size_t kMostThreads = 1024;
    if (all.size() > kMostThreads)
      return add(
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
        stop_ = true;
        add(all[i].title(), std::string("its thread cannot be created: ") + e.what());
      }
    }
  }

  /// A host thread or a kernel's stand-in, and the lane that records it.
  struct Thread {
    const Actor& actor;
    bool times_rounds;  ///< the first host thread
    HostLane lane;
    std::uint32_t rank = 0;      ///< of the actor
    std::optional<Turn> turn{};  ///< with several ranks
    Samples samples{};
  };
  void perform(const Actor& a, std::size_t index) {
    Thread t{a, index == 0 && !a.kernel(), {options_.recorder, bound_, to_string(a.place), a.name}};
    if (team_) {
      t.rank = team_->ranks().of_actor(index);
      t.times_rounds = t.times_rounds && t.rank == bound_.rank();
      t.turn.emplace(*team_, index);
    }
    if (!actions(t, *a.actions, 0)) stop_ = true;
    if (team_) team_->ended(index, t.turn->step());
  }

  bool actions(Thread& t, const std::vector<Schedule::Action>& all, std::uint64_t round) {
    const auto& h = t.actor;
    using What = Schedule::Action::Kind;
    for (const auto& a : all) {
      if (stop_ || late(h, a, round)) return false;
      std::uint64_t ranks = 0;
      if (t.turn && a.kind != What::repeat) {
        ranks = team_->ranks().of(a, t.rank);
        if (!turn_comes(t, a, round, ranks)) return false;
        if ((ranks >> bound_.rank() & 1) == 0) {
          t.turn->end(ranks);
          continue;
        }
      }
      if (h.kernel()) rounds_.begins(false);
      bool ok = true;
      switch (a.kind) {
        case What::submit: ok = submit(t, a); break;
        case What::set:
        case What::add: ok = set(t, a, round); break;
        case What::compute: ok = t.lane.during(a, [&] { return compute(a); }); break;
        case What::expect: ok = t.lane.during(a, [&] { return compare_now(h, a, round); }); break;
        case What::load: break;  // what it reads has no effect here
        case What::store: ok = t.lane.during(a, [&] { return store(a, round); }); break;
        case What::wait: ok = wait_for(t, a, round); break;
        case What::sample: sample(t, a); break;
        case What::rptr: ok = t.lane.during(a, [&] { return wait_rptr(h, a); }); break;
        case What::repeat:
          for (std::uint64_t i = 1; i <= a.rounds && ok; ++i) ok = !stop_ && !late(h, a, i) && actions(t, a.body, i);
          break;
      }
      if (!ok) return false;
      if (ranks != 0) t.turn->end(ranks);
    }
    return true;
  }
  /// Waits for what other ranks have to do before this action.
  bool turn_comes(Thread& t, const Schedule::Action& a, std::uint64_t round, std::uint64_t ranks) {
    const auto stopped = [this] { return stop_ || fault(); };
    if (t.turn->begin(ranks, deadline_, stopped)) return true;
    if (!stopped()) late(t.actor, a, round);
    return false;
  }

  /// Has the time ended? Each action and each round of a repeat asks, because neither need wait for anything.
  bool late(const Actor& h, const Schedule::Action& a, std::uint64_t round) {
    if (!deadline_.passed()) return false;
    add(where(h, a),
        fmt::format("the run has not ended after {}{}", timeout(),
                    round == 0 ? "" : fmt::format(", in round {}", round)),
        "allow more time (--timeout), or repeat less often", queues());
    return true;
  }
  std::chrono::milliseconds timeout() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout);
  }

  bool submit(Thread& t, const Schedule::Action& a) {
    rounds_.begins(false);
    for (const auto q : a.queues) {
      if (!bound_.owns(q)) continue;
      auto* const observer = t.lane.watch_submit(q);
      // If there are several pieces, some may be in the ring at the deadline: only a single piece can be retried.
      const bool one = bound_.packets(q).size_bytes() <= bound_.ring(q).memory().dwords.size_bytes() / 2;
      for (;;) {
        const auto done = bound_.submit(q, one ? slice() : deadline_, observer);
        if (done) break;
        const auto where = fmt::format("{}: submit {}", t.actor.title(), queue_name(s_.queues[q]));
        if (done.error() == Errc::epoch_overflow) {
          const auto epoch = bound_.epoch(q) + 1;
          add(where, fmt::format("a value of epoch {} does not fit in its field", epoch),
              "polls and fences hold 32 bits: restart the schedule before that epoch");
          return false;
        }
        if (done.error() != Errc::timed_out) return add(where, std::string(message(done.error()))), false;
        if (fault() || stop_) return false;
        if (one && !deadline_.passed()) continue;
        add(where, fmt::format("the ring stayed full for {}", options_.timeout),
            "give the queue a larger ring: ring=", queues());
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
    add(where(t.actor, a), too_wide(v, round));
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

  /// Takes at least the kernel's time, unless the run ends first.
  bool compute(const Schedule::Action& a) const {
    const auto end = Deadline::Clock::now() + std::chrono::nanoseconds(a.ns);
    for (auto now = Deadline::Clock::now(); now < end && !stop_ && !deadline_.passed(); now = Deadline::Clock::now())
      std::this_thread::sleep_until(std::min(end, slice().at));
    return !stop_;
  }
  bool store(const Schedule::Action& a, std::uint64_t round) const {
    // First, too: a store of the value that the host last saw would get lost where an engine has stored since.
    flush_host_path();
    const auto to = bound_.bytes(a.range);
    if (a.sum) {
      const auto sum = added(a.sum, [&](const auto& part) { return bound_.bytes(part); });
      std::copy(sum.begin(), sum.end(), to.begin());
    } else {
      detail::store(a, options_.seed, round, numbers_, to);
    }
    flush_host_path();
    return true;
  }

  bool wait_for(Thread& t, const Schedule::Action& a, std::uint64_t round) {
    const auto& h = t.actor;
    const auto v = value(t, a, round);
    if (!v) return false;
    const auto i = find_symbol(s_, a.signal)->index;
    t.lane.begin_wait(a, *v);
    for (;;) {
      if (reached(i, a.func, *v, slice())) {
        if (t.times_rounds) rounds_.waited();
        return t.lane.end_wait(), true;
      }
      if (stop_ || fault()) return false;
      if (!deadline_.passed()) continue;
      add(where(h, a),
          fmt::format("{} is {} after {}{}{}", name_of(s_, a.signal), bound_.value(i), timeout(),
                      a.value.plus.factor == 0 ? "" : fmt::format(", in round {}", round),
                      a.value.sample.empty() ? "" : fmt::format(", with {}: it waits for {}", a.value.sample, *v)),
          "", queues());
      return false;
    }
  }

  /// What was submitted when the wait began; another thread may submit more.
  bool wait_rptr(const Actor& h, const Schedule::Action& a) {
    const auto& ring = bound_.ring(a.queues.front());
    const auto all = ring.positions().committed;
    while (ring.positions().read < all) {
      for (Backoff backoff; ring.positions().read < all && backoff.step(slice());) {}
      if (stop_ || fault()) return false;
      if (ring.positions().read >= all || !deadline_.passed()) continue;
      add(where(h, a), fmt::format("the engine has not read everything after {}", timeout()), "", queues());
      return false;
    }
    return true;
  }

  bool compare_now(const Actor& h, const Schedule::Action& a, std::uint64_t round) {
    if (!options_.contents) return true;
    flush_host_path();
    std::uint64_t wrong = 0;
    std::vector<std::byte> sum;
    auto text = difference(s_, a.range, bound_.bytes(a.range), expected(a, sum), &wrong);
    if (text.empty()) return true;
    add(where(h, a), std::move(text) + (round == 0 ? "" : fmt::format(", in round {}", round)));
    const std::lock_guard lock(mutex_);
    report_.wrong += wrong;
    return false;
  }
  /// What an action or an expectation expects; `sum` is room for it.
  template <class Expects> std::span<const std::byte> expected(const Expects& e, std::vector<std::byte>& sum) const {
    if (!e.sum) return expected(e.right, e.old);
    return sum = added(e.sum, [&](const auto& part) { return expected(part, e.old); });
  }
  std::span<const std::byte> expected(const Schedule::Range& right, bool old) const {
    if (!old) return bound_.bytes(right);
    return old_.bytes(right);
  }

  /// Short waits one after another, so that a fault or the failure of another thread ends them.
  Deadline slice() const noexcept {
    const auto d = Deadline::in(20ms);
    return d.at < deadline_.at ? d : deadline_;
  }
  bool reached(std::size_t i, Compare func, std::uint64_t reference, Deadline d) const noexcept {
    if (!s_.signals[i].at) return wait(bound_.signal(i), func, reference, d).has_value();
    // A word inside a buffer may have neighbours, so only its own bits are read; nothing wakes this thread.
    for (Backoff backoff;;) {
      if (holds(bound_.value(i), func, reference)) return true;
      if (!backoff.step(d)) return false;
    }
  }

  /// Reports the device's faults, if there are any, and a rank that has ended or stopped.
  bool fault() {
    bool any = false;
    if (team_)
      if (auto lost = team_->lost(); !lost.empty()) {
        any = true;
        if (!lost_.exchange(true)) add("run", std::move(lost), "start all ranks again");
      }
    for (auto f = bound_.device().wait_fault(Deadline{}); f; f = bound_.device().wait_fault(Deadline{})) {
      any = true;
      std::string where = "fault";
      for (std::size_t q = 0; q < s_.queues.size(); ++q)
        if (bound_.owns(q) && bound_.queue(q).id() == f->queue) where = queue_name(s_.queues[q]);
      const auto name = bound_.name(f->va);
      add(where, describe(*f) + (name.empty() ? "" : " (" + name + ")"),
          "on hardware: " + std::string(on_hardware(f->kind)));
    }
    return any;
  }

  /// Describes every queue that has not read everything that was published.
  std::string queues() const {
    constexpr std::size_t kShown = 8;
    std::string out;
    std::size_t stalled = 0;
    for (std::size_t q = 0; q < s_.queues.size(); ++q) {
      if (!bound_.owns(q)) continue;
      const auto report = inspect(bound_.ring(q));
      if (report.read == report.committed) continue;
      if (++stalled > kShown) continue;
      const auto text = describe(
          report, [&](GpuVa va, std::span<std::byte> to) { return bound_.device().peek(va, to); },
          [&](GpuVa va) { return bound_.name(va); });
      out += fmt::format("{}  {}, gpu {} engine {}: {}", out.empty() ? "" : "\n", queue_name(s_.queues[q]),
                         bound_.queue(q).gpu().value, bound_.queue(q).engine().value, text);
    }
    if (stalled > kShown) out += fmt::format("\n  and {} more queues", stalled - kShown);
    return out.empty() ? "  every queue has read all its packets" : out;
  }

  void check(const Schedule::Expectation& e) {
    using What = Schedule::Expectation::Kind;
    const auto where = to_text(s_, e);
    const auto l = *find_symbol(s_, e.left.va);
    if (e.kind == What::value) {
      if (const auto v = bound_.value(l.index); v != e.value)
        ++report_.wrong, add(where, fmt::format("{} is {}", name_of(s_, e.left.va), v));
      return;
    }
    std::vector<std::byte> sum;
    const auto should = expected(e, sum);
    const auto compare = [&](std::uint64_t* wrong) {
      return difference(s_, e.left, bound_.bytes(e.left), should, wrong);
    };
    std::uint64_t wrong = 0;
    auto text = compare(&wrong);
    if (text.empty()) return;
    report_.wrong += wrong;
    std::this_thread::sleep_for(1ms);
    const bool changing = compare(nullptr) != text;
    add(where, std::move(text) + (changing ? "; these bytes are still changing" : ""),
        changing
            ? "the host threads ended before the packets that write them: add a fence or an atomic, and wait for it"
            : "");
  }

  const Bound& bound_;
  const Schedule& s_;
  const RunOptions& options_;
  const Numbers numbers_;
  Deadline deadline_;
  OldBytes old_{bound_};
  Team* const team_;                ///< null: this process is the only one
  std::atomic<bool> stop_ = false;  ///< every thread ends, in all ranks
  std::atomic<bool> lost_ = false;  ///< the loss of a rank has been reported
  Rounds rounds_{!s_.kernels.empty()};
  std::mutex mutex_;
  RunReport report_;
};

}  // namespace

RunReport run(const Bound& b, const RunOptions& o) { return Runner{b, o}.run(); }

}  // namespace sdma::inline v0
