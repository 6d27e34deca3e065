// Parses declarations and expectations.
#include "extent.hpp"
#include "link.hpp"
#include "parser.hpp"
#include "sdma/core/nearest.hpp"

#include <bit>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

std::string tick(std::string_view s) { return "'" + std::string(s) + "'"; }

constexpr Number kMostBytes = kLinkStride;

}  // namespace

bool ScheduleParser::item(int depth) {
  const Token t = lex_.peek();
  const auto skip = [&] {
    lex_.skip_line();
    return true;
  };
  if (at("param")) return depth == 0 ? let(true) : (skip(), fail(t.at, "a param must be outside loops", "use let"));
  if (at("gpus")) return pass_ == Pass::define ? skip() : gpus();
  if (at("buffer")) return pass_ == Pass::define ? skip() : buffer();
  if (at("signal")) return pass_ == Pass::define ? skip() : signal();
  if (at("queue")) return queue();
  if (at("host")) return host();
  if (at("expect")) return pass_ == Pass::declare ? skip() : expect();
  lex_.skip_line();
  if (pass_ == Pass::define) return false;  // already reported
  incomplete_ = true;
  if (t.kind == Token::word && t.text == "end") return fail(t.at, "'end' without 'for', 'queue' or 'host'");
  if (t.kind == Token::word && t.text == "sdma") return fail(t.at, "the version appears only once, on the first line");
  std::string hint;
  Nearest nearest{t.text};
  for (const auto word : {"param", "let", "gpus", "buffer", "signal", "queue", "host", "expect", "for"})
    nearest.offer(word);
  if (find_packet(t.text)) hint = "packets belong in a queue: queue gpu0.name peer=gpu1 ... end";
  else if (!nearest.best().empty()) hint = "did you mean " + tick(nearest.best()) + "?";
  return fail(t.at, "expected a declaration or 'end', got " + quote(t), std::move(hint));
}

bool ScheduleParser::gpus() {
  const Token t = lex_.take();
  if (gpus_given_)
    return fail(t.at, "duplicate 'gpus'", "the first is on line " + std::to_string(source_.line(gpus_at_)));
  gpus_given_ = true;
  gpus_at_ = t.at;
  const auto n = number("gpus", 0, kMostGpus);
  if (n) s_.gpus = static_cast<std::uint32_t>(*n);
  return n.has_value();
}

/// NAME=... until the line ends. `fn(name, token)` reads what comes after the `=`.
template <class Fn>
bool ScheduleParser::fields(std::string_view what, std::string_view names, std::string_view required, Fn fn) {
  std::vector<std::string> given;
  while (!at_line_end()) {
    const Token t = lex_.take();
    if (t.kind != Token::word) return fail(t.at, "expected a field or the end of the line, got " + quote(t));
    if (!lex_.peek().is("=")) return fail(t.at, tick(t.text) + " needs a value", "its fields: " + std::string(names));
    for (const auto& g : given)
      if (g == t.text) return fail(t.at, "duplicate field " + tick(t.text));
    given.emplace_back(t.text);
    lex_.take();
    switch (fn(t)) {
      case Field::taken: break;
      case Field::failed: return false;
      case Field::unknown:
        return fail(t.at, std::string(what) + " has no field " + tick(t.text), "its fields: " + std::string(names));
    }
  }
  for (const auto& g : given)
    if (g == required) required = {};
  if (required.empty()) return true;
  return fail(lex_.behind(), std::string(what) + " needs " + tick(std::string(required) + "="),
              "its fields: " + std::string(names));
}

/// The ref itself, or, for gpu*, one per GPU.
template <class Fn> bool ScheduleParser::each_gpu(const Ref& r, Fn fn) {
  if (!r.all_gpus) return fn(r);
  bool ok = true;
  for (std::uint32_t g = 0; g < s_.gpus && ok; ++g) ok = fn(r.on(g));
  return ok;
}

