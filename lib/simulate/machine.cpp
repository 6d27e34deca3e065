// SPDX-License-Identifier: MIT
#include "sdma/simulate/machine.hpp"

#include "../core/json.hpp"
#include "../core/nearest.hpp"
#include "energy_file.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <shipped.hpp>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::Json;

/// A file may leave out a parameter whose row has `off` or `as`.
struct Entry {
  std::string_view name, unit;
  std::optional<double> off{};  ///< the value at which its mechanism is off
  std::optional<Cost> as{};     ///< the parameter whose value it then has
};
constexpr std::array<Entry, kCosts> kEntries{{
    {"host.build_ns", "ns"},
    {"host.submit_ns", "ns"},
    {"host.doorbell_ns", "ns"},
    {"host.issue_ns", "ns"},
    {"host.store_ns", "ns"},
    {"host.poll_ns", "ns"},
    {"host.atomic_ns", "ns"},
    {"host.memory_bytes_per_ns", "bytes/ns"},
    {"pcie.flight_ns", "ns"},
    {"pcie.efficiency", "fraction"},
    {"xgmi.flight_ns", "ns"},
    {"xgmi.efficiency", "fraction"},
    {"nic.flight_ns", "ns", {}, Cost::xgmi_flight},
    {"nic.efficiency", "fraction", {}, Cost::xgmi_efficiency},
    {"hbm.bytes_per_ns", "bytes/ns"},
    {"engine.fetch_ns", "ns"},
    {"engine.doorbell_ns", "ns", 0},
    {"engine.packet_ns", "ns"},
    {"engine.control_ns", "ns"},
    {"engine.window_bytes", "bytes"},
    {"engine.bytes_per_ns", "bytes/ns"},
    {"engine.broadcast_efficiency", "fraction"},
    {"engine.swap_efficiency", "ratio"},
    {"engine.other_link_efficiency", "fraction"},
    {"engine.latency_ns", "ns"},
    {"engine.read_peer_ns", "ns"},
    {"engine.swap_ns", "ns"},
    {"engine.release_ns", "ns"},
    {"engine.poll_ns", "ns"},
    {"engine.host_bytes_per_ns", "bytes/ns", {}, Cost::engine_rate},
    {"engine.second_to_host_efficiency", "fraction", 1},
    {"engine.far_to_host_efficiency", "fraction", 1},
    {"engine.broadcast_ns", "ns", 0},
    {"engine.copies_to_a_peer", "copies", 0},
    {"engine.occupied_ns", "ns", 0},
    {"engine.page_ns", "ns", 0},
    {"engine.page_bytes", "bytes", 2 << 20},
    {"kernel.release_ns", "ns"},
    {"kernel.poll_ns", "ns"},
    {"engine.large_swap_efficiency", "fraction", 1},
    {"engine.command_ns", "ns", 0},
    {"engine.command_bytes", "bytes", 16 << 10},
    {"kernel.workgroup_bytes_per_ns", "bytes/ns", 1e6},
    {"kernel.link_efficiency", "fraction", 1},
    {"kernel.step_ns", "ns", 0},
    {"kernel.ll_ns", "ns", 0},
    {"nic.message_ns", "ns", {}, Cost::engine_packet},
    {"kernel.tracked_ns", "ns", 0},
    {"hbm.compute_weight", "ratio", 1},
}};
static_assert(static_cast<std::size_t>(Cost::hbm_weight) + 1 == kCosts);
static_assert(kEntries.back().name == "hbm.compute_weight");
constexpr std::array<std::string_view, kPatterns> kPatternNames{"a pair",   "own sources", "one source", "swaps",
                                                                "the host", "a relay",     "a network"};

/// "" if the parameter may have this value. Rates, fractions and the window are divisors, so they cannot be zero.
std::string refuse(std::size_t i, double v) {
  const auto unit = kEntries[i].unit;
  if (!std::isfinite(v) || v < 0) return "is negative";
  if (static_cast<Cost>(i) == Cost::engine_page_size && v < 4096) return "is less than 4096";
  if (unit == "copies" && v != std::floor(v)) return "is not a whole number";
  if (unit != "ns" && unit != "copies" && v <= 0) return "is not above zero";
  if (unit == "fraction" && v > 1) return "is more than 1";
  return v > 1e12 ? "is more than 1e12" : "";
}

