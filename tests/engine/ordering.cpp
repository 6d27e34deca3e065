// SPDX-License-Identifier: MIT
// What the orderings allow: exactly, by every sequence of choices; and that programs without a race do not care.
#include "engine/rig.hpp"
#include "support/enumerator.hpp"
#include "support/sanitizer.hpp"

#include <set>
#include <string>

using namespace sdma;
using namespace sdma::test;

namespace {

/// Runs `program(rig)` with every sequence of choices and collects what `outcome(rig)` says in the end.
template <class Program, class Outcome>
std::set<std::string> every(Ordering o, Program program, Outcome outcome, PipelineConfig more = {}) {
  std::set<std::string> seen;
  Enumerator all;
  do {
    RigOptions options{.ordering = o, .seed = 0, .ring_dwords = 256, .more = more};
    options.more.chooser = &all;
    options.more.pieces = more.pieces == 8 ? 1 : more.pieces;
    options.more.prefetch = options.more.late_rptr = options.more.holding_polls = false;
    Rig rig{options};
    program(rig);
    rig.pipeline->doorbell(rig.wptr);
    do {
      rig.pipeline->awaken();
      while (rig.pipeline->step(1) == Progress::progressed) {}
    } while (rig.pipeline->asleep());
    seen.insert(outcome(rig));
  } while (all.next() && all.runs() < 200'000);
  REQUIRE(all.runs() < 200'000);
  return seen;
}

using Set = std::set<std::string>;

/// Bytes that two packets share, one of them writing.
bool conflict(const std::vector<Region>& a, const std::vector<Region>& b) {
  for (const auto& x : a)
    for (const auto& y : b)
      if ((x.access != Access::read || y.access != Access::read) && (x.va - y.va < y.bytes || y.va - x.va < x.bytes))
        return true;
  return false;
}

}  // namespace

TEST_CASE("copies to and fro: loads and stores come apart only where the model says so") {
  const auto program = [](Rig& r) {
    r.at<std::uint8_t>(r.a(0)) = 'a', r.at<std::uint8_t>(r.b(0)) = 'b';
    r.put(CopyLinear{.src = r.a(0), .dst = r.b(0), .bytes = 1});
    r.put(CopyLinear{.src = r.b(0), .dst = r.a(0), .bytes = 1});
  };
  const auto outcome = [](Rig& r) {
    return std::string{static_cast<char>(r.at<std::uint8_t>(r.a(0))), static_cast<char>(r.at<std::uint8_t>(r.b(0)))};
  };
  CHECK(every(Ordering::strict, program, outcome) == Set{"aa"});
  CHECK(every(Ordering::rocr, program, outcome) == Set{"aa", "bb"});
  CHECK(every(Ordering::adversarial, program, outcome) == Set{"aa", "bb", "ba"});
  CHECK(every(Ordering::adversarial, program, outcome, {.split_stores = false}) == Set{"aa", "bb"});
  // What a queue does in its sleep, it may do while it is awake.
  CHECK(every(Ordering::adversarial, program, outcome, {.sleeps = true}) == Set{"aa", "bb", "ba"});
}

TEST_CASE("fences and atomics keep their order, whatever is between them") {
  const auto program = [](Rig& r) {
    r.at<std::uint64_t>(r.a(0)) = 0;
    r.put(Fence{.addr = r.a(0), .value = 1});
    r.put(CopyLinear{.src = r.b(0), .dst = r.b(64), .bytes = 4});
    r.put(Atomic{.addr = r.a(0), .op = AtomicOp::add_rtn_64, .value = 5});
    r.put(Fence{.addr = r.a(0), .value = 3});
    r.put(Atomic{.addr = r.a(0), .op = AtomicOp::umax_32, .value = 2});
  };
  const auto outcome = [](Rig& r) { return std::to_string(r.at<std::uint64_t>(r.a(0))); };
  for (auto o : {Ordering::strict, Ordering::rocr, Ordering::adversarial})
    CHECK(every(o, program, outcome) == Set{"3"});
}

TEST_CASE("a trap comes behind earlier fences, and not behind copies") {
  struct Look {
    Rig* rig;
    std::string seen;
  } look;
  PipelineConfig more;
  more.hooks = {.context = &look, .trap = [](void* l, std::uint64_t, std::uint32_t) noexcept {
                  auto& self = *static_cast<Look*>(l);
                  self.seen = self.rig->at(self.rig->a(0)) == 1 ? "mailbox" : "no mailbox";
                  self.seen += self.rig->at(self.rig->b(64)) == 7 ? ", data" : ", no data";
                }};
  const auto program = [&](bool fence) {
    return [&look, fence](Rig& r) {
      look = {&r, "no trap"};
      r.at(r.b(0)) = 7;
      if (fence) r.put(Fence{.addr = r.a(0), .value = 1});
      r.put(CopyLinear{.src = r.b(0), .dst = r.b(64), .bytes = 4});
      r.put(Trap{.context = 1});
    };
  };
  const auto outcome = [&](Rig&) { return look.seen; };
  CHECK(every(Ordering::strict, program(true), outcome, more) == Set{"mailbox, data"});
  for (auto o : {Ordering::rocr, Ordering::adversarial}) {
    CHECK(every(o, program(true), outcome, more) == Set{"mailbox, data", "mailbox, no data"});
    CHECK(every(o, program(false), outcome, more) == Set{"no mailbox, data", "no mailbox, no data"});
  }
}

TEST_CASE("a timestamp is taken when what is earlier has landed, and its word is plain until a fence") {
  struct Look {
    Rig* rig;
  } look{};
  PipelineConfig more;
  more.ticks = {.now = [](void* l) noexcept -> std::uint64_t {
                  auto& r = *static_cast<Look*>(l)->rig;
                  return (r.at(r.b(64)) == 7 ? 1u : 0u) + (r.at(r.b(128)) == 7 ? 2u : 0u);
                },
                .context = &look};
  const auto program = [&](Rig& r) {
    look = {&r};
    r.at(r.b(0)) = 7;
    r.put(CopyLinear{.src = r.b(0), .dst = r.b(64), .bytes = 4});
    r.put(Timestamp{.addr = r.a(0)});
    r.put(CopyLinear{.src = r.b(0), .dst = r.b(128), .bytes = 4});
    r.put(CopyLinear{.src = r.a(0), .dst = r.a(64), .bytes = 4});
  };
  const auto outcome = [](Rig& r) {
    return std::to_string(r.at(r.a(0))) + (r.at(r.a(64)) == r.at(r.a(0)) ? " read" : " not read");
  };
  CHECK(every(Ordering::strict, program, outcome, more) == Set{"1 read"});
  CHECK(every(Ordering::rocr, program, outcome, more) == Set{"1 read"});
  CHECK(every(Ordering::adversarial, program, outcome, more) == Set{"1 read", "1 not read", "3 read", "3 not read"});
}

TEST_CASE("a broadcast reads once, and its stores come apart") {
  const auto program = [](Rig& r) {
    r.at(r.a(0)) = 1, r.at(r.a(32)) = 2;
    r.put(CopyBroadcast{.src = r.a(0), .dst1 = r.b(0), .dst2 = r.b(32), .bytes = 4});
    r.put(CopyLinear{.src = r.a(32), .dst = r.a(0), .bytes = 4});
  };
  const auto outcome = [](Rig& r) { return std::to_string(r.at(r.b(0))) + std::to_string(r.at(r.b(32))); };
  CHECK(every(Ordering::adversarial, program, outcome) == Set{"11", "22"});
}

TEST_CASE("pieces of a copy land in any order") {
  const auto program = [](Rig& r) {
    std::memcpy(r.first.data(), "abc", 3);
    std::memcpy(r.second.data(), "xyz", 3);
    r.put(CopyLinear{.src = r.a(0), .dst = r.b(0), .bytes = 3});
    r.put(CopyLinear{.src = r.b(0), .dst = r.b(8), .bytes = 3});
  };
  const auto outcome = [](Rig& r) { return std::string(reinterpret_cast<const char*>(r.second.data()) + 8, 3); };
  CHECK(every(Ordering::rocr, program, outcome) == Set{"abc", "xyz"});
  CHECK(every(Ordering::adversarial, program, outcome, {.pieces = 3, .split_stores = false}) ==
        Set{"abc", "abz", "ayc", "ayz", "xbc", "xbz", "xyc", "xyz"});
}

TEST_CASE("before a fault: strict and rocr land what is earlier, adversarial some of it") {
  const auto program = [](Rig& r) {
    r.at(r.a(0)) = 7;
    r.put(CopyLinear{.src = r.a(0), .dst = r.b(0), .bytes = 4});
    r.put(CopyLinear{.src = r.a(0), .dst = r.b(64), .bytes = 4});
    r.put(Fence{.addr = GpuVa{0x900000}, .value = 1});
    r.put(CopyLinear{.src = r.a(0), .dst = r.b(128), .bytes = 4});
  };
  const auto outcome = [](Rig& r) {
    REQUIRE(r.pipeline->fault());
    return std::string(r.at(r.b(0)) == 7 ? "1" : "-") + (r.at(r.b(64)) == 7 ? "2" : "-") +
           (r.at(r.b(128)) == 7 ? "3" : "-");
  };
  CHECK(every(Ordering::strict, program, outcome) == Set{"12-"});
  CHECK(every(Ordering::rocr, program, outcome) == Set{"12-"});
  CHECK(every(Ordering::adversarial, program, outcome, {.split_stores = false}) == Set{"12-", "1--", "-2-", "---"});
}

TEST_CASE("programs without a race leave the same memory in every ordering and with every seed") {
  for (std::uint32_t program = 0; program < tries(40u); ++program) {
    std::vector<std::byte> strict;
    for (auto ordering : {Ordering::strict, Ordering::rocr, Ordering::adversarial})
      for (std::uint64_t seed = 0; seed < (ordering == Ordering::strict ? 1u : 8u); ++seed) {
        Rig rig{{.ordering = ordering, .seed = seed, .ring_dwords = 1 << 14}};
        rig.first.randomise(program), rig.second.randomise(program + 1);
        std::mt19937 random(program);
        const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
        const auto any = [&] { return below(2) ? rig.a(below(4000)) : rig.b(below(4000)); };
        std::vector<Region> open;
        std::uint32_t fresh = 0;
        const auto put = [&](const auto& p) {
          std::vector<Region> mine;
          footprint(p, [&](const Region& r) { mine.push_back(r); });
          if (mine.size() == 2 && conflict({mine[0]}, {Region{mine[1].va, mine[1].bytes, Access::write}})) return;
          if (conflict(mine, open)) {
            ++fresh;
            rig.put(Fence{.addr = rig.b(60000), .value = fresh});
            rig.put(PollMem{.addr = rig.b(60000), .func = Compare::eq, .reference = fresh});
            open.clear();
          }
          rig.put(p);
          open.insert(open.end(), mine.begin(), mine.end());
        };
        for (int i = 0; i < 200; ++i) {
          const std::array<std::uint32_t, 3> data{below(9), below(9), below(9)};
          switch (below(5)) {
            case 0:
              put(CopySwap{.a = rig.a(64 * below(60)), .b = rig.b(64 * below(60)), .bytes = 64 + below(64)});
              break;
            case 1: put(Fill{.dst = any(), .data = below(256), .bytes = 1 + below(100), .unit = FillUnit::byte}); break;
            case 2: put(Write{.dst = rig.a(4 * below(1000)), .data = data}); break;
            default: put(CopyLinear{.src = any(), .dst = any(), .bytes = 1 + below(300)});
          }
        }
        rig.go();
        rig.at(rig.b(60000)) = 0;
        auto all = rig.first.copy();
        const auto more = rig.second.copy();
        all.insert(all.end(), more.begin(), more.end());
        if (ordering == Ordering::strict) strict = all;
        REQUIRE((all == strict));
      }
  }
}

TEST_CASE("an adversarial run without those barriers does differ from a strict one") {
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rig rig{{.ordering = Ordering::adversarial, .seed = seed}};
    rig.first.randomise(1);
    for (std::uint32_t i = 0; i < 20; ++i)
      rig.put(CopyLinear{.src = rig.a(i * 64), .dst = rig.a(i * 64 + 64), .bytes = 64});
    rig.go();
    differ += std::memcmp(rig.first.data(), rig.first.data() + 20 * 64, 64) != 0;
  }
  CHECK(differ > 10);
}

TEST_CASE("the enumerator gives every sequence once") {
  Enumerator all;
  std::set<std::string> seen;
  do {
    std::string s;
    for (std::uint32_t n : {2u, 3u, 1u}) s += static_cast<char>('0' + all.choose(Choice::action, n));
    if (s[0] == '1') s += static_cast<char>('0' + all.choose(Choice::front, 2));
    CHECK(seen.insert(s).second);
  } while (all.next());
  CHECK(seen.size() == 3 + 6);
  CHECK(all.runs() == 9);
}
