// SPDX-License-Identifier: MIT
// What a verdict rests on: who could still end a wait, and what shows that a packet which rptr has passed is complete.
#include "scene.hpp"
#include "support/catch.hpp"

#include <array>

using namespace sdma;
using namespace sdma::test;
using doctor::Basis;
using doctor::HangClass;
using doctor::Verdict;

namespace {

/// A queue that has read all its packets: what they say of its end is the question.
template <class... P> SceneQueue& read_all(Scene& s, const P&... packets) {
  auto& q = s.queue();
  (q.put(packets), ...);
  q.drained();
  return q;
}
/// A queue that stands at the first of its packets.
template <class... P> SceneQueue& standing(Scene& s, const P&... packets) {
  auto& q = s.queue();
  q.stand(q.end());
  (q.put(packets), ...);
  return q;
}
/// The packets in memory, padded with NOPs, and what calls them.
template <class... P> Indirect buffer(Scene& s, const P&... packets) {
  std::vector<std::uint32_t> dwords;
  const auto add = [&](const auto& p) {
    const auto n = dwords.size();
    dwords.resize(n + length(p));
    encode_to(p, dwords.data() + n);
  };
  (add(packets), ...);
  dwords.resize(32);
  const GpuVa base{s.host() + 0x50000000 + 256 * s.below(1000)};
  for (std::size_t i = 0; i < dwords.size(); ++i) s.set(base + 4 * i, dwords[i], 4);
  return {.base = base, .dwords = static_cast<std::uint32_t>(dwords.size())};
}
constexpr std::uint32_t kEpoch = 5000;  ///< which no other packet stores
PollMem poll(GpuVa va, std::uint32_t reference = 1) { return {.addr = va, .reference = reference}; }
bool says(const doctor::Diagnosis& d, std::string_view part) { return summary(d).find(part) != std::string::npos; }
doctor::HostWait sleeper(GpuVa word, std::uint64_t reference) {
  return {"thread 17", word, Compare::ge, reference, 8, {true, doctor::Source::driver}};
}

}  // namespace

TEST_CASE(
    "a wait that only the host can end is no hang, unless each of its threads sleeps until these queues continue") {
  Scene s{5};
  const auto go = s.word(), complete = s.word(), other = s.word();
  standing(s, poll(go, kEpoch), Fence{.addr = complete, .value = 1});
  auto snapshot = s.snapshot(Form::live);
  const auto now = [&] { return diagnose(snapshot); };
  CHECK(now().verdict() == Verdict::waits);
  CHECK(says(now(), "Waits for the host: a poll of a word that nothing writes."));
  CHECK(says(now(), "only a host thread, of this process or of one that shares the memory, can change it"));
  snapshot.all_threads = true;
  CHECK(now().verdict() == Verdict::hung);
  snapshot.waits = {sleeper(complete, 1)};
  CHECK(now().verdict() == Verdict::hung);
  CHECK(says(now(), "thread 17 sleeps until"));
  snapshot.waits.push_back(sleeper(other, 0));  // this one is about to wake
  CHECK(now().findings.front().what == HangClass::lost_wakeup);
  snapshot.waits.back().asleep.value = false;
  CHECK(now().verdict() == Verdict::waits);
  snapshot.waits.pop_back();
  snapshot.all_queues = false;
  CHECK(now().verdict() == Verdict::waits);
  snapshot.all_queues = true;
  snapshot.all_threads = false;
  CHECK(now().verdict() == Verdict::waits);
}

