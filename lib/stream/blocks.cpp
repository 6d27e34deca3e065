#include "blocks.hpp"

#include "sdma/core/number.hpp"

namespace sdma::inline v0::detail {

void Blocks::block(int depth) {
  for (;;) {
    lex_.skip_lines();
    if (lex_.peek().kind == Token::end || (depth > 0 && at("end"))) return;
    if (source_.full(lex_.position())) return lex_.go(source_.text().size());
    const bool good = statement(depth);
    if (broken_) {
      if (inner_) return;
      broken_ = false;
      continue;  // at the token that ended the block
    }
    if (good) line_ends();
    lex_.skip_line();
  }
}

/// The name that a definition or a loop defines.
std::optional<std::string> Blocks::new_name() {
  const Token t = lex_.peek();
  if (t.kind != Token::word) return expected("a name"), std::nullopt;
  lex_.take();
  auto name = expand(t);
  if (name && names_.epoch_reserved() && *name == "epoch")
    return none(t.at, "'epoch' is reserved for the round of a queue", "choose another name");
  if (name && names_.find(*name))
    return none(t.at, quote(*name) + " is already defined", "a name cannot hide another: choose a new one");
  return name;
}

std::optional<Blocks::Definition> Blocks::definition() {
  const auto name = new_name();
  const auto value = name && take("=") ? expression() : std::nullopt;
  if (!value) return {};
  return Definition{*name, *value};
}

bool Blocks::let() {
  lex_.take();
  const auto d = definition();
  if (d) names_.define(d->name, d->value);
  return d.has_value();
}

bool Blocks::loop(int depth) {
  const Token begin = lex_.take();
  const auto errors = source_.count();
  const auto variable = new_name();
  std::optional<Number> first, last;
  if (variable && take("in")) first = expression();
  if (first && take("..")) last = expression();
  if (last) line_ends();
  if (depth >= kDeepest) fail(begin.at, "loops are nested too deeply", "32 levels are allowed");
  lex_.skip_line();
  if (errors == source_.count() && *last > *first) rounds(*variable, *first, *last, depth, begin);
  else skip_body();
  close(begin);
  return errors == source_.count();
}

void Blocks::rounds(const std::string& variable, Number first, Number last, int depth, const Token& begin) {
  const auto body = lex_.position();
  const auto known = names_.size(), outer = context_.size();
  const auto errors = source_.count();
  names_.define(variable, first);
  if (last - first > Number{rounds_.left()} || !rounds_.take(static_cast<std::uint64_t>(last - first)))
    fail(begin.at,
         "this loop has " + to_string(last - first) + " rounds; the loops of a text can have " +
             std::to_string(rounds_.limit()) + " together" +
             (rounds_.left() == rounds_.limit() ? "" : ", of which " + std::to_string(rounds_.left()) + " are left"),
         "let a program print the lines, and divide them among several texts");
  for (auto i = first; i < last && source_.count() == errors; ++i) {
    context_.resize(outer);
    source_.set_context(context());
    names_.forget(known + 1);
    names_.set_last(i);
    lex_.go(body);
    context_ += (context_.empty() ? " [" : " ") + variable + "=" + to_string(i);
    source_.set_context(context());
    block(depth + 1);
    // An inner loop has paid for its own rounds.
    if (i + 1 < last && lex_.position() > body && !text_.take(lex_.position() - body))
      fail(begin.at, "the loops of this text expand to more than " + size_text(text_.limit()) + " bytes of text",
           "let a program print the lines, and divide them among several texts");
  }
  context_.resize(outer);
  source_.set_context(context());
  names_.forget(known);
  if (!broken_ && !at("end") && lex_.peek().kind != Token::end) {
    lex_.go(body);
    skip_body();
  }
}

void Blocks::skip_body() {
  int blocks = 0, brackets = 0;
  bool first = true;
  // A list may span lines, and a line inside a list does not begin a statement.
  for (; lex_.peek().kind != Token::end; lex_.take()) {
    const Token& t = lex_.peek();
    if (t.is("[")) ++brackets;
    else if (t.is("]") && brackets > 0) --brackets;
    else if (first && misplaced(t)) return;
    else if (first && brackets == 0 && opens(t)) ++blocks;
    else if (first && brackets == 0 && at("end") && blocks-- == 0) return;
    first = t.kind == Token::line;
  }
}

void Blocks::close(const Token& begin) {
  if (broken_) return;
  if (at("end")) lex_.take();
  else fail(begin.at, quote(begin) + " on line " + std::to_string(source_.line(begin.at)) + " has no 'end'");
}

}  // namespace sdma::inline v0::detail
