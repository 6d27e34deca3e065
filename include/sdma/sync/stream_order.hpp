// SPDX-License-Identifier: MIT
#pragma once
// Packets in the order of a stream of HIP or CUDA: they begin when the stream reaches them, and the stream continues
// when they are complete. The host publishes and enqueues; it never waits for either.
//
//   StreamOrder order{go, {&done, 1}};                        // two words that are 0: see Memory
//   if (auto r = order.prepare(stream); !r) return fail(r.error());       // refuses words that the stream cannot use
//   kernel(s, a);                                                        // enqueues it
//   order.enqueue(stream, ring, 32, deadline, [&](auto& packets, std::uint32_t) {
//     packets.copy({.src = a, .dst = b, .bytes = n});
//   });
//   kernel(s, b);
//
//   stream   kernel | write go = 7 | hold until done == 7 | kernel
//                          v                 ^
//   ring          [poll go == 7]  copies  [fence done = 7]            published at any time, also rounds ahead
//
// The caller describes a stream by two functions (StreamCalls); docs/stream_order.md has those of HIP and CUDA.
//
// Several queues. `done` has a word for each queue of the stream. A round is then next, begin, publish on each ring,
// end. Several streams, one per GPU: give each its own StreamOrder, and make the same calls of `next` and `graph` on
// all, so that they count alike. A queue that reads or writes the memory of another stream's GPU also polls that
// stream's `go` for the same value, and both streams hold until its completion.
//
// Graphs. A captured stream repeats the same values in every replay, so values cannot grow. They do not have to: a
// value only has to differ from that of the previous round, because a stream changes `go` only after it has seen the
// completions of a round. Each iteration of a graph therefore has its own value, nothing is reset, and packets compare
// for equality. A graph of one iteration gets a second round without packets, which keeps one replay apart from the
// next. Rings do not run twice: publish a graph's rounds once for each launch, in the order of the launches.
// examples/schedules/11_stream_order.sdma is this protocol with replays, which `sdma check` proves.
//
//   const auto graph = *order.graph(20);                      // values of its own
//   begin_capture(s);
//   for (std::uint32_t i = 0; i < 20; ++i) { kernel(s, a); order.pass(stream, graph.value(i)); }
//   order.close(stream, graph);                               // before the capture ends
//   auto ready = end_capture(s);                              // and for each launch:
//   order.publish(ring, 0, 32, deadline, graph, [&](auto& packets, std::uint32_t value) { ... });
//   launch(ready, s);
//
// Engines. It is not known whether a waiting poll lets other queues of its engine continue (X2). If a queue waits for a
// stream, its engine must therefore not have other work that the stream has to complete first, such as the runtime's
// own copies. Do not use an engine that faces the host.
//
// Memory. Words are 32 bits, aligned to 4, and begin at 0. Engines poll and store them, so the queue's GPU must reach
// them, and nothing else may write them. HIP: a stream waits only for signal memory (hipExtMallocWithFlags with
// hipMallocSignalMemory, 8 bytes each), which RocrDevice::adopt lends to engines. CUDA: pinned host memory, or memory
// of the stream's GPU; Device::create_signal gives such a word. `prepare` asks StreamCalls::takes, has the stream try
// each word as it will be used, and refuses one that the stream does not take. HIP refuses less than it supports, so
// its calls need `takes`. Call `prepare` outside of a capture. The caller keeps the array of words.
//
// Ordering. `write` must come after everything earlier in the stream, released at system scope, and `hold` must
// acquire: both are what HIP and CUDA do without flags. So packets see what earlier kernels stored (C3), and later
// kernels see what the packets stored (C4). Rounds of a stream do not overlap.
//
// Threads: one at a time uses a StreamOrder. No allocation. Errors: a StreamRefusal. If the stream refuses `write`, or
// the packets do not fit, the round does not take place. If the stream refuses to be held, the packets run, and the
// stream does not wait for them. If a submission longer than half a ring fails in the middle, its queue cannot be used
// again.
#include "sdma/core/result.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/submission.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace sdma { inline namespace v0_3 {

