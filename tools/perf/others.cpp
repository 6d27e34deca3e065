// SPDX-License-Identifier: MIT
#include "others.hpp"

#include "collectives/plan.hpp"
#include "core/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collectives::perf {

using namespace sdma;

std::vector<Elsewhere> elsewhere_of(const Measurements& m, const Settings& s) {
  std::vector<Elsewhere> out;
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    const auto& o = m.observations[i];
    const auto& row = m.rows[i];
    const auto file = row.schedule.substr(row.schedule.rfind('/') + 1);
    if (o.kind != Observation::Kind::time || file != std::string(name(s.options.collective)) + ".sdma" ||
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

std::optional<double> Brought::at(std::uint64_t bytes) const {
  const auto above = std::lower_bound(us.begin(), us.end(), bytes, [](const auto& p, auto b) { return p.first < b; });
  if (above == us.end()) return {};
  if (above->first == bytes) return above->second;
  if (above == us.begin()) return {};
  const auto& [low, low_us] = above[-1];
  const auto part = std::log(static_cast<double>(bytes) / static_cast<double>(low)) /
                    std::log(static_cast<double>(above->first) / static_cast<double>(low));
  return low_us * std::pow(above->second / low_us, part);
}

std::string Brought::remark() const {
  return fmt::format(
      "# {}: times of {}, {} sizes from {} to {}. Between two sizes they are interpolated (log-log); outside, they are "
      "not known.\n",
      name(Rival::brought), file, us.size(), size_text(us.front().first), size_text(us.back().first));
}

Result<Brought, Diagnostic> brought(std::string_view text, std::string file) {
  Brought out{.file = std::move(file)};
  std::size_t number = 0;
  while (!text.empty()) {
    const auto line = detail::trimmed(detail::take_line(text));
    ++number;
    if (line.empty() || line.front() == '#' || (out.us.empty() && line == "size,time_us")) continue;
    const auto wrong = [&](std::string what) {
      return Diagnostic{.where = fmt::format("{}:{}", out.file, number),
                        .message = std::move(what),
                        .hint = "write a size and microseconds: 64K,21.5"};
    };
    const auto values = detail::between_commas(line);
    if (values.size() != 2) return wrong("this line does not have two values");
    const auto size = detail::trimmed(values[0]), time = detail::trimmed(values[1]);
    const auto bytes = parse_size(size);
    if (!bytes || *bytes == 0) return wrong(fmt::format("'{}' is not a size", size));
    const auto us = parse_real(time);
    if (!us || *us <= 0) return wrong(fmt::format("'{}' is not a time above zero", time));
    if (!out.us.empty() && *bytes <= out.us.back().first)
      return wrong(fmt::format("{} comes after {}: sizes must grow", size, size_text(out.us.back().first)));
    out.us.emplace_back(*bytes, *us);
  }
  if (out.us.empty())
    return Diagnostic{
        .where = out.file, .message = "it has no time", .hint = "write a size and microseconds in each line: 64K,21.5"};
  return out;
}

}  // namespace collectives::perf