bool ScheduleParser::declare(const Ref& r, Symbol::Kind kind, std::size_t index) {
  if (!room(r.at)) return false;
  const auto [there, added] = symbols_.emplace(r.text(), Symbol{kind, index, r.at});
  if (added) return true;
  return fail(r.at, tick(r.text()) + " is already declared", "it is declared " + declared(there->second));
}

/// Reads what comes after `at=`.
bool ScheduleParser::alias(Alias& a) {
  a.at = lex_.peek().at;
  a.context = context_;
  if (lex_.peek().kind == Token::word && !names_.find(lex_.peek().text)) {
    a.ref = ref(false);
    if (!a.ref) return false;
    const auto p = part();
    if (!p) return false;
    if (p->to) return fail(p->at, "expected one offset, got a range");
    a.offset = p->from;
    return true;
  }
  const auto v = parse_expression(lex_, names_, source_);
  if (!v) return false;
  if (*v < 0) return fail(a.at, "an address must be from 0 to 2^64 - 1, got " + to_string(*v));
  a.offset = *v;
  return true;
}

void ScheduleParser::resolve_aliases() {
  for (const auto& a : aliases_) {
    source_.set_context(a.context.empty() ? "" : a.context + "]");
    resolve(a);
  }
  source_.set_context("");
  // An alias may name another alias, but a cycle of aliases has no bytes.
  for (const auto& a : aliases_) {
    auto next = SymbolOffset{a.signal, a.index, 0};
    for (std::size_t steps = 0;; ++steps) {
      const auto& at = next.signal ? s_.signals[next.index].at : s_.buffers[next.index].at;
      const auto l = at ? find_symbol(s_, *at) : std::nullopt;
      if (!l) break;
      next = *l;
      if (steps <= aliases_.size()) continue;
      fail(a.at, "this alias leads back to itself");
      return;
    }
  }
}

void ScheduleParser::resolve(const Alias& a) {
  auto& to = a.signal ? s_.signals[a.index].at : s_.buffers[a.index].at;
  if (!a.ref) {
    to = GpuVa{static_cast<std::uint64_t>(a.offset)};
    if (const auto name = name_of(s_, *to); !name.empty())
      fail(a.at, name + " is linked at this address", "write the name instead of the number");
    return;
  }
  const auto va = address(a.ref->text(), a.offset, a.at, source_);
  if (!va) return;
  to = GpuVa{*va};
  const auto l = find_symbol(s_, *to);
  const auto bytes = bytes_of(s_, SymbolOffset{a.signal, a.index, 0});
  const auto* target = symbol_of(*l);
  if (bytes > bytes_of(s_, *l) - l->offset)
    fail(a.at, plain_bytes(bytes) + " bytes at " + name_of(s_, *to) + " end beyond " + a.ref->text(),
         a.ref->text() + " has " + plain_bytes(bytes_of(s_, *l)) + " bytes and is declared " +
             (target ? declared(*target) : ""));
}

bool ScheduleParser::buffer() {
  lex_.take();
  const auto r = ref(true);
  if (!r) return incomplete_ = true, false;
  Schedule::Buffer b;
  std::optional<Alias> also;
  const bool ok = fields("a buffer", "bytes align at map init", "bytes", [&](const Token& t) {
    const Token first = lex_.peek();
    const auto taken = [](bool good) { return good ? Field::taken : Field::failed; };
    if (t.text == "bytes") {
      const auto n = number("bytes", 1, kMostBytes);
      b.bytes = n.value_or(0);
      return taken(n.has_value());
    }
    if (t.text == "align") {
      const auto n = number("align", 1, Number{std::uint64_t{1} << 30});
      if (n && !std::has_single_bit(*n))
        return taken(fail(first.at, "'align' must be a power of two, got " + to_string(*n)));
      b.alignment = n.value_or(1);
      return taken(n.has_value());
    }
    if (t.text == "at") return taken(alias(also.emplace()));
    if (t.text == "map") {
      do {
        if (!b.map.empty()) lex_.take();
        const auto p = place(nullptr);
        if (!p) return Field::failed;
        b.map.push_back(*p);
      } while (lex_.peek().is(","));
      return Field::taken;
    }
    if (t.text == "init") {
      lex_.take();
      if (first.text == "random") b.init = Init::random;
      else if (first.text == "zero") b.init = Init::zero;
      else if (first.text != "poison")
        return taken(fail(first.at, quote(first) + " is not a value of 'init'", "write random, zero or poison"));
      return Field::taken;
    }
    return Field::unknown;
  });
  // A declaration with an error still declares its name, with a large size, so that its uses are not errors too.
  if (!ok) {
    b.bytes = kLinkStride;
    also.reset();
  }
  const bool known = each_gpu(*r, [&](const Ref& one) {
    b.place = one.place;
    b.name = one.name;
    s_.buffers.push_back(b);
    map_.buffers.push_back(location(one.at));
    if (also) {
      aliases_.push_back(*also);
      aliases_.back().index = s_.buffers.size() - 1;
    }
    return declare(one, Symbol::Kind::buffer, s_.buffers.size() - 1);
  });
  return ok && known;
}

