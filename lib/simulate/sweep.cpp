// SPDX-License-Identifier: MIT
#include "sdma/simulate/sweep.hpp"

#include "../stream/expression.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace sdma { inline namespace v0_3 {
namespace {

/// A size, or a number with a fraction.
std::optional<double> swept_number(std::string_view text) {
  if (const auto size = parse_size(text)) return static_cast<double>(*size);
  return parse_real(text);
}
/// The same, or arithmetic of numbers as in a schedule.
std::optional<double> swept_value(std::string_view text) {
  if (const auto number = swept_number(text)) return number;
  detail::Source source{text, "value"};
  detail::Lexer lex{text};
  detail::Names none;
  const auto value = detail::Parser{lex, none, source}.expression();
  if (!value || *value < 0 || source.count() != 0 || lex.peek().kind != detail::Token::end) return {};
  return static_cast<double>(static_cast<std::uint64_t>(*value));
}

std::string not_a_size(std::string_view word) { return fmt::format("'{}' is not a size", word); }

/// Far beyond what any machine has, in the direction that makes it faster.
std::optional<MachineDescription> relaxed(const MachineDescription& m, std::size_t parameter) {
  constexpr double kMuch = 64;
  auto out = m;
  if (parameter >= kCosts) {
    double most = 0;
    for (const auto& l : m.topology.links)
      if (const auto rate = l.rate.gb_per_s()) most = std::max(most, *rate);
    if (out.set(kLinkRates[parameter - kCosts].name, most * kMuch) != Errc::ok) return {};
    return out;
  }
  const auto c = static_cast<Cost>(parameter);
  const auto kind = unit(c);
  const auto value = kind == "fraction" ? 1 : kind == "ns" ? 0 : m[c] * kMuch;
  if (value == m[c] || out.set(name(c), value) != Errc::ok) return {};
  return out;
}

}  // namespace

std::string SweepAxis::text(double v) const {
  const auto whole = v == std::floor(v) && v >= 0 && v < 9e18;
  const auto cost = cost_named(name);
  if (whole && (!of_machine() || (cost != kCosts && unit(static_cast<Cost>(cost)) == "bytes")))
    return size_text(static_cast<std::uint64_t>(v));
  return fmt::format("{}", v);
}

std::variant<SweepAxis, std::string> sweep_axis(std::string_view text) {
  const auto equal = text.find('=');
  if (equal == text.npos || equal == 0) return "this is not NAME=A..B";
  SweepAxis axis{.name = std::string(text.substr(0, equal))};
  auto rest = text.substr(equal + 1);
  const auto fits = [&](double v) { return axis.of_machine() || (v == std::floor(v) && v >= 0); };
  const auto dots = rest.find("..");
  if (dots == rest.npos) {
    while (true) {
      const auto word = rest.substr(0, rest.find(','));
      const auto v = swept_value(word);
      if (!v || !fits(*v))
        return rest.find(',') == rest.npos && axis.values.empty() && !v ? "this is not NAME=A..B" : not_a_size(word);
      axis.values.push_back(*v);
      if (axis.values.size() > kMostSwept) return fmt::format("there are more than {} values", kMostSwept);
      if (word.size() == rest.size()) return axis;
      rest.remove_prefix(word.size() + 1);
    }
  }
  const auto first = rest.substr(0, dots), second = rest.substr(dots + 2), last = second.substr(0, second.find('*'));
  const auto step = last.size() == second.size() ? std::string_view("2") : second.substr(last.size() + 1);
  const auto from = swept_number(first), to = swept_number(last), factor = swept_number(step);
  for (const auto& [v, word] : {std::pair{from, first}, {to, last}, {factor, step}})
    if (!v || *v <= 0 || !fits(*v)) return not_a_size(word);
  if (axis.of_machine() ? *factor <= 1 : *factor < 2)
    return fmt::format("'*{}' is not a factor {}", step, axis.of_machine() ? "above 1" : "of at least 2");
  if (*from > *to) return fmt::format("{} is greater than {}", first, last);
  // Each value is a multiple of the first, so that errors of rounding do not add up.
  for (std::size_t i = 0;; ++i) {
    const auto v = *from * std::pow(*factor, static_cast<double>(i));
    if (v > *to * (1 + 1e-12)) return axis;
    if (i == kMostSwept) return fmt::format("there are more than {} values", kMostSwept);
    axis.values.push_back(v);
  }
}

Result<void, Diagnostic> set(MachineDescription& m, const SweepAxis& axis, double value) {
  if (m.set(axis.name, value) == Errc::ok) return {};
  const bool known = cost_named(axis.name) != kCosts;
  return Diagnostic{.where = axis.name,
                    .message = (known ? "" : "the machine has no such parameter, or ") +
                               fmt::format("it cannot be {}", axis.text(value)),
                    .hint =
                        "sdma simulate --show-machine lists them; xgmi.rate, pcie.rate and nic.rate are the rates "
                        "of links in GB/s"};
}

bool same_time(double a, double b) noexcept { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

Result<std::vector<std::string>, std::vector<Diagnostic>> caps_of(const Schedule& s, const MachineDescription& m,
                                                                  std::string_view swept, double from, double to) {
  std::vector<std::string> caps;
  for (std::size_t i = 0; i < kCosts + kLinkRates.size(); ++i) {
    const auto other = i < kCosts ? name(static_cast<Cost>(i)) : kLinkRates[i - kCosts].name;
    if (other == swept) continue;
    const auto machine = relaxed(m, i);
    if (!machine) continue;
    auto a = *machine, b = *machine;
    if (a.set(swept, from) != Errc::ok || b.set(swept, to) != Errc::ok) continue;
    const auto before = simulate(s, a), after = simulate(s, b);
    if (!before) return before.error();
    if (!after) return after.error();
    if (!same_time(before->ns, after->ns)) caps.emplace_back(other);
  }
  return caps;
}

std::string caps_text(const std::vector<std::string>& caps) {
  if (caps.empty()) return "no other parameter alone caps it";
  return fmt::format("{} {} it", fmt::join(caps, ", "), caps.size() == 1 ? "caps" : "cap");
}

}}  // namespace sdma::v0_3
