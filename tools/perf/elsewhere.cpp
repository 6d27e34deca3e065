// SPDX-License-Identifier: MIT
#include "elsewhere.hpp"

#include "collectives/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {

std::vector<Elsewhere> elsewhere_of(const sdma::Measurements& m, const Settings& s) {
  std::vector<Elsewhere> out;
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    const auto& o = m.observations[i];
    const auto& row = m.rows[i];
    const auto file = row.schedule.substr(row.schedule.rfind('/') + 1);
    if (o.kind != sdma::Observation::Kind::time || file != std::string(name(s.options.collective)) + ".sdma" ||
        o.schedule->gpus != s.options.gpus)
      continue;
    Elsewhere e{.us = o.value / 1e3, .machine = row.machine, .includes = row.includes, .source = row.source};
    for (const auto& b : o.schedule->buffers)
      if (!b.place.is_host()) e.bytes = std::max(e.bytes, b.bytes);
    auto options = s.options;
    options.bytes = e.bytes;
    e.busbw = static_cast<double>(e.bytes) / o.value * bus_factor(options);
    out.push_back(std::move(e));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.machine != b.machine ? a.machine < b.machine : a.bytes < b.bytes;
  });
  return out;
}

std::string elsewhere_text(std::span<const Elsewhere> all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& e = all[i];
    if (i == 0 || all[i - 1].machine != e.machine)
      text += fmt::format("# Measured elsewhere, on {}; not modelled, and not measured here:\n", e.machine);
    text += fmt::format("#{:>8} {:>10.2f} us {:>9.2f} GB/s busbw   {}; {}\n", size_text(e.bytes), e.us, e.busbw,
                        e.includes, e.source);
  }
  return text.empty() ? text : text + "#\n";
}

std::string elsewhere_json(std::span<const Elsewhere> all) {
  std::string text;
  for (const auto& e : all)
    text += fmt::format(
        "{}\n    {{\"size\": {}, \"time_us\": {:.6g}, \"busbw_gbps\": {:.6g}, \"machine\": {}, \"includes\": {}, "
        "\"source\": {}}}",
        text.empty() ? "" : ",", e.bytes, e.us, e.busbw, json_text(e.machine), json_text(e.includes),
        json_text(e.source));
  return "[" + text + "]";
}

}  // namespace collectives::perf