/// A stream, by what it does. Its functions enqueue, and return 0 or the runtime's error.
struct StreamCalls {
  void* stream{};  ///< passed to both: a hipStream_t, a CUstream
  /// Stores `value` once everything earlier in the stream is complete.
  int (*write)(void* stream, GpuVa word, std::uint32_t value) noexcept {};
  /// Later work waits until the word equals `value`.
  int (*hold)(void* stream, GpuVa word, std::uint32_t value) noexcept {};
  /// Is the word of the kind that the stream can wait for? Null: the stream's own refusals say so.
  bool (*takes)(void* stream, GpuVa word) noexcept {};
  /// Copies once everything earlier in the stream is complete. A StreamOrder does not call it: it is for rounds that
  /// the stream carries itself, without a ring (docs/stream_order.md). Null: none of this stream.
  int (*copy)(void* stream, GpuVa to, GpuVa from, std::uint64_t bytes) noexcept {};
};

/// Why a round did not take place, or not as it should.
struct StreamRefusal {
  Errc error = Errc::bad_argument;  ///< of the words, the packets or the ring; bad_argument if the stream refuses
  int status{};                     ///< what the stream's function returned; 0: the stream did not refuse
  GpuVa word{};                     ///< the word that the refusal is about, or 0
};

/// The rounds of a graph that is captured once and replayed: an iteration's value is the same in each replay.
struct StreamGraph {
  std::uint32_t first{};       ///< the value of iteration 0
  std::uint32_t iterations{};  ///< how many the caller captures

  /// The value of an iteration.
  [[nodiscard]] constexpr std::uint32_t value(std::uint32_t iteration) const noexcept { return first + iteration; }
  /// The rounds of a replay: the iterations, and for a single one another round that separates replays.
  [[nodiscard]] constexpr std::uint32_t rounds() const noexcept { return iterations == 1 ? 2 : iterations; }
};

class StreamOrder {
 public:
  /// Eager rounds count from 1 to this value and begin again. Values of graphs are above, and are never used again.
  static constexpr std::uint32_t kLastEager = 0xffff;

  /// `done`: a word for each queue. The caller keeps the array.
  StreamOrder(GpuVa go, std::span<const GpuVa> done) noexcept : go_(go), done_(done) {}

  /// The word that the stream writes, and queues poll.
  [[nodiscard]] GpuVa go() const noexcept { return go_; }
  /// The words that queues store to, and the stream waits for.
  [[nodiscard]] std::span<const GpuVa> done() const noexcept { return done_; }

  /// Checks the words, and has the stream write the one and wait for the others, which are 0. Refused: no word for a
  /// queue; a word that is null, misaligned or given twice; and a word that the stream does not take.
  Result<void, StreamRefusal> prepare(const StreamCalls& s) const noexcept {
    if (done_.empty()) return StreamRefusal{};
    for (std::size_t i = 0; i < done_.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j)
        if (const auto w = done_[i], other = j < i ? done_[j] : go_; !is_word(w) || w == other)
          return StreamRefusal{.word = w};
    if (!is_word(go_)) return StreamRefusal{.word = go_};
    for (const auto w : done_)
      if (s.takes && !s.takes(s.stream, w)) return StreamRefusal{.word = w};
    return pass(s, 0);
  }

  /// The value of the next eager round.
  std::uint32_t next() noexcept { return eager_ = eager_ == kLastEager ? 1 : eager_ + 1; }
  /// The values of a graph. bad_argument: no iteration; epoch_overflow: the values are used up.
  Result<StreamGraph> graph(std::uint32_t iterations) noexcept {
    const StreamGraph g{.first = graphs_, .iterations = iterations};
    if (iterations == 0) return Errc::bad_argument;
    if (iterations > ~std::uint32_t{0} - graphs_ - 1) return Errc::epoch_overflow;
    graphs_ += g.rounds();
    return g;
  }

