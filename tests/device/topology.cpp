// SPDX-License-Identifier: MIT
#include "device/link_index.hpp"
#include "device/product.hpp"
#include "device/sysfs.hpp"

#include <cmath>
#include <set>

#include "support/catch.hpp"

using namespace sdma;

namespace {

/// The recommended engines as the tables of drivers have them, a row a source.
constexpr std::uint32_t kTable[8][8] = {
    {0, 14, 12, 2, 4, 8, 10, 6}, {14, 0, 2, 10, 8, 4, 6, 12}, {10, 2, 0, 12, 14, 6, 4, 8}, {2, 12, 10, 0, 6, 14, 8, 4},
    {4, 8, 14, 6, 0, 10, 12, 2}, {8, 4, 6, 14, 12, 0, 2, 10}, {10, 6, 4, 8, 12, 2, 0, 14}, {6, 12, 8, 4, 2, 10, 14, 0}};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("completion by an atomic only where every link carries one") {
  auto t = *mi300x(3);
  CHECK(t.completion(GpuId{0}, {}) == Completion::atomic);
  CHECK(t.completion(GpuId{0}, GpuId{2}) == Completion::atomic);
  for (auto& l : t.links)
    if (l.from == LinkEnd::gpu(0)) l.atomics_64 = false;
  CHECK(t.completion(GpuId{0}, {}) == Completion::fence);
  CHECK(t.completion(GpuId{0}, GpuId{2}) == Completion::fence);
  CHECK(t.completion(GpuId{0}, GpuId{0}) == Completion::atomic);
  CHECK(t.completion(GpuId{1}, {}) == Completion::atomic);
  t.links.clear();
  CHECK(t.completion(GpuId{1}, {}) == Completion::fence);
}

TEST_CASE("eight MI300X: every pair has the engine that drivers recommend") {
  const auto t = mi300x();
  REQUIRE(t);
  REQUIRE(t->gpus.size() == 8);
  for (std::uint32_t s = 0; s < 8; ++s) {
    std::set<std::uint32_t> used;
    for (std::uint32_t d = 0; d < 8; ++d) {
      CAPTURE(s, d);
      const auto e = t->engine_for(GpuId{s}, GpuId{d});
      REQUIRE(e);
      CHECK(e->value == kTable[s][d]);
      used.insert(e->value);
    }
    CHECK(used.size() == 8);  // a link each, none shared
  }
}

TEST_CASE("fewer MI300X are the first of eight") {
  for (std::uint32_t n = 1; n <= 8; ++n) {
    const auto t = mi300x(n);
    REQUIRE(t);
    CHECK(t->gpus.size() == n);
    CHECK(t->links.size() == n * (n - 1) + 2 * n);
    for (std::uint32_t s = 0; s < n; ++s)
      for (std::uint32_t d = 0; d < n; ++d) CHECK(t->engine_for(GpuId{s}, GpuId{d})->value == kTable[s][d]);
  }
  for (const std::uint32_t n : {0u, 9u, 1u << 31}) {
    const auto t = mi300x(n);
    REQUIRE_FALSE(t);
    CHECK(t.error().message.find(std::to_string(n)) != std::string::npos);
    CHECK_FALSE(t.error().hint.empty());
  }
}

TEST_CASE("what an MI300X is") {
  const auto t = mi300x(2);
  const auto& g = t->gpus[1];
  CHECK(g.name == "MI300X");
  CHECK(gfx_name(g.gfx) == "gfx942");
  CHECK(gfx_name(90010) == "gfx90a");
  CHECK(g.memory_bytes == 192ull << 30);
  CHECK(g.engines() == 16);
  CHECK(g.host_engines == 2);
  CHECK(g.queues_per_engine == 8);
  const auto* xgmi = t->link(LinkEnd::gpu(0), LinkEnd::gpu(1));
  REQUIRE(xgmi);
  CHECK(xgmi->type == LinkType::xgmi);
  CHECK(xgmi->atomics_64);
  const auto* host = t->link(LinkEnd::gpu(0), LinkEnd::cpu(0));
  REQUIRE(host);
  CHECK(host->type == LinkType::pcie);
  CHECK(host->engine_mask == 3);
  CHECK(t->engine_for(GpuId{0}, HostDirection::to_host)->value == 0);
  CHECK(t->engine_for(GpuId{0}, HostDirection::from_host)->value == 1);
  CHECK(t->link(LinkEnd::gpu(0), LinkEnd::gpu(0)) == nullptr);
}

TEST_CASE("every product is a node whose engines have a described generation") {
  for (const auto& p : kProducts) {
    CAPTURE(p.name);
    REQUIRE(product_of(gfx_name(p.gfx)) == product_of(p.gfx));
    const auto generation = generation_of_target(p.gfx);
    REQUIRE(generation);
    const auto t = node_of(p, 2);
    REQUIRE(t);
    CHECK(t->gpus[1].generation() == *generation);
    CHECK(t->gpus[1].engines() == p.host_engines + p.xgmi_engines);
    CHECK((t->link(LinkEnd::gpu(0), LinkEnd::gpu(1)) != nullptr) == (p.xgmi_engines != 0));
    CHECK(t->engine_for(GpuId{0}, GpuId{1}));
    const auto node = numbered(*t);
    const auto back = from_sysfs(to_sysfs(node));
    REQUIRE(back);
    CHECK(*back == node);
  }
  CHECK(*node_of(product_like(90402), 8) == *mi300x(8));
  CHECK(&product_like(1) == product_of(90402u));
  CHECK(product_of("gfx1031") == nullptr);
  CHECK(product_of("gfx") == nullptr);
  CHECK(product_name(0x74a2, "ip discovery") == "MI308X");
  CHECK(product_name(0x74a1, "renamed").empty());
  for (const auto n : {0u, 9u}) CHECK_FALSE(node_of(kProducts[0], n));
}

TEST_CASE("a pair without a recommendation takes the first xGMI engine, an unknown GPU none") {
  auto t = *mi300x(2);
  for (auto& l : t.links) l.engine_mask = 0;
  CHECK(t.engine_for(GpuId{0}, GpuId{1})->value == 2);
  t.links.clear();
  CHECK(t.engine_for(GpuId{0}, GpuId{1})->value == 2);
  CHECK(t.engine_for(GpuId{0}, GpuId{2}).error() == Errc::bad_argument);
  CHECK(t.engine_for(GpuId{2}, GpuId{0}).error() == Errc::bad_argument);
  CHECK(t.engine_for(GpuId{7}, HostDirection::to_host).error() == Errc::bad_argument);
  t.gpus[0].host_engines = t.gpus[0].xgmi_engines = 0;
  CHECK(t.engine_for(GpuId{0}, GpuId{1}).error() == Errc::bad_argument);
}

TEST_CASE("no engine is recommended that is dead") {
  auto t = *mi300x(3);
  auto& g = t.gpus[0];
  g.dead_engines = std::uint64_t{1} << 14;
  CHECK(t.engine_for(GpuId{0}, GpuId{1})->value == 2);
  CHECK(t.engine_for(GpuId{0}, GpuId{2})->value == 12);
  t.links[2].engine_mask |= 1 << 15;
  REQUIRE(t.links[2].to == LinkEnd::gpu(1));
  CHECK(t.engine_for(GpuId{0}, GpuId{1})->value == 15);
  g.dead_engines = 1;
  CHECK(t.engine_for(GpuId{0}, GpuId{0})->value == 1);
  CHECK(t.engine_for(GpuId{0}, HostDirection::to_host)->value == 1);
  CHECK(t.engine_for(GpuId{0}, HostDirection::from_host)->value == 1);
  g.dead_engines = 0b11;
  CHECK(t.engine_for(GpuId{0}, HostDirection::to_host)->value == 2);
  g.dead_engines = 0xfffc;
  CHECK(t.engine_for(GpuId{0}, GpuId{1})->value == 0);
  g.dead_engines = 0xffff;
  CHECK(t.engine_for(GpuId{0}, GpuId{1}).error() == Errc::bad_argument);
  CHECK(t.engine_for(GpuId{0}, GpuId{0}).error() == Errc::bad_argument);
  CHECK(t.engine_for(GpuId{0}, HostDirection::to_host).error() == Errc::bad_argument);
  CHECK(t.engine_for(GpuId{1}, GpuId{0})->value == 14);
}

TEST_CASE("dead engines are part of a node's JSON and of its table, if there are any") {
  auto t = *mi300x(2);
  CHECK_FALSE(contains(to_json(t), "dead"));
  CHECK_FALSE(contains(to_table(t), "dead"));
  t.gpus[1].dead_engines = 0b101000;
  CHECK(contains(to_json(t), "\"dead_engines\":[3,5]"));
  CHECK(contains(to_table(t), "8 queues each, dead: 3,5\n"));
  const auto back = topology_from_json(to_json(t));
  REQUIRE(back);
  CHECK(*back == t);
}

TEST_CASE("a rate is one number in three units, and an unknown one has none") {
  static_assert(Rate::gb_per_s(64) == Rate::mb_per_s(64000) && Rate::gbit_per_s(512) == Rate::gb_per_s(64));
  static_assert(Rate::gb_per_s(76.8).mb_per_s() == 76800 && Rate::mb_per_s(1).gb_per_s() == 0.001);
  for (const auto r :
       {Rate{}, Rate::mb_per_s(0), Rate::gb_per_s(0), Rate::gb_per_s(-1), Rate::gb_per_s(1e-4), Rate::gb_per_s(5e6),
        Rate::gb_per_s(NAN), Rate::gb_per_s(INFINITY), Rate::gbit_per_s(0), Rate::gbit_per_s(40'000'000)}) {
    CHECK_FALSE(r.known());
    CHECK_FALSE(r.mb_per_s());
    CHECK_FALSE(r.gb_per_s());
    CHECK(r == Rate{});
  }
  CHECK(Rate::gb_per_s(4e6).mb_per_s() == 4'000'000'000);
}

TEST_CASE("a table says what is unknown of a node") {
  auto t = *mi300x(2);
  t.gpus[1].memory_bytes = 0;
  t.gpus[1].queues_per_engine = 0;
  t.links[0].rate = {};
  const auto text = to_table(t);
  CHECK(contains(text, "gpu1   MI300X  gfx942  ? GiB  16 engines (2 host, 14 xGMI), ? queues each"));
  CHECK(contains(text, "gpu0  cpu0  pcie          ?  64-bit"));
  for (const auto& l : cuda_layout(2).links) CHECK_FALSE(l.rate.known());
  CHECK(cuda_layout(2).gpus[0].memory_bytes == 0);
}

TEST_CASE("JSON and back is the same node") {
  for (std::uint32_t n = 1; n <= 8; ++n) {
    const auto t = *mi300x(n);
    const auto back = topology_from_json(to_json(t));
    REQUIRE(back);
    CHECK(*back == t);
    CHECK(to_json(*back) == to_json(t));
  }
  Topology odd;
  odd.name = "quote \" and \x01";
  odd.cpus.push_back({.name = "", .memory_bytes = ~0ull});
  odd.gpus.push_back(
      {.name = "one", .gfx = 1, .memory_bytes = 1, .host_engines = 0, .xgmi_engines = 64, .queues_per_engine = 1});
  odd.links.push_back({.from = LinkEnd::cpu(0),
                       .to = LinkEnd::gpu(0),
                       .type = LinkType::other,
                       .rate = {},
                       .atomics_64 = false,
                       .engine_mask = 1ull << 63});
  const auto back = topology_from_json(to_json(odd));
  REQUIRE(back);
  CHECK(*back == odd);
  // A name that is not UTF-8 must not throw; it cannot come back unchanged.
  odd.gpus[0].name = "\xff\xfe";
  CHECK(topology_from_json(to_json(odd)));
}

TEST_CASE("JSON that does not describe a node says where and why") {
  const auto good = to_json(*mi300x(2));
  struct {
    std::string text, where, message;
  } const cases[] = {
      {"", "f:1:1", "not JSON"},
      {"[1,\n 2", "f:2:2", "not JSON"},
      {"{\"a\":1e999}", "f:1:11", "too large"},
      {std::string(400000, '['), "f:1:65", "nested more than 64 levels deep"},
      {replaced(good, "\"gfx\":90402", "\"gfx\":90402,\"gfx\":90401"), "f:7:38", "the key \"gfx\" appears twice"},
      {"3", "f", "not a JSON object"},
      {"{}", "f", "\"cpus\""},
      {replaced(good, "\"gfx\":90402,", ""), "f: gpus[0]", "\"gfx\" is missing"},
      {replaced(good, "\"gfx\":90402", "\"gfx\":-1"), "f: gpus[0]", "not an integer"},
      {replaced(good, "\"gfx\":90402", "\"gfx\":4294967296"), "f: gpus[0]", "not an integer"},
      {replaced(good, "\"gfx\":90402", "\"gfx\":90402,\"gfy\":1"), "f: gpus[0]", "unknown key \"gfy\""},
      {replaced(good, "\"xgmi_engines\":14", "\"xgmi_engines\":63"), "f: gpus[0]", "more than 64 engines"},
      {replaced(good, "\"gfx\":90402", "\"gfx\":90402,\"dead_engines\":[2,16]"), "f: gpus[0]",
       "engine 16 is not one of the 16 engines of this GPU"},
      {replaced(good, "\"gfx\":90402", "\"gfx\":90402,\"dead_engines\":3"), "f: gpus[0]", "\"dead_engines\""},
      {replaced(good, "\"from\":\"gpu0\"", "\"from\":\"gpu2\""), "f: links[0]", "neither a CPU nor a GPU"},
      {replaced(good, "\"from\":\"gpu0\"", "\"from\":\"gpu\""), "f: links[0]", "neither a CPU nor a GPU"},
      {replaced(good, "\"from\":\"gpu0\"", "\"from\":\"gpu0x\""), "f: links[0]", "neither a CPU nor a GPU"},
      {replaced(good, "\"from\":\"gpu0\"", "\"from\":7"), "f: links[0]", "not a string"},
      {replaced(good, "\"type\":\"pcie\"", "\"type\":\"isa\""), "f: links[0]", "\"isa\""},
      {replaced(good, "\"atomics_64\":true", "\"atomics_64\":1"), "f: links[0]", "true nor false"},
      {replaced(good, "\"engines\":[0,1]", "\"engines\":[16]"), "f: links[0]", "engine 16"},
      {replaced(good, "\"engines\":[0,1]", "\"engines\":3"), "f: links[0]",
       "\"engines\" is missing or is not an array"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    const auto t = topology_from_json(c.text, "f");
    REQUIRE_FALSE(t);
    CHECK(t.error().where == c.where);
    CHECK(contains(t.error().message, c.message));
  }
}

TEST_CASE("the table names every pair's engine") {
  const auto text = to_table(*mi300x(3));
  CHECK(contains(text, "gpu0     -   14   12     0\n"));
  CHECK(contains(text, "gpu2    10    2    -     0\n"));
  CHECK(contains(text, "gfx942  192 GiB  16 engines (2 host, 14 xGMI), 8 queues each"));
  CHECK(contains(text, "gpu0  gpu2  xgmi       64.0  64-bit     12"));
}

TEST_CASE("links by both ends are those that a search finds") {
  for (const auto name : kLayoutExamples) {
    CAPTURE(name);
    const auto t = *layout(name);
    const detail::LinkIndex links{t};
    const auto n = static_cast<std::uint32_t>(t.gpus.size());
    for (std::uint32_t a = 0; a <= n; ++a)
      for (std::uint32_t b = 0; b <= n; ++b) {
        CAPTURE(a, b);
        CHECK(links.link(GpuId{a}, GpuId{b}) == t.link(LinkEnd::gpu(a), LinkEnd::gpu(b)));
        const auto one = links.engine_for(GpuId{a}, GpuId{b}), other = t.engine_for(GpuId{a}, GpuId{b});
        REQUIRE(bool(one) == bool(other));
        CHECK(bool(one) == (a < n && b < n));
        if (one) CHECK(*one == *other);
      }
  }
  // Of two links between the same ends, the first counts.
  auto twice = *mi300x(2);
  auto second = *twice.link(LinkEnd::gpu(0), LinkEnd::gpu(1));
  second.engine_mask = 1 << 5;
  twice.links.push_back(second);
  const detail::LinkIndex links{twice};
  CHECK(links.link(GpuId{0}, GpuId{1}) == twice.link(LinkEnd::gpu(0), LinkEnd::gpu(1)));
}
