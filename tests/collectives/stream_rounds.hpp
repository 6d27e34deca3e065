// SPDX-License-Identifier: MIT
#pragma once
// A collective between kernels of streams, one per GPU: kernels write the inputs and read the results.
//
//   Ranks<::test::Stream> ranks(run, n);                  // or another kind of stream
//   ranks.eager(); ranks.replay(ranks.capture(3));        // enqueued; nothing waits
//   CHECK(ranks.finish() == 0);                           // wrong bytes
//
// One thread.
#include "collectives/pattern.hpp"
#include "support.hpp"

#include <deque>
#include <utility>
#include <vector>

namespace collectives::test {

template <class Stream> class Ranks {
 public:
  Ranks(Run& run, std::uint32_t n) : run_(run), ranks_(n) {
    const auto& s = run.bound().schedule();
    for (auto& r : ranks_)
      for (std::size_t i = 0; i < s.signals.size(); ++i)
        if (s.signals[i].place.is_host()) r.stream.knows(run.bound().signal(i));
  }

  void eager() {
    for (std::uint32_t g = 0; g < ranks_.size(); ++g) {
      const auto turn = run_.offset_of_turn(g);
      produce(g, turn);
      if (auto r = run_.enqueue(g, ranks_[g].stream.calls(), soon()); !r) FAIL(to_string(r.error()));
      consume(g, turn);
    }
  }
  using Graphs = std::vector<std::pair<StreamGraph, typename Stream::Graph>>;
  Graphs capture(std::uint32_t iterations) {
    Graphs all;
    for (std::uint32_t g = 0; g < ranks_.size(); ++g) {
      auto& s = ranks_[g].stream;
      const auto rounds = *run_.graph(g, iterations);
      s.begin_capture();
      for (std::uint32_t i = 0; i < iterations; ++i) {
        const auto turn = i % run_.plan().options.turns * turn_bytes(run_.plan().options);
        produce(g, turn);
        if (auto r = run_.pass(g, s.calls(), rounds, i); !r) FAIL(to_string(r.error()));
        consume(g, turn);
      }
      REQUIRE(run_.close(g, s.calls(), rounds));
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
  Stream& stream(std::uint32_t g) { return ranks_[g].stream; }

 private:
  /// A GPU's stream, and what its kernels know.
  struct Rank {
    Stream stream{};
    std::uint64_t produced = 0, wrong = 0;
  };
  std::span<std::byte> bytes(GpuVa at, std::uint64_t n) const { return run_.bound().bytes({at, n}); }
  SymbolOffset at(GpuVa va) const { return *find_symbol(run_.plan().schedule, va); }

  /// `turn`: bytes after the data of turn 0.
  void produce(std::uint32_t g, std::uint64_t turn) {
    ranks_[g].stream.kernel([this, g, turn] {
      auto& r = ranks_[g];
      ++r.produced;
      for (const auto& range : run_.plan().given)
        if (const auto s = at(range.va); run_.plan().schedule.buffers[s.index].place == Place::gpu(g))
          fill_pattern(bytes(range.va + turn, range.bytes), r.produced, s.index, s.offset);
    });
  }
  void consume(std::uint32_t g, std::uint64_t turn) {
    ranks_[g].stream.kernel([this, g, turn] {
      auto& r = ranks_[g];
      for (const auto& m : run_.plan().moves)
        if (const auto from = at(m.from); m.dst == g)
          r.wrong += mismatch(bytes(m.to + turn, m.bytes), r.produced, from.index, from.offset).wrong;
    });
  }

  Run& run_;
  std::deque<Rank> ranks_;
};

inline Options for_streams(Collective c, Variant v, std::uint32_t n, std::uint64_t bytes) {
  return {.collective = c,
          .variant = v,
          .prelaunch = Prelaunch::stream,
          .completion = Completion::fence,
          .gpus = n,
          .bytes = bytes,
          .ring_bytes = 64 << 10};
}

}  // namespace collectives::test
