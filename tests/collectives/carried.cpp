// SPDX-License-Identifier: MIT
// Rounds that streams carry themselves. Streams are lists of commands here, and a seed says which of them goes on: so a
// stream runs as far ahead of the others as its words let it.
#include "stream_rounds.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <random>

namespace collectives::test {
namespace {

/// Streams of one test: what they know, and whose turn it is.
struct Together {
  std::map<std::uint64_t, Signal> words{};
  std::vector<std::pair<GpuVa, std::span<std::byte>>> buffers{};
  std::vector<class ListedStream*> streams{};
  std::mt19937 random{};
  int refuse_copies = 0;

  std::byte* at(GpuVa va, std::uint64_t n) const {
    for (const auto& [begin, bytes] : buffers)
      if (va.value >= begin.value && va.value + n <= begin.value + bytes.size()) return &bytes[va.value - begin.value];
    return nullptr;
  }
};
Together* together = nullptr;

class ListedStream {
 public:
  /// False: it has to wait.
  using Command = std::function<bool()>;
  using Graph = std::vector<Command>;

  ListedStream() { together->streams.push_back(this); }
  ListedStream(const ListedStream&) = delete;
  ListedStream& operator=(const ListedStream&) = delete;

  void knows(const Signal& s) { together->words.emplace(s.va.value, s); }
  StreamCalls calls() {
    return {.stream = this,
            .write = [](void* s, GpuVa w, std::uint32_t v) noexcept { return of(s).word(w, v, true); },
            .hold = [](void* s, GpuVa w, std::uint32_t v) noexcept { return of(s).word(w, v, false); },
            .copy = [](void* s, GpuVa to, GpuVa from, std::uint64_t n) noexcept { return of(s).copy(to, from, n); }};
  }
  void kernel(std::function<void()> f) {
    add([f = std::move(f)] { return f(), true; });
  }
  void begin_capture() { capturing_ = true; }
  Graph end_capture() {
    capturing_ = false;
    return std::exchange(captured_, {});
  }
  void launch(const Graph& g) {
    for (const auto& c : g) commands_.push_back(c);
  }
  std::size_t left() const { return commands_.size(); }
  /// Does up to so many commands; false: not one.
  bool go(std::uint32_t n) {
    bool moved = false;
    for (; n != 0 && !commands_.empty() && commands_.front()(); --n, moved = true) commands_.pop_front();
    return moved;
  }
  /// Until all streams have ended. False: all that have not wait for each other.
  bool finish() {
    auto& t = *together;
    for (;;) {
      std::vector<ListedStream*> running;
      for (auto* s : t.streams)
        if (s->left() != 0) running.push_back(s);
      if (running.empty()) return true;
      std::shuffle(running.begin(), running.end(), t.random);
      if (std::none_of(running.begin(), running.end(),
                       [&](ListedStream* s) { return s->go(1 + static_cast<std::uint32_t>(t.random() % 40)); }))
        return false;
    }
  }

 private:
  static ListedStream& of(void* s) { return *static_cast<ListedStream*>(s); }
  int word(GpuVa w, std::uint32_t v, bool write) {
    const auto s = together->words.find(w.value);
    if (s == together->words.end()) return 1;
    if (write) add([word = s->second, v] { return word.set(v), true; });
    else add([word = s->second, v] { return static_cast<std::uint32_t>(word.load()) == v; });
    return 0;
  }
  /// In two halves: others may go on between them.
  int copy(GpuVa to, GpuVa from, std::uint64_t n) {
    if (together->refuse_copies != 0) return together->refuse_copies;
    auto *const a = together->at(to, n), *const b = together->at(from, n);
    if (!a || !b) return 2;
    add([=] { return std::memcpy(a, b, n / 2), true; });
    add([=] { return std::memcpy(a + n / 2, b + n / 2, n - n / 2), true; });
    return 0;
  }
  void add(Command c) {
    if (capturing_) captured_.push_back(std::move(c));
    else commands_.push_back(std::move(c));
  }

