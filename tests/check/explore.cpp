// SPDX-License-Identifier: MIT
// Is the checker sound? Small random schedules, executed in every way that the adversarial ordering allows (or in as
// many as there is time for): whatever some execution breaks, the checker has reported.
#include "engine/pipeline.hpp"
#include "sdma/check/check.hpp"
#include "support/catch.hpp"
#include "support/enumerator.hpp"
#include "support/sanitizer.hpp"

#include <cstring>
#include <memory>
#include <random>
#include <set>

using namespace sdma;

namespace {

constexpr std::uint64_t kBytes = 16;

/// Two or three queues of few packets, a host that submits them,
/// sets and waits; with `samples`, for values that it has sampled.
Schedule random_schedule(std::mt19937& random, bool samples) {
  const auto any = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Schedule s{.gpus = 2};
  std::vector<GpuVa> buffers, signals;
  for (std::uint32_t i = 0; i < 3; ++i)
    buffers.push_back(
        s.add_buffer({.place = Place::host(), .name = "b" + std::to_string(i), .bytes = kBytes, .init = Init::zero}));
  for (std::uint32_t i = 0; i < 3; ++i)
    signals.push_back(s.add_signal({.name = "s" + std::to_string(i), .value = any(8) == 0, .bits = 32}));
  const auto word = [&] { return signals[any(3)]; };
  const auto queues = 1 + any(2);
  for (std::uint32_t q = 0; q < queues; ++q) {
    auto& queue = s.add_queue({.place = Place::gpu(q), .name = "q", .engine = 2});
    bool poll = any(2) == 0;
    for (auto n = 1 + any(3); n-- > 0;) {
      if (poll) {
        queue.put(PollMem{.addr = any(3) ? signals[2] : word(),
                          .func = any(2) ? Compare::ge : Compare::eq,
                          .reference = 1 + any(4) / 3});
      } else if (any(8) == 0) {
        const std::uint32_t data = 1 + any(2);
        queue.put(Write{.dst = any(4) ? buffers[any(3)] + 4 * any(2) : word(), .data = {&data, 1}});
      } else {
        // Each queue mostly keeps to a buffer of its own.
        const auto to = any(3) ? q : any(3);
        queue.put(
            CopyLinear{.src = buffers[any(4) ? 2 : (to + 1) % 3] + 8, .dst = buffers[to] + 4 * any(2), .bytes = 4});
      }
      poll = any(3) == 0;
    }
    // Mostly what is right: a completion at the end.
    if (any(8)) {
      if (any(2)) queue.put(Fence{.addr = any(3) ? signals[q] : word(), .value = 1 + any(8) / 7});
      else queue.put(Atomic{.addr = any(3) ? signals[q] : word(), .op = AtomicOp::add_rtn_32, .value = 1});
      if (any(4) == 0) queue.copy({.src = buffers[0], .dst = buffers[1], .bytes = 4});
    }
  }
  auto host = s.add_host("main");
  const auto seen = samples ? signals[any(3)] : GpuVa{};
  if (seen.value != 0) host.sample("n", seen);
  // A value that is right if the sample read what the word held at first, and perhaps also if it did not.
  const auto value = [&](GpuVa of, std::uint32_t v) {
    if (seen.value == 0 || of != seen || any(4) == 0) return ActionValue{v};
    return sampled("n") + v;
  };
  for (std::uint32_t q = 0; q < queues; ++q) {
    host.submit(s.queues[q]);
    if (any(3) == 0) host.wait(signals[q], Compare::ge, value(signals[q], 1));
    if (seen.value != 0 && any(3) == 0) host.sample("n", any(3) ? seen : word());
  }
  if (any(4)) {
    const auto to = any(4) ? signals[2] : word();
    host.set(to, value(any(4) ? to : seen, 1 + any(3) / 2));
  }
  for (std::uint32_t q = 0; q < queues; ++q)
    if (any(12)) {
      const auto of = any(8) ? signals[q] : word();
      host.wait(of, any(3) ? Compare::ge : Compare::eq, value(of, 1 + any(12) / 11));
    }
  if (any(4) == 0) {
    const bool again = seen.value != 0 && any(2);
    if (again) host.sample("n", signals[0]);
    host.submit(s.queues[0]);
    host.wait(signals[0], Compare::ge, again ? sampled("n") + 1 : ActionValue{2});
  }
  return s;
}

/// One execution, by a chooser's answers: what the buffers hold when the host has ended, "" if it does not end.
class World {
 public:
  explicit World(const Schedule& s) : s_(s), memory_((s.buffers.size() + s.signals.size()) * kBytes / 8) {
    for (std::size_t i = 0; i < s.buffers.size(); ++i) map(link_buffer(i), i);
    for (std::size_t i = 0; i < s.signals.size(); ++i) map(link_signal(i), s.buffers.size() + i);
    for (std::size_t q = 0; q < s.queues.size(); ++q) {
      rings_.emplace_back(256);
      auto& ring = rings_.back();
      const auto& d = s.queues[q].dwords;
      for (std::size_t round = 0; round < 2; ++round)
        std::copy(d.begin(), d.end(), ring.begin() + static_cast<std::ptrdiff_t>(round * d.size()));
      readers_.push_back(std::make_unique<AddressSpace::Reader>(space_, GpuId{static_cast<std::uint32_t>(q)}));
    }
  }

