// SPDX-License-Identifier: MIT
// Lists of numbers, tables, the files that have them, and what loops go over.
#include "../core/plural.hpp"
#include "expression.hpp"

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

bool Parser::at_list() {
  if (lex_.peek().is("[")) return true;
  if (lex_.peek().kind != Token::word) return false;
  const auto begin = lex_.position();
  const auto* e = names_.entry(lex_.peek());
  if (e && !e->list) return false;
  const Token word = lex_.take();
  const bool listed = e ? e->list != nullptr : names_file(word);
  const bool table = e && e->list ? e->list->columns > 0 : word.is_word("table");
  if (listed && !e && lex_.peek().is("(")) lex_.skip_nested();
  bool all = true;
  if (listed && lex_.peek().is("[")) {
    const auto index = skip_index();
    all = index.range || (table && !index.comma);
  }
  lex_.go(begin);
  return listed && all;
}

ListOf Parser::list() {
  const Token begin = lex_.take();
  if (!begin.is("[")) {
    const auto* e = names_.entry(begin);
    const auto whole = e ? e->list : file(begin);
    if (!whole || !lex_.peek().is("[")) return whole;
    Part p;
    if (!part(*whole, begin, p)) return nullptr;
    List some;
    for (auto i = p.rows.from; i < p.rows.to; ++i)
      for (auto j = p.columns.from; j < p.columns.to; ++j)
        some.values.push_back(whole->values[i * std::max<std::size_t>(whole->columns, 1) + j]);
    return std::make_shared<const List>(std::move(some));
  }
  if (depth_ > kDeepestExpression) return none(begin.at, "this expression is nested too deeply", kDepthHint), nullptr;
  ++depth_;
  lex_.skip_lines();
  const bool table = lex_.peek().is("[");
  auto all = table ? rows() : std::nullopt;
  if (!table)
    if (auto values = elements()) all = List{.values = std::move(*values)};
  --depth_;
  return all ? std::make_shared<const List>(std::move(*all)) : nullptr;
}

/// The rest of a table, from the first row: [1, 2], [3, 4]]
std::optional<List> Parser::rows() {
  List all;
  for (std::size_t row = 0;; ++row) {
    lex_.skip_lines();
    const Token begin = lex_.peek();
    if (!begin.is("[")) return expected("a row", "a table is written [[0, 1], [2, 3]]"), std::nullopt;
    lex_.take();
    const auto values = elements();
    if (!values) return {};
    if (row == 0) all.columns = values->size();
    if (values->empty()) return none(begin.at, "a row of a table has at least one number");
    if (values->size() != all.columns)
      return none(begin.at,
                  "row " + std::to_string(row) + " has " + plural(values->size(), "number") + ", and row 0 has " +
                      std::to_string(all.columns),
                  "the rows of a table have the same length");
    all.values.insert(all.values.end(), values->begin(), values->end());
    lex_.skip_lines();
    if (lex_.peek().is("]")) break;
    if (!lex_.peek().is(",")) return expected("',' or ']'", "a table is written [[0, 1], [2, 3]]"), std::nullopt;
    lex_.take();
  }
  lex_.take();
  return all;
}

/// The rest of a list, from the first value.
std::optional<std::vector<Number>> Parser::elements() {
  const auto body = lex_.position();
  std::vector<Number> all;
  all.reserve(8);
  skip_to("for");
  if (at("for")) {
    const auto one = [&] {
      const auto v = expression();
      if (v) all.push_back(*v);
      return v.has_value();
    };
    return each_of(body, one) && take("]") ? std::optional(std::move(all)) : std::nullopt;
  }
  lex_.go(body);
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

void Parser::skip_to(Key word) {
  while (!at_line_end()) {
    const Token& t = lex_.peek();
    if (t.is_word(word) || t.is(",") || t.is("]") || t.is(")")) return;
    if (t.opens()) lex_.skip_nested();
    else lex_.take();
  }
}

bool Parser::each_of(std::size_t begin, const std::function<bool()>& value) {
  const Token loop = lex_.take(), variable = lex_.peek();
  const auto expanded = variable.kind == Token::word ? expand(lex_.take()) : std::nullopt;
  if (!expanded) return variable.kind != Token::word && expected("a name");
  const std::string name(*expanded);
  if (names_.entry(name))
    return fail(variable.at, quote(name) + " is already defined", "a name cannot hide another: choose a new one");
  const auto over = take("in") ? values() : std::nullopt;
  if (!over) return false;
  const bool filtered = at("if");
  const auto condition_at = lex_.position();
  skip_to("]");
  const auto end = lex_.position();
  const auto count = over->count();
  constexpr std::string_view kHint = "let a program print the numbers: file(\"numbers.txt\")";
  if (count > Number{names_.rounds.left()} || !names_.rounds.take(static_cast<std::uint64_t>(count)))
    return fail(loop.at, "this list has " + names_.too_many(count), std::string(kHint));
  if (!names_.text.take(static_cast<std::uint64_t>(count) * (end - begin)))
    return fail(
        loop.at,
        "the loops and lists of this text expand to more than " + size_text(names_.text.limit()) + " bytes of text",
        std::string(kHint));

  const bool epoch = std::exchange(epoch_, false), sample = std::exchange(sample_, false), compared = compared_;
  bool good = true;
  names_.define(name, 0);
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
    good = value() && (lex_.position() == loop.at || expected("'for'"));
  }
  names_.forget(names_.size() - 1);
  epoch_ = epoch, sample_ = sample, compared_ = compared;
  if (good) lex_.go(end);
  return good;
}

