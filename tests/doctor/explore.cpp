// SPDX-License-Identifier: MIT
// The doctor on states of random programs, against an interpreter that knows what becomes of them (program.hpp).
//
// A queue that is called hung must never continue, whatever the host does; it has to be where the answer says; and what
// the answer says of other queues has to be so. A queue that is said to wait for the host has to be where the answer
// says. Answers that are not decided are counted, by what they say would decide. The test plays a fixed sample; 50,000
// programs of each kind:
//
//   build/tests/test-doctor "[.explore]"
#include "program.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

using namespace sdma;
using namespace sdma::test;
using doctor::Finding;
using doctor::HangClass;
using doctor::Source;
using doctor::Verdict;

namespace {

constexpr std::uint64_t kWords = 0x7f0000001000, kBuffers = 0x7f0000100000;
constexpr std::size_t kRing = 512;

GpuVa va_of(std::uint32_t word) { return GpuVa{kWords + 4 * word}; }

/// The dwords of a program's queues, and where each op lies.
class Encoded {
 public:
  explicit Encoded(const Program& p) {
    for (const auto& queue : p.queues) {
      auto& out = rings.emplace_back();
      auto& begins = positions.emplace_back();
      append(out, queue, &begins);
      begins.push_back(out.size() * 4);
    }
  }
  std::vector<std::vector<std::uint32_t>> rings{}, buffers{};
  std::vector<std::vector<std::uint64_t>> positions{};  ///< of each op, and the end

  static GpuVa buffer_va(std::size_t i) { return GpuVa{kBuffers + 0x1000 * i}; }

 private:
  template <class P> static void put(std::vector<std::uint32_t>& out, const P& p) {
    const auto n = out.size();
    out.resize(n + length(p));
    encode_to(p, out.data() + n);
  }
  static std::size_t dwords_of(const Op& op) {
    std::vector<std::uint32_t> out;
    Encoded scratch{Program{}};
    scratch.append(out, {op}, nullptr);
    return out.size();
  }
  void append(std::vector<std::uint32_t>& out, const std::vector<Op>& ops, std::vector<std::uint64_t>* begins) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto& op = ops[i];
      if (begins) begins->push_back(out.size() * 4);
      switch (op.kind) {
        case Op::Kind::fence: put(out, Fence{.addr = va_of(op.word), .value = op.value}); break;
        case Op::Kind::poll:
          put(out, PollMem{.addr = va_of(op.word), .func = op.func, .reference = op.value, .mask = op.mask});
          break;
        case Op::Kind::add:
          put(out, Atomic{.addr = va_of(op.word),
                          .op = AtomicOp::add_rtn_64,
                          .value = static_cast<std::uint64_t>(static_cast<std::int32_t>(op.value))});
          break;
        case Op::Kind::repeat:
          put(out, Atomic{.addr = va_of(op.word),
                          .op = AtomicOp::cmpswap_rtn_64,
                          .value = op.value,
                          .compare = op.count,
                          .loop = true});
          break;
        case Op::Kind::condition: {
          std::size_t n = 0;
          for (std::size_t k = i + 1; k < ops.size() && k <= i + op.count; ++k) n += dwords_of(ops[k]);
          put(out, CondExec{.addr = va_of(op.word), .reference = op.value, .dwords = static_cast<std::uint16_t>(n)});
          break;
        }
        case Op::Kind::buffer: {
          std::vector<std::uint32_t> inner;
          append(inner, op.inner, nullptr);
          put(out, Indirect{.base = buffer_va(buffers.size()), .dwords = static_cast<std::uint32_t>(inner.size())});
          buffers.push_back(std::move(inner));
          break;
        }
        case Op::Kind::copy:
          put(out, CopyLinear{.src = GpuVa{0x7e0000000000}, .dst = GpuVa{0x7e0000100000}, .bytes = 4096});
          break;
        case Op::Kind::nop: put(out, Nop{}); break;
      }
    }
  }
};

/// What the doctor is shown of a state.
struct View {
  bool watched{}, doorbells{}, threads{}, buffers = true, words = true;
};

