// SPDX-License-Identifier: MIT
// A server under load: times that are worked out by hand from a table of steps with round figures.
#include "sdma/simulate/serving.hpp"
#include "core/median.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

// An admission takes 100 ms, or 50 ms by way of a fetch; a decode step 10 ms for one request, 20 ms for two.
constexpr std::string_view kHandSteps =
    "# by hand\n"
    "step,way,batch,cached,new,ms,more\n"
    "admit,none,1,0,64,100,x\n"
    "admit,none,1,0,128,200,x\n"
    "admit,layer,1,32,32,50,x\n"
    "admit,layer,1,96,32,90,x\n"
    "decode,none,1,32,32,10,x\n"
    "decode,none,2,32,32,20,x\n"
    "decode,none,1,96,32,30,x\n"
    "decode,none,2,96,32,40,x\n";

StepTimes hand_steps(std::string_view text = kHandSteps) {
  auto t = step_times(text, "t.csv");
  if (!t) UNSCOPED_INFO(to_string(t.error()));
  REQUIRE(t);
  return std::move(*t);
}
std::string steps_error(std::string_view text) {
  const auto t = step_times(text, "t.csv");
  REQUIRE_FALSE(t);
  return to_string(t.error());
}
/// 64 tokens before it begins, so that a decode step takes 10 or 20 ms, and a 32nd of that more for each token after.
ServingRequest asked_at(double arrival, std::uint64_t tokens) {
  return {.arrival = arrival, .prefix = 32, .prompt = 32, .tokens = tokens};
}
Serving hand_served(const std::vector<ServingRequest>& all, const ServingOptions& o) {
  const auto t = hand_steps();
  auto s = serve_requests(all, t, o);
  if (!s) UNSCOPED_INFO(to_string(s.error()));
  REQUIRE(s);
  return std::move(*s);
}
std::string serving_refused(const std::vector<ServingRequest>& all, const ServingOptions& o) {
  const auto t = hand_steps();
  const auto s = serve_requests(all, t, o);
  REQUIRE_FALSE(s);
  return to_string(s.error());
}
const std::string kHandArrivals = "arrival,tokens\n0.5,3\n1,4\n";

}  // namespace

TEST_CASE("a request that is alone waits for nothing") {
  const auto s = hand_served({asked_at(1, 2)}, {.way = "layer", .blocks = 100, .batch = 8});
  REQUIRE(s.requests.size() == 1);
  CHECK(s.requests[0].admitted == Approx(1));
  CHECK(s.requests[0].first == Approx(1.05));
  CHECK(s.requests[0].last == Approx(1.06));
  CHECK(s.decode_steps == 1);
  CHECK(s.seconds == Approx(1.06));
  CHECK(s.tokens_per_second == Approx(2 / 1.06));
}

TEST_CASE("a request that wants one token is complete after its admission") {
  const auto s = hand_served({asked_at(0, 1)}, {.blocks = 100, .batch = 8});
  CHECK(s.requests[0].first == Approx(0.1));
  CHECK(s.requests[0].last == Approx(0.1));
  CHECK(s.decode_steps == 0);
}

TEST_CASE("two requests: the second is admitted before the first decodes, and both decode together") {
  const auto s = hand_served({asked_at(0, 2), asked_at(0.02, 2)}, {.way = "layer", .blocks = 100, .batch = 8});
  CHECK(s.requests[0].first == Approx(0.05));
  CHECK(s.requests[1].admitted == Approx(0.05));
  CHECK(s.requests[1].first == Approx(0.1));
  CHECK(s.requests[0].last == Approx(0.12));
  CHECK(s.requests[1].last == Approx(0.12));
  CHECK(s.requests[1].waited_for_others == Approx(0.03));
  CHECK(s.requests[1].waited_for_blocks + s.requests[1].waited_for_batch == 0);
}