Parser::Skipped Parser::skip_index() {
  Skipped found;
  for (lex_.take(); !at_line_end();) {
    const Token& t = lex_.peek();
    found.range = found.range || t.is("..");
    found.comma = found.comma || t.is(",");
    const bool last = t.is("]") || t.is(")");
    if (t.opens()) lex_.skip_nested();
    else lex_.take();
    if (last) break;
  }
  return found;
}

/// len(LIST), from the parenthesis.
bool Parser::length(Linear& v) {
  lex_.take();
  if (const auto* e = lex_.peek().kind == Token::word ? names_.entry(lex_.peek()) : nullptr; e && e->list) {
    const auto whole = lex_.position();
    lex_.take();
    if (lex_.peek().is(")")) return lex_.take(), v = Linear{Number(e->list->rows())}, true;
    lex_.go(whole);
  }
  if (!at_list()) return expected("a list", "write len(offsets), where let offsets = [0, 4]");
  const auto all = list();
  if (!all || !take(")")) return false;
  v = Linear{Number(all->rows())};
  return true;
}

/// min, max and sum of values and lists, from the parenthesis.
bool Parser::folded(const Token& word, Linear& v) {
  const bool sums = word.is_word("sum"), least = word.is_word("min");
  bool any = sums;
  Number all = 0;
  const auto with = [&](Number n) {
    if (sums) all += n;
    else if (!std::exchange(any, true) || (least ? n < all : n > all)) all = n;
  };
  do {
    lex_.take();  // the parenthesis or the comma
    if (at_list()) {
      const auto some = list();
      if (!some) return false;
      if (!names_.text.take(some->values.size() * sizeof(Number)))
        return fail(word.at,
                    "the lists of this text have too many values to go through them so often: " +
                        std::to_string(names_.text.limit() / sizeof(Number)) + " in all",
                    "let a program print the numbers: file(\"numbers.txt\")");
      for (const auto n : some->values) with(n);
    } else {
      if (!nested(v) || !known_now(word, v)) return false;
      with(v.constant);
    }
  } while (lex_.peek().is(","));
  if (!take(")")) return false;
  if (!any) return fail(word.at, "an empty list has no " + quote(word));
  return bounded(word, v = Linear{all});
}

/// LIST[INDEX], from the bracket: one number.
bool Parser::element(const List& list, const Token& word, Linear& v) {
  if (lex_.peek().is("[")) {
    Part p;
    if (!part(list, word, p)) return false;
    v = Linear{};
    if (p.rows.one && p.columns.one)
      return v.constant = list.values[p.rows.from * std::max<std::size_t>(list.columns, 1) + p.columns.from], true;
  }
  return not_one(list, word);
}

bool Parser::not_one(const List& list, const Token& word) {
  const std::string name(word.text);
  return fail(word.at, quote(word) + (list.columns > 0 ? " is a table" : " is a list") + ", not a number",
              list.columns > 0 ? "write " + name + "[0, 0]" : "write " + name + "[0], or len(" + name + ")");
}

/// I, or A..B: of `count` values, or of the rows or columns of a table.
bool Parser::index(const Token& word, std::size_t count, std::string_view what, Index& v) {
  const auto at = lex_.position();
  Linear first, last;
  if (!nested(first) || !known_now(word, first)) return false;
  v.one = !lex_.peek().is("..");
  last.constant = first.constant + 1;
  if (!v.one) {
    lex_.take();
    if (!nested(last) || !known_now(word, last)) return false;
  }
  const auto from = first.constant, to = last.constant;
  v.from = static_cast<std::size_t>(from);
  v.to = to > from ? static_cast<std::size_t>(to) : v.from;
  if (from == Number(v.from) && v.from <= count && to <= Number(count)) return true;
  return no_element(at, word, count, what, to_string(from) + (v.one ? "" : ".." + to_string(to)));
}

