// SPDX-License-Identifier: MIT
// Lists of numbers, and what loops go over.
#include "expression.hpp"

#include <utility>

namespace sdma::inline v0::detail {

bool Parser::at_list() {
  if (lex_.peek().is("[")) return true;
  if (lex_.peek().kind != Token::word) return false;
  const Token word = lex_.take();
  const bool whole = !lex_.peek().is("[");
  lex_.go(word.at);
  const auto* e = whole ? names_.entry(word.text) : nullptr;
  return e && e->list;
}

std::optional<std::vector<Number>> Parser::list() {
  const Token begin = lex_.take();
  if (!begin.is("[")) return names_.entry(begin.text)->list;
  if (depth_ > kDeepestExpression) return none(begin.at, "this expression is nested too deeply");
  ++depth_;
  auto all = elements();
  --depth_;
  return all;
}

/// The rest of a list, from the first value.
std::optional<std::vector<Number>> Parser::elements() {
  const auto body = lex_.position();
  skip_to("for");
  if (at("for")) return comprehension(body);
  lex_.go(body);
  std::vector<Number> all;
  for (;;) {
    lex_.skip_lines();
    if (lex_.peek().is("]") && all.empty()) break;
    const auto n = expression();
    if (!n) return {};
    all.push_back(*n);
    lex_.skip_lines();
    if (lex_.peek().is("]")) break;
    if (!lex_.peek().is(",")) return expected("',' or ']'", "a list is written [41, 7, 63]"), std::nullopt;
    lex_.take();
  }
  lex_.take();
  return all;
}

void Parser::skip_to(std::string_view word) {
  for (int open = 0; !at_line_end(); lex_.take()) {
    const Token& t = lex_.peek();
    if (open == 0 && (at(word) || t.is(",") || t.is("]"))) return;
    if (t.is("[") || t.is("(")) ++open;
    else if (t.is("]") || t.is(")")) --open;
  }
}

/// [VALUE for NAME in VALUES if CONDITION]: the value begins at `begin`, and `for` comes next.
std::optional<std::vector<Number>> Parser::comprehension(std::size_t begin) {
  const Token loop = lex_.take(), variable = lex_.peek();
  const auto name = variable.kind == Token::word ? expand(lex_.take()) : std::nullopt;
  if (!name) return variable.kind == Token::word ? std::nullopt : (expected("a name"), std::nullopt);
  if (names_.find(*name))
    return none(variable.at, quote(*name) + " is already defined", "a name cannot hide another: choose a new one");
  const auto over = take("in") ? values() : std::nullopt;
  if (!over) return {};
  const bool filtered = at("if");
  const auto condition_at = lex_.position();
  skip_to("]");
  const auto end = lex_.position();
  if (!lex_.peek().is("]")) return expected("']'"), std::nullopt;
  const auto count = over->count();
  if (count > Number{names_.rounds.left()} || !names_.rounds.take(static_cast<std::uint64_t>(count)) ||
      !names_.text.take(static_cast<std::uint64_t>(count) * (end - begin)))
    return none(loop.at, "this list has more rounds than the loops and lists of a text can have together",
                "let a program print the numbers: file(\"numbers.txt\")");

  std::vector<Number> all;
  const bool epoch = std::exchange(epoch_, false), sample = std::exchange(sample_, false), compared = compared_;
  bool good = true;
  names_.define(*name, 0);
  for (Number i = 0; i < count && good; ++i) {
    names_.set_last(over->at(i));
    std::optional<bool> holds = true;
    if (filtered) {
      lex_.go(condition_at);
      lex_.take();
      holds = condition();
      good = holds && (lex_.position() == end || expected("']'"));
    }
    if (!good || !*holds) continue;
    lex_.go(begin);
    const auto v = expression();
    good = v && (lex_.position() == loop.at || expected("'for'"));
    if (good) all.push_back(*v);
  }
  names_.forget(names_.size() - 1);
  epoch_ = epoch, sample_ = sample, compared_ = compared;
  if (!good) return {};
  lex_.go(end);
  lex_.take();
  return all;
}

/// len(LIST), from the parenthesis.
std::optional<Linear> Parser::length() {
  lex_.take();
  if (!at_list()) return expected("a list", "write len(offsets), where let offsets = [0, 4]"), std::nullopt;
  const auto all = list();
  return all && take(")") ? std::optional(Linear{Number(all->size())}) : std::nullopt;
}

/// NAME[INDEX], from the bracket: an element of the list that is the name with this number.
std::optional<Linear> Parser::element(std::size_t list, const Token& word) {
  const auto entry = [&]() -> const Names::Entry& { return names_.all()[list]; };
  if (!lex_.peek().is("["))
    return none(word.at, quote(word) + " is a list, not a number",
                "write " + entry().name + "[0], or len(" + entry().name + ")");
  lex_.take();
  const auto at = lex_.position();
  const auto i = known_now(word, nested());
  if (!i || !take("]")) return {};
  const auto& all = *entry().list;
  if (*i >= 0 && *i < Number(all.size())) return Linear{all[static_cast<std::size_t>(*i)]};
  return none(at, "there is no " + entry().name + "[" + to_string(*i) + "]: the list has " +
                      std::to_string(all.size()) + (all.size() == 1 ? " value" : " values"));
}

std::optional<Values> Parser::values() {
  if (at_list()) {
    auto all = list();
    return all ? std::optional(Values{.list = std::move(*all), .listed = true}) : std::nullopt;
  }
  Values v;
  const auto first = expression();
  if (!first || !take("..")) return {};
  if (lex_.peek().is("="))
    return none(lex_.peek().at, "a range does not include its end, and '..=' is not written",
                "0..N is 0 to N-1; for 1 to N, write 1..N+1");
  const auto last = expression();
  if (!last) return {};
  v.first = *first;
  v.last = *last;
  if (!at("step")) return v;
  lex_.take();
  const auto step = number("step", 1, kMost);
  if (!step) return {};
  v.step = *step;
  return v;
}

}  // namespace sdma::inline v0::detail
