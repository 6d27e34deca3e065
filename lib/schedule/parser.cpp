// SPDX-License-Identifier: MIT
#include "parser.hpp"

namespace sdma { inline namespace v0_3 {
namespace detail {
namespace {

constexpr Key kItems[] = {"sdma", "param", "gpus", "buffer", "signal", "queue", "host", "kernel", "expect"};
constexpr Key kBlocks[] = {"for", "if", "queue", "host", "kernel", "repeat"};

bool one_of(std::uint64_t word, std::span<const Key> words) noexcept {
  return std::any_of(words.begin(), words.end(), [&](Key k) { return k.value == word; });
}

}  // namespace

ScheduleParser::ScheduleParser(Lexer& lex, Names& names, Source& source, const ParseOptions& options)
    : Blocks(lex, names, source, {options.max_rounds, options.max_text}),
      options_(options),
      lines_(lex, names, source, this),
      setting_used_(options.set.size()),
      items_(options.max_items) {
  names_.reserve_epoch();
  names_.read = options_.read;
  samples_ = &sampled_;
}

void ScheduleParser::run(bool once) {
  if (options_.decisions) options_.decisions->met.clear();
  if (!version()) return;
  const auto body = lex_.position();
  pass(once ? Pass::both : Pass::declare);
  unused_settings();
  resolve_aliases();
  if (full_) return;  // or a small text could cost a million rounds again
  lex_.go(body);
  if (!once) pass(Pass::define);
  map_.choices = static_cast<std::size_t>(
      std::count_if(decisions_.begin(), decisions_.end(), [](const auto& d) { return d.alternatives > 1; }));
  if (options_.map && source_.count() == 0) finish_map();
  if (options_.decisions) options_.decisions->met = std::move(decisions_);
}

void ScheduleParser::pass(Pass p) {
  pass_ = p;
  names_.forget(0);
  params_.clear();
  visits_.clear();
  dwords_ = next_queue_ = 0;
  items_.renew();
  renew_limits();
  block(0);
}

bool ScheduleParser::version() {
  lex_.skip_lines();
  if (!at("sdma"))
    return expected("'sdma 1'",
                    "the first line of a schedule is its version; to read a stream of packets, use sdma as");
  lex_.take();
  const Token v = lex_.take();
  if (v.kind == Token::number && v.value == 1 && at_line_end()) return true;
  if (v.kind == Token::number && v.value != 1)
    return fail(v.at, "this is version " + std::string(v.text) + " of the language, but this program reads version 1",
                "use a later release of sdma; sdma --version prints the version of this one");
  return fail(v.kind == Token::number ? lex_.peek().at : v.at, "expected 'sdma 1' and the end of the line");
}

bool ScheduleParser::room(std::size_t at, std::size_t n) {
  if (items_.take(n)) return true;
  full_ = true;
  return fail(at,
              "the text has more than " + std::to_string(items_.limit()) + " declarations, actions and expectations",
              "each queue of a submit counts, too: divide the schedule into several texts");
}

bool opens_block(std::string_view word) noexcept { return one_of(key_of(word), kBlocks); }
bool ScheduleParser::opens(const Token& t) const noexcept { return t.kind == Token::word && one_of(t.value, kBlocks); }
bool ScheduleParser::misplaced(const Token& t) const noexcept {
  return inner_ && t.kind == Token::word && one_of(t.value, kItems) && (!t.is_word("expect") || block_ == "queue");
}

bool ScheduleParser::statement(int depth) {
  const Token t = lex_.peek();
  if (at("let")) return let() || failed(true);
  if (at("require")) return require(pass_ != Pass::define || inner_) || failed(true);
  if (at("when")) return when(depth) || failed(pass_ == Pass::declare);
  if (at("choose")) return choose(depth) || failed(true);
  if (at("for")) return loop(depth) || failed(pass_ == Pass::declare);
  if (at("if")) return branches(depth) || failed(pass_ == Pass::declare);
  if (!inner_) return item(depth);
  if (misplaced(t)) {
    broken_ = true;
    const std::string block(block_);
    return fail(t.at, quote(t) + " inside a " + block,
                quote(block) + " on line " + std::to_string(source_.line(block_at_)) + " has no 'end'");
  }
  return queue_ ? packet() : action(depth);
}

/// The body of a queue, a host or a kernel, with its `end`.
void ScheduleParser::body(const Token& begin) {
  const auto known = names_.size();
  block_at_ = begin.at;
  block_ = begin.text;
  inner_ = true;
  // A thread may wait for what all queues together do.
  if (!queue_ && !names_.entry("queues")) names_.define("queues", s_.queues.size());
  complete_ = complete_ || !queue_;
  block(1);
  inner_ = false;
  names_.forget(known);
  sampled_.forget(0);
  close(begin);
}

/// The same for the first pass, which does not read it. The second pass reports a missing `end`.
void ScheduleParser::skip_inner(const Token& begin) {
  block_ = begin.text;
  lex_.skip_line();
  inner_ = true;
  skip_body();
  inner_ = false;
  if (at("end")) lex_.take();
  else broken_ = true;
}

/// Gives `d` the value that ParseOptions::set has for it: a list for a list, otherwise a number or one of these words,
/// computed from what the text defines above this line.
/// False if there is none, or a wrong one.
bool ScheduleParser::setting(Names::Entry& d, std::span<const Names::Entry> words) {
  bool good = false;
  for (std::size_t i = 0; i < options_.set.size(); ++i) {
    const auto& given = options_.set[i];
    if (given.name != d.name) continue;
    setting_used_[i] = true;
    const auto begins = [&](std::string_view word) { return given.value.starts_with(word); };
    const bool bare = d.list && !begins("[") && !begins("file(") && !begins("table(");
    const auto file = "set " + given.name, value = bare ? "[" + given.value + "]" : given.value;
    Source text{value, file};
    Lexer lex{value};
    Names above = names_;
    Parser parser{lex, above, text};
    // A word that is not one of them is not a number either.
    const bool alone = lex.peek().kind == Token::word && lex.peek().text.size() == value.size();
    if (!words.empty() && alone && !names_.entry(value)) {
      std::string all;
      for (const auto& w : words) all += (all.empty() ? "" : ", ") + w.name;
      text.error(0, quote(value) + " is not one of " + all, suggestion(nearest(value, words, &Names::Entry::name)));
    } else if (d.list) {
      d.list = parser.list();
    } else {
      d.value = parser.expression().value_or(0);
    }
    if (text.count() == 0 && lex.peek().kind != Token::end)
      text.error(lex.peek().at, "expected the end of the value, got " + quote(lex.peek()),
                 std::string(lex.peek().is(".") ? kWholeForm : ""));
    if (text.count() == 0 && !words.empty() && (d.value < 0 || d.value >= Number(words.size())))
      text.error(0, to_string(d.value) + " is not the number of a word", "the words have numbers from 0");
    good = text.count() == 0;
    if (pass_ != Pass::define)
      for (auto& e : text.take_errors()) source_.add(std::move(e));
  }
  return good;
}

void ScheduleParser::unused_settings() {
  for (std::size_t i = 0; i < options_.set.size(); ++i) {
    if (setting_used_[i]) continue;
    const auto close = nearest(options_.set[i].name, params_);
    std::string all;
    for (const auto& p : params_) all += (all.empty() ? "" : " ") + p;
    source_.add({.where = "set " + options_.set[i].name,
                 .message = "there is no param " + quote(options_.set[i].name),
                 .hint = !close.best().empty() ? suggestion(close)
                         : all.empty()         ? "this schedule has no params"
                                               : "its params: " + all});
  }
}

/// param NAME = VALUE, or NAME = WORD of [WORD, WORD, ..]
bool ScheduleParser::param() {
  lex_.take();
  auto name = new_name();
  if (!name) return failed(true);
  if (!take("=")) return names_.lose(*name), failed(true);
  const Token value = lex_.peek();
  if (value.kind == Token::word) lex_.take();
  const bool chosen = value.kind == Token::word && at("of");
  if (!chosen) lex_.go(value.at);
  std::vector<Names::Entry> words;
  Names::Entry d{.name = std::move(*name)};
  if (!(chosen ? word_of(d, value, words) : definition(d))) return names_.lose(d.name), failed(true);
  params_.push_back(d.name);
  const auto kept = d;
  if (!setting(d, words)) d = kept;
  if (chosen) d.word = std::make_shared<const std::string>(words[static_cast<std::size_t>(d.value)].name);
  names_.define(std::move(d));
  return true;
}

/// From `of`: defines the words, each with its number, as names.
bool ScheduleParser::word_of(Names::Entry& d, const Token& value, std::vector<Names::Entry>& words) {
  lex_.take();
  if (!take("[")) return false;
  for (;;) {
    const auto word = new_name();
    if (!word) return false;
    words.push_back({.name = *word, .value = Number(words.size())});
    names_.define(*word, words.back().value);
    if (!lex_.peek().is(",")) break;
    lex_.take();
  }
  if (!take("]")) return false;
  const auto known = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.name == value.text; });
  if (known == words.end()) return fail(value.at, quote(value) + " is not one of the words of " + quote(d.name));
  d.value = known->value;
  return true;
}

}  // namespace detail

bool is_schedule(std::string_view text) noexcept {
  detail::Lexer lex{text};
  lex.skip_lines();
  return lex.peek().kind == detail::Token::word && lex.peek().text == "sdma";
}

Result<Schedule, std::vector<Diagnostic>> parse_schedule(std::string_view text, std::string_view file,
                                                         const ParseOptions& options) {
  detail::Lexer lex{text, 0, detail::Lexer::kMostKept};
  const auto read = [&](bool once) -> Result<Schedule, std::vector<Diagnostic>> {
    lex.go(0);
    detail::Source source{text, file};
    detail::Names names;
    detail::ScheduleParser parser{lex, names, source, options};
    parser.run(once);
    if (source.count() > 0) return source.take_errors();
    return std::move(parser.schedule());
  };
  auto schedule = read(true);
  if (!schedule) schedule = read(false);
  return schedule;
}

}}  // namespace sdma::v0_3
