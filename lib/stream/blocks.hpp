// SPDX-License-Identifier: MIT
#pragma once
// Statements, `let` and loops. Internal: the part of the language that streams and schedules share.
//
//   class Streams : Blocks {
//     bool statement(int depth) override {
//       return at("let") ? let() : at("for") ? loop(depth) : at("if") ? branches(depth) : ...;
//     }
//   };
//
//   for i in 0..4                     i = 0, 1, 2, 3
//   for i in 0..N step 4              0, 4, 8, ...
//   for b in [41, 7, N-1]             each value of the list, which may span lines
//   let offset = [0, 4, 8]            a list by name: offset[i], len(offset), for b in offset
//   for b in file("blocks.txt")       each number of a file: blanks, commas and
//                                     line ends separate them, # begins a comment
//   let moe = table("moe.csv")        a table by name: moe[i, j]
//   for i in 0..4 choose order        in an order that the reader of the text chooses
//   if a < b ... else if ... else ... end
//   when a < b: ...                   one line, if the condition holds
//   require N > 1 "at least two GPUs, got {N}"
//
// A block is a sequence of statements up to `end`, or up to the end of the text. A loop evaluates its body once per
// round, by going back in the text. An `if` reads only the branch that is taken. All errors are reported to the Source;
// after an error, the next line is the next statement. After many errors, the rest of the text is skipped.
#include "expression.hpp"
#include "sdma/core/number.hpp"
#include "written_elsewhere.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

