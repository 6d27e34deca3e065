// SPDX-License-Identifier: MIT
// What a machine does not say: a rate that is unknown has no default, and what has one is listed.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/simulate/sweep.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>

using namespace sdma;

namespace {

/// One copy from the one place to the other, by an engine of `gpu`, and a kernel's sum if `more` has one.
Schedule one_copy(const std::string& from, const std::string& to, std::string gpu = "gpu0",
                  const std::string& more = "") {
  auto s = parse_schedule(
      "sdma 1\ngpus 4\nbuffer gpu*.b bytes=64K\nbuffer host.b bytes=64K\nsignal host.done value=0\n"
      "queue " +
          gpu + ".q engine=2\ncopy_linear bytes=64K src=" + from + ".b dst=" + to +
          ".b\nfence addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n" + more,
      "t.sdma");
  for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  return *std::move(s);
}
/// The links of a type, or one link, are unknown.
MachineDescription without(LinkType type) {
  auto m = *mi300x_machine(4);
  for (auto& l : m.topology.links)
    if (l.type == type) l.rate = {};
  return m;
}
Link& link(MachineDescription& m, LinkEnd from, LinkEnd to) {
  auto& all = m.topology.links;
  return *std::find_if(all.begin(), all.end(), [&](const Link& l) { return l.from == from && l.to == to; });
}
/// What is wrong; "" if it can be simulated.
std::string error(const Schedule& s, const MachineDescription& m) {
  const auto t = simulate(s, m);
  CHECK(can_begin(s, m) == static_cast<bool>(t));
  return t ? "" : to_string(t.error().front());
}
bool contains(const std::string& text, std::string_view what) { return text.find(what) != text.npos; }

}  // namespace

TEST_CASE("bytes do not cross a link whose rate is unknown, and other links do not matter") {
  const auto m = without(LinkType::pcie);
  const auto up = one_copy("host", "gpu0"), down = one_copy("gpu0", "host"), across = one_copy("gpu0", "gpu1");
  CHECK(error(up, m) ==
        "gpu0.q: error: bytes cross the link cpu0->gpu0, whose rate is unknown: mi300x.json does not state it\n"
        "  hint: set pcie.rate in GB/s (sdma simulate --parameter pcie.rate=..), write its \"mb_per_s\" into the "
        "machine's file, or measure the machine (sdma calibrate)");
  CHECK(contains(error(down, m), "the link gpu0->cpu0, whose rate is unknown"));
  CHECK(error(across, m).empty());
  CHECK(simulate(across, m)->ns == simulate(across, *mi300x_machine(4))->ns);
  CHECK_FALSE(sensitivity(up, m));
  CHECK_FALSE(spread(up, m));
  // One direction of one link.
  auto one = *mi300x_machine(4);
  link(one, LinkEnd::gpu(0), LinkEnd::gpu(1)).rate = {};
  CHECK(contains(error(across, one), "the link gpu0->gpu1, whose rate is unknown"));
  CHECK(error(one_copy("gpu1", "gpu0"), one).empty());
  CHECK(contains(error(one_copy("gpu0", "gpu1", "gpu2"), without(LinkType::xgmi)), "set xgmi.rate in GB/s"));
}

TEST_CASE("a rate that is set settles it, and so does one of a sweep") {
  const auto up = one_copy("host", "gpu0");
  auto m = without(LinkType::pcie), slow = *mi300x_machine(4);
  for (auto* machine : {&m, &slow}) REQUIRE(machine->set("pcie.rate", 8) == Errc::ok);
  CHECK(error(up, m).empty());
  CHECK(simulate(up, m)->ns == simulate(up, slow)->ns);
  CHECK(simulate(up, m)->ns > 1.5 * simulate(up, *mi300x_machine(4))->ns);
  const auto caps = caps_of(up, without(LinkType::pcie), "pcie.rate", 200, 400);
  REQUIRE(caps);
  CHECK(std::find(caps->begin(), caps->end(), "engine.host_bytes_per_ns") != caps->end());
}

TEST_CASE("a link between processors, and a path that links share, may be unknown too") {
  const auto up = one_copy("host", "gpu1", "gpu1");
  auto m = *mi300x_machine(4);
  m.topology.cpus.resize(2, m.topology.cpus[0]);
  link(m, LinkEnd::cpu(0), LinkEnd::gpu(1)).from = LinkEnd::cpu(1);
  CHECK(error(up, m).empty());  // a link that is not in the topology limits nothing
  CHECK(contains(defaults_of(m).back(), "links between the processors: none is in the topology"));
  m.topology.links.push_back({.from = LinkEnd::cpu(0), .to = LinkEnd::cpu(1)});
  CHECK(contains(error(up, m), "the link cpu0->cpu1, whose rate is unknown"));
  CHECK(contains(error(up, m), "set nic.rate in GB/s"));
  CHECK(error(one_copy("host", "gpu0"), m).empty());
  CHECK(defaults_of(m).empty());
  auto shared = *mi300x_machine(4);
  shared.topology.shared = {{"port", {}}};
  link(shared, LinkEnd::gpu(0), LinkEnd::gpu(1)).shares = {0};
  CHECK(contains(error(one_copy("gpu0", "gpu1"), shared), "the path port, whose rate is unknown"));
  CHECK_FALSE(contains(error(one_copy("gpu0", "gpu1"), shared), "--parameter"));
  CHECK(error(one_copy("gpu1", "gpu0"), shared).empty());
}

