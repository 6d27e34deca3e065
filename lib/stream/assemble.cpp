#include "packet_line.hpp"
#include "sdma/stream/text.hpp"

#include <algorithm>

namespace sdma {
inline namespace v0 {
namespace {

using namespace detail;

constexpr int kDeepestLoop = 32;
constexpr std::string_view kScheduleWords[] = {"sdma", "param",  "gpus",   "buffer", "signal", "queue",
                                               "host", "expect", "submit", "set",    "wait",   "repeat"};

class Assembler {
 public:
  Assembler(Source& source, const AssembleOptions& options)
      : source_(source), options_(options), lex_(source.text()), lines_(source, names_) {}

  std::vector<std::uint32_t> run() {
    block(0);
    return std::move(out_);
  }

 private:
  bool at_line_end() const noexcept { return lex_.peek().kind == Token::line || lex_.peek().kind == Token::end; }
  bool at(std::string_view word) const noexcept { return lex_.peek().kind == Token::word && lex_.peek().text == word; }
  bool fail(std::size_t at, std::string message, std::string hint = "") {
    source_.error(at, std::move(message), std::move(hint));
    return false;
  }

  /// Parses statements up to the `end` of a loop, without taking it, or to the end of the text.
  void block(int depth) {
    for (;;) {
      while (lex_.peek().kind == Token::line) lex_.take();
      if (lex_.peek().kind == Token::end || (depth > 0 && at("end"))) return;
      if (statement(depth) && !at_line_end())
        fail(lex_.peek().at, "expected the end of the line, got " + quote(lex_.peek()));
      lex_.skip_line();
    }
  }

  bool statement(int depth) {
    const Token t = lex_.peek();
    if (at("let")) return let();
    if (at("for")) return loop(depth);
    if (at("end")) {
      lex_.skip_line();
      return fail(t.at, "'end' without 'for'");
    }
    const std::string_view expected = depth > 0 ? "a packet or 'end'" : "a packet";
    if (t.kind == Token::word &&
        std::find(std::begin(kScheduleWords), std::end(kScheduleWords), t.text) != std::end(kScheduleWords)) {
      lex_.skip_line();
      return fail(t.at, "expected " + std::string(expected) + ", got " + quote(t),
                  t.text == "param" ? "a stream has no parameters: use let"
                                    : "this belongs to a schedule; a stream has packets, let and for");
    }
    return lines_.parse(lex_, expected, out_, options_.max_dwords - out_.size());
  }

  /// The name that `let` or `for` defines.
  std::optional<std::string> new_name() {
    const Token t = lex_.peek();
    if (t.kind != Token::word) return fail(t.at, "expected a name, got " + quote(t)), std::nullopt;
    lex_.take();
    auto name = expand(t, names_, source_);
    if (name && names_.find(*name)) {
      fail(t.at, "'" + *name + "' is already defined", "a name cannot hide another: choose a new one");
      return {};
    }
    return name;
  }
  bool expect(std::string_view symbol) {
    if (!lex_.peek().is(symbol) && lex_.peek().text != symbol)
      return fail(lex_.peek().at, "expected '" + std::string(symbol) + "', got " + quote(lex_.peek()));
    lex_.take();
    return true;
  }

  bool let() {
    lex_.take();
    const auto name = new_name();
    if (!name || !expect("=")) return false;
    const auto v = parse_expression(lex_, names_, source_);
    if (v) names_.define(*name, *v);
    return v.has_value();
  }

  bool loop(int depth) {
    const Token begin = lex_.take();
    const auto errors = source_.count();
    const auto variable = new_name();
    std::optional<Number> first, last;
    if (variable && expect("in")) first = parse_expression(lex_, names_, source_);
    if (first && expect("..")) last = parse_expression(lex_, names_, source_);
    if (last && !at_line_end()) fail(lex_.peek().at, "expected the end of the line, got " + quote(lex_.peek()));
    if (depth >= kDeepestLoop) fail(begin.at, "loops are nested too deeply", "32 levels are allowed");
    lex_.skip_line();
    if (depth == 0) rounds_ = 0;
    if (errors == source_.count() && *last > *first) rounds(*variable, *first, *last, depth, begin);
    else skip_body();
    if (at("end")) return lex_.take(), errors == source_.count();
    return fail(begin.at, "'for' on line " + std::to_string(source_.line(begin.at)) + " has no 'end'");
  }

  void rounds(const std::string& variable, Number first, Number last, int depth, const Token& begin) {
    const auto body = lex_.position();
    const auto known = names_.size(), context = context_.size();
    const auto errors = source_.count();
    names_.define(variable, first);
    for (auto i = first; i < last; ++i) {
      context_.resize(context);
      if (rounds_++ >= options_.max_rounds) {
        source_.set_context(context_.empty() ? "" : context_ + "]");
        fail(begin.at, "this loop has more than " + std::to_string(options_.max_rounds) + " rounds");
        break;
      }
      names_.forget(known + 1);
      names_.set_last(i);
      lex_.go(body);
      context_ += (context_.empty() ? " [" : " ") + variable + "=" + detail::to_string(i);
      source_.set_context(context_ + "]");
      block(depth + 1);
      if (source_.count() != errors) break;
    }
    context_.resize(context);
    source_.set_context(context_.empty() ? "" : context_ + "]");
    names_.forget(known);
    if (!at("end") && lex_.peek().kind != Token::end) {
      lex_.go(body);
      skip_body();
    }
  }

  /// Skips to the `end` of this loop. A list may span lines, and a line inside a list does not begin a statement.
  void skip_body() {
    int loops = 0, brackets = 0;
    bool first = true;
    for (; lex_.peek().kind != Token::end; lex_.take()) {
      if (lex_.peek().is("[")) ++brackets;
      else if (lex_.peek().is("]") && brackets > 0) --brackets;
      else if (first && brackets == 0 && at("for")) ++loops;
      else if (first && brackets == 0 && at("end") && loops-- == 0) return;
      first = lex_.peek().kind == Token::line;
    }
  }

  Source& source_;
  const AssembleOptions& options_;
  Names names_;
  Lexer lex_;
  PacketLines lines_;
  std::vector<std::uint32_t> out_;
  std::string context_;
  std::uint32_t rounds_ = 0;
};

}  // namespace

Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> assemble(std::string_view text, std::string_view file,
                                                                     const AssembleOptions& options) {
  Source source{text, file};
  auto out = Assembler{source, options}.run();
  if (source.count() == 0) return out;
  if (source.count() > Source::kMost)
    source.errors().push_back(
        {.where = source.errors().back().where,
         .message = std::to_string(source.count() - Source::kMost) + " more errors after this one are not shown"});
  return std::move(source.errors());
}

}  // namespace v0
}  // namespace sdma