TEST_CASE(
    "a queue that waits for one that waits for the host waits for the host, and a guess beside it decides nothing") {
  Scene s{6};
  const auto go = s.word(), next = s.word();
  standing(s, poll(go), Fence{.addr = next, .value = 1});
  standing(s, poll(next), Fence{.addr = s.word(), .value = 1});
  auto d = diagnose(s.snapshot(Form::live));
  REQUIRE(d.findings.size() == 2);
  CHECK(d.findings[1].what == HangClass::follows);
  CHECK(d.verdict(d.findings[1]) == Verdict::waits);
  CHECK(d.verdict() == Verdict::waits);
  auto& q = standing(s, Fence{.addr = s.word(), .value = 1});
  q.doorbell = q.rptr();
  CHECK(diagnose(s.snapshot(Form::live)).verdict() == Verdict::undecided);
  CHECK(diagnose(s.snapshot(Form::node)).verdict() == Verdict::hung);
}

TEST_CASE("a flag that its queue sets back is the host's to set, and one that another queue sets is not") {
  for (const bool back : {true, false}) {
    Scene s{7};
    const auto flag = s.word();
    auto& q = s.queue();
    q.put(poll(flag));
    if (back) q.put(Fence{.addr = flag, .value = 0});
    q.put(CopyLinear{.src = s.data(1), .dst = s.data(2), .bytes = 4096});
    q.stand(q.end());
    q.put(poll(flag));
    if (!back) read_all(s, Fence{.addr = flag, .value = 0});
    CHECK(diagnose(s.snapshot(Form::live)).verdict() == (back ? Verdict::waits : Verdict::hung));
  }
}

TEST_CASE("a packet that stores another value is named") {
  Scene s{8};
  const auto flag = s.word();
  standing(s, poll(flag), Fence{.addr = flag, .value = 7});
  const auto d = diagnose(s.snapshot(Form::live));
  CHECK(d.findings.front().what == HangClass::wrong_value);
  CHECK(says(d, "value=7) stores to the word, but no packet of the ring stores a value that satisfies the wait"));
  CHECK(d.verdict() == Verdict::waits);
}

TEST_CASE("a condition decides what was executed before rptr, too") {
  for (const int holds : {1, 0, -1}) {
    Scene s{9};
    const auto flag = s.word();
    const GpuVa condition{s.host() + 0x70000000};
    if (holds >= 0) s.set(condition, static_cast<std::uint64_t>(holds), 4);
    read_all(s, CondExec{.addr = condition, .reference = 1, .dwords = 4}, Fence{.addr = flag, .value = kEpoch},
             Fence{.addr = s.word(), .value = 1});
    standing(s, poll(flag, kEpoch));
    const auto d = diagnose(s.snapshot(Form::file));
    INFO(to_text(d));
    CHECK(says(d, "skips it: the word that the condition reads does not hold its reference") == (holds == 0));
    CHECK(says(d, "may have skipped it") == (holds < 0));
    CHECK(says(d, "The last packet that stored to the word is") == (holds > 0));
    CHECK(d.verdict() == (holds == 0 ? Verdict::hung : Verdict::undecided));
  }
}

TEST_CASE("a condition counts the dwords of its own stream, and skips a whole indirect buffer") {
  Scene s{10};
  const auto flag = s.word(), condition = s.word();
  const auto ib = buffer(s, Fence{.addr = flag, .value = 1});
  standing(s, CondExec{.addr = condition, .reference = 1, .dwords = 6}, ib, Fence{.addr = s.word(), .value = 3});
  standing(s, poll(flag));
  CHECK(diagnose(s.snapshot(Form::file)).findings.front().what == HangClass::never_written);
  s.set(condition, 1, 4);
  CHECK(diagnose(s.snapshot(Form::file)).findings.front().what != HangClass::never_written);
}

