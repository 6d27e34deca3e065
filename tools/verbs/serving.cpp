// SPDX-License-Identifier: MIT
// sdma serving: predicts how a server with a KV cache serves requests, from the times of its steps.
#include "sdma/simulate/serving.hpp"
#include "core/median.hpp"
#include "core/plural.hpp"
#include "input.hpp"
#include "json/json.hpp"
#include "sdma/core/number.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace sdma::tool {
namespace {

struct ServingArguments {
  std::string steps, arrivals;
  std::optional<double> rate;
  std::uint64_t requests = 40, seed = 1;
  std::optional<std::uint64_t> blocks, batch, prompt, tokens;
  ServingRequest each{};
  ServingOptions server{.way = ""};
  bool json = false;
};

using detail::quantile;

constexpr double kParts[] = {0.5, 0.9, 0.99};
constexpr std::uint64_t kMostTokens = 1'000'000'000, kMostRequests = 1'000'000;

/// What every request has of one kind, in seconds.
template <class Of> std::vector<double> of_all(const Serving& s, Of of) {
  std::vector<double> out;
  for (std::size_t i = 0; i < s.requests.size(); ++i) out.push_back(of(s.requests[i], i));
  return out;
}
std::string seconds_row(const std::string& what, const std::vector<double>& all) {
  std::string out = fmt::format("{:<24}", what);
  for (const auto part : kParts) out += fmt::format(" {:>8.3f} s", quantile(all, part));
  return out + "\n";
}

/// What the answer has beside tokens a second, in the order of its rows.
struct Waits {
  std::vector<double> first, blocks, batch, others;
};
Waits waits_of(const Serving& s, const std::vector<ServingRequest>& all) {
  return {of_all(s, [&](const auto& r, std::size_t i) { return r.first - all[i].arrival; }),
          of_all(s, [](const auto& r, std::size_t) { return r.waited_for_blocks; }),
          of_all(s, [](const auto& r, std::size_t) { return r.waited_for_batch; }),
          of_all(s, [](const auto& r, std::size_t) { return r.waited_for_others; })};
}

std::string serving_table(const Serving& s, const Waits& w) {
  auto out = fmt::format("{:<24} {:>10} {:>10} {:>10}\n", "predicted", "p50", "p90", "p99");
  out += seconds_row("time to first token", w.first);
  out += seconds_row("waited for blocks", w.blocks);
  out += seconds_row("waited for the batch", w.batch);
  out += seconds_row("waited for other steps", w.others);
  out += fmt::format("{} in {:.3f} s: {:.1f} tokens a second, {}\n", plural(s.requests.size(), "request"), s.seconds,
                     s.tokens_per_second, plural(s.decode_steps, "decode step"));
  if (s.admissions_beyond + s.decodes_beyond > 0)
    out += fmt::format(
        "beyond the table: {} of {} admissions and {} of {} decode steps have the time of the nearest measured shape\n",
        s.admissions_beyond, s.requests.size(), s.decodes_beyond, s.decode_steps);
  return out;
}

json::Json serving_object(const Serving& s, const std::vector<ServingRequest>& all, const Waits& w) {
  const auto parts = [](const std::vector<double>& v) {
    return json::Json{
        {"p50", quantile(v, kParts[0])}, {"p90", quantile(v, kParts[1])}, {"p99", quantile(v, kParts[2])}};
  };
  json::Json rows = json::Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& r = s.requests[i];
    rows.push_back({{"arrival_s", all[i].arrival},
                    {"admitted_s", r.admitted},
                    {"first_token_s", r.first},
                    {"last_token_s", r.last}});
  }
  return {{"first_token_s", parts(w.first)},
          {"waited_for_blocks_s", parts(w.blocks)},
          {"waited_for_batch_s", parts(w.batch)},
          {"waited_for_others_s", parts(w.others)},
          {"seconds", s.seconds},
          {"tokens_per_second", s.tokens_per_second},
          {"decode_steps", s.decode_steps},
          {"admissions_beyond_table", s.admissions_beyond},
          {"decodes_beyond_table", s.decodes_beyond},
          {"requests", std::move(rows)}};
}