doctor::Snapshot snapshot_of(const State& s, const Encoded& e, const View& view, std::mt19937_64& random) {
  doctor::Snapshot out;
  out.watched_ns = view.watched ? 5'000'000'000 : 0;
  out.all_queues = true;
  for (std::size_t q = 0; q < s.at.size(); ++q) {
    auto ring = e.rings[q];
    const auto wptr = ring.size() * 4;
    ring.resize(kRing);
    doctor::QueueSnapshot n{.name = "q" + std::to_string(q), .ring = std::move(ring)};
    const auto op = s.at[q].op;
    // rptr may be past what waits.
    const bool past = !s.ended(q) && s.blocked(q) && random() % 2;
    n.rptr = {e.positions[q][std::min(op + past, e.positions[q].size() - 1)], Source::memory};
    n.wptr = {wptr, Source::memory};
    const bool runs = !s.ended(q) && !s.blocked(q);
    if (view.watched) n.rptr_first = {runs ? *n.rptr + 4 : *n.rptr, Source::memory};
    if (view.doorbells) n.doorbell = {wptr, Source::node};
    out.queues.push_back(std::move(n));
  }
  if (view.words)
    for (std::uint32_t w = 0; w < kAllWords; ++w) out.words.add(va_of(w), s.words[w], 4);
  if (view.buffers)
    for (std::size_t i = 0; i < e.buffers.size(); ++i)
      out.words.add(Encoded::buffer_va(i), std::as_bytes(std::span(e.buffers[i])));
  if (!view.threads) return out;
  out.all_threads = true;
  for (std::size_t h = 0; h < s.hosts.size(); ++h) {
    if (s.host_ended(h)) continue;
    if (s.paused(h) || !s.host_blocked(h)) {
      out.all_threads = false;
      continue;
    }
    const auto& op = s.program.hosts[h][s.hosts[h].op];
    out.waits.push_back(
        {"thread " + std::to_string(h), va_of(op.word), Compare::ge, op.value, 4, {true, Source::driver}});
  }
  return out;
}

/// If queue `by` executed all that is left of it, would what queue `q` waits for hold at some moment?
bool would_release(const State& now, std::size_t by, std::size_t q) {
  const auto* wait = now.next(q);
  const auto pass = [&](State& s, std::size_t which) {
    if (which == q) s.leave_out(which);
    while (!s.ended(which)) {
      if (s.next(which)->kind == Op::Kind::condition) {
        s.leave_out(which);  // it may let them run
        continue;
      }
      // Each op by itself, too: what comes before it may take another way.
      auto alone = now;
      alone.at[which] = s.at[which];
      alone.pass(which);
      if (alone.may_pass(*wait)) return true;
      s.pass(which);
      if (s.may_pass(*wait)) return true;
    }
    return false;
  };
  auto s = now;
  if (pass(s, by)) return true;
  // A sum may need the others, too.
  for (std::size_t other = 0; other < s.at.size(); ++other)
    if (other != by && other != q && pass(s, other)) return true;
  return false;
}

struct Count {
  std::size_t all{}, healthy{}, waits{}, undecided{}, hung{}, wrong{};
  std::map<std::string, std::size_t> classes{}, reasons{}, open{};
};

/// What would decide an answer that is not decided: what its first guess rests on.
std::string would_decide(const doctor::Diagnosis& d) {
  for (const auto& f : d.findings) {
    if (d.verdict(f) != Verdict::undecided) continue;
    for (const auto& s : f.statements)
      if (s.basis == doctor::Basis::guessed) return std::string(name(f.what)) + ": " + s.rests_on;
    return std::string(name(f.what)) + ": to do: " + f.to_do.substr(0, 60);
  }
  return "nothing";
}

/// What is wrong with an answer about a state; "" if nothing is.
class Judge {
 public:
  Judge(const State& s, const Encoded& e, std::mt19937_64& random) : s_(s), e_(e) {
    for (int play = 0; play < 3; ++play) {
      auto& end = ends_.emplace_back(s);
      end.resume();
      while (end.step(random)) {}
    }
  }
  /// The queue never continues, whatever the order in which the others do.
  bool stands_forever(std::size_t q) const {
    return !s_.ended(q) && s_.blocked(q) &&
           std::all_of(ends_.begin(), ends_.end(), [&](const State& end) { return end.at[q] == s_.at[q]; });
  }
  bool any_stands_forever() const {
    for (std::size_t q = 0; q < s_.at.size(); ++q)
      if (stands_forever(q)) return true;
    return false;
  }
  bool all_ended() const {
    for (std::size_t q = 0; q < s_.at.size(); ++q)
      if (!s_.ended(q)) return false;
    return true;
  }