bool ScheduleParser::signal() {
  lex_.take();
  const auto r = ref(true);
  if (!r) return incomplete_ = true, false;
  Schedule::Signal g;
  std::optional<Alias> also;
  Number value = 0;
  std::size_t value_at = 0;
  bool ok = fields("a signal", "value bits at", "value", [&](const Token& t) {
    const Token first = lex_.peek();
    const auto taken = [](bool good) { return good ? Field::taken : Field::failed; };
    if (t.text == "value") {
      value_at = first.at;
      const auto v = parse_expression(lex_, names_, source_);
      value = v.value_or(0);
      return taken(v.has_value());
    }
    if (t.text == "bits") {
      const auto n = number("bits", 32, 64);
      if (n && *n != 32 && *n != 64) return taken(fail(first.at, "'bits' must be 32 or 64, got " + to_string(*n)));
      g.bits = static_cast<std::uint32_t>(n.value_or(64));
      return taken(n.has_value());
    }
    if (t.text == "at") return taken(alias(also.emplace()));
    return Field::unknown;
  });
  const auto most = g.bits == 64 ? kMost : (Number{1} << 32) - 1;
  if (ok && (value > most || value < -(most / 2 + 1)))
    ok = fail(value_at, "this value does not fit in " + std::to_string(g.bits) + " bits: " + to_string(value));
  g.value = static_cast<std::uint64_t>(value) & static_cast<std::uint64_t>(most);
  const bool known = each_gpu(*r, [&](const Ref& one) {
    g.place = one.place;
    g.name = one.name;
    s_.signals.push_back(g);
    map_.signals.push_back(location(one.at));
    if (also) {
      aliases_.push_back(*also);
      aliases_.back().signal = true;
      aliases_.back().index = s_.signals.size() - 1;
    }
    return declare(one, Symbol::Kind::signal, s_.signals.size() - 1);
  });
  return ok && known;
}

bool ScheduleParser::queue() {
  const Token begin = lex_.take();
  if (pass_ == Pass::define) {
    lex_.skip_line();
    const auto known = names_.size();
    block_at_ = begin.at;
    queue_ = next_queue_ < s_.queues.size() ? &s_.queues[next_queue_++] : nullptr;
    if (queue_) {
      block(Block::queue, 1);
      check_boundaries(begin);
    } else {
      skip_body(Block::queue);
    }
    names_.forget(known);
    close(begin);
    return !broken_;
  }
  Schedule::Queue q;
  const auto r = ref(false);
  bool ok = r.has_value();
  if (ok && r->place.is_host())
    ok = fail(r->at, "a queue belongs to a GPU, got " + tick(r->text()), "write gpu0." + r->name);
  bool engine = false;
  if (ok)
    ok = fields("a queue", "peer or engine, ring", "", [&](const Token& t) {
      const Token first = lex_.peek();
      const auto taken = [](bool good) { return good ? Field::taken : Field::failed; };
      if (t.text == "peer") return taken((q.peer = place(nullptr)).has_value());
      if (t.text == "engine") {
        const auto n = number("engine", 0, 63);
        q.engine = static_cast<std::uint32_t>(n.value_or(0));
        return taken(engine = n.has_value());
      }
      if (t.text == "ring") {
        const auto n = number("ring", kMinRing, kMaxRing);
        if (n && !std::has_single_bit(*n))
          return taken(fail(first.at, "'ring' must be a power of two, got " + to_string(*n)));
        q.ring_bytes = n.value_or(0);
        return taken(n.has_value());
      }
      return Field::unknown;
    });
  if (ok && q.peer.has_value() == engine)
    ok =
        fail(lex_.behind(), engine ? "a queue has a peer or an engine, not both" : "a queue needs 'peer=' or 'engine='",
             "peer=gpu1 uses the engine that the node recommends for that link; engine=0 uses engine 0");
  if (r) {
    q.place = r->place;
    q.name = r->name;
    s_.queues.push_back(std::move(q));
    ok = declare(*r, Symbol::Kind::queue, s_.queues.size() - 1) && ok;
  } else {
    s_.queues.emplace_back();  // bodies are counted
    incomplete_ = true;
  }
  lex_.skip_line();
  skip_body(Block::queue);
  if (at("end")) lex_.take();
  else broken_ = true;  // the second pass reports it
  return ok;
}