/// {"mi300x": 8}, the name of a layout, or the whole topology where it has no name.
std::string topology_json(const Topology& t) {
  const auto n = static_cast<std::uint32_t>(t.gpus.size());
  if (const auto node = mi300x(n); node && *node == t) return fmt::format("{{\"mi300x\": {}}}", n);
  const auto named = layout_of(t);
  if (!named.empty()) return "\"" + named + "\"";
  auto out = to_json(t);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

Result<MachineDescription, Diagnostic> machine_of_node(Topology);

class Loader {
 public:
  explicit Loader(std::string_view file) : in_(file) {}

  Result<MachineDescription, Diagnostic> run(std::string_view text) {
    const auto j = in_.parse(text, "sdma simulate --show-machine --json prints an example");
    MachineDescription m;
    if (!in_.failed()) load(j, m);
    if (in_.failed()) return in_.take();
    m.origin.file = in_.file();
    return m;
  }

 private:
  /// A topology alone.
  void of_node(const Json& j, MachineDescription& m) {
    auto node = topology_from_json(detail::json_text(j), in_.file());
    if (!node) return in_.complain(std::move(node.error()));
    for (std::size_t g = 0; g < node->gpus.size(); ++g)
      if (node->gpus[g].gfx == 0)
        return in_.complain(fmt::format("gpus[{}]", g),
                            "\"gfx\" is 0: the generation is unknown, and so are the parameters of its engines",
                            "write a machine's file, with parameters: sdma calibrate --device measures them");
    auto known = machine_of_node(*std::move(node));
    if (known) m = *std::move(known);
    else in_.complain(std::move(known.error()));
  }
  void load(const Json& j, MachineDescription& m) {
    if (j.is_object() && !j.contains("sdma_machine") && j.contains("gpus")) return of_node(j, m);
    if (j.value("sdma_machine", Json()) != 1)
      return in_.complain("", "this is not a machine description of version 1", "it must contain \"sdma_machine\": 1");
    if (!in_.object(j, "",
                    {"sdma_machine", "name", "notes", "topology", "model_error", "judged", "parameters", "covariance",
                     "energy"}))
      return;
    in_.string(j, "name", "", m.name);
    in_.string(j, "notes", "", m.notes);
    if (j.contains("model_error")) in_.number(j, "model_error", "", m.model_error);
    if (!(m.model_error >= 0 && m.model_error <= 10))
      in_.complain("", "\"model_error\" is not from 0 to 10", "0.1: a tenth of a time; 0: not known");
    if (!j.contains("topology"))
      in_.complain("", "\"topology\" is missing", "write {\"mi300x\": 8}, or the output of sdma topology --json");
    else topology(j["topology"], m.topology);
    if (!j.contains("parameters")) in_.complain("", "\"parameters\" is missing");
    else parameters(j["parameters"], m);
    if (j.contains("judged")) judged(j["judged"], m.judged);
    if (j.contains("covariance") && !in_.failed()) covariance(j["covariance"], m.covariance);
    if (j.contains("energy") && !in_.failed()) detail::read_energy(in_, j["energy"], m.energy);
  }

  void judged(const Json& j, std::vector<Judged>& to) {
    if (!j.is_object()) return in_.complain("judged", "this is not a JSON object");
    for (const auto& [key, value] : j.items()) {
      const auto at = std::find(kPatternNames.begin(), kPatternNames.end(), key);
      if (at == kPatternNames.end())
        return in_.complain("judged", "\"" + key + "\" is not a pattern",
                            fmt::format("known patterns: {}", fmt::join(kPatternNames, ", ")));
      const auto where = "judged: " + key;
      if (!in_.object(value, where, {"model_error", "fitted", "predicted"})) return;
      auto& one = to.emplace_back(Judged{.pattern = static_cast<CopyPattern>(at - kPatternNames.begin())});
      if (value.contains("model_error")) in_.number(value, "model_error", where, one.model_error);
      if (!(one.model_error >= 0 && one.model_error <= 10)) in_.complain(where, "\"model_error\" is not from 0 to 10");
      for (const auto& [name, cells] : {std::pair{"fitted", &one.fitted}, {"predicted", &one.predicted}}) {
        if (!value.contains(name)) continue;
        if (!in_.object(value[name], where, {"cells", "mean", "worst"})) return;
        in_.number(value[name], "cells", where, cells->cells);
        in_.number(value[name], "mean", where, cells->mean);
        in_.number(value[name], "worst", where, cells->worst);
      }
    }
  }

  void covariance(const Json& j, Covariance& to) {
    if (!in_.object(j, "covariance", {"parameters", "rows"})) return;
    for (const auto& name : in_.array(j, "parameters", "covariance")) {
      const auto i = name.is_string() ? cost_named(name.get<std::string>()) : kCosts;
      if (i == kCosts || std::find(to.of.begin(), to.of.end(), static_cast<Cost>(i)) != to.of.end())
        return in_.complain("covariance: parameters",
                            detail::json_text(name) + " is not a parameter, or is there twice",
                            "sdma simulate --show-machine lists them");
      to.of.push_back(static_cast<Cost>(i));
    }
    const auto n = to.of.size();
    const auto& rows = in_.array(j, "rows", "covariance");
    const auto wrong = [&] {
      in_.complain("covariance: rows", "these are not the rows of a covariance",
                   "row i has i + 1 numbers, the last one its variance; no correlation exceeds 1");
    };
    if (rows.size() != n) return wrong();
    to.values.resize(n * n);
    for (std::size_t a = 0; a < n; ++a) {
      if (!rows[a].is_array() || rows[a].size() != a + 1) return wrong();
      for (std::size_t b = 0; b <= a; ++b) {
        if (!rows[a][b].is_number()) return wrong();
        to.values[a * n + b] = to.values[b * n + a] = rows[a][b].get<double>();
      }
      for (std::size_t b = 0; b <= a; ++b)
        if (const auto v = to.values[a * n + b], most = to.values[a * n + a] * to.values[b * n + b];
            !std::isfinite(v) || to.values[a * n + a] < 0 || v * v > most * (1 + 1e-6))
          return wrong();
    }
  }

  void topology(const Json& j, Topology& to) {
    auto t = [&]() -> Result<Topology, Diagnostic> {
      if (j.is_object() && j.size() == 1 && j.contains("mi300x") && j["mi300x"].is_number_unsigned())
        return sdma::mi300x(static_cast<std::uint32_t>(std::min<std::uint64_t>(j["mi300x"].get<std::uint64_t>(), 99)));
      if (j.is_string()) return layout(j.get<std::string>());
      return topology_from_json(detail::json_text(j), in_.file() + ": topology");
    }();
    if (t) to = std::move(*t);
    else in_.complain(std::move(t.error()));
  }

  void parameters(const Json& j, MachineDescription& m) {
    if (!j.is_object()) return in_.complain("parameters", "this is not a JSON object");
    std::array<bool, kCosts> seen{};
    for (const auto& [key, value] : j.items()) {
      const auto i = cost_named(key);
      if (i == kCosts) {
        Nearest n{key};
        for (const auto& e : kEntries) n.offer(e.name);
        return in_.complain("parameters", "\"" + key + "\" is not a parameter",
                            meant_hint(n, "sdma simulate --show-machine lists them"));
      }
      if (seen[i]) return in_.complain("parameters", "\"" + std::string(kEntries[i].name) + "\" is given twice");
      seen[i] = true;
      one("parameters: " + key, i, value, m.parameters[i]);
    }
    for (std::size_t i = 0; i < kCosts; ++i) {
      const auto& e = kEntries[i];
      if (seen[i]) continue;
      if (e.off) m.parameters[i] = {*e.off, 0, "not in the file: off"};
      else if (e.as) m.parameters[i] = {m[*e.as], 0, "not in the file: as " + std::string(name(*e.as))};
      else in_.complain("parameters", "\"" + std::string(e.name) + "\" is missing");
    }
  }

  void one(const std::string& where, std::size_t i, const Json& j, Parameter& to) {
    if (!j.is_object())
      return in_.complain(where, "this is not a JSON object", R"({"value": 1, "uncertainty": 0, "source": "..."})");
    if (!in_.object(j, where, {"value", "uncertainty", "alternative", "when", "at_bound", "taken_from", "source"}))
      return;
    if (!j.contains("value")) return in_.complain(where, "\"value\" is missing");
    in_.number(j, "value", where, to.value);
    in_.number(j, "uncertainty", where, to.uncertainty);
    in_.string(j, "source", where, to.source);
    if (to.source.empty())
      return in_.complain(where, "\"source\" is missing or empty",
                          "say where the number comes from, or write \"assumed\"");
    if (j.contains("alternative")) {
      in_.number(j, "alternative", where, to.alternative.emplace());
      in_.string(j, "when", where, to.when);
      if (to.when.empty())
        return in_.complain(where, "\"when\" is missing or empty", "say what is the case with the alternative");
    }
    if (j.contains("taken_from")) {
      for (const auto& source : in_.array(j, "taken_from", where)) {
        if (!source.is_string() || source.get<std::string>().empty())
          return in_.complain(where, "\"taken_from\" has an entry that is not a source", "[\"arXiv 2511.06605\"]");
        to.taken_from.push_back(source.get<std::string>());
      }
    }
    // Earlier files only say it in words.
    const auto says = [&](std::string_view bound) { return to.source.find(bound) != std::string::npos; };
    if (j.contains("at_bound")) in_.boolean(j, "at_bound", where, to.at_bound);
    else to.at_bound = to.fitted() && (says("; at its lower bound") || says("; at its upper bound"));
    if (const auto why = refuse(i, to.value); !why.empty()) return in_.complain(where, "\"value\" " + why);
    if (const auto why = refuse(i, to.alternative.value_or(to.value)); !why.empty())
      return in_.complain(where, "\"alternative\" " + why);
    if (!(to.uncertainty >= 0 && to.uncertainty <= 1e12)) in_.complain(where, "\"uncertainty\" is not from 0 to 1e12");
  }

  detail::JsonReader in_;
};

/// This node, with the parameters of its generation.
Result<MachineDescription, Diagnostic> machine_of_node(Topology node) {
  const auto newer = !node.gpus.empty() && node.gpus[0].gfx == 90500;
  auto m = newer ? machine_from_json(detail::kMi355xJson, "mi355x.json")
                 : machine_from_json(detail::kMi300xJson, "mi300x.json");
  if (!m) return m;
  m->origin = {.parameters = m->origin.file};
  m->notes = fmt::format("{}: its parameters, on the links of {}. {}", m->name, node.name, m->notes);
  m->name = node.name;
  m->topology = std::move(node);
  return m;
}

}  // namespace