  std::string run(Chooser& chooser) {
    for (std::size_t i = 0; i < s_.buffers.size() * kBytes / 8; ++i) memory_[i] = 0x1111111111111111 * (i + 1);
    for (std::size_t i = 0; i < s_.signals.size(); ++i)
      memory_[(s_.buffers.size() + i) * kBytes / 8] = s_.signals[i].value;
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    for (std::size_t q = 0; q < rings_.size(); ++q)
      pipelines.push_back(std::make_unique<Pipeline>(PipelineConfig{.ring = rings_[q],
                                                                    .reader = readers_[q].get(),
                                                                    .ordering = Ordering::adversarial,
                                                                    .chooser = &chooser,
                                                                    .pieces = 1,
                                                                    .window = 8,
                                                                    .prefetch = false,
                                                                    .late_rptr = false,
                                                                    .split_stores = true,
                                                                    .holding_polls = false}));
    std::vector<std::uint64_t> rung(rings_.size(), 0);
    std::uint64_t sample = 0;
    const auto value = [&](const Schedule::Action& a) {
      return static_cast<std::uint32_t>(a.value.at(0, a.value.sample.empty() ? 0 : sample));
    };
    const auto& actions = s_.hosts[0].actions;
    for (std::size_t at = 0; at < actions.size();) {
      std::vector<std::size_t> able;
      for (std::size_t q = 0; q < pipelines.size(); ++q)
        if (pipelines[q]->ready()) able.push_back(q);
      const auto& a = actions[at];
      using Kind = Schedule::Action::Kind;
      if (a.kind != Kind::wait || holds(word(a.signal), a.func, value(a))) able.push_back(pipelines.size());
      if (able.empty()) return {};
      const auto who = able[chooser.choose(Choice::schedule, static_cast<std::uint32_t>(able.size()))];
      if (who < pipelines.size()) {
        if (pipelines[who]->step(1) == Progress::stopped) return {};
        continue;
      }
      if (a.kind == Kind::set) word(a.signal) = value(a);
      if (a.kind == Kind::sample) sample = word(a.signal);
      if (a.kind == Kind::submit)
        for (const auto q : a.queues) pipelines[q]->doorbell(rung[q] += s_.queues[q].dwords.size() * 4);
      ++at;
    }
    return {reinterpret_cast<const char*>(memory_.data()), s_.buffers.size() * kBytes};
  }

 private:
  void map(GpuVa va, std::size_t i) {
    REQUIRE(space_.map({.va = va, .bytes = kBytes, .host = reinterpret_cast<std::byte*>(&memory_[i * kBytes / 8])}) ==
            Errc::ok);
  }
  std::uint32_t& word(GpuVa va) {
    return reinterpret_cast<std::uint32_t&>(memory_[(s_.buffers.size() + find_symbol(s_, va)->index) * kBytes / 8]);
  }

  const Schedule& s_;
  std::vector<std::uint64_t> memory_;
  std::vector<std::vector<std::uint32_t>> rings_;
  AddressSpace space_;
  std::vector<std::unique_ptr<AddressSpace::Reader>> readers_;
};

/// What some execution breaks: it does not end, or ends otherwise than another.
std::string broken(const Schedule& s, std::uint32_t most, bool& all) {
  World world{s};
  std::set<std::string> outcomes;
  const auto bad = [&](std::string outcome) {
    if (outcome.empty()) return true;
    outcomes.insert(std::move(outcome));
    return outcomes.size() > 1;
  };
  const auto say = [&] { return std::string(outcomes.size() > 1 ? "two outcomes" : "an execution that does not end"); };
  test::Enumerator every;
  all = false;
  for (std::uint32_t n = 0; n < most; ++n) {
    if (bad(world.run(every))) return say();
    if (!every.next()) return all = true, "";
  }
  for (std::uint64_t seed = 0; seed < most / 4; ++seed) {
    Seeded some{seed};
    if (bad(world.run(some))) return say();
  }
  return {};
}

}  // namespace

TEST_CASE("whatever some execution breaks has been reported") {
  const bool samples = GENERATE(false, true);
  std::mt19937 random(20);
  int breaks = 0, good = 0, complete = 0, reported_only = 0, sampling = 0;
  const int kSchedules = test::tries(samples ? 1200 : 400);
  for (int i = 0; i < kSchedules; ++i) {
    const auto s = random_schedule(random, samples);
    REQUIRE(problems(s).empty());
    const auto report = check(s);
    bool all = false;
    const auto how = broken(s, 300, all);
    INFO(to_text(s));
    for (const auto& f : report.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    // What depends on a sample whose value depends on timing is not examined for each of its values.
    const bool unknown =
        std::ranges::any_of(report.findings, [](const auto& f) { return f.diagnostic.rule == "unknown-sample"; });
    sampling += samples && report.verdict() == Verdict::proved;
    if (!how.empty()) {
      INFO(how);
      CHECK((report.errors() > 0 || unknown));
      ++breaks;
    } else {
      complete += all;
      (report.errors() == 0 ? good : reported_only) += 1;
    }
  }
  // There is something to find, and something to leave alone.
  CAPTURE(breaks, good, complete, reported_only, sampling);
  CHECK(breaks > kSchedules / 4);
  CHECK(good > kSchedules / 20);
  CHECK((sampling > kSchedules / 50) == samples);
}
