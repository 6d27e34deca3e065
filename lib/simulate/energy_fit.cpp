// SPDX-License-Identifier: MIT
// Terms of the energy from measured joules: reads the table, and solves the least squares.
#include "sdma/simulate/energy_fit.hpp"

#include "../core/csv_table.hpp"
#include "dense.hpp"
#include "sdma/core/number.hpp"
#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::string_view kFixed[] = {"name", "kind", "seconds", "joules"};

/// The column as a term of a machine, if it is one that a round can have something of.
std::optional<Power> term_of(std::string_view column) {
  const auto i = power_named(column);
  return i < static_cast<std::size_t>(Power::gpu_limit) ? std::optional(static_cast<Power>(i)) : std::nullopt;
}
/// Joules of one unit of a column's value for one of its amount.
double joules_of(std::string_view column) {
  const auto p = term_of(column);
  return p && unit(*p) == "pJ" ? 1e-12 : 1;
}

/// To four digits: the bounds are wider than what is lost.
double four_digits(double v) {
  constexpr double kDigits = 1e4;
  const auto unit = v > 0 ? std::pow(10.0, std::ceil(std::log10(v))) / kDigits : 1;
  return std::round(v / unit) * unit;
}

class JoulesTable {
 public:
  explicit JoulesTable(std::string_view file) : table_(file) {}

  Result<EnergyMeasurements, std::vector<Diagnostic>> run(std::string_view text) {
    out_.columns.emplace_back(name(Power::gpu_idle));
    const auto wrong = table_.read(
        text, [this](const auto& all) { return head(all); }, [this](const auto& all) { return row(all); },
        [this](std::string_view line) { return setting(detail::words_of(line), detail::trimmed(line)); });
    if (wrong) return std::vector{*wrong};
    if (out_.rows.empty())
      return std::vector{table_.wrong("the table has no rows",
                                      "its first line names the columns: name, kind, seconds, joules, and terms")};
    return std::move(out_);
  }

 private:
  using Wrong = detail::CsvTable::Wrong;

  Wrong setting(const std::vector<std::string>& w, std::string_view text) {
    if (w.size() > 1 && w[0] == "source") {
      out_.source = detail::trimmed(text.substr(w[0].size()));
      return {};
    }
    const auto whole = w.size() == 3 ? term_of(w[1]) : std::nullopt,
               part = w.size() == 3 ? term_of(w[2]) : std::nullopt;
    if (w.empty() || w[0] != "includes" || !whole || !part)
      return {fmt::format("'{}' is not a setting of this table", text),
              "write '#: source TEXT' or '#: includes TERM TERM'; a comment begins with '# '"};
    out_.includes.emplace_back(*whole, *part);
    return {};
  }

  Wrong head(const std::vector<std::string>& all) {
    constexpr auto kNames = std::size(kFixed);
    if (all.size() < kNames || !std::equal(std::begin(kFixed), std::end(kFixed), all.begin()))
      return {"the first line is not name,kind,seconds,joules and then the columns"};
    out_.columns.insert(out_.columns.end(), all.begin() + kNames, all.end());
    if (std::set<std::string>(out_.columns.begin(), out_.columns.end()).size() != out_.columns.size())
      return {"a column is there twice", "gpu.idle_watts has the seconds of each row: it needs no column"};
    return {};
  }

  Wrong row(const std::vector<std::string>& all) {
    EnergyMeasurements::Row r{.name = all[0], .judged = all[1] == "judge"};
    if (!r.judged && all[1] != "fit") return fmt::format("'{}' is neither fit nor judge", all[1]);
    std::vector<double> numbers;
    for (std::size_t i = 2; i < all.size(); ++i) {
      const auto v = parse_real(all[i]);
      if (!v || *v < 0) return fmt::format("'{}' is not a number from 0 on", all[i]);
      numbers.push_back(*v);
    }
    r.seconds = numbers[0];
    r.joules = numbers[1];
    if (r.seconds <= 0 || r.joules <= 0) return {"a row needs seconds and joules"};
    r.amounts = {r.seconds};
    r.amounts.insert(r.amounts.end(), numbers.begin() + 2, numbers.end());
    out_.rows.push_back(std::move(r));
    return {};
  }

  detail::CsvTable table_;
  EnergyMeasurements out_{};
};

/// The least squares of these columns: the values, and the inverse of the normal matrix.
struct Solved {
  std::vector<double> values{};
  std::vector<double> variances{};  ///< for a relative error of 1
  bool unique{};
};
Solved solved(const std::vector<std::vector<double>>& rows, const std::vector<std::size_t>& columns) {
  constexpr double kLeast = 1e-9;  // of the eigenvalues, which are 1 where columns never occur together
  const auto n = columns.size();
  // Columns of length 1, so that one limit suits all.
  std::vector<double> length(n);
  for (const auto& r : rows)
    for (std::size_t i = 0; i < n; ++i) length[i] += r[columns[i]] * r[columns[i]];
  for (auto& l : length) l = std::sqrt(l);
  detail::Square normal(n);
  std::vector<double> right(n);
  for (const auto& r : rows)
    for (std::size_t i = 0; i < n; ++i) {
      right[i] += r[columns[i]] / length[i];
      for (std::size_t k = 0; k < n; ++k) normal(i, k) += r[columns[i]] * r[columns[k]] / length[i] / length[k];
    }
  const auto e = detail::eigen(normal);
  Solved out{.unique = *std::min_element(e.values.begin(), e.values.end()) > kLeast};
  if (!out.unique) return out;
  out.values = detail::solve(normal, right);
  for (std::size_t i = 0; i < n; ++i) {
    out.values[i] /= length[i];
    double v = 0;
    for (std::size_t k = 0; k < n; ++k) v += e.vectors(i, k) * e.vectors(i, k) / e.values[k];
    out.variances.push_back(v / length[i] / length[i]);
  }
  return out;
}

}  // namespace

