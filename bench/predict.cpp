// SPDX-License-Identifier: MIT
// Collectives that were measured on GPUs beside the simulator's
// predictions of them, by machines that were fitted to single mechanisms.
//
//   build/bench/bench-predict share/measured/two-h200      the tables of docs/silicon.md, as Markdown
//
//   FOLDER/visit*.json     one machine, or several that were fitted on different days:
//                          sdma calibrate --device=cuda -o visit1.json
//   FOLDER/*.csv           rows of sdma perf --csv; none was used in
//                          a fit, and those of NCCL and RCCL are left out
// For each collective and size, it also says whether the way with the shortest prediction is the fastest: whether the
// middle half of its rounds begins before that of the fastest way ends.
//
// A prediction is the mean of the machines' predictions. Its standard deviation has two parts: that of the machines'
// parameters (sensitivity), and the differences between the machines, if there are several.
#include "collectives/plan.hpp"
#include "sdma/core/file.hpp"
#include "sdma/simulate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using namespace sdma;
namespace col = collectives;

namespace {

struct Cell {
  std::string collective, way;
  std::uint64_t bytes{};
  double measured{}, predicted{}, deviation{};  ///< us
  double first_quarter{}, third_quarter{};      ///< of the measured rounds, us
  double error() const { return predicted / measured - 1; }
  bool inside(double deviations) const { return std::abs(predicted - measured) <= deviations * deviation; }
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "bench-predict: %s\n", message.c_str());
  std::exit(1);
}
std::string text_of(const std::filesystem::path& path) {
  auto text = read_file(path.string());
  if (!text) fail(to_string(text.error()));
  return *std::move(text);
}

/// The fields of a line; notes are quoted, because they may contain commas.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out{""};
  bool quoted = false;
  for (const auto c : line)
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) out.emplace_back();
    else out.back() += c;
  return out;
}

/// Adds the rows of a file that sdma perf has written.
void read_rows(const std::filesystem::path& path, std::vector<Cell>& to) {
  const auto text = text_of(path);
  std::map<std::string, std::size_t> at;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto f = fields(text.substr(begin, end - begin));
    begin = end + 1;
    if (at.empty()) {
      for (std::size_t i = 0; i < f.size(); ++i) at[f[i]] = i;
      for (const auto* name : {"collective", "size", "variant", "median_us", "q1_us", "q3_us"})
        if (!at.contains(name)) fail(path.string() + ": there is no column " + name);
      continue;
    }
    if (f.size() < at.size()) fail(path.string() + ": a line has too few fields");
    if (const auto& way = f[at["variant"]]; way == "nccl" || way == "nccl-ce" || way == "rccl") continue;
    const auto us = [&](const char* column) { return std::strtod(f[at[column]].c_str(), nullptr); };
    to.push_back({.collective = f[at["collective"]],
                  .way = f[at["variant"]],
                  .bytes = std::strtoull(f[at["size"]].c_str(), nullptr, 10),
                  .measured = us("median_us"),
                  .first_quarter = us("q1_us"),
                  .third_quarter = us("q3_us")});
  }
}

Schedule schedule(const Cell& c, std::uint32_t gpus) {
  const auto plus = c.way.find("+pl");
  const auto variant = col::variant_named(c.way.substr(0, plus));
  const auto collective = col::collective_named(c.collective);
  if (!variant || !collective) fail(c.collective + " " + c.way + " is not a collective of ours");
  auto p = col::plan({.collective = *collective,
                      .variant = *variant,
                      .prelaunch = plus != c.way.npos ? col::Prelaunch::shared : col::Prelaunch::off,
                      .completion = col::Completion::fence,
                      .gpus = gpus,
                      .bytes = c.bytes,
                      .in_place = *variant == col::Variant::swap});
  if (!p) fail(to_string(p.error()));
  return std::move(p->schedule);
}

void predict(Cell& c, const std::vector<MachineDescription>& machines) {
  const auto s = schedule(c, static_cast<std::uint32_t>(machines.front().topology.gpus.size()));
  double sum = 0, squares = 0, own = 0;
  for (const auto& m : machines) {
    const auto t = sensitivity(s, m);
    if (!t) fail(to_string(t.error().front()));
    sum += t->ns / 1e3;
    squares += t->ns * t->ns / 1e6;
    own += t->uncertainty_ns * t->uncertainty_ns / 1e6;
  }
  const auto n = static_cast<double>(machines.size());
  c.predicted = sum / n;
  const auto between = n > 1 ? std::max(0.0, (squares - n * c.predicted * c.predicted) / (n - 1)) : 0;
  c.deviation = std::sqrt(own / n + between);
}

