// Parses the bodies of queues and host blocks.
#include "extent.hpp"
#include "link.hpp"
#include "parser.hpp"
#include "symbols.hpp"

namespace sdma::inline v0::detail {

bool ScheduleParser::packet() {
  const auto at = lex_.peek().at;
  auto& out = queue_->dwords;
  const auto begin = out.size();
  line_epochs_.clear();
  line_addresses_.clear();
  if (!lines_.parse("a packet or 'end'", out, options_.max_dwords - dwords_)) return false;
  dwords_ += out.size() - begin;
  map_.packets[next_queue_ - 1].push_back({begin, location(at)});
  bool ok = true;
  for (Reader r{std::span(out).subspan(begin)}; r && ok;) {
    const auto position = begin + r.position();
    const auto v = r.next();
    // All packets of one line are equal, so the first one shows every error.
    if (position == begin) ok = check_packet(v, at);
    for (const auto& e : line_epochs_)
      queue_->epochs.push_back(
          {position,
           e.field->name,
           {static_cast<std::int64_t>(e.value.factor), static_cast<std::int64_t>(e.value.constant)}});
    if (line_epochs_.empty()) break;
  }
  return ok;
}

/// Does the packet stay inside the symbols that it names, and is none of its numbers the address of a symbol?
bool ScheduleParser::check_packet(const PacketView& v, std::size_t at) {
  const auto errors = source_.count();
  const auto place = [&](const SymbolOffset& l) {
    for (const auto& a : line_addresses_)
      if (a.symbol.signal == l.signal && a.symbol.index == l.index) return std::optional(a.at);
    return std::optional<std::size_t>();
  };
  each_address(v, [&](const FieldInfo& f, GpuVa va) {
    if (const auto l = find_symbol(s_, va); l && !place(*l))
      fail(at, quote(f.name) + " is a number, but " + name_of(s_, va) + " is linked at that address",
           "write the name instead of the number");
  });
  outside(s_, v, [&](const Outside& o) {
    if (source_.count() != errors) return;
    const auto* symbol = symbol_of(o.symbol);
    auto d = describe(s_, v, o, symbol ? declared(*symbol) : "");
    if (incomplete_) return;
    fail(place(o.symbol).value_or(at), std::move(d.message), std::move(d.hint));
  });
  return source_.count() == errors;
}

/// A raw .dword can be the head of a packet that swallows the lines after it. None of those may depend on the epoch.
/// For the same reason the size of each packet is known only at the end of the queue.
void ScheduleParser::check_boundaries(const Token& begin) {
  if (auto d = too_large(*queue_)) fail(begin.at, std::move(d->message), std::move(d->hint));
  auto epoch = queue_->epochs.begin();
  for (Reader r{queue_->dwords}; r && epoch != queue_->epochs.end();) {
    const auto position = r.position();
    const auto v = r.next();
    if (v.whole())
      while (epoch != queue_->epochs.end() && epoch->packet == position) ++epoch;
  }
  if (epoch != queue_->epochs.end())
    fail(
        begin.at,
        "a raw .dword of this queue swallows the packet whose '" + std::string(epoch->field) + "' depends on the epoch",
        "an engine would read the two as one packet: write all dwords of the raw packet");
}

bool ScheduleParser::host() {
  const Token begin = lex_.take();
  if (pass_ == Pass::declare) return skip_inner(), true;
  const Token t = lex_.peek();
  std::optional<std::string> name;
  if (t.kind == Token::word) name = expand(lex_.take());
  else expected("the name of a host thread", "write host main");
  bool ok = name.has_value() && room(t.at);
  if (name && !hosts_.insert(*name).second) ok = fail(t.at, "host " + quote(*name) + " is already declared");
  ok = ok && line_ends();
  lex_.skip_line();
  s_.hosts.push_back({.name = name.value_or("")});
  map_.actions.emplace_back();
  actions_ = &s_.hosts.back().actions;
  body(begin);
  return ok && !broken_;
}

bool ScheduleParser::action(int depth) {
  const Token t = lex_.peek();
  if (!room(t.at)) return false;
  map_.actions.back().push_back(location(t.at));
  if (at("submit")) return submit();
  if (at("set") || at("wait")) return set_or_wait(t.text == "wait");
  if (at("repeat")) return repeat(depth);
  const std::string_view words[] = {"submit", "set", "wait", "repeat", "let", "for", "if", "end"};
  const auto close = nearest(t.text, words);
  expected("an action or 'end'", !close.best().empty() ? suggestion(close)
                                 : find_packet(t.text) ? "packets belong in a queue"
                                                       : "write submit, set, wait or repeat");
  lex_.skip_line();
  return false;
}

bool ScheduleParser::submit() {
  const Token begin = lex_.take();
  Schedule::Action a{.kind = Schedule::Action::Kind::submit};
  if (lex_.peek().is("*")) {
    lex_.take();
    if (!room(begin.at, s_.queues.size())) return false;
    for (std::size_t i = 0; i < s_.queues.size(); ++i) a.queues.push_back(i);
    if (a.queues.empty()) return fail(begin.at, "there is no queue to submit");
  } else {
    while (!at_line_end()) {
      const auto r = ref(false);
      const auto* symbol = r ? find_queue(*r) : nullptr;
      if (!symbol) return false;
      if (!room(r->at)) return false;
      a.queues.push_back(symbol->index);
    }
    if (a.queues.empty())
      return fail(lex_.behind(), "expected queues", "write submit gpu0.push gpu1.echo, or submit *");
  }
  actions_->push_back(std::move(a));
  return true;
}

std::optional<Compare> ScheduleParser::comparison() {
  const Token t = lex_.peek();
  for (const auto func : {Compare::eq, Compare::ne, Compare::lt, Compare::le, Compare::gt, Compare::ge})
    if (t.is(sign_of(func))) return lex_.take(), func;
  expected("one of == != < <= > >=", t.is("=") ? "'==' compares; '=' belongs to set" : "write wait host.done == 1");
  return {};
}

bool ScheduleParser::set_or_wait(bool wait) {
  lex_.take();
  const auto r = ref(false);
  if (!r) return false;
  Schedule::Action a{.kind = wait ? Schedule::Action::Kind::wait : Schedule::Action::Kind::set};
  if (wait) {
    const auto func = comparison();
    if (!func) return false;
    a.func = *func;
  } else {
    if (!lex_.peek().is("=")) return expected("'='", "write set host.go = 1");
    lex_.take();
  }
  const auto signal = signal_of(*r);
  if (!signal) return false;
  const auto v = word_value(*signal, repeats_ > 0);
  if (!v) return false;
  a.signal = *signal;
  a.value = *v;
  actions_->push_back(std::move(a));
  return true;
}

bool ScheduleParser::repeat(int depth) {
  const Token begin = lex_.take();
  const auto n = number("repeat", 0, kMost);
  bool ok = n.has_value();
  if (depth >= kDeepest) ok = fail(begin.at, "blocks are nested too deeply", "32 levels are allowed");
  ok = ok && line_ends();
  lex_.skip_line();
  if (!ok) {
    skip_body();
    close(begin);
    return false;
  }
  Schedule::Action a{.kind = Schedule::Action::Kind::repeat, .rounds = *n};
  auto* const outer = std::exchange(actions_, &a.body);
  const auto known = names_.size();
  ++repeats_;
  block(depth + 1);
  --repeats_;
  names_.forget(known);
  actions_ = outer;
  actions_->push_back(std::move(a));
  close(begin);
  return !broken_;
}

}  // namespace sdma::inline v0::detail
