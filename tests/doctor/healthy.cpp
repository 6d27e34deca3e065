// SPDX-License-Identifier: MIT
// Queues that do not hang: slow, idle, waiting for one that makes progress, or seen at one moment. None is accused.
#include "scene.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

#include <cstdio>

using namespace sdma;
using namespace sdma::test;

namespace {

const unsigned kSeeds = tries(12u);
enum Forms : unsigned { kLive = 1, kNode = 2, kFile = 4, kInstant = 8, kAny = 15 };

struct Healthy {
  const char* name;
  unsigned forms;
  void (*build)(Scene&);
};

CopyLinear copy(Scene& s, std::uint32_t bytes) { return {.src = s.data(1), .dst = s.data(2), .bytes = bytes}; }
/// It moved while it was watched.
void moves(SceneQueue& q, Scene& s) { q.rptr_first = q.rptr() - 4 * s.between(1, 20); }

/// Queues in a ring of releases: each waits for the one before, and the first one is executing a copy.
void chain(Scene& s, std::size_t n, bool moving) {
  std::vector<GpuVa> words;
  const auto epoch = s.small(1, 1000);
  for (std::size_t i = 0; i <= n; ++i) words.push_back(s.word());
  for (std::size_t i = 0; i < n; ++i) {
    auto& q = s.queue();
    q.stand(q.end());
    if (i == 0) {
      q.put(copy(s, 1 << 20));
      if (moving) moves(q, s);
    } else {
      q.put(PollMem{.addr = words[i], .func = Compare::ge, .reference = epoch});
    }
    q.traffic(s.below(4));
    q.put(Fence{.addr = words[i + 1], .value = epoch});
  }
}

const Healthy kHealthy[] = {
    {"all queues are drained", kAny,
     [](Scene& s) {
       for (auto n = s.between(1, 8); n > 0; --n) s.queue().drained();
     }},
    {"no queue at all", kAny, [](Scene&) {}},
    {"a queue that was never used", kAny,
     [](Scene& s) {
       auto& q = s.queue();
       q.drained();
     }},
    {"a slow queue that moves", kLive | kNode | kFile,
     [](Scene& s) {
       auto& q = s.queue();
       q.stand(q.end());
       for (int i = 0; i < 5; ++i) q.put(copy(s, 1 << 28));
       moves(q, s);
     }},
    {"a slow queue that moves, at a poll that is false now", kLive | kNode | kFile,
     [](Scene& s) {
       auto& q = s.queue();
       q.stand(q.put(PollMem{.addr = s.word(), .reference = s.small(1, 100)}));
       q.traffic(s.below(5));
       moves(q, s);
     }},
    {"a copy that takes longer than the watch", kAny,
     [](Scene& s) {
       auto& q = s.queue();
       // Ten seconds at the slowest rate that is not suspected.
       const auto box = s.small(2500, 3000);
       q.stand(q.put(CopySubwindow{.src = s.data(1),
                                   .dst = s.data(2),
                                   .src_pitch = 4096,
                                   .dst_pitch = 4096,
                                   .src_slice = 4096ull * box,
                                   .dst_slice = 4096ull * box,
                                   .x = 4096,
                                   .y = box,
                                   .z = 1000}));
       q.put(Fence{.addr = s.word(), .value = 1});
     }},
    {"one moment of a queue that executes copies", kInstant,
     [](Scene& s) {
       auto& q = s.queue();
       q.stand(q.put(copy(s, 1 << 20)));
       q.traffic(s.below(10));
     }},
    {"one moment of a poll that another queue will satisfy", kInstant, [](Scene& s) { chain(s, 2, false); }},
    {"one moment of a chain of queues", kInstant, [](Scene& s) { chain(s, 3 + s.below(5), false); }},
    {"a chain of queues whose first one moves", kLive | kNode | kFile,
     [](Scene& s) { chain(s, 3 + s.below(5), true); }},
    {"a queue that waits for one that moves from poll to poll", kLive | kNode | kFile,
     [](Scene& s) {
       const auto w = s.word();
       auto& q = s.queue();
       q.stand(q.put(PollMem{.addr = w, .reference = 5}));
       auto& p = s.queue();
       p.stand(p.put(PollMem{.addr = s.word(), .reference = s.small(1, 100)}));
       p.put(Fence{.addr = w, .value = 5});
       moves(p, s);
     }},
    {"one moment of a prelaunched queue that waits for the host", kInstant,
     [](Scene& s) {
       auto& q = s.queue();
       q.stand(q.put(PollMem{.addr = s.word(), .func = Compare::ge, .reference = s.small(1, 100)}));
       q.traffic(1 + s.below(5));
     }},
    {"a prelaunched queue whose host will store the word", kAny,
     [](Scene& s) {
       const auto w = s.word();
       const auto epoch = s.small(1, 100);
       auto& q = s.queue();
       q.stand(q.put(PollMem{.addr = w, .func = Compare::ge, .reference = epoch}));
       q.put(Fence{.addr = s.word(), .value = 1});
       q.doorbell = q.end();
       s.posts.push_back({w, epoch, false});
     }},
    {"a poll that is satisfied", kInstant,
     [](Scene& s) {
       const auto w = s.word();
       const auto epoch = s.small(1, 100);
       auto& q = s.queue();
       q.stand(q.put(PollMem{.addr = w, .func = Compare::ge, .reference = epoch}));
       q.traffic(s.below(5));
       s.set(w, epoch + s.below(3));
     }},
    {"a word that was reset after the poll had seen its value", kInstant,
     [](Scene& s) {
       const auto w = s.word();
       auto& p = s.queue();
       p.put(Fence{.addr = w, .value = 7});
       p.drained();
       auto& q = s.queue();
       q.put(PollMem{.addr = w, .reference = 7});
       q.stand(q.end());
       q.put(copy(s, 4096));
       q.traffic(s.below(5));
     }},
    {"completions that nothing polls", kAny,
     [](Scene& s) {
       for (auto n = s.between(1, 4); n > 0; --n) {
         auto& q = s.queue();
         q.traffic(s.below(10));
         q.put(Fence{.addr = s.word(), .value = 1});
         q.put(Trap{s.small(1, 100)});
         q.drained();
       }
     }},
    {"a thread that waits for a queue that moves", kLive | kNode | kFile,
     [](Scene& s) {
       const auto w = s.word();
       auto& q = s.queue();
       q.stand(q.put(copy(s, 1 << 28)));
       q.put(Fence{.addr = w, .value = 1});
       moves(q, s);
       s.waits.push_back({"thread 3", w, Compare::ge, 1, 8, {true, doctor::Source::driver}});
     }},
    {"a thread that polls a word that is there", kAny,
     [](Scene& s) {
       const auto w = s.word();
       auto& q = s.queue();
       q.put(Fence{.addr = w, .value = 1});
       q.drained();
       s.set(w, 1);
       s.waits.push_back({"thread 3", w, Compare::ge, 1, 8, {false, doctor::Source::driver}});
     }},
    {"a destroyed queue that was drained", kLive | kNode,
     [](Scene& s) {
       auto& q = s.queue();
       q.drained();
       q.destroyed = true;
     }},
    {"a slot that is being filled", kFile | kInstant,
     [](Scene& s) {
       auto& q = s.queue();
       q.drained();
       q.reserved = q.end() + 4 * s.between(1, 16);
     }},
    {"two queues of one engine at one moment", kInstant,
     [](Scene& s) {
       const auto w = s.word();
       auto& a = s.queue();
       a.stand(a.put(PollMem{.addr = w, .reference = 1}));
       auto& b = s.queue();
       b.gpu = a.gpu, b.engine = a.engine;
       b.stand(b.put(copy(s, 4096)));
       b.put(Fence{.addr = w, .value = 1});
     }},
    {"the barrier of one queue", kInstant,
     [](Scene& s) {
       const auto w = s.word();
       const auto n = s.small(1, 100);
       auto& q = s.queue();
       q.stand(q.put(copy(s, 1 << 20)));
       q.put(Fence{.addr = w, .value = n});
       q.put(PollMem{.addr = w, .reference = n});
       q.put(copy(s, 1 << 20));
     }},
    {"a NOP that skips dwords which begin no packet", kInstant,
     [](Scene& s) {
       auto& q = s.queue();
       q.stand(q.end());
       q.put_dwords(std::array<std::uint32_t, 4>{3u << 16, 0xdeadbeef, 0xff, 0x12345678});
       q.traffic(s.below(5));
     }},
};

}  // namespace

TEST_CASE("no healthy queue is accused") {
  std::size_t accused = 0, undecided = 0, all = 0;
  for (const auto& c : kHealthy)
    for (unsigned seed = 0; seed < kSeeds; ++seed)
      for (const auto form : kForms) {
        if ((c.forms & 1u << static_cast<unsigned>(form)) == 0) continue;
        Scene s{seed * 104729 + 17};
        c.build(s);
        const auto d = diagnose(s.snapshot(form));
        REQUIRE(!d.findings.empty());
        ++all;
        undecided += d.verdict() == doctor::Verdict::undecided;
        if (d.verdict() != doctor::Verdict::hung) continue;
        ++accused;
        const auto text = to_text(d);
        std::printf("%s (%s, seed %u) is accused:\n%s\n", c.name, name(form).c_str(), seed, text.c_str());
      }
  std::printf("%zu of %zu healthy scenes are accused; %zu are not decided\n", accused, all, undecided);
  CHECK(all >= 50);
  CHECK(accused == 0);
}