  std::string wrong(const doctor::Diagnosis& d, bool stuck) const {
    for (const auto& f : d.findings)
      if (auto text = wrong(d, f); !text.empty()) return text;
    if (d.verdict() == Verdict::healthy && stuck && any_stands_forever())
      return "a queue that stands is called healthy";
    return {};
  }

 private:
  std::string wrong(const doctor::Diagnosis& d, const Finding& f) const {
    const auto v = d.verdict(f);
    if (v != Verdict::hung && v != Verdict::waits) return {};
    const auto q = f.queue.value_or(0);
    if (!f.queue) return v == Verdict::hung && any_host_continues() ? "a host thread continues" : "";
    // What no value satisfies is a hang before the engine is there.
    if (f.what == HangClass::beyond_mask && f.at && ends_at(q, f.at->position)) return "";
    if (f.at && v == Verdict::hung && !s_.ended(q) && !s_.blocked(q) && reaches(q, f.at->position)) return "";
    if (s_.ended(q) || !s_.blocked(q)) return "the queue does not wait";
    if (!f.at || f.at->position != e_.positions[q][s_.at[q].op]) return "it waits at another packet";
    if (v == Verdict::waits && f.what != HangClass::follows) {
      for (std::size_t by = 0; by < s_.at.size(); ++by)
        if (by != q && !s_.ended(by) && would_release(s_, by, q)) return "a queue could end the wait";
      return {};
    }
    if (v == Verdict::hung && !stands_forever(q)) return "the queue continues";
    const auto named = f.release.place ? f.release.place->queue : q;
    switch (f.what) {
      case HangClass::cycle:
        for (std::size_t i = 0; i < f.cycle.size(); ++i)
          if (!would_release(s_, f.cycle[(i + 1) % f.cycle.size()].queue, f.cycle[i].queue)) return "no such cycle";
        return {};
      case HangClass::follows:
        return f.release.place && !would_release(s_, named, q) ? "the queue that is named would not end it" : "";
      case HangClass::one_engine: return would_release(s_, q, q) ? "" : "nothing later in the queue ends it";
      case HangClass::never_written: return posts(*s_.next(q)) ? "a queue has stored to the word" : "";
      case HangClass::wrong_value:
      case HangClass::stale_epoch: return "";
      case HangClass::beyond_mask: return possible(*s_.next(q)) ? "a value satisfies it" : "";
      case HangClass::wrong_half: return "";
      default: return "a class of which no program has anything: " + std::string(name(f.what));
    }
  }
  /// The queue is about to get there, and stays there.
  bool reaches(std::size_t q, std::uint64_t position) const {
    return std::all_of(ends_.begin(), ends_.end(),
                       [&](const State& end) { return !end.ended(q) && e_.positions[q][end.at[q].op] == position; });
  }
  bool ends_at(std::size_t q, std::uint64_t position) const {
    return std::all_of(ends_.begin(), ends_.end(), [&](const State& end) {
      return !end.ended(q) && end.blocked(q) && !possible(*end.next(q)) && e_.positions[q][end.at[q].op] == position;
    });
  }
  bool any_host_continues() const {
    for (std::size_t h = 0; h < s_.hosts.size(); ++h)
      if (!s_.host_ended(h) && s_.host_blocked(h) && !s_.paused(h) &&
          std::any_of(ends_.begin(), ends_.end(), [&](const State& end) { return end.hosts[h] != s_.hosts[h]; }))
        return true;
    return false;
  }
  /// A queue that never waits for the word has stored to it, so this was not to set it back.
  bool posts(const Op& op) const {
    const auto waits = [&](const Op& o) {
      return o.word == op.word && (o.kind == Op::Kind::poll || o.kind == Op::Kind::repeat);
    };
    const auto found = s_.posted.find(op.word);
    return found != s_.posted.end() && std::any_of(found->second.begin(), found->second.end(), [&](std::size_t by) {
             const auto& ops = s_.program.queues[by];
             return std::none_of(ops.begin(), ops.end(), [&](const Op& o) {
               return waits(o) || std::any_of(o.inner.begin(), o.inner.end(), waits);
             });
           });
  }
  static bool possible(const Op& op) {
    for (const std::uint64_t v : {0u, 1u, 2u, 3u, ~0u})
      if (State::holds(static_cast<std::uint32_t>(v) & op.mask, op.func, op.value)) return true;
    return false;
  }