Result<EnergyMeasurements, std::vector<Diagnostic>> energy_measurements(std::string_view text, std::string_view file) {
  return JoulesTable{file}.run(text);
}

std::string to_csv(const EnergyMeasurements& m) {
  auto out = "#: source " + m.source + "\n";
  for (const auto& [whole, part] : m.includes) out += fmt::format("#: includes {} {}\n", name(whole), name(part));
  out += "name,kind,seconds,joules";
  for (const auto& c : m.columns) out += c == name(Power::gpu_idle) ? "" : "," + detail::csv_field(c);
  for (const auto& r : m.rows) {
    // A row of several GPUs has their idle power as often: its seconds are those of all.
    out += fmt::format("\n{},{},{},{}", detail::csv_field(r.name), r.judged ? "judge" : "fit", r.amounts.front(),
                       r.joules);
    for (std::size_t i = 1; i < r.amounts.size(); ++i) out += fmt::format(",{}", r.amounts[i]);
  }
  return out + "\n";
}

double EnergyFit::worst(bool judged) const noexcept {
  double out = 0;
  for (const auto& p : predictions)
    if (p.judged == judged) out = std::max(out, std::abs(p.error));
  return out;
}

void EnergyFit::write(MachineDescription& m) const {
  for (const auto& v : values) {
    const auto p = term_of(v.column);
    if (!p) continue;
    EnergyTerm t{.value = {four_digits(v.value.low), four_digits(v.value.value), four_digits(v.value.high)},
                 .source = source};
    for (const auto& [whole, part] : includes)
      if (whole == *p) t.includes.push_back(part);
    // What the new figure contains must not count a second time.
    for (const auto part : t.includes) m.energy[static_cast<std::size_t>(part)].reset();
    m.energy[static_cast<std::size_t>(*p)] = std::move(t);
  }
}

Result<EnergyFit, std::vector<Diagnostic>> fit_energy(const EnergyMeasurements& m) {
  // Each row divided by its joules: all relative errors count alike.
  std::vector<std::vector<double>> rows;
  for (const auto& r : m.rows) {
    if (r.judged) continue;
    auto& row = rows.emplace_back();
    for (const auto a : r.amounts) row.push_back(a / r.joules);
  }
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < m.columns.size(); ++i) {
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& r) { return r[i] > 0; })) used.push_back(i);
    else
      return std::vector{
          Diagnostic{.where = m.columns[i],
                     .message = "no row of the kind fit has something of it, so nothing says what it takes",
                     .hint = "measure it alone, or leave out the column"}};
  }
  std::vector<double> values(m.columns.size()), deviations(m.columns.size());
  for (;;) {
    const auto s = solved(rows, used);
    if (!s.unique || rows.size() <= used.size())
      return std::vector{Diagnostic{
          .where = "the table",
          .message = s.unique ? "it has no more rows of the kind fit than columns, so nothing says how wrong the fit is"
                              : "no row tells some of its columns apart",
          .hint = s.unique ? "measure more" : "write their sum as one column, and '#: includes' for the others"}};
    double squares = 0;
    for (const auto& r : rows) {
      double sum = 0;
      for (std::size_t k = 0; k < used.size(); ++k) sum += r[used[k]] * s.values[k];
      squares += (1 - sum) * (1 - sum);
    }
    const auto least = std::min_element(s.values.begin(), s.values.end());
    if (*least < 0) {  // nothing takes less than nothing
      used.erase(used.begin() + (least - s.values.begin()));
      continue;
    }
    const auto variance = squares / static_cast<double>(rows.size() - used.size());
    for (std::size_t k = 0; k < used.size(); ++k) {
      values[used[k]] = s.values[k];
      deviations[used[k]] = std::sqrt(variance * s.variances[k]);
    }
    break;
  }
  EnergyFit out{.source = "measured: " + (m.source.empty() ? std::string("joules of a device") : m.source),
                .includes = m.includes};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto unit = joules_of(m.columns[i]);
    const auto off = 2 * deviations[i];
    out.values.push_back(
        {m.columns[i], {std::max(0.0, values[i] - off) / unit, values[i] / unit, (values[i] + off) / unit}});
  }
  for (const auto& r : m.rows) {
    double joules = 0;
    for (std::size_t i = 0; i < values.size(); ++i) joules += r.amounts[i] * values[i];
    out.predictions.push_back({r.name, r.judged, r.joules / r.seconds, joules / r.seconds, joules / r.joules - 1});
  }
  return out;
}

}}  // namespace sdma::v0_3
