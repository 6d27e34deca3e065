// SPDX-License-Identifier: MIT
// Writes topologies as JSON, and reads them.
#include "../core/json.hpp"
#include "../core/words.hpp"
#include "sdma/device/topology.hpp"

#include <fmt/format.h>

#include <bit>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::Json;
using detail::JsonReader;

Json json_of_engines(std::uint64_t mask) {
  auto engines = Json::array();
  for (; mask != 0; mask &= mask - 1) engines.push_back(std::countr_zero(mask));
  return engines;
}

/// The kernel and files write an unknown rate as 0.
std::uint32_t number_of(Rate r) { return r.mb_per_s().value_or(0); }
void load_rate(JsonReader& in, const Json& j, const std::string& where, Rate& to) {
  std::uint32_t mb = 0;
  in.number(j, "mb_per_s", where, mb);
  to = Rate::mb_per_s(mb);
}

/// Names what it shares only if there is anything.
Json json_of(const Link& l) {
  Json j{{"from", to_string(l.from)},     {"to", to_string(l.to)},      {"type", name(l.type)},
         {"mb_per_s", number_of(l.rate)}, {"atomics_64", l.atomics_64}, {"engines", json_of_engines(l.engine_mask)}};
  if (!l.shares.empty()) j["shares"] = l.shares;
  return j;
}

/// Names the type and the time of a message only if they are not the usual ones.
Json json_of(const SharedPath& s) {
  Json j{{"name", s.name}, {"mb_per_s", number_of(s.rate)}};
  if (s.type != LinkType::other) j["type"] = name(s.type);
  if (s.message_ns != 0) j["message_ns"] = s.message_ns;
  return j;
}

/// Names the dead engines only if there are any, and the node only if it is not the first.
Json json_of(const Gpu& g) {
  Json j{{"name", g.name},
         {"gfx", g.gfx},
         {"memory_bytes", g.memory_bytes},
         {"host_engines", g.host_engines},
         {"xgmi_engines", g.xgmi_engines},
         {"queues_per_engine", g.queues_per_engine}};
  if (g.node != 0) j["node"] = g.node;
  if (g.dead_engines != 0) j["dead_engines"] = json_of_engines(g.dead_engines);
  return j;
}

/// One line per object.
void append_lines(std::string& out, std::string_view key, const std::vector<Json>& objects) {
  out += fmt::format(",\n  \"{}\": [", key);
  for (std::size_t i = 0; i < objects.size(); ++i)
    out += fmt::format("{}\n    {}", i == 0 ? "" : ",", detail::json_text(objects[i]));
  out += objects.empty() ? "]" : "\n  ]";
}

LinkEnd load_end(JsonReader& in, const Json& j, const char* key, const std::string& where, const Topology& t) {
  std::string text;
  in.string(j, key, where, text);
  const bool is_cpu = text.starts_with("cpu");
  std::optional<std::uint32_t> index;
  if (is_cpu || text.starts_with("gpu")) index = detail::whole_number<std::uint32_t>(std::string_view(text).substr(3));
  if (index && *index < (is_cpu ? t.cpus.size() : t.gpus.size()))
    return is_cpu ? LinkEnd::cpu(*index) : LinkEnd::gpu(*index);
  in.complain(where, fmt::format("\"{}\" is \"{}\", which is neither a CPU nor a GPU of this node", key, text),
              "write cpu0, gpu0, ...");
  return {};
}

/// The engines of an array as a mask; each must be one of the `count` engines of `owner`.
std::uint64_t load_engines(JsonReader& in, const Json& j, const char* key, const std::string& where,
                           const std::string& owner, std::uint32_t count) {
  std::uint64_t mask = 0;
  for (const auto& e : in.array(j, key, where)) {
    if (!e.is_number_unsigned() || e.get<std::uint64_t>() >= count)
      return in.complain(where, fmt::format("engine {} is not one of the {} engines of {}", detail::json_text(e), count,
                                            owner)),
             0;
    mask |= std::uint64_t{1} << e.get<unsigned>();
  }
  return mask;
}

void load_gpu(JsonReader& in, const Json& j, const std::string& where, Gpu& g) {
  if (!in.object(
          j, where,
          {"name", "gfx", "memory_bytes", "host_engines", "xgmi_engines", "queues_per_engine", "node", "dead_engines"}))
    return;
  in.string(j, "name", where, g.name);
  in.number(j, "gfx", where, g.gfx);
  in.number(j, "memory_bytes", where, g.memory_bytes);
  in.number(j, "host_engines", where, g.host_engines);
  in.number(j, "xgmi_engines", where, g.xgmi_engines);
  in.number(j, "queues_per_engine", where, g.queues_per_engine);
  if (j.contains("node")) in.number(j, "node", where, g.node);
  if (std::uint64_t{g.host_engines} + g.xgmi_engines > 64) in.complain(where, "this GPU has more than 64 engines");
  if (g.queues_per_engine > 1024) in.complain(where, "this GPU has more than 1024 queues per engine");
  if (!in.failed() && j.contains("dead_engines"))
    g.dead_engines = load_engines(in, j, "dead_engines", where, "this GPU", g.engines());
}

