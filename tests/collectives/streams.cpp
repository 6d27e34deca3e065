// SPDX-License-Identifier: MIT
// Collectives in the order of streams, one per GPU, whose kernels write the inputs and read the results: eager rounds,
// and graphs that are replayed back to back. The host enqueues everything before it waits once.
#include "collectives/pattern.hpp"
#include "support.hpp"
#include "support/stream.hpp"

#include <deque>

namespace collectives::test {
namespace {

/// A GPU's stream, and what its kernels know.
struct Rank {
  ::test::Stream stream{};
  std::uint64_t produced = 0, wrong = 0;
};

class Ranks {
 public:
  Ranks(Run& run, std::uint32_t n) : run_(run), ranks_(n) {
    const auto& s = run.bound().schedule();
    for (auto& r : ranks_)
      for (std::size_t i = 0; i < s.signals.size(); ++i)
        if (s.signals[i].place.is_host()) r.stream.knows(run.bound().signal(i));
  }

  void eager() {
    for (std::uint32_t g = 0; g < ranks_.size(); ++g) {
      produce(g);
      if (auto r = run_.enqueue(g, ranks_[g].stream.calls(), soon()); !r) FAIL(to_string(r.error()));
      consume(g);
    }
  }
  using Graphs = std::vector<std::pair<StreamGraph, ::test::Stream::Graph>>;
  Graphs capture(std::uint32_t iterations) {
    Graphs all;
    for (std::uint32_t g = 0; g < ranks_.size(); ++g) {
      auto& s = ranks_[g].stream;
      const auto rounds = *run_.stream(g).graph(iterations);
      s.begin_capture();
      for (std::uint32_t i = 0; i < iterations; ++i) {
        produce(g);
        REQUIRE(run_.stream(g).pass(s.calls(), rounds.value(i)));
        consume(g);
      }
      REQUIRE(run_.stream(g).close(s.calls(), rounds));
      all.emplace_back(rounds, s.end_capture());
    }
    return all;
  }
  void replay(const Graphs& graphs) {
    for (std::uint32_t g = 0; g < ranks_.size(); ++g) {
      if (auto r = run_.publish(g, graphs[g].first, soon()); !r) FAIL(to_string(r.error()));
      ranks_[g].stream.launch(graphs[g].second);
    }
  }
  /// Wrong bytes, once all streams have ended.
  std::uint64_t finish() {
    std::uint64_t wrong = 0;
    for (auto& r : ranks_) {
      REQUIRE(r.stream.finish());
      wrong += r.wrong;
    }
    return wrong;
  }
  std::uint64_t rounds(std::uint32_t g) const { return ranks_[g].produced; }

 private:
  std::span<std::byte> bytes(GpuVa at, std::uint64_t n) const { return run_.bound().bytes({at, n}); }
  SymbolOffset at(GpuVa va) const { return *find_symbol(run_.plan().schedule, va); }

  void produce(std::uint32_t g) {
    ranks_[g].stream.kernel([this, g] {
      auto& r = ranks_[g];
      ++r.produced;
      for (const auto& range : run_.plan().given)
        if (const auto s = at(range.va); run_.plan().schedule.buffers[s.index].place == Place::gpu(g))
          fill_pattern(bytes(range.va, range.bytes), r.produced, s.index, s.offset);
    });
  }
  void consume(std::uint32_t g) {
    ranks_[g].stream.kernel([this, g] {
      auto& r = ranks_[g];
      for (const auto& m : run_.plan().moves)
        if (const auto from = at(m.from); m.dst == g)
          r.wrong += mismatch(bytes(m.to, m.bytes), r.produced, from.index, from.offset).wrong;
    });
  }

