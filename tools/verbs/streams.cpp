// SPDX-License-Identifier: MIT
// sdma streams: what an all-gather between two NVIDIA GPUs costs in the order of streams, beside copies by hand.
#include "core/words.hpp"
#include "json/json.hpp"
#include "must.hpp"
#include "perf/stream_order.hpp"
#include "sdma/core/number.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <optional>

namespace sdma::tool {
namespace {

using collectives::perf::StreamOptions;
using collectives::perf::StreamTimes;

struct StreamsArguments {
  StreamOptions options{.sizes = {1 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}};
  std::string save{};
  bool json = false;
};

std::string table(const StreamsArguments& o, const StreamTimes& t, bool graphs) {
  auto text = fmt::format("{}, us an iteration, medians of {} runs of {}\n{:>10}",
                          graphs ? fmt::format("graphs of {}", o.options.graph) : "one by one", o.options.runs,
                          o.options.iterations, "bytes");
  for (const auto& way : t.ways) text += fmt::format(" {:>9}", way);
  text += "\n";
  for (const auto& row : t.rows) {
    if (row.graphs != graphs) continue;
    text += fmt::format("{:>10}", size_text(row.bytes));
    for (const auto& us : row.us) text += us ? fmt::format(" {:>9.2f}", *us) : fmt::format(" {:>9}", "-");
    text += "\n";
  }
  return text;
}

json::Json json_of(const StreamsArguments& o, const StreamTimes& t) {
  json::Json rows = json::Json::array();
  for (const auto& row : t.rows) {
    json::Json us = json::Json::object();
    for (std::size_t way = 0; way < row.us.size(); ++way)
      us[t.ways[way]] = row.us[way] ? json::Json(*row.us[way]) : json::Json();
    rows.push_back({{"kind", row.graphs ? "graph" : "stream"}, {"bytes", row.bytes}, {"us", std::move(us)}});
  }
  return {{"iterations", o.options.iterations},
          {"graph", o.options.graph},
          {"runs", o.options.runs},
          {"rows", std::move(rows)}};
}

int streams_verb(const StreamsArguments& o) {
  if (o.options.graph % 2 != 0) return complain("--graph: an odd number", "rounds take turns: --graph 20");
  if (o.options.iterations % o.options.graph != 0)
    return complain("-n: not a multiple of --graph", "-n 100 --graph 20");
  const auto times = time_streams(o.options);
  const auto object = json::document(json_of(o, times));
  if (!o.save.empty())
    if (const int code = write_text(o.save, object); code != kOk) return code;
  return write_text("-", o.json ? object : table(o, times, false) + table(o, times, true));
}

std::optional<std::vector<std::uint64_t>> parse_sizes(const std::string& text) {
  std::vector<std::uint64_t> all;
  for (const auto word : detail::between_commas(text)) {
    const auto bytes = parse_size(word);
    if (!bytes || *bytes < 64 || *bytes % 64 != 0) return {};
    all.push_back(*bytes);
  }
  return all;
}

}  // namespace

void add_streams(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<StreamsArguments>();
  add_parsed(verb, "--sizes", o->options.sizes, parse_sizes, "a list of multiples of 64",
             "bytes of a GPU's part (default: 1K,64K,1M,4M,16M,64M)")
      .type("SIZE,SIZE..");
  // A stream holds 1,020 commands, and a queue of the device issues 512.
  add_count(verb, "-n,--iters", o->options.iterations, 2, 120, "iterations of a run, a multiple of --graph");
  add_count(verb, "--graph", o->options.graph, 4, 100, "iterations of a graph");
  add_count(verb, "--runs", o->options.runs, 1, 1000, "runs of each way, besides two to warm up");
  verb.flag("--nccl", o->options.nccl,
            "also NCCL, of libnccl.so.2 or SDMA_NCCL_LIBRARY: its kernels and its copy engines");
  verb.value("--save", o->save, "write what --json prints to a file, beside the tables").type("FILE");
  verb.flag("--json", o->json, "print an object with all times");
  verb.exits({{kOk, "measured, and the bytes are right"},
              {kRefuted, "wrong bytes, or a wait that gave up"},
              {kInput, "fewer than two NVIDIA GPUs, or an error of the output"}});
  verb.manual("docs/stream_order.md");
  verb.footer(
      "Ways:\n"
      "  kernel    the kernel alone: it writes the GPU's part\n"
      "  hand      by hand in its stream: copy, write the peer's word, await one's own\n"
      "  carried   the collective's copies in that stream, without a ring\n"
      "  trigger   by hand as ours: a second stream waits for both kernels, copies, and writes both words\n"
      "  ours      the collective enqueued in the stream; in graphs, published before each launch\n"
      "  ahead     ours with all rounds published before the time is taken\n"
      "  nccl      ncclAllGather by kernels; nccl-ce: by NCCL's copy engines\n"
      "Examples:\n"
      "  sdma streams --nccl --sizes 64K,1M --save order.json");
  action = [o] { return to_the_end([&] { return streams_verb(*o); }); };
}

}  // namespace sdma::tool