void load_type(JsonReader& in, const Json& j, const std::string& where, LinkType& to) {
  std::string type;
  in.string(j, "type", where, type);
  if (type == "pcie") to = LinkType::pcie;
  else if (type == "xgmi") to = LinkType::xgmi;
  else if (type != "other") in.complain(where, fmt::format("\"type\" is \"{}\"", type), "write pcie, xgmi or other");
}

void load_path(JsonReader& in, const Json& j, const std::string& where, SharedPath& s) {
  constexpr std::uint32_t kMostNs = 1'000'000'000;
  if (!in.object(j, where, {"name", "mb_per_s", "type", "message_ns"})) return;
  in.string(j, "name", where, s.name);
  load_rate(in, j, where, s.rate);
  if (!in.failed() && !s.rate.known()) in.complain(where, "\"mb_per_s\" is 0", "write the rate of this path");
  if (j.contains("type")) load_type(in, j, where, s.type);
  if (j.contains("message_ns")) in.number(j, "message_ns", where, s.message_ns);
  if (s.message_ns > kMostNs)
    in.complain(where, fmt::format("\"message_ns\" is {}, and a message takes at most {} ns", s.message_ns, kMostNs),
                "write the time of one message: 1000 / (messages per us)");
}

void load_link(JsonReader& in, const Json& j, const std::string& where, const Topology& t, Link& l) {
  if (!in.object(j, where, {"from", "to", "type", "mb_per_s", "atomics_64", "engines", "shares"})) return;
  l.from = load_end(in, j, "from", where, t);
  l.to = load_end(in, j, "to", where, t);
  load_type(in, j, where, l.type);
  load_rate(in, j, where, l.rate);
  in.boolean(j, "atomics_64", where, l.atomics_64);
  if (j.contains("shares"))
    for (const auto& e : in.array(j, "shares", where)) {
      if (!e.is_number_unsigned() || e.get<std::uint64_t>() >= t.shared.size())
        return in.complain(where, fmt::format("\"shares\" has {}, but \"shared\" has {} paths", detail::json_text(e),
                                              t.shared.size()));
      l.shares.push_back(e.get<std::uint32_t>());
    }
  if (in.failed()) return;
  const auto owner = l.from.kind == LinkEnd::Kind::gpu ? l.from : l.to;
  l.engine_mask = load_engines(in, j, "engines", where, to_string(owner),
                               owner.kind == LinkEnd::Kind::gpu ? t.gpus[owner.index].engines() : 0);
}

}  // namespace

std::string to_json(const Topology& t) {
  std::vector<Json> cpus, gpus, links, shared;
  for (const auto& c : t.cpus) cpus.push_back({{"name", c.name}, {"memory_bytes", c.memory_bytes}});
  for (const auto& g : t.gpus) gpus.push_back(json_of(g));
  for (const auto& l : t.links) links.push_back(json_of(l));
  std::string out = "{\n  \"name\": " + detail::json_string(t.name);
  append_lines(out, "cpus", cpus);
  append_lines(out, "gpus", gpus);
  append_lines(out, "links", links);
  for (const auto& s : t.shared) shared.push_back(json_of(s));
  if (!shared.empty()) append_lines(out, "shared", shared);
  return out + "\n}\n";
}

Result<Topology, Diagnostic> topology_from_json(std::string_view text, std::string_view file) {
  JsonReader in{file};
  const auto j = in.parse(text, "`sdma topology --json` prints an example");
  Topology t;
  if (in.object(j, "", {"name", "cpus", "gpus", "links", "shared"})) {
    in.string(j, "name", "", t.name);
    in.each(j, "cpus", [&](const Json& e, const std::string& where) {
      if (!in.object(e, where, {"name", "memory_bytes"})) return;
      in.string(e, "name", where, t.cpus.emplace_back().name);
      in.number(e, "memory_bytes", where, t.cpus.back().memory_bytes);
    });
    in.each(j, "gpus", [&](const Json& e, const std::string& where) { load_gpu(in, e, where, t.gpus.emplace_back()); });
    if (j.contains("shared"))
      in.each(j, "shared",
              [&](const Json& e, const std::string& where) { load_path(in, e, where, t.shared.emplace_back()); });
    in.each(j, "links",
            [&](const Json& e, const std::string& where) { load_link(in, e, where, t, t.links.emplace_back()); });
  }
  if (in.failed()) return in.take();
  return t;
}

}}  // namespace sdma::v0_3
