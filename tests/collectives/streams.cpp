// SPDX-License-Identifier: MIT
// Collectives in the order of streams, one per GPU, whose kernels write the inputs and read the results: eager rounds,
// and graphs that are replayed back to back. The host enqueues everything before it waits once.
#include "stream_rounds.hpp"
#include "support/stream.hpp"

namespace collectives::test {
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
        Ranks<::test::Stream> ranks(r, n);
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
  Ranks<::test::Stream> ranks(r, 3);
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
  Ranks<::test::Stream> ranks(*r, 3);
  for (int i = 0; i < 5; ++i) ranks.eager();
  CHECK(ranks.finish() == 0);
  CHECK(words[0].load() == 5);
  words.pop_back();
  const auto few = Run::prepare(p, *d, {}, words);
  REQUIRE_FALSE(few);
  CHECK(few.error()[0].message.find("5 words for streams, and the plan has 6") != std::string::npos);
}

}  // namespace collectives::test
