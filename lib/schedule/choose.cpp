// SPDX-License-Identifier: MIT
// Parses what a schedule leaves open: `choose`, as a statement and in a loop.
#include "parser.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 {

std::string decisions_text(std::span<const Decision> all) {
  std::string out;
  for (std::size_t i = 0; i < all.size();) {
    auto end = i + 1;
    if (all[i].order)
      while (end < all.size() && all[end].order && all[end].at == all[i].at && all[end].name == all[i].name) ++end;
    const auto part = all.subspan(i, end - i);
    i = end;
    const auto shown = [](const Decision& c) { return c.order ? c.taken > 0 : c.alternatives > 1; };
    if (std::none_of(part.begin(), part.end(), shown)) continue;
    if (!out.empty()) out += ' ';
    out += part.front().name + '=';
    for (const auto& c : part) out += (&c == &part.front() ? "" : ",") + c.value;
  }
  return out;
}

namespace detail {
namespace {

constexpr std::size_t kMostAlternatives = 4096, kMostOrdered = 256;

std::string listed(const std::vector<Number>& all) {
  constexpr std::size_t kShown = 16;
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) out += (i == 0 ? "" : " ") + to_string(all[i]);
  return all.size() > kShown ? out + " and " + std::to_string(all.size() - kShown) + " more" : out;
}

}  // namespace

/// `once`, `per VALUE, ..`, or nothing.
std::optional<ScheduleParser::Scope> ScheduleParser::scope(std::size_t statement) {
  if (at("once")) {
    lex_.take();
    return Scope{.at = statement, .shared = true};
  }
  if (!at("per")) return Scope{.at = statement, .where = context()};
  Scope s{.at = statement, .shared = true};
  do {
    lex_.take();
    const auto begin = lex_.peek().at;
    const auto value = expression();
    if (!value) return {};
    s.where += (s.where.empty() ? " [" : " ") + std::string(source_.text().substr(begin, lex_.behind() - begin)) + "=" +
               to_string(*value);
  } while (lex_.peek().is(","));
  s.where += ']';
  return s;
}

std::optional<std::size_t> ScheduleParser::decide(const Scope& s, const std::string& name,
                                                  const std::vector<Number>& values, std::size_t part, bool order) {
  auto id = std::to_string(s.at) + s.where;
  if (order) id += "." + std::to_string(part);
  if (!s.shared)
    if (const auto before = visits_[id]++; before > 0) id += "#" + std::to_string(before);
  if (const auto known = decision_.find(id); known != decision_.end()) {
    if (decision_values_[known->second] == values) return decisions_[known->second].taken;
    return none(s.at, "the values of " + quote(name + s.where) + " differ between two iterations that share the choice",
                "name in 'per' what they depend on");
  }
  if (!alternatives_.take(values.size()))
    return none(
        s.at,
        "the choices of this text have more than " + std::to_string(alternatives_.limit()) + " alternatives together",
        "share choices: 'once', or 'per k'");
  decision_.emplace(id, decisions_.size());
  std::size_t taken = 0;
  if (options_.decisions)
    if (const auto asked = options_.decisions->take.find(id);
        asked != options_.decisions->take.end() && asked->second < values.size())
      taken = asked->second;
  decisions_.push_back({.id = std::move(id),
                        .name = name + s.where,
                        .at = s.at,
                        .alternatives = values.size(),
                        .taken = taken,
                        .value = to_string(values[taken]),
                        .order = order});
  decision_values_.push_back(values);
  return taken;
}

/// choose NAME in VALUES [once | per VALUE, ..]
bool ScheduleParser::choose(int depth) {
  constexpr auto kForm = "write choose n in 1..5, or in [1, 4]";
  const Token begin = lex_.take();
  const auto errors = source_.count();
  const auto name = new_name();
  if (!name) return false;
  const auto all = take("in") ? values() : std::nullopt;
  source_.advise(errors, kForm);
  if (!all) return names_.lose(*name), false;
  if (all->count() == 0) return names_.lose(*name), fail(begin.at, "there is nothing to choose from", kForm);
  if (all->count() > kMostAlternatives)
    return fail(begin.at, "a choice has at most " + std::to_string(kMostAlternatives) + " alternatives, got " +
                              to_string(all->count()));
  std::vector<Number> list;
  for (Number i = 0; i < all->count(); ++i) list.push_back(all->at(i));
  const auto s = scope(begin.at);
  if (!s) return false;
  if (depth == 0) {
    params_.push_back(*name);
    if (Names::Entry given{.name = *name}; setting(given, {})) {
      if (std::find(list.begin(), list.end(), given.value) != list.end()) list = {given.value};
      else if (pass_ != Pass::define)
        source_.add({.where = "set " + *name,
                     .message = to_string(given.value) + " is not one of the values of " + quote(*name),
                     .hint = "they are: " + listed(list)});
    }
  }
  const auto taken = decide(*s, *name, list, 0, false);
  if (!taken) return false;
  names_.define(*name, list[*taken]);
  return true;
}

/// for NAME in VALUES choose order [once | per VALUE, ..]
std::optional<Values> ScheduleParser::ordered(const std::string& variable, const Values& all) {
  const Token begin = lex_.take();
  if (!take("order")) return {};
  if (all.count() > kMostOrdered)
    return none(begin.at, "an order that is left open has at most " + std::to_string(kMostOrdered) + " values, got " +
                              to_string(all.count()));
  const auto s = scope(begin.at);
  if (!s) return {};
  List out;
  std::vector<Number> left;
  for (Number i = 0; i < all.count(); ++i) left.push_back(all.at(i));
  for (std::size_t part = 0; !left.empty(); ++part) {
    const auto taken = decide(*s, variable, left, part, true);
    if (!taken) return {};
    const auto next = left.begin() + static_cast<std::ptrdiff_t>(*taken);
    out.values.push_back(*next);
    left.erase(next);
  }
  return Values{.list = std::make_shared<const List>(std::move(out))};
}

}  // namespace detail
}}  // namespace sdma::v0_3
