// SPDX-License-Identifier: MIT
// Several nodes: how many processes each has, and the ways to perform a collective over them. These are the algorithms
// of share/sdma/collectives/nodes.sdma, in place of variants.
#include "checked.hpp"

#include "collectives/source.hpp"
#include "schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {

void read_nodes(Checked& c, Settings& s) {
  const auto& sizes = c.asked.ranks_per_node;
  if (!sizes) return;
  s.ranks_per_node = *sizes;
  if (s.processes == 1)
    return c.refuse("--ranks-per-node", "there is one process",
                    "start more, by --ranks=8 or a launcher such as mpirun -np 8");
  if (!s.ranks_per_node.count(s.processes))
    return c.refuse("--ranks-per-node",
                    fmt::format("{} processes are not whole nodes of {}", s.processes, to_string(*sizes)),
                    "give numbers that add up to them: they repeat");
  auto gpus = *sizes;
  for (auto& one : gpus.sizes) one *= s.options.gpus / s.processes;
  const auto collective = std::string(name(s.options.collective));
  const auto source = over_nodes(collective);
  if (!source)
    return c.refuse("--collective", collective + " is of one node",
                    "over nodes there are all_gather, all_to_all and broadcast");
  std::vector<std::string> known{"hierarchical", "flat"};
  if (s.options.collective != Collective::all_to_all) known.emplace_back("ring");
  const auto& variant = c.asked.variant;
  for (const auto& word : variant == "all" ? known : words_of(variant.empty() ? known.front() : variant)) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      c.refuse("--variant", in_quotes(word) + " is not an algorithm over nodes", hint_of(word, known));
      continue;
    }
    ScheduleFile f{.path = std::string(source->name), .label = word, .text = std::string(source->text)};
    for (const auto& one : c.asked.map) replace(f.set, one);
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
