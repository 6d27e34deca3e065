// SPDX-License-Identifier: MIT
// Several processes that time a collective together: what they exchange, and how they end.
#include "perf/ranks.hpp"

#include <fmt/format.h>

#include <csignal>

#include "sdma/schedule/exchange.hpp"
#include "support/catch.hpp"

using namespace collectives::perf;
using namespace sdma;
using namespace std::chrono_literals;

namespace {

/// What each of three ranks ends with: "2 rank 1: ...".
std::vector<std::string> ends(const std::function<Ranks::End(Ranks&)>& work) {
  const auto all = in_ranks(3, 60s, [&](std::uint32_t rank, Exchange& exchange) {
    Ranks ranks(exchange, rank, 3, 60s);
    const auto end = work(ranks);
    return fmt::format("{} {}", end.code, end.error ? end.error->where + ": " + end.error->message : "");
  });
  REQUIRE(all);
  std::vector<std::string> out(3);
  for (const auto& r : *all) out[r.rank] = r.answer.value_or("killed");
  return out;
}
std::vector<std::string> thrice(const std::string& one) { return {one, one, one}; }

/// Agrees on these settings, and ends.
std::vector<std::string> agreed(const std::function<void(std::uint32_t, Settings&, std::string&)>& own) {
  return ends([&](Ranks& ranks) -> Ranks::End {
    Settings s;
    s.options.gpus = 6;
    s.ways = {{collectives::Variant::b2b, true}};
    std::string command = "-b 1K";
    own(ranks.rank(), s, command);
    if (auto r = ranks.agree(s, command); !r) return ranks.end(2, r.error());
    std::string gpus;
    for (const auto g : s.gpus) gpus += std::to_string(g.value);
    return ranks.end(0, Diagnostic{.where = "", .message = gpus});
  });
}

}  // namespace

TEST_CASE("ranks receive the bytes of all, any number of times") {
  CHECK(ends([](Ranks& ranks) {
          std::string all;
          for (std::size_t i = 0; i < 50; ++i) {
            const auto texts = ranks.all(std::string(i * 997, static_cast<char>('a' + ranks.rank())));
            for (const auto& t : *texts) all += fmt::format("{}{}", t.size() / 997, t.substr(0, 1));
          }
          return ranks.end(all.starts_with("0001a1b1c2a2b2c") && all.ends_with("49a49b49c") ? 0 : 1, {});
        }) == thrice("0 "));
}

TEST_CASE("ranks that meet agree on the moment when the last one came") {
  CHECK(ends([](Ranks& ranks) {
          const auto came = std::chrono::steady_clock::now();
          const auto last = ranks.meet();
          const auto left = std::chrono::steady_clock::now();
          const auto texts = ranks.all(std::to_string(last->time_since_epoch().count()));
          const bool alike = (*texts)[0] == (*texts)[1] && (*texts)[0] == (*texts)[2];
          return ranks.end(alike && came <= *last && *last <= left ? 0 : 1, {});
        }) == thrice("0 "));
}

TEST_CASE("a round of several ranks is from the first start to the last end, and wrong bytes are added") {
  CHECK(ends([](Ranks& ranks) {
          using Moment = std::chrono::steady_clock::time_point;
          const auto r = ranks.rank();
          // Rank 1 starts nothing.
          const auto us = ranks.slowest({{r == 1 ? Moment::max() : Moment(10us + r * 1us), Moment(50us + r * 1us)},
                                         {Moment(1us), Moment(9us - r * 1us)}});
          collectives::Check check{.wrong = r, .first = r == 0 ? "" : fmt::format("of rank {}", r)};
          const bool added = ranks.add(check).has_value();
          const bool right =
              us && *us == std::vector<double>{42, 8} && added && check.wrong == 3 && check.first == "of rank 1";
          return ranks.end(right ? 0 : 1, {});
        }) == thrice("0 "));
}

TEST_CASE("ranks that are not to measure the same say which one differs") {
  CHECK(agreed([](std::uint32_t r, Settings& s, std::string&) { s.least = r == 1 ? 4096 : 1024; }) ==
        thrice("2 rank 1: the sizes in bytes are '4096 to 67108864', and rank 0 has '1024 to 67108864'"));
  CHECK(agreed([](std::uint32_t r, Settings& s, std::string&) {
          if (r == 2) s.ways = {{collectives::Variant::pcpy, false}};
        }) == thrice("2 rank 2: the variants are 'pcpy', and rank 0 has 'b2b+pl'"));
  CHECK(agreed([](std::uint32_t r, Settings&, std::string& command) {
          if (r == 2) command = "-b 1024";
        }) == thrice("2 rank 2: the command is '-b 1024', and rank 0 has '-b 1K'"));
}

TEST_CASE("ranks name their own GPUs, and none twice") {
  CHECK(agreed([](std::uint32_t r, Settings& s, std::string&) {
          if (r == 1) s.gpus = {GpuId{7}, GpuId{6}};
        }) == thrice("0 : 017645"));
  CHECK(agreed([](std::uint32_t r, Settings& s, std::string&) {
          if (r == 2) s.gpus = {GpuId{3}, GpuId{7}};
        }) == thrice("2 rank 2: it has GPU 3, as rank 1 does"));
}

TEST_CASE("a rank that fails gives all its error and exit code, at the next exchange") {
  const auto fails = [](std::uint32_t which) {
    return ends([which](Ranks& ranks) {
      if (!ranks.all("one")) return ranks.end(9, {});
      if (ranks.rank() == which) return ranks.end(3, Diagnostic{.where = "file", .message = "it is full"});
      const auto two = ranks.all("two");
      return ranks.end(two ? 0 : 1, two ? std::nullopt : std::optional(two.error()));
    });
  };
  CHECK(fails(0) == thrice("3 file: it is full"));
  CHECK(fails(2) == thrice("3 rank 2: file: it is full"));
}

TEST_CASE("of several errors, that of the lowest rank counts, but not one that follows from another") {
  CHECK(ends([](Ranks& ranks) {
          const std::string what[] = {"rank 2 has stopped the run", "first", "second"};
          return ranks.end(static_cast<int>(ranks.rank()) + 3, Diagnostic{.where = "w", .message = what[ranks.rank()]});
        }) == thrice("4 rank 1: w: first"));
}

TEST_CASE("a rank that is killed ends the others") {
  const auto all = ends([](Ranks& ranks) {
    if (ranks.rank() == 1) ::raise(SIGKILL);
    const auto one = ranks.all("one");
    return ranks.end(one ? 0 : 1, one ? std::nullopt : std::optional(one.error()));
  });
  CHECK(all[0] == "1 rank 1: its handles have not come: it has ended");
  CHECK(all[1] == "killed");
  CHECK(all[2] == all[0]);
}