std::string_view name(Cost c) noexcept { return kEntries[static_cast<std::size_t>(c)].name; }
std::string_view unit(Cost c) noexcept { return kEntries[static_cast<std::size_t>(c)].unit; }
std::size_t cost_named(std::string_view n) noexcept {
  // The name in 0.2, which counted a GPU's engines towards the host the other way round.
  if (n == "engine.first_to_host_efficiency") return static_cast<std::size_t>(Cost::engine_second_down);
  return static_cast<std::size_t>(std::find_if(kEntries.begin(), kEntries.end(), [&](auto& e) { return e.name == n; }) -
                                  kEntries.begin());
}

void Covariance::drop(Cost c) {
  const auto n = of.size();
  const auto at = static_cast<std::size_t>(std::find(of.begin(), of.end(), c) - of.begin());
  if (at == n) return;
  of.erase(of.begin() + static_cast<std::ptrdiff_t>(at));
  std::size_t i = 0;
  std::erase_if(values, [&](double) {
    const auto k = i++;
    return k / n == at || k % n == at;
  });
}

std::string_view name(CopyPattern p) noexcept { return kPatternNames[static_cast<std::size_t>(p)]; }

bool MachineDescription::fitted_to(std::string_view source) const noexcept {
  return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& p) {
    return std::any_of(p.taken_from.begin(), p.taken_from.end(), [&](auto& from) { return source.starts_with(from); });
  });
}

