// SPDX-License-Identifier: MIT
// The joules of sdma calibrate: fits the terms of a machine's energy to a table, and prints each row beside the fit.
#include "calibrate_joules.hpp"

#include "input.hpp"
#include "interrupt.hpp"
#include "json/calibrate.hpp"
#include "output.hpp"
#include "verb.hpp"

#include <fmt/format.h>

namespace sdma::tool {
namespace {

std::string unit_of(const std::string& column) {
  const auto p = power_named(column);
  return p < kPowers ? std::string(unit(static_cast<Power>(p))) : "J";
}

std::string joules_report(const EnergyFit& f) {
  auto out = fmt::format("{:<29} {:>10} {:>10} {:>10} {}\n", "term", "value", "at least", "at most", "unit");
  for (const auto& v : f.values)
    out += fmt::format("{:<29} {:>10.4g} {:>10.4g} {:>10.4g} {}\n", v.column, v.value.value, v.value.low, v.value.high,
                       unit_of(v.column));
  for (const auto& [whole, part] : f.includes) out += fmt::format("{} includes {}\n", name(whole), name(part));
  for (const bool judged : {false, true}) {
    if (std::none_of(f.predictions.begin(), f.predictions.end(), [&](const auto& p) { return p.judged == judged; }))
      continue;
    out +=
        fmt::format("\n{:<29} {:>10} {:>10} {:>8}\n", judged ? "predicted" : "fitted to", "measured", "model", "error");
    for (const auto& p : f.predictions)
      if (p.judged == judged)
        out += fmt::format("{:<29} {:>8.1f} W {:>8.1f} W {:>+6.1f} %\n", p.name, p.watts, p.predicted, 100 * p.error);
    out += fmt::format("the worst error is {:.1f} %\n", 100 * f.worst(judged));
  }
  return out;
}

}  // namespace

JoulesTable read_joules(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::vector{text.error()};
  return energy_measurements(*text, shown(path));
}

int calibrate_joules(const JoulesArguments& o, const JoulesTable& table) {
  if (!table && interrupted != 0) return stopped("no machine was written");
  if (!table) return report(table.error()), kInput;
  auto m = machine_named(o.start == "builtin" ? "" : o.start, sdma::tool::read_text);
  if (!m) return report(m.error()), kInput;
  if (!o.save.empty())
    if (const auto code = write_text(o.save, to_csv(*table)); code != kOk) return code;
  const auto f = fit_energy(*table);
  if (!f) return report(f.error()), kInput;
  f->write(*m);
  if (!o.out.empty())
    if (const auto code = write_text(o.out, to_json(*m)); code != kOk) return code;
  return o.out == "-" ? kOk : write_text("-", o.json ? json::document(json::of(*f)) : joules_report(*f));
}

}  // namespace sdma::tool