  /// The stream lets the round's packets begin.
  Result<void, StreamRefusal> begin(const StreamCalls& s, std::uint32_t value) const noexcept {
    return taken(s.write(s.stream, go_, value), go_);
  }
  /// The stream waits for the round's completions.
  Result<void, StreamRefusal> end(const StreamCalls& s, std::uint32_t value) const noexcept {
    for (const auto word : done_)
      if (auto r = taken(s.hold(s.stream, word, value), word); !r) return r;
    return {};
  }
  /// Both: all that a captured stream contains of a round.
  Result<void, StreamRefusal> pass(const StreamCalls& s, std::uint32_t value) const noexcept {
    if (auto r = begin(s, value); !r) return r;
    return end(s, value);
  }
  /// The end of a capture: the second round of a graph of one iteration.
  Result<void, StreamRefusal> close(const StreamCalls& s, const StreamGraph& g) const noexcept {
    for (auto i = g.iterations; i < g.rounds(); ++i)
      if (auto r = pass(s, g.value(i)); !r) return r;
    return {};
  }

  /// Publishes a round of one queue: the poll, what `write(submission, value)` adds in up to `dwords` dwords, and the
  /// fence to done()[queue]. Errors: those of a Submission, and what `write` returns, if it returns an Errc.
  template <Producers K, class Order, class Write, class Target = FixedGeneration<kDefaultGeneration>>
  [[nodiscard]] Errc publish(Ring<K, Order>& ring, std::size_t queue, std::size_t dwords, Deadline d,
                             std::uint32_t value, Write&& write, Target target = {}) const noexcept {
    if (queue >= done_.size()) return Errc::bad_argument;
    Submission packets{ring, dwords_of<PollMem, Fence>() + dwords, d, target};
    packets.with([&](auto& w) { return acquire_equal(w, go_, value); });
    write(packets, value);
    packets.with([&](auto& w) { return complete_with_fence(w, done_[queue], value); });
    return packets.publish();
  }
  /// Publishes the rounds of one replay. `write` is called for the iterations.
  template <Producers K, class Order, class Write, class Target = FixedGeneration<kDefaultGeneration>>
  [[nodiscard]] Errc publish(Ring<K, Order>& ring, std::size_t queue, std::size_t dwords, Deadline d,
                             const StreamGraph& g, Write&& write, Target target = {}) const noexcept {
    for (std::uint32_t i = 0; i < g.rounds(); ++i) {
      const auto round = [&](auto& packets, std::uint32_t value) {
        if (i < g.iterations) write(packets, value);
      };
      if (const auto e = publish(ring, queue, dwords, d, g.value(i), round, target); e != Errc::ok) return e;
    }
    return Errc::ok;
  }

  /// An eager round of a stream with one queue.
  template <Producers K, class Order, class Write, class Target = FixedGeneration<kDefaultGeneration>>
  Result<void, StreamRefusal> enqueue(const StreamCalls& s, Ring<K, Order>& ring, std::size_t dwords, Deadline d,
                                      Write&& write, Target target = {}) noexcept {
    if (done_.size() != 1) return StreamRefusal{};
    const auto value = next();
    // Before the packets: what is longer than the ring needs an engine that reads.
    if (auto r = begin(s, value); !r) return r;
    if (const auto e = publish(ring, 0, dwords, d, value, write, target); e != Errc::ok)
      return StreamRefusal{.error = e};
    return end(s, value);
  }

 private:
  static bool is_word(GpuVa w) noexcept { return w.value != 0 && w.value % 4 == 0; }
  static Result<void, StreamRefusal> taken(int status, GpuVa word) noexcept {
    if (status == 0) return {};
    return StreamRefusal{.status = status, .word = word};
  }

  GpuVa go_;
  std::span<const GpuVa> done_;
  std::uint32_t eager_ = 0, graphs_ = kLastEager + 1;
};

}}  // namespace sdma::v0_3