bool ScheduleParser::expect() {
  lex_.take();
  const Token t = lex_.peek();
  if (!room(t.at)) return false;
  if (at("finding")) {
    lex_.take();
    const Token rule = lex_.take();
    if (rule.kind != Token::word)
      return fail(rule.at, "expected the id of a rule, got " + quote(rule),
                  "write one that sdma check --rules lists, such as race");
    std::string id(rule.text);
    while (lex_.peek().is("-") && lex_.peek().glued) {
      lex_.take();
      id += "-" + std::string(lex_.take().text);
    }
    s_.expectations.push_back({.kind = Schedule::Expectation::Kind::finding, .rule = id});
    return true;
  }
  const auto r = ref(true);
  if (!r) return false;
  const auto right = lex_.position();
  if (r->all_gpus && s_.gpus == 0) return fail(r->at, "there are no GPUs in this schedule", "declare them: gpus 2");
  return each_gpu(*r, [&](const Ref& one) {
    lex_.go(right);
    return expectation(one);
  });
}

bool ScheduleParser::expectation(const Ref& left) {
  const auto left_part = part();
  if (!left_part) return false;
  if (!lex_.peek().is("=="))
    return fail(lex_.peek().at, "expected '==', got " + quote(lex_.peek()), "write expect gpu1.out == old gpu0.in");
  lex_.take();
  const auto from = range(left, *left_part);
  const bool old = at("old");
  if (old) lex_.take();
  const Token t = lex_.peek();
  if (old || (t.kind == Token::word && !names_.find(t.text))) {
    auto r = ref(true);
    if (!r) return false;
    if (r->all_gpus) *r = Ref{false, left.place, r->name, r->at};
    const auto p = part();
    if (!p) return false;
    const auto to = range(*r, *p);
    return from && to && add_expectation(*from, *to, old, t.at);
  }
  if (!from) return false;
  const auto l = find_symbol(s_, from->va);
  if (!l->signal || left_part->given)
    return fail(left.at, "a number is compared with a signal, but " + tick(left.text()) + " names bytes of a buffer",
                "compare with other bytes: == old gpu0.in");
  const auto v = word_value(from->va, false);
  if (!v) return false;
  s_.expectations.push_back(
      {.kind = Schedule::Expectation::Kind::value, .left = *from, .value = static_cast<std::uint64_t>(v->constant)});
  return true;
}

bool ScheduleParser::add_expectation(const Schedule::Range& left, const Schedule::Range& right, bool old,
                                     std::size_t at) {
  const bool vague = left.bytes == kLinkStride || right.bytes == kLinkStride;
  if (left.bytes != right.bytes && !vague)
    return fail(at, plain_bytes(left.bytes) + " bytes are compared with " + plain_bytes(right.bytes),
                "write the same length on both sides: [0..+4K]");
  s_.expectations.push_back({.left = left, .right = right, .old = old});
  return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
