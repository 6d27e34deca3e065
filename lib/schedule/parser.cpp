#include "parser.hpp"

#include "sdma/core/nearest.hpp"

#include <algorithm>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::string_view kItems[] = {"sdma", "param", "gpus", "buffer", "signal", "queue", "host", "expect"};
constexpr std::string_view kBlocks[] = {"for", "queue", "host", "repeat"};

template <std::size_t N> bool one_of(const Token& t, const std::string_view (&words)[N]) noexcept {
  return t.kind == Token::word && std::find(std::begin(words), std::end(words), t.text) != std::end(words);
}

}  // namespace

ScheduleParser::ScheduleParser(Source& source, const ParseOptions& options)
    : source_(source),
      options_(options),
      lex_(source.text()),
      lines_(source, names_, this),
      setting_used_(options.set.size()) {
  names_.reserve_epoch();
}

void ScheduleParser::run() {
  if (!version()) return;
  const auto body = lex_.position();
  pass(Pass::declare);
  unused_settings();
  resolve_aliases();
  lex_.go(body);
  map_.packets.resize(s_.queues.size());
  pass(Pass::define);
  if (options_.map && source_.count() == 0) finish_map();
}

void ScheduleParser::pass(Pass p) {
  pass_ = p;
  names_.forget(0);
  params_.clear();
  items_ = dwords_ = next_queue_ = 0;
  context_.clear();
  source_.set_context("");
  block(Block::file, 0);
}

bool ScheduleParser::version() {
  while (lex_.peek().kind == Token::line) lex_.take();
  const Token t = lex_.peek();
  if (!at("sdma"))
    return fail(t.at, "expected 'sdma 1', got " + quote(t),
                "the first line of a schedule is its version; to read a stream of packets, use sdma as");
  lex_.take();
  const Token v = lex_.take();
  if (v.kind == Token::number && v.value == 1 && at_line_end()) return true;
  if (v.kind == Token::number && v.value != 1)
    return fail(v.at, "this is version " + std::string(v.text) + " of the language, but this program reads version 1",
                "use a later release of sdma; sdma --version prints the version of this one");
  return fail(v.kind == Token::number ? lex_.peek().at : v.at, "expected 'sdma 1' and the end of the line");
}

bool ScheduleParser::take(std::string_view symbol) {
  const Token& t = lex_.peek();
  const bool here = t.is(symbol) || (t.kind == Token::word && t.text == symbol);
  if (!here) return fail(t.at, "expected '" + std::string(symbol) + "', got " + quote(t));
  lex_.take();
  return true;
}

bool ScheduleParser::room(std::size_t at) {
  if (items_ < options_.max_items) return ++items_, true;
  return fail(
      at, "the text has more than " + std::to_string(options_.max_items) + " declarations, actions and expectations");
}

/// Statements up to the `end` of the block, which is not taken, or to the end of the text.
void ScheduleParser::block(Block b, int depth) {
  for (;;) {
    while (lex_.peek().kind == Token::line) lex_.take();
    if (lex_.peek().kind == Token::end || ((depth > 0 || b != Block::file) && at("end"))) return;
    const bool good = statement(b, depth);
    if (broken_) {
      if (b != Block::file) return;
      broken_ = false;
      continue;  // at the token that ended the block
    }
    if (good && !at_line_end()) fail(lex_.peek().at, "expected the end of the line, got " + quote(lex_.peek()));
    lex_.skip_line();
  }
}

bool ScheduleParser::statement(Block b, int depth) {
  const Token t = lex_.peek();
  if (at("let")) return let(false);
  if (at("for")) return loop(b, depth);
  if (b == Block::file) return item(depth);
  if (one_of(t, kItems)) return not_here(t, b);
  return b == Block::queue ? packet() : action(depth);
}

bool ScheduleParser::not_here(const Token& t, Block b) {
  const std::string block = b == Block::queue ? "queue" : "host";
  broken_ = true;
  return fail(t.at, quote(t) + " inside a " + block,
              "'" + block + "' on line " + std::to_string(source_.line(block_at_)) + " has no 'end'");
}

/// Takes the `end` of a block.
void ScheduleParser::close(const Token& begin) {
  if (broken_) return;
  if (at("end")) lex_.take();
  else fail(begin.at, quote(begin) + " on line " + std::to_string(source_.line(begin.at)) + " has no 'end'");
}

/// The name that `let`, `param` or `for` defines.
std::optional<std::string> ScheduleParser::new_name() {
  const Token t = lex_.peek();
  if (t.kind != Token::word) return fail(t.at, "expected a name, got " + quote(t)), std::nullopt;
  lex_.take();
  auto name = expand(t, names_, source_);
  if (name && *name == "epoch") {
    fail(t.at, "'epoch' is reserved for the round of a queue", "choose another name");
    return {};
  }
  if (name && names_.find(*name)) {
    fail(t.at, "'" + *name + "' is already defined", "a name cannot hide another: choose a new one");
    return {};
  }
  return name;
}

/// The value from ParseOptions::set for this `param`.
std::optional<Number> ScheduleParser::setting(std::string_view name) {
  std::optional<Number> value;
  for (std::size_t i = 0; i < options_.set.size(); ++i) {
    const auto& given = options_.set[i];
    if (given.name != name) continue;
    setting_used_[i] = true;
    const auto file = "set " + given.name;
    Source text{given.value, file};
    Lexer lex{given.value};
    value = parse_expression(lex, {}, text);
    if (value && lex.peek().kind != Token::end)
      text.error(lex.peek().at, "expected the end of the value, got " + quote(lex.peek()), "");
    if (pass_ == Pass::declare)
      for (auto& e : text.errors()) source_.add(std::move(e));
  }
  return value;
}

