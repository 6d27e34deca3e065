// SPDX-License-Identifier: MIT
#include "machine_file.hpp"

#include "input.hpp"
#include "schedule_file.hpp"
#include "sdma/device/layout.hpp"
#include "verb.hpp"

#include <algorithm>
#include <cstdlib>

namespace sdma::tool {

void add_machine(VerbOptions& verb, MachineOptions& o) {
  verb.value("--machine", o.path,
             "the machine: a file, or a layout such as mi355x:8, mesh:16, ring:8, switch:8x400G or nodes:2x8 (default: "
             "eight MI300X)")
      .type("PATH|LAYOUT");
  add_pairs(verb, "--parameter", "NAME=VALUE", o.changes,
            "change a parameter of the machine, such as engine.poll_ns=1000; may be repeated");
}

Result<MachineDescription, Diagnostic> machine_of(const std::string& path) {
  if (path.empty()) return mi300x_machine();
  if (names_layout(path)) return layout_machine(path);
  const auto text = read_text(path);
  if (!text) return text.error();
  return machine_from_json(*text, shown(path));
}

std::optional<Cost> parameter_named(const std::string& option, const std::string& word) {
  const auto i = cost_named(word);
  if (i != kCosts) return static_cast<Cost>(i);
  std::vector<std::string_view> known;
  for (std::size_t k = 0; k < kCosts; ++k) known.push_back(name(static_cast<Cost>(k)));
  complain(option + " " + word + ": there is no such parameter" + did_you_mean(word, known),
           "sdma simulate --show-machine lists them");
  return {};
}

std::optional<MachineDescription> load_machine(const MachineOptions& o) {
  auto m = machine_of(o.path);
  if (!m) return report(m.error()), std::nullopt;
  for (const auto& [name, value] : o.changes) {
    char* end = nullptr;
    const auto v = std::strtod(value.c_str(), &end);
    const auto rate = std::find(kLinkRates.begin(), kLinkRates.end(), name) != kLinkRates.end();
    const auto parameter = rate ? std::nullopt : parameter_named("--parameter", name);
    if (!rate && !parameter) return {};
    if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
    const auto unit = rate ? "GB/s" : sdma::unit(*parameter);
    const auto links = rate && *end == 0 && v > 0;
    complain("--parameter " + name + "=" + value + ": " +
                 (links ? "the machine has no such links" : "'" + value + "' is not a valid value"),
             links                ? "sdma topology shows the links of a node"
             : unit == "fraction" ? "write a number above 0 and at most 1"
             : unit == "ns"       ? "write a number of ns from 0 to 1e12, without a unit"
                            : "write a number of " + std::string(unit) + " above 0 and at most 1e12, without a unit");
    return {};
  }
  return std::move(*m);
}

int exit_code(const MachineOptions& o) { return o.changes.empty() ? kInput : kUsage; }

}  // namespace sdma::tool
