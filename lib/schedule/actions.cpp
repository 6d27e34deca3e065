// SPDX-License-Identifier: MIT
// Parses the actions of host threads and kernels.
#include "lifetimes.hpp"
#include "parser.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

bool ScheduleParser::host() {
  const Token begin = lex_.take();
  if (pass_ == Pass::declare) return skip_inner(begin), true;
  const Token t = lex_.peek();
  std::optional<std::string_view> name;
  if (t.kind == Token::word) name = expand(lex_.take());
  else expected("the name of a host thread", "write host main");
  bool ok = name.has_value() && room(t.at);
  s_.hosts.push_back({.name = std::string(name.value_or(""))});
  if (name && !hosts_.insert(s_.hosts.back().name).second)
    ok = fail(t.at, "host " + quote(*name) + " is already declared");
  ok = ok && fields("a host thread", "rank", "", [&](const Token& field) -> std::optional<bool> {
         if (field.text != "rank") return {};
         const auto n = number("rank", 0, 63);
         if (n) s_.hosts.back().rank = static_cast<std::uint32_t>(*n);
         return n.has_value();
       });
  return actor(begin, s_.hosts.back().actions, map_.actions, ok);
}

bool ScheduleParser::kernel() {
  const Token begin = lex_.take();
  if (pass_ == Pass::declare) return skip_inner(begin), true;
  const auto r = ref(false);
  bool ok = r.has_value() && room(r->at);
  if (ok && r->place.is_host())
    ok = fail(r->at, "a kernel runs on a GPU, got " + quote(r->text()), "write kernel gpu0." + r->name);
  if (ok && !kernels_.insert(r->text()).second) ok = fail(r->at, "kernel " + quote(r->text()) + " is already declared");
  Schedule::Kernel k{.place = r ? r->place : Place::gpu(0), .name = r ? r->name : ""};
  ok = ok && fields("a kernel", "share, workgroups, protocol", "", [&](const Token& t) -> std::optional<bool> {
         if (t.text == "protocol") return protocol(k.protocol);
         if (t.text != "share" && t.text != "workgroups") return {};
         const bool share = t.text == "share";
         const auto n = number(share ? "share" : "workgroups", share ? 0 : 1, share ? 100 : kMostWorkgroups);
         if (n) (share ? k.share : k.workgroups) = static_cast<std::uint32_t>(*n);
         return n.has_value();
       });
  s_.kernels.push_back(std::move(k));
  return actor(begin, s_.kernels.back().actions, kernel_actions_, ok);
}

bool ScheduleParser::protocol(Schedule::Protocol& p) {
  const Token word = lex_.take();
  const auto text = word.kind == Token::word ? expand(word) : word.text;
  if (!text) return false;
  const auto at = std::find(std::begin(kProtocols), std::end(kProtocols), *text) - std::begin(kProtocols);
  if (at == std::ssize(kProtocols))
    return fail(word.at, quote(word) + " is not a protocol of kernels", "write protocol=plain, simple, ll or tracked");
  p = static_cast<Schedule::Protocol>(at);
  return true;
}

/// The rest of the line, and the body. `ok`: is the name right?
bool ScheduleParser::actor(const Token& begin, std::vector<Schedule::Action>& actions,
                           std::vector<std::vector<SourceMap::Location>>& lines, bool ok) {
  ok = ok && line_ends();
  lex_.skip_line();
  actions_ = &actions;
  action_lines_ = &lines.emplace_back();
  body(begin);
  return ok && !broken_;
}