bool Parser::no_element(std::size_t at, const Token& word, std::size_t count, std::string_view what,
                        const std::string& asked) {
  const auto name = std::string(word.text);
  if (what == "value") return fail(at, "there is no " + name + "[" + asked + "]: the list has " + plural(count, what));
  return fail(at,
              "there is no " + std::string(what) + " " + asked + ": " + quote(word) + " has " + plural(count, what));
}

/// [I] of a list or a table, or [I, J] of a table: each a number or a range.
bool Parser::part(const List& all, const Token& word, Part& p) {
  lex_.take();
  const bool table = all.columns > 0;
  if (!index(word, all.rows(), table ? "row" : "value", p.rows)) return false;
  p.columns = {0, table ? all.columns : 1, !table};
  if (table && lex_.peek().is(",")) {
    lex_.take();
    if (!index(word, all.columns, "column", p.columns)) return false;
  }
  if (!take("]")) return false;
  return names_.text.take((p.rows.to - p.rows.from) * (p.columns.to - p.columns.from) * sizeof(Number)) ||
         fail(word.at,
              "the lists of this text have too many values to take them so often: " +
                  std::to_string(names_.text.limit() / sizeof(Number)) + " in all",
              "let a program print the numbers: file(\"numbers.txt\")");
}

/// file("NAME") or table("NAME"), from the parenthesis on. Each file is read once.
ListOf Parser::file(const Token& word) {
  if (!take("(")) return nullptr;
  const Token name = lex_.peek();
  if (name.kind != Token::string)
    return expected("the name of a file", "write " + std::string(word.text) + "(\"blocks.txt\")"), nullptr;
  lex_.take();
  if (!take(")")) return nullptr;
  auto& known = names_.files[std::string(word.text) + std::string(name.text)];
  if (known) return known;
  const std::string file(name.text.substr(1, name.text.size() - 2));
  const auto text = names_.read ? names_.read(file)
                                : Diagnostic{.message = "this text may not read other files",
                                             .hint = "write the numbers as a list: [41, 7]"};
  if (!text) return none(name.at, "file " + quote(file) + ": " + text.error().message, text.error().hint), nullptr;
  if (auto all = numbers_of(*text, name, word.text == "table")) known = std::make_shared<const List>(std::move(*all));
  return known;
}

std::optional<List> Parser::numbers_of(std::string_view text, const Token& name, bool table) {
  List all;
  const auto wrong = [&](const Token& at, const std::string& what, std::string hint) {
    const auto file = name.text.substr(1, name.text.size() - 2);
    return none(name.at,
                "file " + quote(file) + " has " + what + " on line " + std::to_string(Source{text, file}.line(at.at)) +
                    (at.kind == Token::line ? "" : ", which is not a number"),
                std::move(hint));
  };
  std::size_t row = 0;
  for (Lexer numbers{text};;) {
    const Token t = numbers.take();
    if (table && row > 0 && (t.kind == Token::line || t.kind == Token::end)) {
      if (all.columns > 0 && row != all.columns)
        return wrong(Token{.kind = Token::line, .at = t.at}, plural(row, "number"),
                     "each line of a table has as many numbers as the first one, here " + std::to_string(all.columns));
      all.columns = std::exchange(row, 0);
    }
    if (t.kind == Token::end) break;
    if (t.kind == Token::line || t.is(",")) continue;
    const bool negative = t.is("-");
    const Token n = negative ? numbers.take() : t;
    if (n.kind != Token::number)
      return wrong(n, quote(n), "it has numbers, with blanks, commas or line ends between them, and comments");
    all.values.push_back(negative ? -Number{n.value} : Number{n.value});
    ++row;
  }
  if (table && all.columns == 0)
    return none(name.at, "file " + quote(name.text.substr(1, name.text.size() - 2)) + " has no numbers",
                "a table has a line for each row");
  return all;
}

std::optional<Values> Parser::values() {
  if (at_list()) {
    const Token begin = lex_.peek();
    auto all = list();
    if (all && all->columns > 0)
      return none(begin.at, quote(begin) + " is a table",
                  "go over its rows, for i in 0..len(t), or over one, for v in t[i]");
    return all ? std::optional(Values{.list = std::move(all)}) : std::nullopt;
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

}}}  // namespace sdma::v0_3::detail
