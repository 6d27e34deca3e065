// SPDX-License-Identifier: MIT
#include "table.hpp"

#include "sdma/core/number.hpp"
#include "texts.hpp"

#include <algorithm>

namespace collectives {
namespace {

constexpr std::string_view kBlanks = " \t\r", kInPlace = "all_to_all_in_place";

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> all;
  line = line.substr(0, line.find('#'));
  for (auto at = line.find_first_not_of(kBlanks); at != line.npos; at = line.find_first_not_of(kBlanks, at)) {
    const auto end = std::min(line.find_first_of(kBlanks, at), line.size());
    all.push_back(line.substr(at, end - at));
    at = end;
  }
  return all;
}

/// A size, or "max".
std::optional<std::uint64_t> number(std::string_view s) { return s == "max" ? ~std::uint64_t{} : sdma::parse_size(s); }

/// Why this line is not a row; "" if it is one.
std::string parse_row(const std::vector<std::string_view>& w, TableRow& row) {
  if (w.size() != 5) return "a line must have 5 words: collective gpus prelaunch up_to variant";
  row.in_place = w[0] == kInPlace;
  const auto collective = collective_named(row.in_place ? name(Collective::all_to_all) : w[0]);
  if (!collective) return "'" + std::string(w[0]) + "' is not a collective";
  row.collective = *collective;
  const auto dash = w[1].find('-');
  const auto least = number(w[1].substr(0, dash)), most = number(w[1].substr(dash == w[1].npos ? 0 : dash + 1));
  if (!least || !most || *least < 2 || *most < *least || *most > kMostGpus)
    return "'" + std::string(w[1]) + "' is not a number of GPUs: write 8 or 2-8";
  row.least_gpus = static_cast<std::uint32_t>(*least);
  row.most_gpus = static_cast<std::uint32_t>(*most);
  if (w[2] != "yes" && w[2] != "no" && w[2] != "any")
    return "prelaunch must be yes, no or any, not '" + std::string(w[2]) + "'";
  if (w[2] != "any") row.prelaunch = w[2] == "yes";
  const auto up_to = number(w[3]);
  if (!up_to) return "'" + std::string(w[3]) + "' is not a size: write 4096, 4K or max";
  row.up_to = *up_to;
  const auto variant = variant_named(w[4]);
  if (!variant || *variant == Variant::automatic || !has_variant(*collective, *variant) ||
      (row.collective == Collective::all_to_all && row.in_place != (*variant == Variant::swap)))
    return "'" + std::string(w[4]) + "' is not a variant of " + std::string(w[0]);
  row.variant = *variant;
  return {};
}

}  // namespace

sdma::Result<Table, sdma::Diagnostic> parse_table(std::string_view text, std::string_view file) {
  Table table;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto w = words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (w.empty()) continue;
    TableRow row;
    if (auto why = parse_row(w, row); !why.empty())
      return sdma::error_at({.file = std::string(file), .line = line}, std::move(why));
    table.push_back(row);
  }
  return table;
}

const Table& default_table() {
  static const Table table = *parse_table(kVariantsText, "variants.txt");
  return table;
}

Variant choose(const Table& table, const Options& o) noexcept {
  const bool in_place = o.collective == Collective::all_to_all && o.in_place;
  const auto choice = [&](Collective c) -> std::optional<Variant> {
    for (const auto& row : table)
      if (row.collective == c && row.in_place == in_place && o.gpus >= row.least_gpus && o.gpus <= row.most_gpus &&
          (!row.prelaunch || *row.prelaunch == (o.prelaunch != Prelaunch::off)) && o.bytes <= row.up_to)
        return row.variant;
    return {};
  };
  if (const auto v = choice(o.collective)) return *v;
  // An alltoallv without rows of its own is taken for an even one.
  if (const auto v = o.collective == Collective::alltoallv ? choice(Collective::all_to_all) : std::nullopt) return *v;
  return in_place ? Variant::swap : Variant::pcpy;
}

}  // namespace collectives
