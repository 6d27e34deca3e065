// SPDX-License-Identifier: MIT
// Layouts: the links that each has, and the names that are refused.
#include "sdma/device/topology.hpp"

#include "support/catch.hpp"

#include <set>

using namespace sdma;

namespace {

std::size_t links(const Topology& t, LinkType type) {
  std::size_t n = 0;
  for (const auto& l : t.links) n += l.type == type;
  return n;
}
std::string error(const std::string& name) {
  const auto t = layout(name);
  REQUIRE_FALSE(t);
  return to_string(t.error());
}
bool refuses(const std::string& name, const std::string& why) { return error(name).find(why) != std::string::npos; }

}  // namespace

TEST_CASE("products") {
  CHECK(*layout("mi300x:8") == *mi300x(8));
  CHECK(*layout("mi300x:3") == *mi300x(3));
  const auto newer = *layout("mi355x:8");
  CHECK(newer.gpus[0].gfx == 90500);
  CHECK(newer.gpus[0].name == "MI355X");
  CHECK(newer.link(LinkEnd::gpu(0), LinkEnd::gpu(5))->rate == Rate::mb_per_s(76800));
  CHECK(layout("mi325x:2")->gpus[1].memory_bytes == std::uint64_t{256} << 30);
  const auto older = *layout("mi250x:2");
  CHECK(older.link(LinkEnd::gpu(0), LinkEnd::gpu(1))->rate == Rate::mb_per_s(200'000));
  CHECK(older.gpus[0].gfx == 90010);
}

TEST_CASE("MI308X: only even engines work, and a pair whose engine is dead gets a live one") {
  const auto t = *layout("mi308x:8");
  for (std::uint32_t a = 0; a < 8; ++a) {
    CHECK(t.gpus[a].engines() == 8);
    CHECK(t.gpus[a].live_engines() == 0b0101'0101);
    for (std::uint32_t b = 0; b < 8; ++b) {
      if (a == b) continue;
      const auto e = t.engine_for(GpuId{a}, GpuId{b});
      REQUIRE(e);
      CHECK(e->value % 2 == 0);
      CHECK(e->value >= 2);
      CHECK(e->value < 8);
    }
  }
}

TEST_CASE("partitions: the engines of a GPU are divided, and its links are shared") {
  struct Mode {
    const char* name;
    std::uint32_t each, host, xgmi;
  };
  for (const auto& m : {Mode{"dpx:2", 2, 2, 6}, Mode{"qpx:2", 4, 2, 2}, Mode{"cpx:2", 8, 2, 0}}) {
    CAPTURE(m.name);
    const auto t = *layout(m.name);
    REQUIRE(t.gpus.size() == 2 * m.each);
    CHECK(t.gpus[0].host_engines == m.host);
    CHECK(t.gpus[0].xgmi_engines == m.xgmi);
    CHECK(m.each * t.gpus[0].engines() == 16);
    CHECK(t.gpus[0].memory_bytes == 0);  // unknown
    const auto far = t.link(LinkEnd::gpu(0), LinkEnd::gpu(m.each)),
               same = t.link(LinkEnd::gpu(1), LinkEnd::gpu(m.each));
    REQUIRE((far && same));
    CHECK(far->shares == same->shares);  // one xGMI link for all of them
    CHECK(t.shared[far->shares.at(0)].name == "MI300X 0->1 xGMI");
    CHECK(t.shared[far->shares.at(0)].type == LinkType::xgmi);
    CHECK_FALSE(t.link(LinkEnd::gpu(0), LinkEnd::gpu(1))->rate.known());  // within one GPU
    const auto e = t.engine_for(GpuId{0}, GpuId{m.each});
    REQUIRE(e);
    CHECK(e->value == (m.xgmi > 0 ? 2u : 0u));
    CHECK(*topology_from_json(to_json(t)) == t);
  }
  CHECK(layout("cpx:8")->gpus.size() == 64);
  CHECK(refuses("cpx:9", "at most 8 MI300X"));
  CHECK(refuses("mi300a:4", "is not public"));
  CHECK(refuses("nps4:8", "is not public"));
  CHECK(refuses("mi308xcpx:8", "is not public"));
  CHECK(refuses("cpx:2x100G", "their own rate"));
}

TEST_CASE("a mesh links every pair, a ring the neighbours") {
  const auto mesh = *layout("mesh:16");
  CHECK(mesh.gpus.size() == 16);
  CHECK(links(mesh, LinkType::xgmi) == 16 * 15);
  CHECK(mesh.cpus.size() == 4);
  std::set<std::uint32_t> engines;
  for (std::uint32_t b = 1; b < 16; ++b) engines.insert(mesh.engine_for(GpuId{0}, GpuId{b})->value);
  CHECK(engines.size() == 14);  // 15 peers share 14 engines
  const auto ring = *layout("ring:5x100G");
  CHECK(links(ring, LinkType::xgmi) == 10);
  CHECK(ring.link(LinkEnd::gpu(4), LinkEnd::gpu(0))->rate == Rate::mb_per_s(12'500));
  CHECK(ring.link(LinkEnd::gpu(0), LinkEnd::gpu(2)) == nullptr);
  CHECK(links(*layout("ring:2"), LinkType::xgmi) == 2);
  CHECK(links(*layout("ring:1"), LinkType::xgmi) == 1);
}

TEST_CASE("a switch: each pair through both ports; two nodes: NICs between them") {
  const auto t = *layout("switch:4x400G");
  CHECK(links(t, LinkType::other) == 12);
  REQUIRE(t.shared.size() == 8);
  CHECK(t.shared[0] == SharedPath{"gpu0 port out", Rate::gb_per_s(50)});
  const auto* l = t.link(LinkEnd::gpu(1), LinkEnd::gpu(3));
  REQUIRE(l->shares.size() == 2);
  CHECK(t.shared[l->shares[0]].name == "gpu1 port out");
  CHECK(t.shared[l->shares[1]].name == "gpu3 port in");
  const auto nodes = *layout("nodes:2x3x200G");
  CHECK(nodes.gpus.size() == 6);
  CHECK(links(nodes, LinkType::xgmi) == 12);
  CHECK(links(nodes, LinkType::other) == 18);
  CHECK(nodes.link(LinkEnd::gpu(0), LinkEnd::gpu(2))->shares.empty());
  const auto* far = nodes.link(LinkEnd::gpu(2), LinkEnd::gpu(3));
  CHECK(far->rate == Rate::mb_per_s(25'000));
  CHECK(nodes.shared[far->shares[1]].name == "gpu3 NIC in");
  CHECK(layout("nodes:2x8")->link(LinkEnd::gpu(0), LinkEnd::gpu(8))->rate == Rate::mb_per_s(50'000));
  const auto uneven = *layout("nodes:3+2+1x200G");
  CHECK(links(uneven, LinkType::xgmi) == 6 + 2);
  CHECK(links(uneven, LinkType::other) == 2 * (6 + 3 + 2));
  std::string in;
  for (const auto& g : uneven.gpus) in += std::to_string(g.node);
  CHECK(in == "000112");
}

TEST_CASE("every layout goes through JSON and comes back, and knows its name") {
  for (const std::string name :
       {"mi300x:8", "mi308x:4", "mi250x:2", "mesh:9", "ring:4", "switch:3x100G", "nodes:3x2", "nodes:3+2"}) {
    const auto t = *layout(name);
    CHECK(*topology_from_json(to_json(t)) == t);
    CHECK(layout_of(t) == name);
    auto other = t;
    other.links[0].rate = Rate::mb_per_s(64001);
    CHECK(layout_of(other).empty());
  }
  CHECK(layout_of({}).empty());
}

TEST_CASE("names that are refused, and why") {
  for (const auto* file : {"ring.json", "./mesh:8", "node", ":8", "ring:", "C:node", "ring:x8"})
    CHECK_FALSE(names_layout(file));
  for (const auto* name : {"ring:8", "mi300x:8", "switch:8x400G", "mesh:0"}) CHECK(names_layout(name));
  CHECK(refuses("mesh:0", "this is not the name of a layout"));
  CHECK(refuses("mesh:8x", "this is not the name of a layout"));
  CHECK(refuses("mesh", "layouts are mi300x:8"));
  CHECK(refuses("mesh:1025", "1025 are more than 1024 GPUs"));
  CHECK(refuses("nodes:129x8", "1032 are more than 1024 GPUs"));
  CHECK(refuses("nodes:4294967297x2", "this is not the name of a layout"));
  CHECK(refuses("nodes:8", "nodes need two numbers"));
  CHECK(refuses("nodes:3+2x2", "nodes need two numbers"));
  CHECK(refuses("nodes:3+2G", "this is not the name of a layout"));
  CHECK(refuses("nodes:3+0", "this is not the name of a layout"));
  std::string nodes = "nodes:64";
  for (int i = 1; i < 16; ++i) nodes += "+64";
  CHECK(layout(nodes));
  CHECK(refuses(nodes + "+1", "1025 are more than 1024 GPUs"));
  CHECK(refuses("mesh:3+2", "this is not the name of a layout"));
  CHECK(refuses("ring:2x8", "takes one number"));
  CHECK(refuses("mi300x:9", "at most 8"));
  CHECK(refuses("mi300x:8x400G", "have their own rate"));
  CHECK(refuses("mi250x:4", "two dies"));
  CHECK(refuses("mi999x:4", "there is no such layout"));
}

TEST_CASE("shared paths of a file: an index that does not exist, a rate of 0") {
  auto text = to_json(*layout("switch:2x400G"));
  const auto replaced = [&](const std::string& what, const std::string& by) {
    auto out = text;
    const auto at = out.find(what);
    REQUIRE(at != out.npos);
    return out.replace(at, what.size(), by);
  };
  CHECK(to_string(topology_from_json(replaced("\"shares\":[0,3]", "\"shares\":[0,4]")).error())
            .find("\"shares\" has 4, but \"shared\" has 4 paths") != std::string::npos);
  CHECK(to_string(topology_from_json(replaced("\"mb_per_s\":50000}\n  ]", "\"mb_per_s\":0}\n  ]")).error())
            .find("\"mb_per_s\" is 0") != std::string::npos);
  CHECK(to_table(*layout("switch:2x400G")).find("gpu1 port in: 50.0 GB/s, shared by 1 links") != std::string::npos);
}