const Judged* MachineDescription::judgement(CopyPattern p) const noexcept {
  const auto at = std::find_if(judged.begin(), judged.end(), [&](const Judged& j) { return j.pattern == p; });
  return at == judged.end() ? nullptr : &*at;
}

double MachineDescription::error_of(CopyPattern p) const noexcept {
  const auto* const known = judgement(p);
  return known && known->model_error > 0 ? known->model_error : model_error;
}

Errc MachineDescription::set(std::string_view parameter, double value) noexcept {
  if (const auto* rate = link_rate(parameter)) {
    const auto given = Rate::gb_per_s(value);
    if (!given.known()) return Errc::bad_argument;
    bool any = false;
    for (auto& l : topology.links)
      if (l.type == rate->type) l.rate = given, any = true;
    return any ? Errc::ok : Errc::bad_argument;
  }
  if (const auto p = power_named(parameter); p < kPowers) {
    if (!detail::refuse(static_cast<Power>(p), value).empty() || detail::included(static_cast<Power>(p), energy))
      return Errc::bad_argument;
    auto& term = energy[p] ? *energy[p] : energy[p].emplace();
    term.value = {value, value, value};
    term.source = "set";
    return Errc::ok;
  }
  const auto i = cost_named(parameter);
  if (i == kCosts || !refuse(i, value).empty()) return Errc::bad_argument;
  parameters[i] = {value, 0, "set"};
  covariance.drop(static_cast<Cost>(i));
  return Errc::ok;
}