  Run& run_;
  std::deque<Rank> ranks_;
};

Options for_streams(Collective c, Variant v, std::uint32_t n, std::uint64_t bytes) {
  return {.collective = c,
          .variant = v,
          .prelaunch = Prelaunch::stream,
          .completion = Completion::fence,
          .gpus = n,
          .bytes = bytes,
          .ring_bytes = 64 << 10};
}

}  // namespace

TEST_CASE("every collective in the order of streams, eager and in graphs") {
  std::size_t turn = 0;
  for (const auto order : kOrderings) {
    const auto d = node(order, 5);
    for (const auto c : kCollectives)
      for (const auto v : kVariants) {
        if (!has_variant(c, v)) continue;
        const auto n = static_cast<std::uint32_t>(2 + turn++ % 3);
        auto r = prepared(planned(for_streams(c, v, n, 3001 + turn)), *d);
        INFO(describe(r.plan().options) << " order=" << name(order));
        Ranks ranks(r, n);
        const auto one = ranks.capture(1), three = ranks.capture(3);
        for (int i = 0; i < 3; ++i) {
          ranks.eager();
          ranks.replay(one);
          ranks.replay(one);
          ranks.replay(three);
        }
        CHECK(ranks.finish() == 0);
        CHECK(ranks.rounds(n - 1) == 18);
        CHECK_FALSE(d->fault(r.bound().queue(0)));
        // Then the host takes over.
        CHECK(rounds(r, 2) == "");
        ranks.eager();
        CHECK(ranks.finish() == 0);
      }
  }
}

TEST_CASE("a GPU that no group touches has a stream that waits for nothing") {
  const auto d = node();
  auto r = prepared(planned(for_streams(Collective::scatter, Variant::pcpy, 3, 2)), *d);
  Ranks ranks(r, 3);
  CHECK(r.stream(2).done().empty());
  CHECK(r.stream(0).done().size() == 1);
  ranks.eager();
  ranks.eager();
  CHECK(ranks.finish() == 0);
}

TEST_CASE("a stream that does not take a word, and a plan that is not for streams") {
  const auto d = node();
  auto r = prepared(planned(for_streams(Collective::all_gather, Variant::pcpy, 2, 128)), *d);
  ::test::Stream s;
  const auto unknown = r.enqueue(0, s.calls(), soon());
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().where == "the stream of gpu0");
  CHECK(unknown.error().message.find("host.go0, with status 1") != std::string::npos);
  CHECK(unknown.error().hint.find("signal memory") != std::string::npos);
  CHECK_FALSE(r.enqueue(2, s.calls(), soon()));
  auto o = for_streams(Collective::all_gather, Variant::pcpy, 2, 128);
  for (const auto& [prelaunch, completion] :
       {std::pair{Prelaunch::shared, Completion::fence}, {Prelaunch::stream, Completion::atomic}}) {
    o.prelaunch = prelaunch;
    o.completion = completion;
    auto other = prepared(planned(o), *d);
    const auto no = other.enqueue(0, s.calls(), soon());
    REQUIRE_FALSE(no);
    CHECK(no.error().hint.find("prelaunch=stream") != std::string::npos);
  }
}

TEST_CASE("words of the caller, one per GPU and one per queue") {
  const auto d = node(Ordering::adversarial, 3);
  const auto p = planned(for_streams(Collective::all_to_all, Variant::b2b, 3, 3000));
  REQUIRE(Run::stream_words(p) == 6);
  std::vector<SignalMemory> memory;
  std::vector<Signal> words;
  for (int i = 0; i < 6; ++i) words.push_back(*memory.emplace_back(*d->create_signal()));
  auto r = Run::prepare(p, *d, {}, words);
  REQUIRE(r);
  CHECK(r->stream(0).go() == words[0].va);
  CHECK(r->stream(1).done()[0] == words[3].va);
  // The streams wake the engines, as they know the device's words.
  Ranks ranks(*r, 3);
  for (int i = 0; i < 5; ++i) ranks.eager();
  CHECK(ranks.finish() == 0);
  CHECK(words[0].load() == 5);
  words.pop_back();
  const auto few = Run::prepare(p, *d, {}, words);
  REQUIRE_FALSE(few);
  CHECK(few.error()[0].message.find("5 words for streams, and the plan has 6") != std::string::npos);
}

}  // namespace collectives::test
