// SPDX-License-Identifier: MIT
#include "blocks.hpp"

#include "sdma/core/number.hpp"

namespace sdma::inline v0::detail {

std::optional<Values> Blocks::ordered(const std::string&, const Values&) {
  return none(lex_.peek().at, "only a schedule can leave something open", "write the order as a list: [2, 1, 3]");
}

void Blocks::block(int depth, bool branch) {
  for (;;) {
    lex_.skip_lines();
    if (lex_.peek().kind == Token::end || (depth > 0 && at("end")) || (branch && at("else"))) return;
    if (at("else")) {
      fail(lex_.peek().at, "'else' without 'if'");
      lex_.skip_line();
      continue;
    }
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

std::optional<std::string> Blocks::new_name(bool sampled) {
  const Token t = lex_.peek();
  if (t.kind != Token::word) return expected("a name"), std::nullopt;
  lex_.take();
  auto name = expand(t);
  if (name && names_.epoch_reserved() && *name == "epoch")
    return none(t.at, "'epoch' is reserved for the round of a queue", "choose another name");
  if (name && (names_.find(*name) || (!sampled && samples_ && samples_->find(*name))))
    return none(t.at, quote(*name) + " is already defined", "a name cannot hide another: choose a new one");
  return name;
}

std::optional<Names::Entry> Blocks::definition(std::string name) {
  Names::Entry e{.name = std::move(name)};
  if (at_list()) {
    e.list = list();
    return e.list ? std::optional(std::move(e)) : std::nullopt;
  }
  const auto value = expression();
  if (!value) return {};
  e.value = *value;
  return e;
}

bool Blocks::let() {
  lex_.take();
  auto name = new_name();
  auto d = name && take("=") ? definition(std::move(*name)) : std::nullopt;
  if (d) names_.define(std::move(*d));
  return d.has_value();
}

bool Blocks::require(bool asked) {
  if (!asked) return lex_.skip_line(), true;
  lex_.take();
  const auto begin = lex_.position();
  const auto holds = condition();
  if (!holds) return false;
  const Token message = lex_.peek();
  if (message.kind != Token::string)
    return expected("a message in quotes", "write require N > 1 \"at least two GPUs\"");
  lex_.take();
  if (*holds) return true;
  const auto text = expand(message, Splices::text);
  return text && fail(begin, text->substr(1, text->size() - 2), "the text requires this of its values");
}

bool Blocks::when(int depth) {
  lex_.take();
  const auto holds = condition();
  if (!holds || !take(":")) return false;
  if (!*holds) return lex_.skip_line(), true;
  if (opens(lex_.peek()) || at_line_end())
    return fail(lex_.peek().at, "expected one line's statement, got " + quote(lex_.peek()), "a block needs if ... end");
  return statement(depth);
}

bool Blocks::loop(int depth) {
  const Token begin = lex_.take();
  const auto errors = source_.count();
  const auto variable = new_name();
  auto all = variable && take("in") ? values() : std::nullopt;
  if (all && at("choose")) all = ordered(*variable, *all);
  if (all) line_ends();
  if (depth >= kDeepest) fail(begin.at, "loops are nested too deeply", "32 levels are allowed");
  lex_.skip_line();
  if (errors == source_.count() && all->count() > 0) rounds(*variable, *all, depth, begin);
  else skip_body();
  close(begin);
  return errors == source_.count();
}

/// The lines of a branch, up to its `else` or `end`.
void Blocks::branch(bool taken, int depth) {
  lex_.skip_line();
  if (!taken) return skip_body(true);
  const auto known = names_.size();
  block(depth + 1, true);
  names_.forget(known);
}

bool Blocks::branches(int depth) {
  const Token begin = lex_.take();
  const auto errors = source_.count();
  if (depth >= kDeepest) fail(begin.at, "blocks are nested too deeply", "32 levels are allowed");
  auto holds = condition();
  if (holds) line_ends();
  // After an error in a condition, no branch is read: each may be the wrong one.
  bool readable = errors == source_.count(), taken = readable && *holds;
  branch(taken, depth);
  for (bool last = false; !broken_ && at("else");) {
    const Token otherwise = lex_.take();
    if (last) fail(otherwise.at, "a second 'else'", "the branches of an 'if' end with one 'else'");
    bool chosen = readable && !taken;
    if (at("if")) {
      lex_.take();
      // The conditions after the branch that is taken are not evaluated.
      if (chosen) {
        holds = condition();
        if (holds) line_ends();
        readable = errors == source_.count();
        chosen = readable && *holds;
      }
    } else {
      last = true;
      line_ends();
    }
    branch(chosen, depth);
    taken = taken || chosen;
  }
  close(begin);
  return errors == source_.count();
}

std::string Blocks::context() const {
  std::string all;
  for (const auto i : loops_)
    all += (all.empty() ? " [" : " ") + names_.all()[i].name + "=" + to_string(names_.all()[i].value);
  return all.empty() ? all : all + "]";
}

void Blocks::rounds(const std::string& variable, const Values& all, int depth, const Token& begin) {
  const auto body = lex_.position();
  const auto known = names_.size();
  const auto errors = source_.count();
  const auto count = all.count();
  names_.define(variable, all.at(0));
  if (count > Number{names_.rounds.left()} || !names_.rounds.take(static_cast<std::uint64_t>(count)))
    fail(begin.at,
         "this loop has " + to_string(count) + " rounds; the loops of a text can have " +
             std::to_string(names_.rounds.limit()) + " together" +
             (names_.rounds.left() == names_.rounds.limit()
                  ? ""
                  : ", of which " + std::to_string(names_.rounds.left()) + " are left"),
         "let a program print the lines, and divide them among several texts");
  loops_.push_back(known);
  for (Number i = 0; i < count && source_.count() == errors; ++i) {
    names_.forget(known + 1);
    names_.set_last(all.at(i));
    lex_.go(body);
    block(depth + 1);
    // An inner loop has paid for its own rounds.
    if (i + 1 < count && lex_.position() > body && !names_.text.take(lex_.position() - body))
      fail(begin.at, "the loops of this text expand to more than " + size_text(names_.text.limit()) + " bytes of text",
           "let a program print the lines, and divide them among several texts");
  }
  loops_.pop_back();
  names_.forget(known);
  if (!broken_ && !at("end") && lex_.peek().kind != Token::end) {
    lex_.go(body);
    skip_body();
  }
}

void Blocks::skip_body(bool branch) {
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
    else if (first && brackets == 0 && branch && blocks == 0 && at("else")) return;
    first = t.kind == Token::line;
  }
}

void Blocks::close(const Token& begin) {
  if (broken_) return;
  if (at("end")) lex_.take();
  else fail(begin.at, quote(begin) + " on line " + std::to_string(source_.line(begin.at)) + " has no 'end'");
}

}  // namespace sdma::inline v0::detail