std::string_view mi300x_machine_json() noexcept { return detail::kMi300xJson; }

Result<MachineDescription, Diagnostic> mi300x_machine(std::uint32_t gpus) {
  auto node = mi300x(gpus);
  if (!node) return std::move(node.error());
  auto m = machine_from_json(mi300x_machine_json(), "mi300x.json");
  if (m) m->topology = std::move(*node);
  return m;
}

Result<MachineDescription, Diagnostic> layout_machine(std::string_view name) {
  auto node = layout(name);
  if (!node) return std::move(node.error());
  const auto title = node->name;
  auto m = machine_of_node(*std::move(node));
  if (!m) return m;
  m->name = std::string(name);
  if (const auto at = m->notes.find(title); at != m->notes.npos)
    m->notes.replace(at, title.size(), "the layout " + m->name);
  return m;
}

Result<MachineDescription, Diagnostic> machine_named(
    const std::string& name, const std::function<Result<std::string, Diagnostic>(const std::string&)>& read) {
  if (name.empty()) return mi300x_machine();
  if (names_layout(name)) return layout_machine(name);
  auto text = read ? read(name) : read_file(name);
  if (text) return machine_from_json(*text, name == "-" ? "stdin" : name);
  auto unread = std::move(text.error());
  if (unread.hint.empty()) unread.hint = node_hint(name, "sdma simulate --show-machine");
  return unread;
}

Result<MachineDescription, Diagnostic> machine_from_json(std::string_view text, std::string_view file) {
  return Loader{file}.run(text);
}

