#include "sdma/simulate/machine.hpp"

#include "sdma/core/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mi300x.hpp>
#include <nlohmann/json.hpp>

namespace sdma {
inline namespace v0 {
namespace {

using Json = nlohmann::ordered_json;

struct Entry {
  std::string_view name, unit;
};
constexpr std::array<Entry, kCosts> kEntries{{
    {"host.build_ns", "ns"},
    {"host.group_ns", "ns"},
    {"host.doorbell_ns", "ns"},
    {"host.store_ns", "ns"},
    {"host.look_ns", "ns"},
    {"host.atomic_ns", "ns"},
    {"host.memory_bytes_per_ns", "bytes/ns"},
    {"pcie.flight_ns", "ns"},
    {"pcie.efficiency", "part"},
    {"xgmi.flight_ns", "ns"},
    {"xgmi.efficiency", "part"},
    {"hbm.bytes_per_ns", "bytes/ns"},
    {"engine.fetch_ns", "ns"},
    {"engine.packet_ns", "ns"},
    {"engine.control_ns", "ns"},
    {"engine.window_bytes", "bytes"},
    {"engine.bytes_per_ns", "bytes/ns"},
    {"engine.broadcast_efficiency", "part"},
    {"engine.swap_efficiency", "part"},
    {"engine.other_link_efficiency", "part"},
    {"engine.latency_ns", "ns"},
    {"engine.read_peer_ns", "ns"},
    {"engine.release_ns", "ns"},
    {"engine.poll_ns", "ns"},
    {"kernel.release_ns", "ns"},
    {"kernel.look_ns", "ns"},
}};
static_assert(static_cast<std::size_t>(Cost::kernel_look) + 1 == kCosts);
static_assert(kEntries.back().name == "kernel.look_ns");

/// "" if the parameter may have this value. Rates, fractions and the window are divisors, so they cannot be zero.
std::string refuse(std::size_t i, double v) {
  const auto unit = kEntries[i].unit;
  if (!std::isfinite(v) || v < 0) return "is negative";
  if (unit != "ns" && v <= 0) return "is not above zero";
  if (unit == "part" && v > 1) return "is more than 1";
  return v > 1e12 ? "is more than 1e12" : "";
}

class Loader {
 public:
  explicit Loader(std::string_view file) : file_(file) {}

  Result<MachineDescription, Diagnostic> run(std::string_view text) {
    const auto j = Json::parse(text, nullptr, false);
    MachineDescription m;
    if (j.is_discarded() || !j.is_object())
      complain("", "is not a JSON object", "sdma simulate --show-machine --json prints an example");
    else load(j, m);
    if (failed_) return std::move(error_);
    return m;
  }

 private:
  void complain(const std::string& where, std::string message, std::string hint = {}) {
    if (!std::exchange(failed_, true))
      error_ = {.where = where.empty() ? file_ : file_ + ": " + where,
                .message = std::move(message),
                .hint = std::move(hint)};
  }

  void load(const Json& j, MachineDescription& m) {
    if (j.value("sdma_machine", Json()) != 1)
      return complain("", "is not a machine description of version 1", "it must contain \"sdma_machine\": 1");
    for (const auto& [key, value] : j.items()) {
      if (key == "sdma_machine") continue;
      if (key == "name" || key == "notes") {
        if (!value.is_string()) return complain(key, "is not a string");
        (key == "name" ? m.name : m.notes) = value.get<std::string>();
      } else if (key == "topology") {
        topology(value, m.topology);
      } else if (key == "parameters") {
        parameters(value, m);
      } else {
        return complain("", "has the unknown key \"" + key + "\"",
                        "known keys: sdma_machine, name, notes, topology, parameters");
      }
    }
    if (!j.contains("topology"))
      complain("", "has no \"topology\"", "write {\"mi300x\": 8}, or the output of sdma topology --json");
    if (!j.contains("parameters")) complain("", "has no \"parameters\"");
  }

  void topology(const Json& j, Topology& to) {
    auto t = [&]() -> Result<Topology, Diagnostic> {
      if (j.is_object() && j.size() == 1 && j.contains("mi300x") && j["mi300x"].is_number_unsigned())
        return sdma::mi300x(static_cast<std::uint32_t>(std::min<std::uint64_t>(j["mi300x"].get<std::uint64_t>(), 99)));
      return topology_from_json(j.dump(), file_ + ": topology");
    }();
    if (t) to = std::move(*t);
    else if (!std::exchange(failed_, true)) error_ = std::move(t.error());
  }

  void parameters(const Json& j, MachineDescription& m) {
    if (!j.is_object()) return complain("parameters", "is not a JSON object");
    std::array<bool, kCosts> seen{};
    for (const auto& [key, value] : j.items()) {
      const auto i = cost_named(key);
      if (i == kCosts) {
        Nearest n{key};
        for (const auto& e : kEntries) n.offer(e.name);
        return complain("parameters", "\"" + key + "\" is not a parameter",
                        n.best().empty() ? "sdma simulate --show-machine lists them"
                                         : "did you mean '" + std::string(n.best()) + "'?");
      }
      seen[i] = true;
      one(key, i, value, m.parameters[i]);
    }
    for (std::size_t i = 0; i < kCosts; ++i)
      if (!seen[i]) complain("parameters", "\"" + std::string(kEntries[i].name) + "\" is missing");
  }

  void one(const std::string& key, std::size_t i, const Json& j, Parameter& to) {
    const auto where = "parameters: " + key;
    if (!j.is_object())
      return complain(where, "is not a JSON object", R"({"value": 1, "uncertainty": 0, "source": "..."})");
    for (const auto& [member, value] : j.items()) {
      if (member == "source") {
        if (!value.is_string() || value.get<std::string>().empty())
          return complain(where, "\"source\" is empty or not a string");
        to.source = value.get<std::string>();
      } else if (member == "value" || member == "uncertainty") {
        if (!value.is_number()) return complain(where, "\"" + member + "\" is not a number");
        (member == "value" ? to.value : to.uncertainty) = value.get<double>();
      } else {
        return complain(where, "has the unknown key \"" + member + "\"", "known keys: value, uncertainty, source");
      }
    }
    if (!j.contains("value")) return complain(where, "has no \"value\"");
    if (to.source.empty())
      return complain(where, "has no \"source\"", "say where the number comes from, or write \"assumed\"");
    if (const auto why = refuse(i, to.value); !why.empty()) return complain(where, "\"value\" " + why);
    if (!(to.uncertainty >= 0 && to.uncertainty <= 1e12)) complain(where, "\"uncertainty\" is not from 0 to 1e12");
  }

  std::string file_;
  bool failed_ = false;
  Diagnostic error_;
};

}  // namespace

std::string_view name(Cost c) noexcept { return kEntries[static_cast<std::size_t>(c)].name; }
std::string_view unit(Cost c) noexcept { return kEntries[static_cast<std::size_t>(c)].unit; }
std::size_t cost_named(std::string_view n) noexcept {
  return static_cast<std::size_t>(std::find_if(kEntries.begin(), kEntries.end(), [&](auto& e) { return e.name == n; }) -
                                  kEntries.begin());
}

Errc MachineDescription::set(std::string_view parameter, double value) noexcept {
  const auto i = cost_named(parameter);
  if (i == kCosts || !refuse(i, value).empty()) return Errc::bad_argument;
  parameters[i] = {value, 0, "set"};
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

Result<MachineDescription, Diagnostic> machine_from_json(std::string_view text, std::string_view file) {
  return Loader{file}.run(text);
}

std::string to_json(const MachineDescription& m) {
  const auto quoted = [](const std::string& s) { return Json(s).dump(-1, ' ', false, Json::error_handler_t::replace); };
  auto out = fmt::format("{{\n  \"sdma_machine\": 1,\n  \"name\": {},\n  \"notes\": {},\n  \"parameters\": {{",
                         quoted(m.name), quoted(m.notes));
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    out += fmt::format("{}\n    \"{}\": {{\"value\": {}, \"uncertainty\": {}, \"source\": {}}}", i == 0 ? "" : ",",
                       kEntries[i].name, p.value, p.uncertainty, quoted(p.source));
  }
  auto topology = to_json(m.topology);
  while (!topology.empty() && topology.back() == '\n') topology.pop_back();
  return out + "\n  },\n  \"topology\": " + topology + "\n}\n";
}

std::string to_table(const MachineDescription& m) {
  auto out = fmt::format("{}: {} GPUs\n", m.name, m.topology.gpus.size());
  if (!m.notes.empty()) out += m.notes + "\n";
  out += fmt::format("\n{:<29} {:>8} {:>8} {:<9} {}\n", "parameter", "value", "+-", "unit", "source");
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    out += fmt::format("{:<29} {:>8} {:>8} {:<9} {}\n", kEntries[i].name, p.value, p.uncertainty, kEntries[i].unit,
                       p.source);
  }
  return out;
}

}  // namespace v0
}  // namespace sdma