class Blocks : protected Parser {
 public:
  /// The most rounds that the loops of a text may have together, and the most text that they may read again.
  struct Limits {
    std::uint64_t rounds{}, text{};
  };
  Blocks(Lexer& lex, Names& names, Source& source, const Limits& limits) : Parser(lex, names, source) {
    names.rounds = Budget{limits.rounds};
    names.text = Budget{limits.text};
    source.set_context([this] { return context(); });
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  virtual ~Blocks() = default;

 protected:
  static constexpr int kDeepest = 32;
  /// Parses a statement; false if it has an error. `depth` counts the blocks around it.
  virtual bool statement(int depth) = 0;
  /// Does this word, at the start of a line, begin a block?
  virtual bool opens(const Token&) const noexcept = 0;
  /// Is this word, at the start of a line, out of place in this block?
  virtual bool misplaced(const Token&) const noexcept { return false; }

  /// The values of a loop in the order that is chosen for it, after
  /// `choose`; nothing after an error. Streams leave nothing open.
  virtual std::optional<Values> ordered(const std::string&, const Values&) {
    return none(lex_.peek().at, "only a schedule can leave something open", "write the order as a list: [2, 1, 3]");
  }

  /// Parses statements up to the `end` of the block, which it leaves, or up to
  /// the end of the text. In a branch of an `if`, an `else` ends the block, too.
  void block(int depth, bool branch = false) {
    for (;;) {
      lex_.skip_lines();
      if (lex_.peek().kind == Token::end || (depth > 0 && at("end")) || (branch && at("else"))) return;
      if (at("else")) {
        fail(lex_.peek().at, "'else' without 'if'");
        lex_.skip_line();
        continue;
      }
      if (depth == 0) names_.keep();
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
  bool let() {
    lex_.take();
    auto name = new_name();
    if (!name) return false;
    Names::Entry e{.name = std::move(*name)};
    if (!take("=") || !definition(e)) return names_.lose(e.name), false;
    names_.define(std::move(e));
    return true;
  }
  /// require CONDITION "message": an error with this message if the condition does not hold. `asked`: not skipped.
  bool require(bool asked = true) {
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
    return text && fail(begin, std::string(text->substr(1, text->size() - 2)), "the text requires this of its values");
  }
  /// when CONDITION: STATEMENT
  bool when(int depth) {
    lex_.take();
    const auto holds = condition();
    if (!holds || !take(":")) return false;
    if (!*holds) return lex_.skip_line(), true;
    if (opens(lex_.peek()) || at_line_end())
      return fail(lex_.peek().at, "expected one line's statement, got " + quote(lex_.peek()),
                  "a block needs if ... end");
    return statement(depth);
  }
  /// Parses what follows the `=` of a definition: a number or a list.
  bool definition(Names::Entry& e) {
    if (at_list()) return (e.list = list()) != nullptr;
    const auto value = expression();
    e.value = value.value_or(0);
    return value.has_value();
  }
  /// A name that a definition or a loop defines; with `sampled`, it may be that of a sample.
  std::optional<std::string> new_name(bool sampled = false) {
    const Token t = lex_.peek();
    if (t.kind != Token::word) return expected("a name"), std::nullopt;
    lex_.take();
    const auto name = expand(t);
    if (!name) return {};
    if (names_.epoch_reserved() && *name == "epoch")
      return none(t.at, "'epoch' is reserved for the round of a queue", "choose another name");
    const auto key = t.spliced ? key_of(*name) : t.value;
    if (names_.has(*name, key) || (!sampled && samples_ && samples_->has(*name, key)))
      return none(t.at, quote(*name) + " is already defined", "a name cannot hide another: choose a new one");
    return std::string(*name);
  }
  bool loop(int depth) {
    const Token begin = lex_.take();
    const auto errors = source_.count();
    const auto variable = new_name();
    auto all = variable && take("in") ? values() : std::nullopt;
    const bool open = all && at("choose");
    if (open) all = ordered(*variable, *all);
    if (all) line_ends();
    if (!open) source_.advise(errors, kLoopForm);
    if (depth >= kDeepest) fail(begin.at, "loops are nested too deeply", "32 levels are allowed");
    lex_.skip_line();
    if (errors == source_.count() && all->count() > 0) rounds(*variable, *all, depth, begin);
    else skip_body();
    close(begin);
    return errors == source_.count();
  }
  bool branches(int depth) {
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
  /// Skips to the `end` of this block, or to a misplaced word; in a branch, also to its `else`.
  void skip_body(bool branch = false) {
    if (lex_.again()) return;
    const auto begin = lex_.position();
    find_end(branch);
    if (source_.count() == 0) lex_.keep(begin, false);
  }
  /// Consumes the `end` of the block that `begin` opened.
  void close(const Token& begin) {
    if (broken_) return;
    if (at("end")) lex_.take();
    else fail(begin.at, quote(begin) + " on line " + std::to_string(source_.line(begin.at)) + " has no 'end'");
  }
  /// For another pass over the text.
  void renew_limits() noexcept {
    names_.rounds.renew();
    names_.text.renew();
  }
  bool line_ends() {
    return at_line_end() || expected("the end of the line", std::string(lex_.peek().is(".") ? kWholeForm : ""));
  }
  /// " [i=1]": the values of the loops' variables.
  std::string context() const {
    std::string all;
    for (const auto i : loops_)
      all += (all.empty() ? " [" : " ") + names_.all()[i].name + "=" + to_string(names_.all()[i].value);
    return all.empty() ? all : all + "]";
  }

  bool inner_ = false;   // in a block other than a loop
  bool broken_ = false;  // such a block has ended without its `end`, which has been reported

 private:
  /// The lines of a branch, up to its `else` or `end`.
  void branch(bool taken, int depth) {
    lex_.skip_line();
    if (!taken) return skip_body(true);
    const auto known = names_.size();
    block(depth + 1, true);
    names_.forget(known);
  }
  void find_end(bool branch) {
    int blocks = 0, brackets = 0;
    bool first = true;
    // A list may span lines, and a line inside a list does not begin a statement.
    while (lex_.peek().kind != Token::end) {
      const Token& t = lex_.peek();
      if (first && misplaced(t)) return;
      if (first && brackets == 0) {
        if (opens(t)) ++blocks;
        else if (at("end") && blocks-- == 0) return;
        else if (branch && blocks == 0 && at("else")) return;
        if (t.line_end > 0 && !t.lists) lex_.skip_line();
      }
      if (lex_.peek().is("[")) ++brackets;
      else if (lex_.peek().is("]") && brackets > 0) --brackets;
      first = lex_.peek().kind == Token::line;
      if (lex_.peek().kind != Token::end) lex_.take();
    }
  }
  void rounds(const std::string& variable, const Values& all, int depth, const Token& begin) {
    const auto body = lex_.position();
    const auto known = names_.size();
    const auto errors = source_.count();
    const auto count = all.count();
    names_.define(variable, all.at(0));
    if (count > Number{names_.rounds.left()} || !names_.rounds.take(static_cast<std::uint64_t>(count)))
      fail(begin.at, "this loop has " + names_.too_many(count),
           "let a program print the lines, and divide them among several texts");
    loops_.push_back(known);
    for (Number i = 0; i < count && source_.count() == errors; ++i) {
      names_.forget(known + 1);
      names_.set_last(all.at(i));
      lex_.go(body);
      block(depth + 1);
      // An inner loop has paid for its own rounds.
      if (i + 1 < count && lex_.position() > body && !names_.text.take(lex_.position() - body))
        fail(begin.at,
             "the loops of this text expand to more than " + size_text(names_.text.limit()) + " bytes of text",
             "let a program print the lines, and divide them among several texts");
    }
    loops_.pop_back();
    names_.forget(known);
    if (!broken_ && !at("end") && lex_.peek().kind != Token::end) {
      lex_.go(body);
      skip_body();
    }
  }

  std::vector<std::size_t> loops_;  // of the open loops: the variable's index in names_
};

}}}  // namespace sdma::v0_3::detail
