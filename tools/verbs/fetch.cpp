// SPDX-License-Identifier: MIT
// sdma fetch: KV-cache fetch, as in LLM serving. A request's blocks are scattered in a pool of host memory. They are
// copied to contiguous GPU memory, and later back to their places. These are many small copies, so the fixed cost of a
// copy matters most.
//
//   host pool  [ . 3 . . 0 . 2 . . . 1 . ]   --- engine 1 of the GPU --->   gpu [ 0 1 2 3 ]   fetch
//                                            <--- engine 0 ------------                       return
//
// fetch/fetch_lanes.hpp says how blocks are dealt to queues in each way, mover.hpp executes that on a device,
// simulated.hpp in simulated time, and fetch_tables.hpp prints from which size of a block on DMA is the right choice.
#include "collectives/engines.hpp"
#include "core/words.hpp"
#include "fetch/fetch_tables.hpp"
#include "fetch/mover.hpp"
#include "fetch/simulated.hpp"
#include "must.hpp"
#include "sdma/core/number.hpp"
#include "shared_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace sdma::tool {
namespace {

namespace kv = collectives::kv;

struct FetchArguments {
  kv::Cases cases{};
  std::optional<std::uint64_t> block, pool, large;
  std::vector<std::uint64_t> sweep;
  std::optional<DeviceKind> device = DeviceKind::soft;
  MachineOptions machine{};
  bool json = false;
};

using Measure = std::function<kv::Times(const kv::Request&)>;

kv::Sweep sweep(const kv::Cases& o, const Measure& measure) {
  kv::Sweep s{.cases = o};
  if (o.sweeps()) s.large = measure({.blocks = 1, .bytes = o.large});
  for (const auto way : o.ways)
    for (const auto engines : o.engines) {
      auto& c = s.columns.emplace_back(kv::Column{.way = way, .engines = engines});
      for (const auto bytes : o.sizes)
        c.times.push_back(
            measure({.way = way, .engines = engines, .queues = o.queues, .blocks = o.blocks, .bytes = bytes}));
    }
  return s;
}

constexpr std::pair<const char*, double kv::Times::*> kDirections[] = {{"fetch", &kv::Times::fetch},
                                                                       {"return", &kv::Times::give}};

std::string text_of(const kv::Sweep& s) {
  std::string text;
  for (const auto& [title, direction] : kDirections) text += table(s, title, direction) + "\n";
  if (!s.cases.sweeps()) return text;
  for (const auto& [title, direction] : kDirections) text += conclusion(s, title, direction) + "\n";
  if (!s.cases.kernel)
    text += "This compares with the rate of one large copy only; --kernel compares with a gather kernel.\n\n";
  return text;
}

json::Json json_of(const FetchArguments& o, const kv::Sweep& s, const std::string& device) {
  json::Json directions = json::Json::array();
  for (const auto& [title, direction] : kDirections) directions.push_back(to_json(s, title, direction));
  return {{"device", o.device ? name(*o.device) : "simulate"},
          {"device_text", device},
          {"gpu", o.cases.gpu.value},
          {"blocks", o.cases.blocks},
          {"queues", o.cases.queues},
          {"directions", std::move(directions)}};
}

/// "256 blocks, host to gpu0 by engines 1, 0, and back by engines 0, 1".
std::string moved(const kv::Cases& o, const Topology& t) {
  const auto list = [&](HostDirection direction) {
    const auto engines = collectives::engines_of(t, o.gpu, direction);
    if (!engines) fail(fmt::format("the node has no gpu{} with a live engine", o.gpu.value));
    const auto most = *std::max_element(o.engines.begin(), o.engines.end());
    if (engines->size() < most)
      fail(fmt::format("gpu{} has {} live engines, not {}", o.gpu.value, engines->size(), most));
    std::string text = most == 1 ? "engine" : "engines";
    for (std::uint32_t e = 0; e < most; ++e) text += fmt::format("{} {}", e == 0 ? "" : ",", (*engines)[e].value);
    return text;
  };
  return fmt::format("{} blocks, host to gpu{} by {}, and back by {}", o.blocks, o.gpu.value,
                     list(HostDirection::from_host), list(HostDirection::to_host));
}

int simulated_fetch(const FetchArguments& o) {
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  const auto header = moved(o.cases, m->topology);
  const auto s = sweep(o.cases, [&](const kv::Request& r) {
    auto t = kv::simulated(r, o.cases.gpu, *m);
    if (!t) fail(t.error().front());
    return *t;
  });
  if (o.json) return write_text("-", json::document(json_of(o, s, m->name)));
  return write_text("-", fmt::format("{}\nsimulated: {}; no engine ran\n\n{}", header, m->name, text_of(s)));
}

int measured_fetch(const FetchArguments& o) {
  const auto device = must(open_device(*o.device));
  const auto header = moved(o.cases, device->topology());
  if (const auto note = caveat(*device); !note.empty())
    report({.severity = Severity::note, .where = std::string(name(*o.device)), .message = note});
  kv::Mover mover{*device, o.cases};
  const auto s = sweep(o.cases, [&](const kv::Request& r) { return mover.median_of(r); });
  const int right = mover.wrong() == 0 ? kOk : kRefuted;
  if (o.json) {
    auto answer = json_of(o, s, device->topology().name);
    answer["rounds"] = o.cases.rounds;
    answer["wrong_bytes"] = mover.wrong();
    const int code = write_text("-", json::document(answer));
    return code != kOk ? code : right;
  }
  const int code = write_text(
      "-", fmt::format("{}\n{}: medians of {} rounds; the pool has {} blocks\n\n{}blocks copied by each queue: {}\n{} "
                       "bytes wrong\n",
                       header, name(*o.device), o.cases.rounds, o.cases.pool, text_of(s), mover.work(), mover.wrong()));
  return code != kOk ? code : right;
}

int fetch_verb(FetchArguments o) {
  auto& c = o.cases;
  if (!o.sweep.empty() && o.block) return complain("--sweep replaces --block: give one of them");
  if (o.block) c.sizes = {*o.block};
  if (!o.sweep.empty()) c.sizes = o.sweep;
  c.pool = o.pool.value_or(4 * c.blocks);
  if (c.pool < c.blocks)
    return complain(fmt::format("--pool: {} is less than --blocks, {}", c.pool, c.blocks), "give a larger pool");
  if (!c.sweeps() && (c.kernel || o.large))
    return complain("--large and --kernel need a --sweep of at least two sizes", "--sweep 4K..1M");
  c.large = o.large.value_or(c.large);
  if (o.device && o.machine.given())
    return complain("--machine, --parameter and --through are for --device=simulate", "add --device=simulate");
  return o.device ? measured_fetch(o) : simulated_fetch(o);
}

/// "4K..1M": sizes from the first to the last, each twice the previous one.
std::optional<std::vector<std::uint64_t>> parse_sweep(const std::string& text) {
  const auto dots = text.find("..");
  const auto from = parse_size(text.substr(0, dots)).value_or(0);
  const auto to = dots == text.npos ? 0 : parse_size(text.substr(dots + 2)).value_or(0);
  if (from == 0 || to < from || to > 1ull << 30) return {};
  std::vector<std::uint64_t> all;
  for (auto bytes = from; bytes <= to; bytes *= 2) all.push_back(bytes);
  return all;
}

/// What `parse` makes of each word between commas.
template <class Parse> auto parse_list(const std::string& text, Parse parse) {
  std::optional<std::vector<typename decltype(parse(std::string_view{}))::value_type>> all{std::in_place};
  for (const auto word : detail::between_commas(text)) {
    const auto one = parse(word);
    if (!one) return decltype(all){};
    all->push_back(*one);
  }
  return all;
}

std::optional<std::uint32_t> parse_engines(std::string_view word) {
  const auto n = parse_count(word);
  return n && *n >= 1 && *n <= 64 ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
}
std::optional<kv::Way> parse_way(std::string_view word) {
  const auto way = std::find_if(std::begin(kv::kWays), std::end(kv::kWays), [&](kv::Way w) { return name(w) == word; });
  return way == std::end(kv::kWays) ? std::nullopt : std::optional(*way);
}

void add_blocks(VerbOptions& verb, FetchArguments& o) {
  add_size(verb, "--block", o.block, "size of a block (default: 16K)", 1ull << 30);
  add_parsed(verb, "--sweep", o.sweep, parse_sweep, "A..B with sizes up to 1G, the smaller first",
             "sizes from A to B, each twice the previous one, instead of --block: --sweep 4K..1M")
      .type("A..B");
  add_count(verb, "--blocks", o.cases.blocks, 1, 65536, "blocks per request");
  add_count(verb, "--pool", o.pool, 1, std::uint64_t{1} << 40,
            "blocks in the pool (default: 4 times the blocks per request)");
  add_parsed(
      verb, "--engines", o.cases.engines, [](const std::string& text) { return parse_list(text, parse_engines); },
      "a list of numbers from 1 to 64",
      "numbers of engines to compare: 1,2,4 (default: 1). Blocks are dealt round robin. The engines that face the "
      "host are used first, then those that face other GPUs")
      .type("N,N..");
  add_count(verb, "--queues", o.cases.queues, 1, 64, "queues on each engine. A queue of --device=cuda is a stream");
  add_parsed(
      verb, "--ways", o.cases.ways, [](const std::string& text) { return parse_list(text, parse_way); },
      "a list of looped, batched, b2b and prelaunched", "ways to compare, which are explained below (default: all)")
      .type("looped|batched|b2b|prelaunched,..");
  add_size(verb, "--large", o.large,
           "size of the one copy on one engine whose rate a sweep is compared with (default: 64M)", 1ull << 32);
  add_parsed(
      verb, "--kernel", o.cases.kernel,
      [](const std::string& text) {
        const auto rate = parse_real(text);
        return rate && *rate > 0 ? rate : std::nullopt;
      },
      "a rate in GB/s", "also compare with the rate of a gather kernel, which you have measured for these sizes")
      .type("GB/S");
}

}  // namespace