std::string to_json(const MachineDescription& m) {
  auto out = fmt::format(
      "{{\n  \"sdma_machine\": 1,\n  \"name\": {},\n  \"notes\": {},\n  \"topology\": {},\n  \"parameters\": {{",
      detail::json_string(m.name), detail::json_string(m.notes), topology_json(m.topology));
  if (m.model_error > 0) {
    const auto at = out.rfind("  \"parameters\"");
    out.insert(at, fmt::format("  \"model_error\": {},\n", m.model_error));
  }
  if (!m.judged.empty()) {
    const auto cells = [](std::string_view name, const Judged::Cells& c) {
      return c.cells == 0 ? ""
                          : fmt::format(", \"{}\": {{\"cells\": {}, \"mean\": {:.3g}, \"worst\": {:.3g}}}", name,
                                        c.cells, c.mean, c.worst);
    };
    std::vector<std::string> rows;
    for (const auto& j : m.judged)
      rows.push_back(fmt::format("    {:<15}{{\"model_error\": {:.2g}{}{}}}",
                                 fmt::format("\"{}\":", sdma::name(j.pattern)), j.model_error,
                                 cells("fitted", j.fitted), cells("predicted", j.predicted)));
    const auto at = out.rfind("  \"parameters\"");
    out.insert(at, fmt::format("  \"judged\": {{\n{}\n  }},\n", fmt::join(rows, ",\n")));
  }
  constexpr std::size_t kWidth = 32;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    const auto instead =
        p.alternative ? fmt::format(R"("alternative": {}, "when": {}, )", *p.alternative, detail::json_string(p.when))
                      : "";
    std::vector<std::string> from;
    for (const auto& source : p.taken_from) from.push_back(detail::json_string(source));
    out += fmt::format("{}\n    {:<{}}{{\"value\": {}, \"uncertainty\": {}, {}{}{}\"source\": {}}}", i == 0 ? "" : ",",
                       fmt::format("\"{}\":", kEntries[i].name), kWidth, p.value, p.uncertainty, instead,
                       p.at_bound ? "\"at_bound\": true, " : "",
                       from.empty() ? "" : fmt::format("\"taken_from\": [{}], ", fmt::join(from, ", ")),
                       detail::json_string(p.source));
  }
  out += "\n  }";
  if (const auto& c = m.covariance; !c.of.empty()) {
    std::vector<std::string> names, rows;
    for (std::size_t a = 0; a < c.of.size(); ++a) {
      names.push_back(detail::json_string(sdma::name(c.of[a])));
      const auto* const row = &c.values[a * c.of.size()];
      rows.push_back(fmt::format("      [{:.9g}]", fmt::join(row, row + a + 1, ", ")));
    }
    out += fmt::format(",\n  \"covariance\": {{\n    \"parameters\": [{}],\n    \"rows\": [\n{}\n    ]\n  }}",
                       fmt::join(names, ", "), fmt::join(rows, ",\n"));
  }
  return out + detail::energy_json(m.energy) + "\n}\n";
}

std::vector<std::string> defaults_of(const MachineDescription& m) {
  std::vector<std::string> out;
  if (const auto& from = m.origin.parameters; !from.empty())
    out.push_back(fmt::format("all parameters are those of {}", from));
  for (std::size_t i = 0; i < kCosts; ++i)
    if (const auto& p = m.parameters[i]; p.absent())
      out.push_back(fmt::format("{}={}: {}", kEntries[i].name, p.value, p.source));
  if (m.model_error == 0)
    out.emplace_back("model_error=0: not known, so intervals leave out what a fit may leave over");
  const auto cpu = [](LinkEnd e) { return e.kind == LinkEnd::Kind::cpu; };
  const auto& links = m.topology.links;
  if (m.topology.cpus.size() > 1 &&
      std::none_of(links.begin(), links.end(), [&](const Link& l) { return cpu(l.from) && cpu(l.to); }))
    out.emplace_back("links between the processors: none is in the topology, so none limits a copy");
  return out;
}

std::string to_table(const MachineDescription& m) {
  auto out = fmt::format("{}: {} GPUs\n", m.name, m.topology.gpus.size());
  if (!m.notes.empty()) out += m.notes + "\n";
  if (m.model_error > 0)
    out += fmt::format(
        "68 % of the times and ratios that it was fitted to are off by less than {:.2g} % of the part in which no "
        "bytes move.\n",
        100 * m.model_error);
  out += fmt::format("\n{:<29} {:>8} {:>8} {:<9} {}\n", "parameter", "value", "+-", "unit", "source");
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    out += fmt::format("{:<29} {:>8} {:>8} {:<9} {}\n", kEntries[i].name, p.value, p.uncertainty, kEntries[i].unit,
                       p.source);
  }
  return out + detail::energy_table(m.energy);
}

}}  // namespace sdma::v0_3