bool ScheduleParser::action(int depth) {
  using Kind = Schedule::Action::Kind;
  const Token t = lex_.peek();
  if (!room(t.at)) return false;
  action_lines_->push_back(location(t.at));
  if (at("submit")) return submit();
  if (at("set")) return set_wait_or_add(Kind::set);
  if (at("wait")) return set_wait_or_add(Kind::wait);
  if (at("add")) return set_wait_or_add(Kind::add);
  if (at("sample")) return sample();
  if (at("compute")) return compute();
  if (at("load") || at("store")) return load_or_store(t.text == "store");
  if (at("expect")) return expect_now();
  if (at("repeat")) return repeat(depth);
  for (const auto kind : {Kind::alloc, Kind::free, Kind::map, Kind::unmap, Kind::export_handle, Kind::close_handle})
    if (t.kind == Token::word && t.text == lifetime_word(kind)) return lifetime(kind);
  const std::string_view words[] = {"submit", "set",    "wait", "add",     "sample", "compute", "load", "store",
                                    "expect", "repeat", "let",  "require", "for",    "if",      "when", "end",
                                    "alloc",  "free",   "map",  "unmap",   "export", "close"};
  const auto close = nearest(t.text, words);
  expected("an action or 'end'", !close.best().empty() ? suggestion(close)
                                 : find_packet(t.text) ? "packets belong in a queue"
                                                       : "write submit, set, wait, add, sample, load, store or repeat");
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
    if (a.queues.empty() && incomplete_) return source_.follows(), false;
    if (a.queues.empty())
      return fail(begin.at, "there is no queue to submit", "declare one: queue gpu0.push peer=gpu1");
  } else {
    while (!at_line_end()) {
      const auto r = ref(false);
      if (r && lex_.peek().is("*") && lex_.peek().glued) {
        lex_.take();
        if (!submit_several(*r, a)) return false;
        continue;
      }
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

/// `submit gpu0.to*`: each queue of the GPU whose name begins so, in the order of their declarations.
bool ScheduleParser::submit_several(const Ref& r, Schedule::Action& a) {
  const auto before = a.queues.size();
  for (std::size_t i = 0; i < s_.queues.size(); ++i) {
    if (s_.queues[i].place != r.place || !s_.queues[i].name.starts_with(r.name)) continue;
    if (!room(r.at)) return false;
    a.queues.push_back(i);
  }
  return a.queues.size() != before || incomplete_ ||
         fail(r.at, "no queue has a name that begins with " + quote(r.text()));
}

std::optional<Compare> ScheduleParser::comparison() {
  const Token t = lex_.peek();
  for (const auto func : {Compare::eq, Compare::ne, Compare::lt, Compare::le, Compare::gt, Compare::ge})
    if (t.kind == Token::symbol && t.text == sign_of(func)) return lex_.take(), func;
  expected("one of == != < <= > >=", t.is("=") ? "'==' compares; '=' belongs to set" : "write wait host.done == 1");
  return {};
}

bool ScheduleParser::set_wait_or_add(Schedule::Action::Kind kind) {
  using Kind = Schedule::Action::Kind;
  const Token begin = lex_.take();
  const auto r = ref(false);
  if (!r) return false;
  if (kind == Kind::wait && lex_.peek().is(".") && lex_.peek().glued) return wait_rptr(*r);
  const bool several = lex_.peek().is("*") && lex_.peek().glued;
  if (several) lex_.take();
  Schedule::Action a{.kind = kind};
  if (kind == Kind::wait) {
    const auto func = comparison();
    if (!func) return false;
    a.func = *func;
  } else {
    constexpr Key kAdds{"+="}, kSets{"="};
    const auto sign = kind == Kind::add ? kAdds : kSets;
    if (!lex_.peek().is(sign))
      return expected(quote(sign.text()), kind == Kind::add ? "write add host.count += 1" : "write set host.go = 1");
    lex_.take();
  }
  if (several) return each_signal(*r, begin, std::move(a));
  const auto signal = signal_of(*r);
  return signal && add_action(std::move(a), *signal);
}

/// `wait gpu0.q.rptr == all`
bool ScheduleParser::wait_rptr(const Ref& r) {
  lex_.take();
  const auto example = "write wait " + r.text() + ".rptr == all";
  if (!at("rptr")) return expected("'rptr'", example);
  lex_.take();
  const auto* queue = find_queue(r);
  if (!queue) return false;
  if (!lex_.peek().is("==")) return expected("'=='", example);
  lex_.take();
  if (!at("all")) return expected("'all'", example);
  lex_.take();
  actions_->push_back({.kind = Schedule::Action::Kind::rptr, .queues = {queue->index}});
  return true;
}

/// Reads the value, and adds the action for this signal.
bool ScheduleParser::add_action(Schedule::Action a, GpuVa signal) {
  auto v = word_value(signal, repeats_ > 0 ? Varies::by_round : Varies::by_thread);
  if (!v) return false;
  a.signal = signal;
  a.value = std::move(*v);
  if (lex_.peek().kind == Token::word && !scope(a)) return false;
  actions_->push_back(std::move(a));
  return true;
}

/// `set host.go* = epoch`: one action for each signal of the place whose name begins so.
bool ScheduleParser::each_signal(const Ref& r, const Token& begin, const Schedule::Action& a) {
  const auto value = lex_.position();
  bool first = true;
  for (std::size_t i = 0; i < s_.signals.size(); ++i) {
    if (s_.signals[i].place != r.place || !s_.signals[i].name.starts_with(r.name)) continue;
    lex_.go(value);
    if (!first && !room(begin.at)) return false;
    if (!first) action_lines_->push_back(location(begin.at));
    if (!add_action(a, link_signal(i))) return false;
    first = false;
  }
  return !first || incomplete_ || fail(r.at, "no signal has a name that begins with " + quote(r.text()));
}

/// `sample n = host.count`: the name may be one that this thread has sampled before.
bool ScheduleParser::sample() {
  lex_.take();
  const auto name = new_name(true);
  if (!name) return false;
  if (!lex_.peek().is("=")) return expected("'='", "write sample " + *name + " = host.count");
  lex_.take();
  const auto r = ref(false);
  if (!r) return false;
  const auto signal = signal_of(*r);
  if (!signal) return false;
  if (!sampled_.entry(*name)) sampled_.define(*name, 0);
  Schedule::Action a{.kind = Schedule::Action::Kind::sample, .signal = *signal, .value = sampled(*name)};
  if (lex_.peek().kind == Token::word && !scope(a)) return false;
  actions_->push_back(std::move(a));
  return true;
}

/// `scope=agent` after a set, a wait, an add or a sample of a kernel.
bool ScheduleParser::scope(Schedule::Action& a) {
  const Token t = lex_.take();
  if (t.text != "scope" || !lex_.peek().is("="))
    return fail(t.at, "expected the end of the line, got " + quote(t),
                block_ == "kernel" ? "a kernel's action may end with scope=agent or scope=system" : "");
  if (block_ != "kernel")
    return fail(t.at, "'scope' is for kernels: a host thread has no other scope than the system", "leave it out");
  lex_.take();
  const Token scope = lex_.take();
  if (scope.text != "agent" && scope.text != "system")
    return fail(scope.at, quote(scope) + " is not a scope", "write scope=system, which is the default, or scope=agent");
  a.system_scope = scope.text == "system";
  return true;
}

bool ScheduleParser::compute() {
  const Token begin = lex_.take();
  if (block_ != "kernel") return fail(begin.at, "'compute' belongs in a kernel", "kernel gpu0.gemm ... end");
  if (!at("ns")) return expected("'ns='", "write compute ns=20000");
  constexpr std::uint64_t kMostOfCompute = 1'000'000'000'000;
  Schedule::Action a{.kind = Schedule::Action::Kind::compute};
  const auto field = [&](const char* name, std::uint64_t& to) {
    lex_.take();
    if (!lex_.peek().is("=")) return expected("'='", "write compute ns=20000");
    lex_.take();
    const auto n = number(name, 0, kMostOfCompute);
    to = n.value_or(0);
    return n.has_value();
  };
  if (!field("ns", a.ns)) return false;
  const auto where = lex_.peek().at;
  if (at("hbm") && !field("hbm", a.hbm)) return false;
  if (a.ns == 0 && a.hbm != 0) return fail(where, "it moves bytes in no time", "hbm= are bytes within ns=");
  actions_->push_back(a);
  return true;
}

bool ScheduleParser::load_or_store(bool store) {
  using Kind = Schedule::Action::Kind;
  lex_.take();
  const auto r = ref(false);
  if (!r) return false;
  const auto p = part();
  if (!p) return false;
  const auto bytes = range(*r, *p);
  if (!bytes) return false;
  Schedule::Action a{.kind = store ? Kind::store : Kind::load, .range = *bytes};
  if (store) {
    if (!lex_.peek().is("=")) return expected("'='", "write store " + r->text() + " = random");
    lex_.take();
    if (at("sum")) {
      if (block_ != "kernel")
        return fail(lex_.peek().at, "'sum' belongs in a kernel: compute units add", "kernel gpu0.add ... end");
      auto parts = sum(a.range.bytes);
      if (!parts) return false;
      a.sum = *std::move(parts);
    } else if (at("random")) lex_.take();
    else if (at("zero")) lex_.take(), a.byte = 0;
    else if (const auto byte = number("a byte", 0, 255)) a.byte = static_cast<std::uint8_t>(*byte);
    else return false;
  }
  actions_->push_back(std::move(a));
  return true;
}

/// `alloc gpu0.buf`, `map host.buf gpu1`: when a buffer exists, and who may reach it.
bool ScheduleParser::lifetime(Schedule::Action::Kind kind) {
  using Kind = Schedule::Action::Kind;
  const Token word = lex_.take();
  if (block_ == "kernel")
    return fail(word.at, quote(word) + " belongs in a host thread: kernels do not manage memory", "host main ... end");
  const auto r = ref(false);
  if (!r) return false;
  const auto* symbol = find_memory(r->text(), r->at, "memory");
  if (!symbol) return false;
  if (symbol->kind == Symbol::Kind::signal)
    return fail(r->at, quote(r->text()) + " is a signal, and only buffers are allocated, mapped and exported",
                "put the signal into a buffer: signal host.done value=0 at=host.pool[0]");
  if (auto wrong = wrong_lifetime(s_, kind, symbol->index)) return fail(r->at, wrong->message, wrong->hint);
  Schedule::Action a{.kind = kind, .buffer = link_buffer(symbol->index)};
  if (kind == Kind::map || kind == Kind::unmap) {
    const auto where = lex_.peek().at;
    if (at_line_end())
      return fail(lex_.behind(), "expected a GPU", "write " + std::string(word.text) + " " + r->text() + " gpu0");
    const auto p = place(nullptr);
    if (!p) return false;
    if (p->is_host()) return fail(where, "the host always has access to a buffer: name a GPU", "write gpu0, gpu1, ...");
    a.gpu = *p;
  }
  actions_->push_back(a);
  return true;
}

/// An expectation that a thread compares at this moment.
bool ScheduleParser::expect_now() {
  const Token begin = lex_.take();
  const auto r = ref(false);
  if (!r || !expectation(*r)) return false;
  const auto e = std::move(s_.expectations.back());
  s_.expectations.pop_back();
  if (e.kind != Schedule::Expectation::Kind::bytes)
    return fail(begin.at, "a thread compares bytes; a value of a signal is compared when all have ended",
                "write wait " + r->text() + " == ..., or put the expectation after the block");
  actions_->push_back(
      {.kind = Schedule::Action::Kind::expect, .range = e.left, .right = e.right, .old = e.old, .sum = e.sum});
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
  const auto known = names_.size(), samples = sampled_.size();
  ++repeats_;
  block(depth + 1);
  --repeats_;
  names_.forget(known);
  sampled_.forget(samples);
  actions_ = outer;
  actions_->push_back(std::move(a));
  close(begin);
  return !broken_;
}

}}}  // namespace sdma::v0_3::detail
