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

namespace sdma::inline v0::detail {

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
  virtual std::optional<Values> ordered(const std::string& variable, const Values&);

  /// Parses statements up to the `end` of the block, which it leaves, or up to
  /// the end of the text. In a branch of an `if`, an `else` ends the block, too.
  void block(int depth, bool branch = false);
  bool let();
  /// require CONDITION "message": an error with this message if the condition does not hold. `asked`: not skipped.
  bool require(bool asked = true);
  /// when CONDITION: STATEMENT
  bool when(int depth);
  /// Parses what follows the `=` of a definition: a number or a list.
  std::optional<Names::Entry> definition(std::string name);
  /// A name that a definition or a loop defines; with `sampled`, it may be that of a sample.
  std::optional<std::string> new_name(bool sampled = false);
  bool loop(int depth);
  bool branches(int depth);
  /// Skips to the `end` of this block, or to a misplaced word; in a branch, also to its `else`.
  void skip_body(bool branch = false);
  /// Consumes the `end` of the block that `begin` opened.
  void close(const Token& begin);
  /// For another pass over the text.
  void renew_limits() noexcept {
    names_.rounds.renew();
    names_.text.renew();
  }
  bool line_ends() { return at_line_end() || expected("the end of the line"); }
  /// " [i=1]": the values of the loops' variables.
  std::string context() const;

  bool inner_ = false;   // in a block other than a loop
  bool broken_ = false;  // such a block has ended without its `end`, which has been reported

 private:
  void branch(bool taken, int depth);
  void rounds(const std::string& variable, const Values&, int depth, const Token& begin);

  std::vector<std::size_t> loops_;  // of the open loops: the variable's index in names_
};

}  // namespace sdma::inline v0::detail
