// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "sdma/core/version.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {
namespace {

/// At least three digits, for any magnitude.
std::string cell_number(double v) {
  return fmt::format("{:.{}f}", v, v >= 100'000 ? 0 : v >= 100 ? 1 : v >= 0.1 ? 2 : 4);
}

std::string step_of(const Settings& s) {
  return s.factor != 0 ? fmt::format("{}(factor)", s.factor) : fmt::format("{}(bytes)", s.step);
}

/// `off`: the cell of half the interval; `joules`: of the simulated energy; "": the table has no such column.
std::string line(std::string_view size, std::string_view count, std::string_view type, std::string_view variant,
                 std::string_view time, std::string_view off, std::string_view algbw, std::string_view busbw,
                 std::string_view wrong, std::string_view joules, std::size_t width) {
  return fmt::format("{:>12} {:>12} {:>7} {:>{}} {:>10}{} {:>8} {:>8} {:>7}{}\n", size, count, type, variant, width,
                     time, off.empty() ? "" : fmt::format(" {:>9}", off), algbw, busbw, wrong,
                     joules.empty() ? "" : fmt::format(" {:>30}", joules));
}

}  // namespace

std::string way_text(const Point& p) {
  return name(p.way) + (is_ours(p.way) && p.way.variant == Variant::automatic ? "=" + std::string(name(p.ran)) : "");
}

std::size_t variant_width(const Settings& s) {
  constexpr std::size_t kUsual = 12;
  std::size_t width = kUsual;
  for (const auto& way : s.ways) width = std::max(width, name(way).size());
  return width;
}

std::string ran_text(const Point& p) { return is_ours(p.way) ? std::string(name(p.ran)) : name(p.way); }

std::string cautions(const Settings& s) {
  std::string text;
  if (!s.where_given && !s.where)
    text += "# No GPU was found, so this is a simulation; --device=soft moves data in software, and verifies it.\n";
  if (s.where == sdma::DeviceKind::soft)
    text += "# Software engines: times are those of this machine's CPUs, not of a GPU.\n";
  if (!s.caveat.empty()) text += "# Careful: " + s.caveat + ".\n";
  if (!s.where)
    text +=
        "# Simulated: one round each, without data; times are only as accurate as the machine's parameters. +- is half "
        "of a 68 % interval.\n";
  if (s.settle.count() != 0) text += fmt::format("# settle: {} us before each start\n", s.settle.count());
  for (const auto& remark : s.remarks) text += "# note: " + remark + "\n";
  return text;
}

std::string header(const Settings& s, std::string_view device, std::string_view remarks) {
  std::string which;
  for (const auto g : s.gpus) which += fmt::format("{}{}", which.empty() ? " (" : ",", g.value);
  if (!which.empty()) which += ")";
  auto text = fmt::format("# sdma perf {}: {}, {} GPUs{}, {}\n", sdma::version().string, name(s.options.collective),
                          s.options.gpus, which, device);
  text += fmt::format("# minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} validation: {}\n", s.least, s.most,
                      step_of(s), s.warmups, s.iterations, s.checks);
  text += cautions(s);
  text += remarks;
  const bool intervals = !s.where, joules = intervals && s.energy;
  text += "#\n#" + line("size", "count", "type", "variant", "time", intervals ? "+-" : "", "algbw", "busbw", "#wrong",
                        joules ? "above idle" : "", variant_width(s))
                       .substr(1);
  return text + "#" +
         line("(B)", "(elements)", "", "",
              s.where == sdma::DeviceKind::soft || (s.where == sdma::DeviceKind::kfd && !s.caveat.empty()) ? "(CPU us)"
                                                                                                           : "(us)",
              intervals ? "(us)" : "", "(GB/s)", "(GB/s)", "", joules ? "(at least, at most)" : "", variant_width(s))
             .substr(1);
}

std::string details(const Point& p) {
  std::string text;
  if (p.wrong.value_or(0) != 0) text += "# wrong: " + p.first_wrong + "\n";
  if (p.energy && !p.energy->bounds)
    text += fmt::format("#   energy: {:.4g} J per round, {:.4g} nJ per byte moved, {:.1f} W above idle\n",
                        p.energy->joules, p.energy->nanojoules_per_byte, p.energy->watts);
  if (p.beside)
    text += fmt::format(
        "#   beside gemm: median {} us, alone {} (x {:.2f}); gemm {:.1f} TFLOP/s per GPU, alone {:.1f} ({:+.1f} %)\n",
        cell_number(p.beside->us), cell_number(p.us.median), p.beside->us / p.us.median, p.beside->product,
        p.beside->product_alone, (p.beside->product / p.beside->product_alone - 1) * 100);
  return text;
}

std::string row(const Point& p, std::size_t width, bool intervals, bool energy) {
  const auto text = line(std::to_string(p.bytes), std::to_string(p.count), p.type, way_text(p), cell_number(p.us.mean),
                         !intervals ? ""
                         : p.spread ? cell_number(p.spread->uncertainty_ns / 1e3)
                                    : "-",
                         cell_number(p.algbw), cell_number(p.busbw), p.wrong ? std::to_string(*p.wrong) : "N/A",
                         !intervals || !energy          ? ""
                         : p.energy && p.energy->bounds ? sdma::to_text(*p.energy->bounds)
                                                        : "-",
                         width);
  return text + details(p);
}

std::string notes(const Point& p, std::vector<std::string>& said) {
  std::string text;
  for (const auto& note : p.notes) {
    if (std::find(said.begin(), said.end(), note) != said.end()) continue;
    text += "# note: " + note + "\n";
    said.push_back(note);
  }
  return text;
}

double average_busbw(std::span<const Point> points) noexcept {
  double sum = 0, n = 0;
  for (const auto& p : points)
    if (p.way.rival == Rival::none) sum += p.busbw, ++n;
  return n == 0 ? 0 : sum / n;
}

std::uint64_t wrong_elements(std::span<const Point> points) noexcept {
  std::uint64_t sum = 0;
  for (const auto& p : points) sum += p.wrong.value_or(0);
  return sum;
}

std::string footer(std::span<const Point> points) {
  const auto wrong = wrong_elements(points);
  bool verified = false;
  for (const auto& p : points) verified = verified || p.wrong;
  return fmt::format("# Wrong elements    : {}\n# Avg bus bandwidth : {}\n#\n",
                     !verified    ? "not verified"
                     : wrong == 0 ? "0 OK"
                                  : fmt::format("{} FAILED", wrong),
                     points.empty() ? "none" : cell_number(average_busbw(points)));
}

namespace nccl_format {
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
      s.options.gpus / s.processes, s.least, s.most, step_of(s), s.warmups, s.iterations, s.checks);
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

}  // namespace nccl_format

}  // namespace collectives::perf