TEST_CASE("what was read last may wait: a poll, an atomic that repeats, a packet of an indirect buffer") {
  for (const int last : {0, 1, 2}) {
    Scene s{11};
    const auto flag = s.word(), post = s.word();
    s.set(flag, 7);
    const Fence after{.addr = post, .value = 1};
    const Atomic repeats{.addr = flag, .op = AtomicOp::cmpswap_rtn_64, .value = 1, .compare = 5, .loop = true};
    if (last == 0) read_all(s, poll(flag));
    else if (last == 1) read_all(s, repeats);
    else read_all(s, buffer(s, poll(flag), after));
    const auto alone = diagnose(s.snapshot(Form::file));
    INFO(to_text(alone));
    CHECK(alone.verdict() == Verdict::undecided);
    CHECK(says(alone, "Perhaps waits for the host"));
    CHECK(says(alone, "It may be complete"));
    // A queue that needs what comes after it shows that it is not complete.
    if (last != 2) continue;
    standing(s, poll(post));
    const auto needed = diagnose(s.snapshot(Form::file));
    INFO(to_text(needed));
    CHECK(needed.verdict() == Verdict::waits);
    CHECK(says(needed, "It is not complete: another queue waits for what comes after it."));
  }
}

TEST_CASE("what was read last is complete, if its condition holds or what comes after it has arrived") {
  Scene s{12};
  const auto flag = s.word(), post = s.word();
  read_all(s, buffer(s, poll(flag), Fence{.addr = post, .value = 1}));
  CHECK(diagnose(s.snapshot(Form::file)).verdict() == Verdict::undecided);
  s.set(post, 1);
  CHECK(diagnose(s.snapshot(Form::file)).verdict() == Verdict::healthy);
  s.set(post, 0);
  s.set(flag, 1);
  CHECK(diagnose(s.snapshot(Form::file)).verdict() == Verdict::healthy);
}

TEST_CASE("an indirect buffer that the snapshot does not have decides nothing") {
  const Indirect nowhere{.base = GpuVa{0x123400000000}, .dwords = 16};
  const Fence fence{.addr = GpuVa{0x7f0000003000}, .value = 1};
  for (const int scene : {0, 1, 2, 3}) {
    Scene s{13};
    const auto flag = s.word();
    if (scene == 0) read_all(s, nowhere);
    if (scene == 1) standing(s, nowhere, fence);
    if (scene == 2) standing(s, nowhere, poll(flag));
    if (scene == 3) read_all(s, nowhere, fence);  // the buffer is complete
    const auto d = diagnose(s.snapshot(Form::file));
    INFO(to_text(d));
    CHECK(d.verdict() == (scene == 3 ? Verdict::healthy : Verdict::undecided));
    CHECK((to_text(d).find("buffer") != std::string::npos) == (scene != 3));
  }
}

TEST_CASE("without its evidence, a statement is worth less") {
  struct Evidence {
    const char* name;
    void (*build)(Scene&);
    void (*remove)(doctor::Snapshot&);
    Basis with, without;
  };
  const Evidence kAll[] = {
      {"how long it was watched",
       [](Scene& s) {
         const auto w = s.word();
         s.set(w, 7, 4);
         read_all(s, Fence{.addr = w, .value = 7});
         standing(s, poll(w));
       },
       [](doctor::Snapshot& d) { d.watched_ns = 0; }, Basis::inferred, Basis::guessed},
      {"the word", [](Scene& s) { standing(s, poll(s.word())); }, [](doctor::Snapshot& d) { d.words = {}; },
       Basis::inferred, Basis::guessed},
      {"the doorbell",
       [](Scene& s) {
         auto& q = standing(s, Fence{.addr = s.word(), .value = 1});
         q.doorbell = q.rptr();
       },
       [](doctor::Snapshot& d) { d.queues[0].doorbell = {}; }, Basis::seen, Basis::guessed},
      {"the engines",
       [](Scene& s) {
         const auto w = s.word();
         auto& a = standing(s, poll(w));
         auto& b = standing(s, Fence{.addr = w, .value = 1});
         b.gpu = a.gpu, b.engine = a.engine;
       },
       [](doctor::Snapshot& d) {
         for (auto& q : d.queues) q.engine = {}, q.doorbell = {};
       },
       Basis::inferred, Basis::guessed},
      {"the address ranges",
       [](Scene& s) {
         s.complete = true;
         standing(s, Fence{.addr = GpuVa{0x123456789000}, .value = 1});
       },
       [](doctor::Snapshot& d) { d.ranges_complete = false; }, Basis::inferred, Basis::guessed},
      {"the link",
       [](Scene& s) {
         const auto w = s.word();
         read_all(s, Atomic{.addr = w, .value = 1}).host_atomics = false;
         standing(s, poll(w));
       },
       [](doctor::Snapshot& d) { d.queues[0].host_atomics = {}; }, Basis::inferred, Basis::guessed},
      {"what no kernel can be executing", [](Scene& s) { standing(s, poll(s.word())); },
       [](doctor::Snapshot& d) { d.others_run = true; }, Basis::inferred, Basis::guessed},
      {"the number of engines",
       [](Scene& s) {
         auto& q = standing(s, Fence{.addr = s.word(), .value = 1});
         q.engine = 20, q.engines = 16;
       },
       [](doctor::Snapshot& d) { d.queues[0].engines = {}; }, Basis::seen, Basis::inferred},
  };
  for (const auto& e : kAll) {
    Scene s{14};
    e.build(s);
    auto snapshot = s.snapshot(Form::node);
    INFO(e.name << "\n" << to_text(diagnose(snapshot)));
    CHECK(diagnose(snapshot).findings.front().basis == e.with);
    e.remove(snapshot);
    INFO(to_text(diagnose(snapshot)));
    CHECK(diagnose(snapshot).findings.front().basis == e.without);
  }
}