  const State& s_;
  const Encoded& e_;
  std::vector<State> ends_{};
};

enum class Reached { stuck, moving, finished };
constexpr std::array kReached{Reached::stuck, Reached::moving, Reached::finished};
constexpr std::array<const char*, 3> kReachedNames{"stuck", "moving", "finished"};

void explore(std::uint64_t each) {
  std::array<Count, 3> counts;
  const auto wanted = [&] {
    return std::any_of(counts.begin(), counts.end(), [&](const Count& c) { return c.all < each; });
  };
  for (std::uint64_t seed = 1; wanted() && seed < each * 400; ++seed) {
    std::mt19937_64 random{seed};
    const auto program = Generator{seed}.take();
    State s{program};
    const bool to_the_end = random() % 3 != 0;
    for (auto steps = to_the_end ? ~0u : static_cast<unsigned>(random() % 12); steps > 0 && s.step(random); --steps) {}
    const Encoded encoded{program};
    const Judge judge{s, encoded, random};
    auto probe = s;
    const auto reached = judge.all_ended() ? Reached::finished : probe.step(random) ? Reached::moving : Reached::stuck;
    auto& count = counts[static_cast<std::size_t>(reached)];
    if (count.all >= each) continue;
    const View view{.watched = random() % 4 != 0,
                    .doorbells = random() % 2 == 0,
                    .threads = random() % 2 == 0,
                    .buffers = random() % 8 != 0,
                    .words = random() % 16 != 0};
    const auto d = diagnose(snapshot_of(s, encoded, view, random));
    ++count.all;
    const auto v = d.verdict();
    ++(v == Verdict::hung        ? count.hung
       : v == Verdict::waits     ? count.waits
       : v == Verdict::undecided ? count.undecided
                                 : count.healthy);
    if (v == Verdict::hung) ++count.classes[std::string(name(d.findings.front().what))];
    if (v == Verdict::undecided) ++count.open[would_decide(d)];
    const auto why = judge.wrong(d, reached == Reached::stuck && view.watched);
    if (why.empty()) continue;
    ++count.wrong;
    if (++count.reasons[why] > 1) continue;
    const auto text = to_text(d);
    std::printf("seed %llu (%s): %s\n%s\n", static_cast<unsigned long long>(seed),
                kReachedNames[static_cast<std::size_t>(reached)], why.c_str(), text.c_str());
  }
  for (const auto r : kReached) {
    const auto& c = counts[static_cast<std::size_t>(r)];
    std::printf("%-8s %zu states: %zu hung, %zu wait for the host, %zu not decided, %zu healthy; %zu wrong answers\n",
                kReachedNames[static_cast<std::size_t>(r)], c.all, c.hung, c.waits, c.undecided, c.healthy, c.wrong);
    for (const auto& [what, n] : c.classes) std::printf("  %-20s %zu\n", what.c_str(), n);
    for (const auto& [what, n] : c.open) std::printf("  not decided: %6zu %s\n", n, what.c_str());
    for (const auto& [why, n] : c.reasons) std::printf("  WRONG: %s: %zu\n", why.c_str(), n);
    CHECK(c.wrong == 0);
    CHECK(c.all == each);
  }
  CHECK(counts[0].hung * 4 > counts[0].all);
}

}  // namespace

TEST_CASE("random programs: no queue that continues is called hung, and what is said of one that hangs is so") {
  explore(tries(2000u));
}

TEST_CASE("50,000 random programs of each kind", "[.explore]") { explore(50'000); }
