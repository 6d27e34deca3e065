// SPDX-License-Identifier: MIT
// Several nodes: how many processes each has, and the ways to perform a collective over them. These are the algorithms
// of share/sdma/collectives/nodes.sdma, in place of variants.
#include "reader.hpp"

#include "collectives/source.hpp"
#include "schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {

void read_nodes(Reader& r, Settings& s) {
  if (!r.given("--ranks-per-node")) return;
  const auto sizes = sdma::parse_node_sizes(r["--ranks-per-node"]);
  if (!sizes)
    return r.refuse("--ranks-per-node", in_quotes(r["--ranks-per-node"]) + " is not a list of numbers from 1 to 64",
                    "write 4 for nodes of four, or 3,2 for a node of three and one of two");
  s.ranks_per_node = *sizes;
  if (s.processes == 1)
    return r.refuse("--ranks-per-node", "there is one process", "start more, by mpirun -np 8 or --ranks=8");
  if (!s.ranks_per_node.count(s.processes))
    return r.refuse("--ranks-per-node",
                    fmt::format("{} processes are not whole nodes of {}", s.processes, r["--ranks-per-node"]),
                    "give numbers that add up to them: they repeat");
  auto gpus = *sizes;
  for (auto& one : gpus.sizes) one *= s.options.gpus / s.processes;
  const auto collective = std::string(name(s.options.collective));
  const auto source = over_nodes(collective);
  if (!source)
    return r.refuse("--collective", collective + " is of one node",
                    "over nodes there are all_gather, all_to_all and broadcast");
  std::vector<std::string> known{"hierarchical", "flat"};
  if (s.options.collective != Collective::all_to_all) known.emplace_back("ring");
  for (const auto& word :
       r["--variant"] == "all" ? known : words_of(!r.given("--variant") ? known.front() : r["--variant"])) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      r.refuse("--variant", in_quotes(word) + " is not an algorithm over nodes", hint_of(word, known));
      continue;
    }
    ScheduleFile f{.path = std::string(source->name), .label = word, .text = std::string(source->text)};
    for (auto& one : r.pairs("--map")) replace(f.set, std::move(one));
    for (auto& one : {ParamSetting{"collective", collective},
                      {"algorithm", word},
                      {"per_node", to_string(gpus)},
                      {"root", std::to_string(s.options.root)}})
      replace(f.set, one);
    s.files.push_back(std::make_shared<ScheduleFile>(std::move(f)));
    s.ways.push_back({.file = s.files.back().get()});
  }
}

}  // namespace collectives::perf
