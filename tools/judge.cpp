// SPDX-License-Identifier: MIT
#include "judge.hpp"

#include <fmt/format.h>

#include <utility>

namespace sdma::tool {
namespace {

std::string percent(double x) { return fmt::format("{:.1f} %", 100 * x); }

void line(std::string& out, const std::string& name, const HeldOutErrors& e) {
  out += fmt::format("| {} | {} | {} | {} | {} | {} | {} +- {} | {} |\n", name, e.cells, percent(e.mean),
                     percent(e.worst), e.after_factor > 0 ? percent(e.after_factor) : "-",
                     e.compared > 0 ? fmt::format("{} of {}", e.best, e.compared) : "-", percent(e.inside_one),
                     percent(e.inside_one_deviation), percent(e.inside_two));
}
void share_line(std::string& out, const std::string& name, const HeldOutErrors& e) {
  out += fmt::format("| {} | {} | {:.1f} | {:.1f} |\n", name, e.cells, 100 * e.mean, 100 * e.worst);
}

}  // namespace

std::string held_out_report(const Measurements& m, std::span<const HeldOut> parts) {
  std::string ratios =
      "| left out | cells | mean error | worst | after one factor a row | best variant | inside one interval | inside "
      "two "
      "|\n|---|---|---|---|---|---|---|---|\n";
  std::string shares = "| left out: shares | cells | mean error, points | worst |\n|---|---|---|---|\n";
  const auto least = shares.size(), none = ratios.size();
  const auto add = [&](const std::string& name, std::span<const HeldOut* const> of) {
    if (const auto e = errors_of(m, of, false); e.cells > 0) line(ratios, name, e);
    if (const auto e = errors_of(m, of, true); e.cells > 0) share_line(shares, name, e);
  };
  for (std::size_t i = 0; i < parts.size();) {
    std::vector<const HeldOut*> same;
    const auto kind = parts[i].kind;
    for (; i < parts.size() && parts[i].kind == kind; ++i) same.push_back(&parts[i]);
    if (same.size() > 1)
      for (const auto* p : same) add(p->name, {&p, 1});
    add(same.size() > 1 ? fmt::format("**all {}**", name(kind)) : same.front()->name, same);
  }
  return (ratios.size() > none ? ratios : "") +
         (shares.size() > least ? (ratios.size() > none ? "\n" : "") + shares : "");
}

}  // namespace sdma::tool
