// SPDX-License-Identifier: MIT
// Collectives over several nodes: proved on a machine with nodes, run in all orderings and simulated, for each
// algorithm and odd sizes. What is wrong in them is found.
#include "collectives/source.hpp"
#include "outcome.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/schedule/text.hpp"
#include "support.hpp"
#include "support/sanitizer.hpp"

#include <csignal>
#include <optional>

namespace collectives::test {
namespace {

struct Case {
  std::string collective, algorithm;
  NodeSizes nodes;
  std::string bytes;
};
std::uint32_t gpus_of(const Case& c) { return c.nodes.first(static_cast<std::uint32_t>(c.nodes.sizes.size())); }
std::string text_of(const Case& c) {
  auto source = *over_nodes(c.collective);
  REQUIRE(set_param(source, "algorithm", c.algorithm));
  REQUIRE(set_param(source, "N", std::to_string(gpus_of(c))));
  REQUIRE(set_param(source, "per_node", "[" + to_string(c.nodes) + "]"));
  REQUIRE(set_param(source, "bytes", c.bytes));
  REQUIRE(set_param(source, "root", std::to_string(c.nodes.size(0) - 1)));
  return with_params(source);
}
std::string machine_of(const Case& c) {
  auto name = "nodes:" + to_string(c.nodes);
  std::replace(name.begin(), name.end(), ',', '+');
  return name;
}
}  // namespace

TEST_CASE("collectives over nodes are proved, and move the right bytes") {
  constexpr Ordering kOrders[] = {Ordering::strict, Ordering::rocr, Ordering::adversarial};
  const std::size_t step = sdma::test::address_sanitizer() ? 5 : 1;
  std::size_t n = 0, all = 0;
  for (const auto* collective : {"all_gather", "all_to_all", "broadcast"})
    for (const auto* algorithm : {"hierarchical", "flat", "ring"})
      for (const auto& nodes : {NodeSizes{{4, 4}}, NodeSizes{{2, 2, 2, 2}}, NodeSizes{{2, 2, 2}}, NodeSizes{{1, 1}},
                                NodeSizes{{3, 2}}, NodeSizes{{2, 5}}, NodeSizes{{1, 4, 2}}})
        for (const auto* bytes : {"40000", "100001", "20"}) {
          if (collective == std::string("all_to_all") && algorithm == std::string("ring")) continue;
          if (all++ % step != 0) continue;
          const Case c{collective, algorithm, nodes, bytes};
          const auto s = parse_schedule(text_of(c));
          INFO(collective << " " << algorithm << " " << machine_of(c) << " " << bytes);
          REQUIRE(s);
          const auto machine = *layout_machine(machine_of(c));
          CHECK(outcome(*s, machine, kOrders[n++ % 3], {.topology = &machine.topology}) == "");
        }
}

TEST_CASE("bytes of the network are awaited: without a poll, a fence or a completion, the proof fails") {
  for (const auto& c :
       {Case{"all_gather", "hierarchical", {{2, 2}}, "4K"}, Case{"all_to_all", "hierarchical", {{2, 2}}, "4K"},
        Case{"broadcast", "hierarchical", {{2, 2}}, "4K"}, Case{"all_gather", "ring", {{2, 2}}, "4K"},
        Case{"all_gather", "hierarchical", {{1, 3}}, "4K"}, Case{"all_to_all", "hierarchical", {{3, 1}}, "4K"},
        Case{"broadcast", "hierarchical", {{3, 2}}, "4K"}}) {
    const auto whole = to_text(*parse_schedule(text_of(c)));
    for (const std::string line : {"  poll_mem ", "  atomic op=add_rtn_64 addr=host.done"}) {
      INFO(c.collective << " " << c.algorithm << line);
      auto text = whole;
      const auto at = text.find(line);
      REQUIRE(at != text.npos);
      text.erase(at, text.find('\n', at) + 1 - at);
      const auto s = parse_schedule(text);
      REQUIRE(s);
      const auto node = *layout(machine_of(c));
      CHECK(unproved(*s, {.topology = &node}) != "");
    }
  }
}

/// What the ranks of these nodes find when each is a process, "" if nothing is wrong. `killed` stops once it has bound.
std::string of_nodes(const Case& c, std::uint32_t ranks, Ordering order, std::optional<std::uint32_t> killed = {},
                     int rounds = 1) {
  const auto s = parse_schedule(text_of(c));
  REQUIRE(s);
  const auto per_node = ranks == gpus_of(c) ? c.nodes : NodeSizes{{1}};
  const auto all = in_ranks(ranks, 60s, [&](std::uint32_t rank, Exchange& exchange, Transport& network) -> std::string {
    const auto device = SoftDevice::open({.gpus = s->gpus, .ordering = order, .seed = rank});
    if (!device) return to_string(device.error());
    const auto bound =
        bind(*s, **device,
             {.rank = rank, .ranks = ranks, .exchange = &exchange, .ranks_per_node = per_node, .transport = &network});
    if (!bound) return to_string(bound.error().front());
    // What another node has is out of reach: of the host, and of engines.
    for (std::size_t i = 0; i < s->buffers.size(); ++i) {
      const auto node = c.nodes.of(s->buffers[i].place.index);
      const auto link = link_buffer(i);
      std::byte one{};
      const bool near = node == per_node.of(rank);
      if (bound->bytes({link, 1}).empty() == near) return "bytes of " + name_of(*s, link);
      if (((*device)->peek(bound->address(link), {&one, 1}) == Errc::ok) != near) return "peek of " + name_of(*s, link);
    }
    if (rank == killed) std::raise(SIGKILL);
    for (int i = 0; i < rounds; ++i)
      if (const auto r = run(*bound, {.time_limit = 60s, .seed = 7u + static_cast<unsigned>(i)}); !r)
        return to_string(r.findings.front());
    return "";
  });
  REQUIRE(all);
  std::string out;
  for (const auto& r : *all)
    if (const auto& found = r.answer ? *r.answer : r.end; !found.empty())
      out += "[" + std::to_string(r.rank) + "] " + found + "\n";
  return out;
}

TEST_CASE("nodes that share nothing get the right bytes by the transport") {
  constexpr Ordering kOrders[] = {Ordering::adversarial, Ordering::strict, Ordering::rocr};
  constexpr const char* kBytes[] = {"40000", "100001", "20"};
  std::size_t n = 0;
  for (const auto* collective : {"all_gather", "all_to_all", "broadcast"})
    for (const auto* algorithm : {"hierarchical", "flat", "ring"})
      for (const auto& nodes : {NodeSizes{{4, 4}}, NodeSizes{{2, 2, 2, 2}}, NodeSizes{{2, 2, 2}}, NodeSizes{{3, 2}},
                                NodeSizes{{1, 4, 2}}}) {
        if (collective == std::string("all_to_all") && algorithm == std::string("ring")) continue;
        if (++n % 2 == 0 && sdma::test::address_sanitizer()) continue;
        const Case c{collective, algorithm, nodes, kBytes[n % 3]};
        // A rank of each node only where these are alike, because ranks have equally many GPUs.
        const bool alike = nodes.size(0) == nodes.size(1);
        const auto ranks = n % 4 < 2 && alike ? static_cast<std::uint32_t>(nodes.sizes.size()) : gpus_of(c);
        INFO(collective << " " << algorithm << " " << machine_of(c) << " " << c.bytes << ", ranks: " << ranks);
        CHECK(of_nodes(c, ranks, kOrders[n % 3]) == "");
      }
}

TEST_CASE("a schedule over nodes that is bound once runs again") {
  CHECK(of_nodes({"all_gather", "hierarchical", {{2, 2}}, "300000"}, 4, Ordering::adversarial, {}, 5) == "");
}

TEST_CASE("a node that stops is named, and the others do not wait for it") {
  // With a process per node, only the transport can say it.
  const std::uint32_t ranks = GENERATE(4u, 2u);
  const auto killed = std::to_string(ranks - 1);
  const auto found =
      of_nodes({"all_gather", "hierarchical", {{2, 2}}, "40000"}, ranks, Ordering::adversarial, ranks - 1);
  CAPTURE(found);
  CHECK(found.find("rank " + killed + ": its process ") != found.npos);
  CHECK(found.find("was killed by signal 9") != found.npos);
  // A rank of the same node that has seen it first may stop the run before another one sees it.
  std::size_t name_it = 0;
  for (std::uint32_t r = 0; r < ranks - 1; ++r) {
    const auto says = "[" + std::to_string(r) + "] run: error: rank ";
    const auto at = found.find(says);
    REQUIRE(at != found.npos);
    const auto line = found.substr(at, found.find('\n', at) - at);
    const bool names = line.starts_with(says + killed + " does not answer: its process ");
    name_it += names;
    CHECK((names || line.find(" has stopped the run") != line.npos));
  }
  CHECK(name_it >= 1);
}

TEST_CASE("the network sends a piece while engines copy the one before") {
  const auto time = [](const char* algorithm, const char* pieces) {
    auto source = *over_nodes("all_gather");
    REQUIRE(set_param(source, "algorithm", algorithm));
    REQUIRE(set_param(source, "pieces", pieces));
    REQUIRE(set_param(source, "bytes", "64M"));
    REQUIRE(set_param(source, "N", "8"));
    REQUIRE(set_param(source, "per_node", "[2]"));
    return simulate(*parse_schedule(with_params(source)), *layout_machine("nodes:4x2"))->total_ns;
  };
  CHECK(time("hierarchical", "8") < 0.8 * time("hierarchical", "1"));
  CHECK(time("hierarchical", "8") < 0.8 * time("flat", "1"));
}

}  // namespace collectives::test
