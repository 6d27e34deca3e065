// SPDX-License-Identifier: MIT
// Several nodes: how many processes or simulated GPUs each has, and the ways to perform a collective over them. These
// are the algorithms of share/sdma/collectives/nodes.sdma, in place of variants.
#include "checked.hpp"

#include "collectives/source.hpp"
#include "schedule_file.hpp"
#include "sdma/simulate/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {

std::optional<sdma::NodeSizes> nodes_to_simulate(const Request& a) {
  if (!a.device_given || a.device || a.machine.empty() || a.tune) return {};
  const auto m = sdma::machine_named(a.machine);
  if (!m) return {};
  const auto nodes = collectives::nodes_of(m->topology);
  return nodes.sizes.size() > 1 ? std::optional(nodes) : std::nullopt;
}

namespace {

/// How many GPUs each node has; nothing if something was refused.
std::optional<sdma::NodeSizes> gpus_of_nodes(Checked& c, Settings& s) {
  const auto& sizes = c.asked.ranks_per_node;
  if (c.simulated_nodes) {
    const auto all = c.simulated_nodes->first(static_cast<std::uint32_t>(c.simulated_nodes->sizes.size()));
    if (sizes)
      c.refuse("--ranks-per-node", "a simulation has the nodes of its machine",
               "omit it, or name a machine: nodes:2x4");
    else if (!c.asked.ngpus && c.asked.gpus.empty()) s.options.gpus = all;
    else if (s.options.gpus != all)
      c.refuse("-g", fmt::format("{} of {} GPUs are not all GPUs of {}", s.options.gpus, all, c.asked.machine),
               "omit it");
    if (c.wrong) return {};
    s.remarks.push_back(fmt::format("{} nodes, of {} GPUs: engines copy inside a node, and the network between nodes",
                                    c.simulated_nodes->sizes.size(), to_string(*c.simulated_nodes)));
    return c.simulated_nodes;
  }
  s.ranks_per_node = *sizes;
  if (s.processes == 1)
    return c.refuse("--ranks-per-node", "there is one process",
                    "start more, by --ranks=8 or a launcher such as mpirun -np 8; for a simulation without them, "
                    "--device=simulate --machine=nodes:2x4"),
           std::nullopt;
  if (!s.ranks_per_node.count(s.processes))
    return c.refuse("--ranks-per-node",
                    fmt::format("{} processes are not whole nodes of {}", s.processes, to_string(*sizes)),
                    "give numbers that add up to them: they repeat"),
           std::nullopt;
  auto gpus = *sizes;
  for (auto& one : gpus.sizes) one *= s.options.gpus / s.processes;
  return gpus;
}

}  // namespace

void read_nodes(Checked& c, Settings& s) {
  if (c.one_node()) return;
  const auto gpus = gpus_of_nodes(c, s);
  if (!gpus) return;
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
                      {"per_node", to_string(*gpus)},
                      {"root", std::to_string(s.options.root)}})
      replace(f.set, one);
    s.files.push_back(std::make_shared<ScheduleFile>(std::move(f)));
    s.ways.push_back({.file = s.files.back().get()});
  }
}

}  // namespace collectives::perf