int serving_verb(ServingArguments o) {
  if (o.steps.empty()) return complain("no table of steps given", "sdma serving share/measured/h200/serving_steps.csv");
  if (o.arrivals.empty() == !o.rate) return complain("requests arrive by --rate or by --arrivals", "give one of them");
  if (reads_stdin_twice({o.steps, o.arrivals})) return kUsage;
  for (const auto& [option, given] : {std::pair{"--way", !o.server.way.empty()},
                                      {"--blocks", o.blocks.has_value()},
                                      {"--batch", o.batch.has_value()},
                                      {"--prompt", o.prompt.has_value()},
                                      {"--tokens", o.tokens.has_value()}})
    if (!given) return complain(fmt::format("{} is not given", option), "sdma serving --help says what it is");
  o.server.blocks = *o.blocks, o.server.batch = *o.batch, o.each.prompt = *o.prompt, o.each.tokens = *o.tokens;
  const auto text = read_text(o.steps);
  if (!text) return report(text.error()), kInput;
  const auto steps = step_times(*text, shown(o.steps));
  if (!steps) return report(steps.error()), kInput;
  std::vector<ServingRequest> all;
  if (o.rate) all = poisson_arrivals(o.requests, *o.rate, o.seed, o.each);
  else {
    const auto recorded = read_text(o.arrivals);
    if (!recorded) return report(recorded.error()), kInput;
    auto parsed = recorded_arrivals(*recorded, shown(o.arrivals), o.each);
    if (!parsed) return report(parsed.error()), kInput;
    all = *std::move(parsed);
  }
  auto served = serve_requests(all, *steps, o.server);
  if (!served) {
    served.error().where = "sdma serving";
    return report(served.error()), kInput;
  }
  const auto waits = waits_of(*served, all);
  return write_text("-", o.json ? json::document(serving_object(*served, all, waits)) : serving_table(*served, waits));
}

std::optional<double> parse_rate(std::string_view text) {
  const auto v = parse_real(text);
  return v && *v > 0 ? v : std::nullopt;
}

}  // namespace

void add_serving(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<ServingArguments>();
  verb.value("STEPS.csv", o->steps, "how long each step of the server takes; bench/serving/load.py measures it");
  verb.value("--way", o->server.way,
             "how prefixes come: none, they are computed again; or a way of fetching them from host memory that the "
             "table has, such as layer")
      .type("NAME");
  add_parsed(verb, "--rate", o->rate, parse_rate, "a number above 0", "arrivals a second, at random (Poisson)")
      .type("N");
  add_count(verb, "--requests", o->requests, 1, kMostRequests, "with --rate: how many arrive");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "with --rate: another seed gives other arrivals");
  verb.value("--arrivals", o->arrivals,
             "recorded arrivals instead: the column arrival has seconds; prefix, prompt and tokens, if they are there, "
             "replace the options")
      .type("FILE.csv");
  add_count(verb, "--prefix", o->each.prefix, 0, kMostTokens, "tokens of a request whose blocks are in host memory");
  add_count(verb, "--prompt", o->prompt, 0, kMostTokens, "tokens after the prefix");
  add_count(verb, "--tokens", o->tokens, 1, kMostTokens, "tokens to generate for a request");
  add_count(verb, "--blocks", o->blocks, 1, kMostTokens, "blocks of the GPU's KV cache");
  add_count(verb, "--block-tokens", o->server.block_tokens, 1, kMostTokens, "tokens of a block");
  add_count(verb, "--batch", o->batch, 1, kMostTokens, "most requests that are decoded together");
  verb.flag("--nearest", o->server.nearest,
            "a step beyond the measured shapes takes the time of the nearest one, and the answer says how often. "
            "Without it, such a step is an error");
  add_format(verb, "table", o->json, "form of the answer (default: table)");
  verb.exits(
      {{kOk, "predicted"},
       {kInput,
        "a table or arrivals that cannot be read, a way or a shape that the table lacks, or a request that needs\n"
        "more blocks than there are"}});
  verb.manual("docs/serving.md");
  verb.footer(
      "The server is that of examples/serving: it admits requests one at a time, in the order of their arrival, and\n"
      "decodes a token for all that run when none can be admitted.\n"
      "Examples:\n"
      "  sdma serving steps.csv --way=layer --rate=4 --requests=100 --prefix=2048\n"
      "      --prompt=64 --tokens=32 --blocks=4096 --batch=8\n"
      "  sdma serving steps.csv --way=none --arrivals=arrivals.csv --prefix=2048\n"
      "      --prompt=64 --tokens=32 --blocks=4096 --batch=8");
  action = [o] { return serving_verb(*o); };
}

}  // namespace sdma::tool