void ScheduleParser::unused_settings() {
  for (std::size_t i = 0; i < options_.set.size(); ++i) {
    if (setting_used_[i]) continue;
    Nearest nearest{options_.set[i].name};
    for (const auto& p : params_) nearest.offer(p);
    std::string all;
    for (const auto& p : params_) all += (all.empty() ? "" : " ") + p;
    source_.add({.where = "set " + options_.set[i].name,
                 .message = "there is no param '" + options_.set[i].name + "'",
                 .hint = !nearest.best().empty() ? "did you mean '" + std::string(nearest.best()) + "'?"
                         : all.empty()           ? "this schedule has no params"
                                                 : "its params: " + all});
  }
}

bool ScheduleParser::let(bool param) {
  lex_.take();
  const auto name = new_name();
  const auto given = name && take("=") ? parse_expression(lex_, names_, source_) : std::nullopt;
  if (!given) return incomplete_ = true, false;
  auto v = given;
  if (param) {
    params_.push_back(*name);
    v = setting(*name).value_or(*v);
  }
  names_.define(*name, *v);
  return true;
}

bool ScheduleParser::loop(Block b, int depth) {
  const Token begin = lex_.take();
  const auto errors = source_.count();
  const auto variable = new_name();
  std::optional<Number> first, last;
  if (variable && take("in")) first = parse_expression(lex_, names_, source_);
  if (first && take("..")) last = parse_expression(lex_, names_, source_);
  if (last && !at_line_end()) fail(lex_.peek().at, "expected the end of the line, got " + quote(lex_.peek()));
  if (depth >= kDeepest) fail(begin.at, "loops are nested too deeply", "32 levels are allowed");
  lex_.skip_line();
  if (context_.empty()) rounds_ = 0;
  if (errors == source_.count() && *last > *first) rounds(*variable, *first, *last, b, depth, begin);
  else skip_body(b);
  close(begin);
  if (pass_ == Pass::declare && errors != source_.count()) incomplete_ = true;
  return errors == source_.count();
}

void ScheduleParser::rounds(const std::string& variable, Number first, Number last, Block b, int depth,
                            const Token& begin) {
  const auto body = lex_.position();
  const auto known = names_.size(), context = context_.size();
  const auto errors = source_.count();
  names_.define(variable, first);
  for (auto i = first; i < last; ++i) {
    if (rounds_++ >= options_.max_rounds) {
      fail(begin.at, "this loop has more than " + std::to_string(options_.max_rounds) + " rounds");
      break;
    }
    names_.forget(known + 1);
    names_.set_last(i);
    lex_.go(body);
    context_.resize(context);
    context_ += (context_.empty() ? " [" : " ") + variable + "=" + detail::to_string(i);
    source_.set_context(context_ + "]");
    block(b, depth + 1);
    if (source_.count() != errors) break;
  }
  context_.resize(context);
  source_.set_context(context_.empty() ? "" : context_ + "]");
  names_.forget(known);
  if (!broken_ && !at("end") && lex_.peek().kind != Token::end) {
    lex_.go(body);
    skip_body(b);
  }
}

/// Skips to the `end` of this block, or, in a queue or host, to a word that is not allowed there. A list may span lines,
/// and a line inside a list does not begin a statement.
void ScheduleParser::skip_body(Block b) {
  int blocks = 0, brackets = 0;
  bool first = true;
  for (; lex_.peek().kind != Token::end; lex_.take()) {
    const Token& t = lex_.peek();
    if (t.is("[")) ++brackets;
    else if (t.is("]") && brackets > 0) --brackets;
    else if (first && b != Block::file && one_of(t, kItems)) return;
    else if (first && brackets == 0 && one_of(t, kBlocks)) ++blocks;
    else if (first && brackets == 0 && at("end") && blocks-- == 0) return;
    first = t.kind == Token::line;
  }
}

}  // namespace detail

namespace {

/// Both passes read loops and numbers, so each error in them is there twice.
void tidy(std::vector<Diagnostic>& errors) {
  const auto line_of = [](const Diagnostic& d) {
    const auto column = d.where.rfind(':');
    const auto line = column == 0 || column == d.where.npos ? d.where.npos : d.where.rfind(':', column - 1);
    return line == d.where.npos ? std::size_t{0} : std::strtoull(d.where.c_str() + line + 1, nullptr, 10);
  };
  std::stable_sort(errors.begin(), errors.end(), [&](const auto& a, const auto& b) { return line_of(a) < line_of(b); });
  std::vector<Diagnostic> once;
  for (auto& e : errors) {
    const bool known = std::any_of(once.begin(), once.end(),
                                   [&](const auto& o) { return o.where == e.where && o.message == e.message; });
    if (!known) once.push_back(std::move(e));
  }
  errors = std::move(once);
}

}  // namespace

bool is_schedule(std::string_view text) noexcept {
  detail::Lexer lex{text};
  while (lex.peek().kind == detail::Token::line) lex.take();
  return lex.peek().kind == detail::Token::word && lex.peek().text == "sdma";
}

Result<Schedule, std::vector<Diagnostic>> parse_schedule(std::string_view text, std::string_view file,
                                                         const ParseOptions& options) {
  detail::Source source{text, file};
  detail::ScheduleParser parser{source, options};
  parser.run();
  if (source.count() == 0) return std::move(parser.schedule());
  const auto kept = source.errors().size();
  tidy(source.errors());
  if (source.count() > kept)
    source.errors().push_back(
        {.where = std::string(file), .message = std::to_string(source.count() - kept) + " more errors are not shown"});
  return std::move(source.errors());
}

}  // namespace v0
}  // namespace sdma
