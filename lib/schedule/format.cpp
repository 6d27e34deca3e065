// SPDX-License-Identifier: MIT
// Formats a source line by line. Needs only its words, so it also formats text with errors.
#include "../core/words.hpp"
#include "parser.hpp"
#include "sdma/schedule/text.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

bool assigns(std::string_view word) noexcept {
  return word == "let" || word == "param" || word == "set" || word == "store" || word == "sample";
}
bool compares(const Token& t) noexcept { return t.binds == Token::compares; }

class Formatter {
 public:
  explicit Formatter(std::string_view text) noexcept : text_(text) {}

  std::string run() {
    while (!text_.empty()) line(take_line(text_));
    // Remove empty lines at the end.
    while (out_.ends_with("\n\n")) out_.pop_back();
    return std::move(out_);
  }

 private:
  void line(std::string_view whole) {
    const auto hash = std::min(whole.find('#'), whole.size());
    const auto comment = whole.substr(hash, whole.find_last_not_of(kBlanks) + 1 - hash);
    const auto first_word = std::min(whole.find_first_not_of(kBlanks), whole.size());

    Lexer lex{whole.substr(0, hash)};
    const bool continued = brackets_ > 0;
    const auto keyword = continued ? std::string_view() : lex.peek().text;
    if ((keyword == "end" || keyword == "else") && depth_ > 0) --depth_;
    const auto code = words(lex, keyword);
    if (code.empty() && comment.empty()) {
      if (!out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
      return;
    }
    std::string laid(2 * depth_ + (continued ? 4 : 0), ' ');
    if (code.empty()) {
      // A comment alone on its line keeps its column if it continues comments after statements, as in a table.
      if (first_word >= kColumn) laid.assign(first_word, ' ');
      laid += comment;
    } else {
      laid += code;
      if (!comment.empty()) {
        const auto gap = hash > laid.size() + 1 ? hash - laid.size() : 2;
        laid.append(gap, ' ').append(comment);
      }
    }
    out_ += laid + '\n';
    if (opens_block(keyword) || keyword == "else") ++depth_;
  }

  /// The words of a line, with blanks between them where they belong.
  std::string words(Lexer& lex, std::string_view keyword) {
    std::string out;
    Token before;
    bool first_assignment = true;
    while (lex.peek().kind != Token::end && lex.peek().kind != Token::line) {
      const Token t = lex.take();
      const bool chooses = t.is("?") || (t.is(":") && choices_ > 0);
      if (chooses) choices_ += t.is("?") ? 1 : -1;
      const bool wide = (t.is("=") && assigns(keyword) && first_assignment) || t.is("+=") ||
                        ((compares(t) || chooses) &&
                         (keyword == "wait" || keyword == "expect" || keyword == "if" || keyword == "else" ||
                          keyword == "require" || keyword == "when" || keyword == "let"));
      if (!out.empty() && (wide || after_wide_ || blank(before, t, keyword))) out += ' ';
      if (t.is("=")) first_assignment = false;
      after_wide_ = wide;
      if (t.is("[")) ++brackets_, list_ = list_ || before.is("=");
      if (t.is("]") && brackets_ > 0 && --brackets_ == 0) list_ = false;
      out += t.kind == Token::word ? squeezed(std::string(t.text)) : std::string(t.text);
      // The statement of `when CONDITION: STATEMENT`.
      if (t.is(":") && !chooses) keyword = lex.peek().text;
      before = chooses ? Token{.kind = Token::symbol, .text = "?"} : t;
    }
    after_wide_ = false;
    choices_ = 0;
    return out;
  }

  /// A word without blanks inside its splices.
  static std::string squeezed(std::string word) {
    std::erase_if(word, [](char c) { return kBlanks.find(c) != kBlanks.npos; });
    return word;
  }

  bool blank(const Token& before, const Token& t, std::string_view keyword) const {
    // The list of a loop, and the parts of a sum.
    if (before.is(",") && (brackets_ > 0 || keyword == "store" || keyword == "expect")) return true;
    if (before.is(":")) return true;
    if (t.glued || t.is(":")) return false;
    if (list_ && brackets_ > 0)
      return !before.is("[") && !t.is("]") && !before.is("*") && !t.is("*") && !before.is("-");
    if (keyword == "submit" && t.is("*")) return true;
    const auto symbol = [](const Token& x) { return x.kind == Token::symbol; };
    // `old (x)`, `in -1`: a blank follows a word of the language. `)` and `]` end a value; a word begins the next one.
    if (symbol(before)) return (before.is(")") || before.is("]")) && !symbol(t);
    if (!symbol(t)) return true;
    const bool word_of_language =
        before.kind == Token::word &&
        (before.text == "in" || before.text == "old" || before.text == "repeat" || before.text == "gpus" ||
         before.text == "if" || before.text == "require" || before.text == "when" || before.text == "of");
    return word_of_language && (t.is("-") || t.is("(") || (t.is("[") && (before.text == "in" || before.text == "of")));
  }

  static constexpr std::size_t kColumn = 24;  // a comment alone on its line, from this column on, belongs to a table

  std::string_view text_;
  std::string out_;
  std::size_t depth_ = 0;
  int brackets_ = 0, choices_ = 0;
  bool list_ = false, after_wide_ = false;
};

}  // namespace

std::string format_source(std::string_view text) { return Formatter{text}.run(); }

}}  // namespace sdma::v0_3