TEST_CASE("one moment is enough for a wait that no order of what is pending satisfies") {
  struct Moment {
    const char* name;
    void (*build)(Scene&, GpuVa);
    Verdict verdict;
  };
  const Moment kAll[] = {
      {"nothing stores to the word", [](Scene&, GpuVa) {}, Verdict::waits},
      {"a later value does not satisfy it",
       [](Scene& s, GpuVa w) { standing(s, poll(s.word()), Fence{.addr = w, .value = 3}); }, Verdict::waits},
      {"two additions satisfy it together, and wait themselves",
       [](Scene& s, GpuVa w) {
         const Atomic add{.addr = w, .value = kEpoch / 2};
         standing(s, poll(s.word()), add);
         standing(s, poll(s.word()), add);
       },
       Verdict::waits},
      {"a store that was executed may be on its way",
       [](Scene& s, GpuVa w) { read_all(s, Fence{.addr = w, .value = 3}); }, Verdict::undecided},
      {"work comes before the wait",
       [](Scene& s, GpuVa) {
         standing(s, CopyLinear{.src = s.data(1), .dst = s.data(2), .bytes = 4096}, poll(s.word(), kEpoch));
       },
       Verdict::undecided},
  };
  for (const auto& m : kAll) {
    Scene s{31};
    const auto w = s.word();
    standing(s, poll(w, kEpoch));
    m.build(s, w);
    auto snapshot = s.snapshot(Form::instant);
    snapshot.all_queues = true;
    const auto d = diagnose(snapshot);
    INFO(m.name << "\n" << to_text(d));
    CHECK(d.verdict() == m.verdict);
    // Another queue may be about to satisfy it.
    snapshot.all_queues = false;
    CHECK(diagnose(snapshot).verdict() == Verdict::undecided);
  }
  // Nobody is left: then it hangs, and a thread that a pending packet may wake is somebody.
  for (const bool wakes : {false, true}) {
    Scene s{32};
    const auto w = s.word(), done = s.word();
    auto& q = standing(s, poll(w, kEpoch));
    q.traffic(2);
    if (wakes) {
      auto& other = s.queue();
      other.stand(other.put(Fence{.addr = done, .value = 1}));
    }
    auto snapshot = s.snapshot(Form::instant);
    snapshot.all_queues = snapshot.all_threads = true;
    snapshot.waits = {sleeper(done, 1)};
    CHECK((diagnose(snapshot).findings.front().release.by == doctor::Release::By::nobody) == !wakes);
  }
}