TEST_CASE("an arrival during a decode step waits until that step is over, and delays the next one") {
  const auto s = hand_served({asked_at(0, 3), asked_at(0.055, 2)}, {.way = "layer", .blocks = 100, .batch = 8});
  // The first: 50 ms, a step of 10; then the second: 50 ms, and a step of two, in which the longer one has 65 tokens.
  CHECK(s.requests[1].admitted == Approx(0.06));
  CHECK(s.requests[1].waited_for_others == Approx(0.005));
  CHECK(s.requests[1].first == Approx(0.11));
  CHECK(s.requests[0].last == Approx(0.11 + 0.020 + 0.020 / 64));
}

TEST_CASE("a full batch and too few blocks are told apart") {
  const std::vector<ServingRequest> all{asked_at(0, 2), asked_at(0.05, 2)};
  // 66 tokens are 5 blocks of 16.
  for (const bool blocks : {false, true}) {
    const auto s = hand_served(all, {.way = "layer", .blocks = blocks ? 9U : 10U, .batch = blocks ? 2U : 1U});
    CHECK(s.requests[1].admitted == Approx(0.06));
    CHECK(s.requests[1].waited_for_batch == Approx(blocks ? 0 : 0.01));
    CHECK(s.requests[1].waited_for_blocks == Approx(blocks ? 0.01 : 0));
    CHECK(s.requests[1].waited_for_others == 0);
    CHECK(s.requests[1].last == Approx(0.06 + 0.05 + 0.01));
  }
  // Both fit.
  CHECK(hand_served(all, {.way = "layer", .blocks = 10, .batch = 2}).requests[1].admitted == Approx(0.05));
}

TEST_CASE("prefixes are fetched in whole blocks, or computed again") {
  // 40 tokens of prefix are 2 blocks and 8 tokens: 32 are fetched, and 8 + 24 are prefilled.
  const ServingRequest r{.prefix = 40, .prompt = 24, .tokens = 1};
  CHECK(hand_served({r}, {.way = "layer", .blocks = 100, .batch = 1}).seconds == Approx(0.05));
  CHECK(hand_served({r}, {.way = "none", .blocks = 100, .batch = 1}).seconds == Approx(0.1));
}

TEST_CASE("between shapes, times are linear in each axis; beyond them, the nearest is marked") {
  const auto t = hand_steps();
  const auto& layer = t.admit.at("layer");
  CHECK(StepTimes::time(layer, 64, 32)->ms == Approx(70));
  CHECK_FALSE(StepTimes::time(layer, 64, 32)->beyond);
  CHECK(StepTimes::time(t.decode, 96, 2)->ms == Approx(30));
  CHECK(StepTimes::time(t.decode, 64, 5)->ms == Approx(20));
  CHECK(StepTimes::time(t.decode, 64, 5)->beyond);
  CHECK(StepTimes::time(t.decode, 10, 1)->beyond);
  CHECK(StepTimes::time(t.decode, 200, 1)->ms == Approx(30));
  CHECK(StepTimes::time(t.decode, 200, 1)->beyond);
  CHECK(StepTimes::time(layer, 32, 33)->beyond);
  CHECK_FALSE(StepTimes::time({}, 1, 1));
}

TEST_CASE("a shape beyond the table is refused, or counted") {
  const std::vector<ServingRequest> three{asked_at(0, 2), asked_at(0, 2), asked_at(0, 2)};
  ServingOptions o{.way = "layer", .blocks = 100, .batch = 3};
  CHECK(serving_refused(three, o).find("a decode step of 3 requests of 64 tokens is beyond") != std::string::npos);
  o.nearest = true;
  const auto s = hand_served(three, o);
  CHECK(s.decodes_beyond == 1);
  CHECK(s.admissions_beyond == 0);
  CHECK(s.seconds == Approx(0.17));
  CHECK(hand_served({{.prefix = 32, .prompt = 64, .tokens = 1}}, o).admissions_beyond == 1);
}