void add_fetch(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<FetchArguments>();
  add_blocks(verb, *o);
  add_device(verb, o->device, "device to use", "the same groups of packets in simulated time", "soft");
  add_machine(verb, o->machine);
  add_count(verb, "--gpu", o->cases.gpu.value, 0, 63, "GPU to use");
  add_count(verb, "-n,--iters", o->cases.rounds, 1, 1'000'000,
            "measured rounds. Every block of each round is checked. A simulation has one round and checks no bytes");
  add_count(verb, "-w,--warmup_iters", o->cases.warm, 0, 1'000'000, "rounds before the measured ones");
  verb.flag("--json", o->json, "print an object with all times");
  verb.exits({{kOk, "every byte is right"}, {kRefuted, "wrong bytes, or a wait that gave up"}});
  verb.manual("docs/collectives.md");
  verb.footer(
      "Ways:\n"
      "  looped       one block on each queue, one doorbell per block; wait; the next blocks\n"
      "  batched      one doorbell and one completion per block; one wait at the end\n"
      "  b2b          all blocks of a queue back to back: one doorbell and one completion per queue\n"
      "  prelaunched  the same, published before it is needed, after a poll; timed from the trigger\n"
      "\n"
      "A cell of the tables has the median time of a request divided by its blocks, in us, and the rate in GB/s (10^9\n"
      "bytes per second). \"b2b x2\" means b2b on two engines. The conclusion names the smallest block size from which on\n"
      "all sizes of the sweep reach a rate. It does not count the time that the host needs to find the blocks.\n"
      "Examples:\n"
      "  sdma fetch --device=simulate --sweep 4K..1M --engines 1,2,4\n"
      "  sdma fetch --device=cuda --sweep 4K..1M --engines 1,2 --kernel 47");
  action = [o] { return to_the_end([&] { return fetch_verb(*o); }); };
}

}  // namespace sdma::tool