  std::deque<Command> commands_{};
  Graph captured_{};
  bool capturing_ = false;
};

/// A run whose streams the test can interleave.
struct Scene {
  explicit Scene(Options o, std::uint32_t seed = 0) : run(prepared(planned(o), *device)) {
    world.random.seed(seed);
    together = &world;
    const auto& buffers = run.plan().schedule.buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      world.buffers.emplace_back(run.bound().address(link_buffer(i)),
                                 run.bound().bytes({link_buffer(i), buffers[i].bytes}));
    ranks.emplace(run, o.gpus);
  }
  std::unique_ptr<SoftDevice> device = node();
  Run run;
  Together world{};
  std::optional<Ranks<ListedStream>> ranks{};
};

Options carried(Collective c, Variant v, std::uint32_t n, std::uint64_t bytes, std::uint32_t turns = 1) {
  auto o = for_streams(c, v, n, bytes);
  o.turns = turns;
  return o;
}

}  // namespace

TEST_CASE("streams carry every collective of copies, eager and in graphs") {
  std::uint32_t seed = 0;
  for (const auto c : kCollectives)
    for (const auto v : kVariants) {
      if (!has_variant(c, v) || v == Variant::swap) continue;
      for (int again = 0; again < 6; ++again) {
        const auto n = 2 + ++seed % 3;
        Scene s(carried(c, v, n, 3001 + seed), seed);
        INFO(describe(s.run.plan().options) << " seed=" << seed);
        const auto one = s.ranks->capture(1), three = s.ranks->capture(3);
        for (int i = 0; i < 3; ++i) {
          s.ranks->eager();
          s.ranks->replay(one);
          s.ranks->replay(one);
          s.ranks->replay(three);
        }
        CHECK(s.ranks->finish() == 0);
        CHECK(s.ranks->rounds(n - 1) == 18);
      }
    }
}

TEST_CASE("an all-gather in two turns") {
  std::uint32_t seed = 0;
  for (const auto v : {Variant::pcpy, Variant::bcst, Variant::b2b})
    for (std::uint32_t n = 2; n <= 4; ++n)
      for (int again = 0; again < 20; ++again) {
        ++seed;
        Scene s(carried(Collective::all_gather, v, n, 3001 + seed, 2), seed);
        INFO(describe(s.run.plan().options) << " seed=" << seed);
        const auto two = s.ranks->capture(2), six = s.ranks->capture(6);
        for (int i = 0; i < 4; ++i) {
          for (int k = 0; k < i * 2; ++k) s.ranks->eager();
          s.ranks->replay(two);
          s.ranks->replay(two);
          s.ranks->replay(six);
        }
        CHECK(s.ranks->finish() == 0);
        CHECK(s.ranks->rounds(0) == 12 + 4 * (2 + 2 + 6));
      }
}

TEST_CASE("two turns leave out what one turn needs") {
  const auto commands = [](std::uint32_t turns) {
    Scene s(carried(Collective::all_gather, Variant::pcpy, 2, 4096, turns));
    s.ranks->eager();
    return s.ranks->stream(0).left();
  };
  // Two kernels, a copy in two halves, a word, a hold; and before the copy a word and a hold.
  CHECK(commands(2) == 2 + 2 + 2);
  CHECK(commands(1) == 2 + 2 + 4);
}

TEST_CASE("what streams cannot carry") {
  const auto refusal = [](Scene& s) {
    auto r = s.run.enqueue(0, s.ranks->stream(0).calls(), soon());
    REQUIRE_FALSE(r);
    return to_string(r.error());
  };
  Scene swap(carried(Collective::all_to_all, Variant::swap, 2, 4096));
  CHECK_THAT(refusal(swap), Catch::Contains("swap0 has a packet that is not a copy"));
  // Of 2 bytes, gpu2 has no part: it sends nothing, and so says nothing.
  auto few = carried(Collective::all_gather, Variant::pcpy, 3, 2, 2);
  few.granule = 1;
  Scene uneven(few);
  CHECK_THAT(refusal(uneven), Catch::Contains("gpu2 sends nothing to gpu0"));
  Scene refused(carried(Collective::all_gather, Variant::pcpy, 2, 128));
  refused.world.refuse_copies = 7;
  CHECK_THAT(refusal(refused), Catch::Contains("refused a copy of 64 bytes to gpu1.buf, with status 7"));
  Scene words(carried(Collective::all_gather, Variant::pcpy, 2, 128));
  words.world.words.clear();
  CHECK_THAT(refusal(words), Catch::Contains("to wait for host.go0, with status 1"));
}

TEST_CASE("graphs of two turns begin with turn 0") {
  Scene s(carried(Collective::all_gather, Variant::pcpy, 2, 128, 2));
  const auto odd = s.run.graph(0, 3);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().hint.find("even number") != std::string::npos);
  const auto four = s.ranks->capture(4);
  CHECK(s.run.offset_of_turn(0) == 0);
  s.ranks->eager();
  CHECK(s.run.offset_of_turn(0) == 256);
  const auto early = s.run.publish(0, four[0].first, soon());
  REQUIRE_FALSE(early);
  CHECK(early.error().message.find("odd number of eager rounds") != std::string::npos);
  s.ranks->eager();
  s.ranks->replay(four);
  CHECK(s.ranks->finish() == 0);
}

TEST_CASE("a plan with two turns needs streams that copy") {
  Scene s(carried(Collective::all_gather, Variant::pcpy, 2, 128, 2));
  auto calls = s.ranks->stream(0).calls();
  calls.copy = nullptr;
  const auto r = s.run.enqueue(0, calls, soon());
  REQUIRE_FALSE(r);
  CHECK(r.error().hint.find("StreamCalls::copy") != std::string::npos);
  // The host runs such a plan, in turn 0.
  CHECK(rounds(s.run, 3) == "");
  auto o = carried(Collective::broadcast, Variant::pcpy, 2, 128, 2);
  CHECK(refusal(o));
  o = carried(Collective::all_gather, Variant::pcpy, 2, 128, 3);
  CHECK(refusal(o)->message == "turns must be 1, or for an all_gather 1 or 2, and not 3");
}

}  // namespace collectives::test