TEST_CASE("what cannot be served is refused") {
  CHECK(serving_refused({}, {.blocks = 1, .batch = 1}).find("no requests") != std::string::npos);
  CHECK(serving_refused({asked_at(0, 1)}, {.way = "lair", .blocks = 9, .batch = 1}).find("it has layer, none") !=
        std::string::npos);
  CHECK(serving_refused({asked_at(0, 1)}, {.blocks = 4, .batch = 1}).find("needs 5 blocks, and the GPU has 4") !=
        std::string::npos);
  CHECK(serving_refused({asked_at(0, 0)}, {.blocks = 9, .batch = 1}).find("wants none") != std::string::npos);
  CHECK(serving_refused({asked_at(0, ~std::uint64_t{0})}, {.blocks = 9, .batch = 1})
            .find("more than 1000000000 tokens") != std::string::npos);
  CHECK(serving_refused({asked_at(0, 1)}, {.blocks = 9}).find("size of 1") != std::string::npos);
}

TEST_CASE("errors of tables name their lines") {
  CHECK(steps_error("step,way\n").find("t.csv:1") == 0);
  CHECK(steps_error("").find("no rows") != std::string::npos);
  const std::string head = "step,way,batch,cached,new,ms\n";
  CHECK(steps_error(head + "admit,a,1,0,1\n").find("5 fields, but 6 columns") != std::string::npos);
  CHECK(steps_error(head + "admit,a,1,0,1,0\n").find("t.csv:2: error: '0' is not a time in ms") == 0);
  CHECK(steps_error(head + "admit,a,2,0,1,5\n").find("one at a time") != std::string::npos);
  CHECK(steps_error(head + "decode,a,0,0,1,5\n").find("one request at least") != std::string::npos);
  CHECK(steps_error(head + "rest,a,1,0,1,5\n").find("neither admit nor decode") != std::string::npos);
  CHECK(steps_error(head + "admit,a,1,0,1,5\nadmit,a,1,0,1,6\n").find("there twice") != std::string::npos);
}

TEST_CASE("recorded arrivals replace what their columns name") {
  const ServingRequest each{.prefix = 7, .prompt = 8, .tokens = 9};
  const auto r = recorded_arrivals(kHandArrivals, "a.csv", each);
  REQUIRE(r);
  REQUIRE(r->size() == 2);
  CHECK((*r)[0].arrival == 0.5);
  CHECK((*r)[1].tokens == 4);
  CHECK((*r)[1].prefix == 7);
  for (const auto& [text, why] : {std::pair{"arrival,which\n0,1\n", "'which' is not one of the columns"},
                                  {"tokens\n1\n", "'arrival' is missing"},
                                  {"arrival\n2\n1\n", "a.csv:3: error: it arrives before"},
                                  {"arrival\n-1\n", "not a time"},
                                  {"arrival,prompt\n1,x\n", "not a number of tokens"}}) {
    const auto wrong = recorded_arrivals(text, "a.csv", each);
    REQUIRE_FALSE(wrong);
    CHECK(to_string(wrong.error()).find(why) != std::string::npos);
  }
}

TEST_CASE("Poisson arrivals: a seed gives the same ones again, at the rate that was asked for") {
  const auto a = poisson_arrivals(20000, 4, 1, {.prompt = 5, .tokens = 6});
  CHECK(a.back().arrival == Approx(5000).epsilon(0.03));
  CHECK(a[3].prompt == 5);
  CHECK(a[0].arrival > 0);
  CHECK(poisson_arrivals(2, 4, 1, {})[1].arrival == a[1].arrival);
  CHECK(poisson_arrivals(2, 4, 2, {})[1].arrival != a[1].arrival);
}

TEST_CASE("quantiles are linear between values") {
  CHECK(detail::quantile({3, 1, 2}, 0.5) == 2);
  CHECK(detail::quantile({1, 2}, 0.9) == Approx(1.9));
  CHECK(detail::quantile({5}, 0.99) == 5);
}