TEST_CASE("kernels do not cross an unknown link either, nor do networks") {
  const auto sum = *parse_schedule(
      "sdma 1\ngpus 2\nbuffer gpu*.s bytes=4K\nkernel gpu0.add\nstore gpu0.s = sum(gpu0.s, gpu1.s) type=f32\nend\n",
      "t.sdma");
  CHECK(contains(error(sum, without(LinkType::xgmi)), "the link gpu1->gpu0, whose rate is unknown"));
  CHECK(error(sum, without(LinkType::pcie)).empty());
  auto nodes = *layout_machine("nodes:2x2");
  for (auto& l : nodes.topology.links)
    if (l.type == LinkType::other) l.rate = {};
  const auto sent = *parse_schedule(
      "sdma 1\ngpus 4\nbuffer gpu*.b bytes=64K\nsignal host.done value=0\nqueue gpu0.q peer=gpu2 network=1\n"
      "copy_linear bytes=64K src=gpu0.b dst=gpu2.b\nfence addr=host.done value=1\nend\n"
      "host main\nsubmit *\nwait host.done == 1\nend\n",
      "t.sdma");
  CHECK(contains(error(sent, nodes), "bytes cross the link gpu0->gpu2, whose rate is unknown"));
}

TEST_CASE("a node alone has the parameters of its generation, which has to be known") {
  const auto m = machine_from_json(to_json(*mi300x(2)), "node.json");
  REQUIRE(m);
  CHECK(m->origin.file == "node.json");
  CHECK(defaults_of(*m) == std::vector<std::string>{"all parameters are those of mi300x.json"});
  auto node = *mi300x(2);
  node.gpus[1].gfx = 0;
  const auto unknown = machine_from_json(to_json(node), "node.json");
  REQUIRE_FALSE(unknown);
  CHECK(contains(to_string(unknown.error()), "node.json: gpus[1]: error: \"gfx\" is 0: the generation is unknown"));
}

TEST_CASE("what a machine's file leaves out is listed") {
  auto text = std::string(mi300x_machine_json());
  const auto erase = [&](const std::string& key) {
    const auto at = text.find("\n  " + key);
    REQUIRE(at != text.npos);
    text.erase(at, text.find('\n', at + 1) - at);
  };
  CHECK(defaults_of(*machine_from_json(text)) ==
        std::vector<std::string>{"links between the processors: none is in the topology, so none limits a copy"});
  erase("  \"engine.page_ns\"");
  erase("  \"nic.efficiency\"");
  erase("\"model_error\"");
  CHECK(defaults_of(*machine_from_json(text)) ==
        std::vector<std::string>{"nic.efficiency=0.755: not in the file: as xgmi.efficiency",
                                 "engine.page_ns=0: not in the file: off",
                                 "model_error=0: not known, so intervals leave out what a fit may leave over",
                                 "links between the processors: none is in the topology, so none limits a copy"});
}

TEST_CASE("a kernel rings the doorbell of another GPU over a link, which the machine has to have") {
  const auto rung = [](const std::string& by) {
    const auto s = parse_schedule(
        "sdma 1\ngpus 4\nsignal host.done value=0\nqueue gpu1.q engine=2\nfence addr=host.done value=1\nend\n" + by +
            "\nsubmit gpu1.q\nwait host.done == 1\nend\n",
        "t.sdma");
    REQUIRE(s);
    return *s;
  };
  auto m = *mi300x_machine(4);
  CHECK(simulate(rung("kernel gpu0.k"), m));
  std::erase_if(m.topology.links, [](const Link& l) {
    return l.from.kind == LinkEnd::Kind::gpu && l.to.kind == LinkEnd::Kind::gpu && l.from.index + l.to.index == 1;
  });
  const auto t = simulate(rung("kernel gpu0.k"), m);
  REQUIRE_FALSE(t);
  CHECK(contains(to_string(t.error().front()), "no link leads from gpu0 to gpu1"));
  CHECK(simulate(rung("kernel gpu1.k"), m));
  CHECK(simulate(rung("kernel gpu2.k"), m));
  CHECK(simulate(rung("host main"), m));
}
