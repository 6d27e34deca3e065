// SPDX-License-Identifier: MIT
#include "sdma/schedule/run.hpp"

#include "compare.hpp"
#include "contents.hpp"
#include "host_threads.hpp"
#include "symbols.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;
using namespace std::chrono_literals;

class Runner {
 public:
  Runner(const Bound& b, const RunOptions& o) : run_(b, o), bound_(b), s_(b.schedule()), options_(o) {}

  RunReport run() {
    const auto all = actors(s_);
    const auto reads = std::find_if(all.begin(), all.end(), [](const Actor& a) { return waits_for_rptr(*a.actions); });
    if (reads != all.end() && !bound_.device().rptr_is_of_engines())
      run_.add(reads->title(),
               "the rptr of this device does not say what an engine has read, so the schedule is not run",
               "wait for a fence or an atomic instead");
    else if (!s_.kernels.empty() && !bound_.device().kernels_stand_in())
      run_.add("kernel " + to_string(s_.kernels[0].place) + "." + s_.kernels[0].name,
               "this device cannot start the kernels of a schedule, so the schedule is not run",
               "run it on the software device, where a thread of the host stands in for each kernel");
    else if (const auto why = run_.live.refused(); !why.empty())
      run_.add("run", why + ", so the schedule is not run", "run it as one process, on the software device");
    else if (expects_finding(s_))
      run_.add("expect finding", "this schedule contains a deliberate error for a checker, so it is not run");
    else if (bound_.restart(run_.deadline) != Errc::ok)
      run_.stop = true, run_.add("run", "queues of an earlier run have not finished", "bind the schedule again");
    else go();
    if (run_.team && run_.stop) run_.team->stop();
    return std::move(run_.report());
  }

 private:
  void go() {
    if (options_.contents) first_contents();
    set_signals();
    if (const auto why = run_.live.begin(run_.deadline); !why.empty()) run_.add("run", why);
    if (!run_.report().findings.empty()) {
      run_.stop = true;
      return;
    }
    if (!meet_with_memory()) return;
    if (options_.contents) run_.old.remember([this](const auto& bytes_of) { contents(bytes_of); });
    if (!meet()) return;
    if (options_.recorder) options_.recorder->name(bound_.names());
    run_.flush_host_path();
    const auto begin = Deadline::Clock::now();
    run_.begins();
    if (!run_.team || run_.team->turns()) run_.held = HeldQueues::of(bound_.device());
    if (auto* const network = run_.held ? network_of(bound_) : nullptr) run_.held_network.emplace(*network);
    perform(run_, rounds_);
    if (run_.held_network) run_.held_network->end_turns();
    run_.report().elapsed = Deadline::Clock::now() - begin;
    rounds_.ended();
    run_.report().round = rounds_.last();
    run_.fault();
    run_.flush_host_path();
    if (!run_.report().findings.empty()) {
      run_.stop = true;
      return;
    }
    if (!meet_with_memory()) return;
    if (options_.contents)
      for (const auto& e : s_.expectations)
        if (has(e.left.va)) check(e);
    static_cast<void>(meet(true));  // the others have compared what is this rank's
  }

  /// Waits until all ranks have come here. A rank may use up its time first, and a busy machine may start it late,
  /// so the wait is longer than the time limit. A rank that ends early is not waited for. `last`: then it may end.
  bool meet(bool last = false) {
    if (!run_.team) return true;
    constexpr auto kLate = 10s;
    const auto d = Deadline::in(options_.time_limit + kLate);
    const auto stopped = [this] { return run_.fault() || run_.ended(); };
    if (last ? run_.team->leave(d, stopped) : run_.team->barrier(d, stopped)) return true;
    if (run_.report().findings.empty())
      run_.add("run", fmt::format("a rank has not come this far after {}", run_.spent() + kLate),
               "see what the other ranks report");
    run_.stop = true;
    return false;
  }
  /// The same, and hosts then see what others have stored before.
  bool meet_with_memory() {
    if (!run_.team) return true;
    run_.flush_host_path();
    if (!meet()) return false;
    run_.flush_host_path();
    return true;
  }
  /// Is the buffer or signal at this link address of this rank?
  bool has(GpuVa link) const { return !run_.team || run_.team->has(*find_symbol(s_, link)); }

  Schedule::Range whole(std::size_t buffer) const { return {link_buffer(buffer), s_.buffers[buffer].bytes}; }

  void first_contents() {
    contents(
        [this](std::size_t i) { return bound_.bytes(whole(i)).first(has(link_buffer(i)) ? s_.buffers[i].bytes : 0); });
  }
  void contents(const std::function<std::span<std::byte>(std::size_t)>& bytes_of) {
    fill(s_, options_.seed, bytes_of);
    for (const auto& in : options_.inputs) input(in, bytes_of);
  }
  void set_signals() const {
    for (std::size_t i = 0; i < s_.signals.size(); ++i)
      if (has(link_signal(i))) bound_.set(i, s_.signals[i].value);
  }

  void input(const RunOptions::Input& in, const std::function<std::span<std::byte>(std::size_t)>& bytes_of) {
    for (std::size_t i = 0; i < s_.buffers.size(); ++i) {
      if (name_of(s_, SymbolOffset{false, i, 0}) != in.name) continue;
      const auto to = bytes_of(i);
      if (to.empty()) return;
      if (in.bytes.size() > to.size())
        return run_.add("input " + in.name,
                        fmt::format("{} bytes do not fit: the buffer has {}", in.bytes.size(), to.size()));
      std::copy(in.bytes.begin(), in.bytes.end(), to.begin());
      return;
    }
    run_.add("input " + in.name, "there is no such buffer", "sdma fmt --flat lists them");
  }

  void check(const Schedule::Expectation& e) {
    using What = Schedule::Expectation::Kind;
    const auto where = to_text(s_, e);
    const auto l = *find_symbol(s_, e.left.va);
    if (const auto gone =
            run_.gone(e.left, e.old ? Schedule::Range{} : e.right, e.old ? Schedule::Sum{} : e.sum, Place::host());
        !gone.empty())
      return run_.add(where, gone);
    if (e.kind == What::value) {
      if (const auto v = bound_.value(l.index); v != e.value)
        ++run_.report().wrong, run_.add(where, fmt::format("{} is {}", name_of(s_, e.left.va), v));
      return;
    }
    std::vector<std::byte> sum;
    const auto should = run_.expected(e, sum);
    const auto compare = [&](std::uint64_t* wrong) {
      return difference(s_, e.left, bound_.bytes(e.left), should, wrong);
    };
    std::uint64_t wrong = 0;
    auto text = compare(&wrong);
    if (text.empty()) return;
    run_.report().wrong += wrong;
    run_.held.reset();
    run_.held_network.reset();
    std::this_thread::sleep_for(1ms);
    const bool changing = compare(nullptr) != text;
    run_.add(
        where, std::move(text) + (changing ? "; these bytes are still changing" : ""),
        changing
            ? "the host threads ended before the packets that write them: add a fence or an atomic, and wait for it"
            : "");
  }

  RunState run_;
  const Bound& bound_;
  const Schedule& s_;
  const RunOptions& options_;
  Rounds rounds_{!s_.kernels.empty()};
};

}  // namespace

RunReport run(const Bound& b, const RunOptions& o) { return Runner{b, o}.run(); }

}}  // namespace sdma::v0_3
