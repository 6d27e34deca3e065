// SPDX-License-Identifier: MIT
#include "nccl_format.hpp"

#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf::nccl_format {
namespace {

/// One half of a row: `p` may be null.
std::string half(const Point* p) {
  if (!p) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "N/A", "N/A", "N/A", "N/A");
  const auto us = p->us.mean;
  return fmt::format("  {:>7}  {:>6.2f}  {:>6.2f}  {:>5}",
                     fmt::format("{:.{}f}", us,
                                 us >= 10000 ? 0
                                 : us >= 100 ? 1
                                             : 2),
                     p->algbw, p->busbw, p->wrong ? std::to_string(*p->wrong) : "N/A");
}

bool has_root(Collective c) {
  return c == Collective::broadcast || c == Collective::scatter || c == Collective::gather;
}

}  // namespace

std::string header(const Settings& s, std::string_view device, std::string_view remarks) {
  auto text = fmt::format(
      "# nThread 1 nGpus {} minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} agg iters: 1 validation: {} "
      "graph: 0\n"
      "#\n# Using devices\n",
      s.options.gpus / s.processes, s.least, s.most,
      s.factor != 0 ? fmt::format("{}(factor)", s.factor) : fmt::format("{}(bytes)", s.step), s.warmups, s.iterations,
      s.checks);
  for (std::uint32_t i = 0; i < s.options.gpus; ++i)
    text += fmt::format("#  Rank {:>2} device {:>2} {}\n", i, s.gpus.empty() ? i : s.gpus[i].value, device);
  text += cautions(s);
  text += fmt::format("{}#\n", remarks);
  text += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place                       in-place          \n", "", "",
      "", "", "");
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  {:>6}  {:>6} {:>6}\n",
                      "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
                      "busbw", "#wrong");
  return text +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>5}  {:>7}  {:>6}  {:>6}  {:>5}\n",
                     "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string row(const Settings& s, const Point& p) {
  const auto root = has_root(s.options.collective) ? static_cast<int>(s.options.root) : -1;
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", p.bytes, p.count, p.type, "none", root,
                     half(p.in_place ? nullptr : &p), half(p.in_place ? &p : nullptr)) +
         details(p);
}

std::string footer(std::span<const Point> points) {
  const auto wrong = wrong_elements(points);
  const bool verified = std::all_of(points.begin(), points.end(), [](const Point& p) { return p.wrong.has_value(); });
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.6g} \n#\n",
                     wrong != 0 ? fmt::format("{} FAILED", wrong)
                     : verified ? "0 OK"
                                : "N/A",
                     average_busbw(points));
}

}  // namespace collectives::perf::nccl_format