std::string size(std::uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit < 3 && bytes % 1024 == 0) bytes /= 1024, ++unit;
  return std::to_string(bytes) + " " + units[unit];
}

struct Sum {
  std::size_t n{}, one{}, two{};
  double error{}, bias{}, worst{};
  void add(const Cell& c) {
    ++n;
    one += c.inside(1);
    two += c.inside(2);
    error += std::abs(c.error());
    bias += c.error();
    worst = std::max(worst, std::abs(c.error()));
  }
  void print(const std::string& name) const {
    const auto percent = [&](double v) { return 100 * v / static_cast<double>(n); };
    std::printf("| %s | %zu | %.1f %% | %+.1f %% | %.1f %% | %.0f %% | %.0f %% |\n", name.c_str(), n, percent(error),
                percent(bias), 100 * worst, percent(static_cast<double>(one)), percent(static_cast<double>(two)));
  }
};

/// At how many sizes of a collective, each with all of its ways, the prediction finds the fastest.
void print_best(const std::vector<Cell>& cells) {
  std::map<std::string, std::map<std::uint64_t, std::vector<const Cell*>>> all;
  for (const auto& c : cells) all[c.collective][c.bytes].push_back(&c);
  std::printf("\n| fastest way found | sizes | of |\n|---|---|---|\n");
  std::size_t hits = 0, of = 0;
  for (const auto& [collective, sizes] : all) {
    std::size_t here = 0;
    for (const auto& [bytes, ways] : sizes) {
      const auto by = [&ways](double Cell::*time) {
        return *std::min_element(ways.begin(), ways.end(), [&](auto* a, auto* b) { return a->*time < b->*time; });
      };
      here += by(&Cell::predicted)->first_quarter <= by(&Cell::measured)->third_quarter;
    }
    std::printf("| %s | %zu | %zu |\n", collective.c_str(), here, sizes.size());
    hits += here, of += sizes.size();
  }
  std::printf("| all | %zu | %zu |\n", hits, of);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: bench-predict FOLDER");
  std::vector<MachineDescription> machines;
  std::vector<Cell> cells;
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& f : std::filesystem::directory_iterator(argv[1], error)) files.push_back(f.path());
  if (error) fail(std::string(argv[1]) + ": " + error.message());
  std::sort(files.begin(), files.end());
  for (const auto& f : files) {
    if (f.extension() == ".csv") read_rows(f, cells);
    if (f.extension() != ".json") continue;
    auto m = machine_from_json(text_of(f), f.string());
    if (!m) fail(to_string(m.error()));
    machines.push_back(*std::move(m));
  }
  if (machines.empty() || cells.empty()) fail(std::string(argv[1]) + ": there is no machine, or no measured row");
  for (auto& c : cells) predict(c, machines);

  std::map<std::string, Sum> by_way;
  std::map<std::uint64_t, Sum> by_size;
  Sum all;
  for (const auto& c : cells) by_way[c.collective + " " + c.way].add(c), by_size[c.bytes].add(c), all.add(c);
  const auto head = [](const char* what) {
    std::printf(
        "| %s | cells | mean error | bias | worst | inside 1 s.d. | inside 2 |\n|---|---|---|---|---|---|---|\n", what);
  };
  std::printf("%zu machines, %zu cells.\n\n", machines.size(), cells.size());
  head("size");
  for (const auto& [bytes, s] : by_size) s.print(size(bytes));
  all.print("all");
  std::printf("\n");
  head("collective");
  for (const auto& [name, s] : by_way) s.print(name);
  print_best(cells);
  std::sort(cells.begin(), cells.end(),
            [](const Cell& a, const Cell& b) { return std::abs(a.error()) > std::abs(b.error()); });
  std::printf("\nThe ten worst:\n\n| | size | measured, us | predicted, us | error |\n|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(10, cells.size()); ++i) {
    const auto& c = cells[i];
    std::printf("| %s %s | %s | %.1f | %.1f +- %.1f | %+.1f %% |\n", c.collective.c_str(), c.way.c_str(),
                size(c.bytes).c_str(), c.measured, c.predicted, c.deviation, 100 * c.error());
  }
  return 0;
}
