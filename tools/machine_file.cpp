#include "machine_file.hpp"

#include "input.hpp"
#include "schedule_file.hpp"
#include "verb.hpp"

#include <cstdlib>

namespace sdma::tool {

void add_machine(VerbOptions& verb, MachineOptions& o) {
  verb.value("--machine", o.path, "file that describes the machine (default: eight MI300X)").type("PATH");
  add_pairs(verb, "--parameter", "NAME=VALUE", o.changes,
            "change a parameter of the machine, such as engine.poll_ns=1000; may be repeated");
}

Result<MachineDescription, Diagnostic> machine_of(const std::string& path) {
  if (path.empty()) return mi300x_machine();
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
    const auto parameter = parameter_named("--parameter", name);
    if (!parameter) return {};
    if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
    const auto unit = sdma::unit(*parameter);
    complain("--parameter " + name + "=" + value + ": " + "'" + value + "' is not a valid value",
             unit == "fraction" ? "write a number above 0 and at most 1"
             : unit == "ns"     ? "write a number of ns from 0 to 1e12, without a unit"
                            : "write a number of " + std::string(unit) + " above 0 and at most 1e12, without a unit");
    return {};
  }
  return std::move(*m);
}

int exit_code(const MachineOptions& o) { return o.changes.empty() ? kInput : kUsage; }

}  // namespace sdma::tool
