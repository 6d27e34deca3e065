#include "machine_file.hpp"

#include "input.hpp"
#include "schedule_file.hpp"
#include "verb.hpp"

#include <algorithm>
#include <cstdlib>

namespace sdma::tool {

void add_machine(VerbOptions& verb, MachineOptions& o) {
  verb.value("--machine", o.path, "file that describes the machine (default: eight MI300X)").type("PATH");
  add_pairs(verb, "--parameter", "NAME=VALUE", o.changes,
            "change a parameter of the machine, such as engine.poll_ns=1000; may be repeated");
}

std::optional<MachineDescription> load_machine(const MachineOptions& o) {
  auto m = [&]() -> Result<MachineDescription, Diagnostic> {
    if (o.path.empty()) return mi300x_machine();
    const auto text = read_text(o.path);
    if (!text) return text.error();
    return machine_from_json(*text, shown(o.path));
  }();
  if (!m) return report(m.error()), std::nullopt;
  for (const auto& [name, value] : o.changes) {
    char* end = nullptr;
    const auto v = std::strtod(value.c_str(), &end);
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < kCosts; ++i) known.push_back(sdma::name(static_cast<Cost>(i)));
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      complain("--parameter " + name + ": there is no such parameter" + did_you_mean(name, known),
               "sdma simulate --show-machine lists them");
      return {};
    }
    if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
    const auto unit = sdma::unit(static_cast<Cost>(at - known.begin()));
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
