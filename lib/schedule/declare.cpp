// SPDX-License-Identifier: MIT
// Parses declarations and expectations.
#include "link.hpp"
#include "parser.hpp"
#include "sdma/core/number.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <bit>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Stores a number if it is one. Returns whether it is.
template <class T> bool set(T& to, const std::optional<std::uint64_t>& n) {
  if (n) to = static_cast<T>(*n);
  return n.has_value();
}

}  // namespace

bool ScheduleParser::item(int depth) {
  const Token t = lex_.peek();
  const auto skip = [&] {
    lex_.skip_line();
    return true;
  };
  if (at("param")) return depth == 0 ? param() : (skip(), fail(t.at, "a param must be outside loops", "use let"));
  if (at("gpus")) return pass_ == Pass::define ? skip() : gpus();
  if (at("buffer")) return pass_ == Pass::define ? skip() : buffer();
  if (at("signal")) return pass_ == Pass::define ? skip() : signal();
  if (at("queue")) return queue();
  if (at("host")) return host();
  if (at("kernel")) return kernel();
  if (at("expect")) return pass_ == Pass::declare ? skip() : expect();
  if (pass_ == Pass::define) return lex_.skip_line(), false;  // already reported
  incomplete_ = true;
  if (at("end")) return skip(), fail(t.at, "'end' without 'for', 'if', 'queue', 'host' or 'kernel'");
  if (at("sdma")) return skip(), fail(t.at, "the version appears only once, on the first line");
  const std::string_view words[] = {"param", "let",  "require", "choose", "gpus", "buffer", "signal",
                                    "queue", "host", "kernel",  "expect", "for",  "if",     "when"};
  lex_.take();
  const bool assigned = t.kind == Token::word && lex_.peek().is("=");
  const bool loops = std::find(kLoopHabits.begin(), kLoopHabits.end(), t.text) != kLoopHabits.end();
  const auto habit = loops ? kLoopForm : meant_by(t.text, kLineHabits);
  fail(t.at, "expected a declaration or 'end', got " + quote(t),
       find_packet(t.text) ? "packets belong in a queue: queue gpu0.name peer=gpu1 ... end"
       : assigned          ? "a name needs let or param: let " + std::string(t.text) + " = ..."
       : !habit.empty()    ? std::string(habit)
                           : suggestion(nearest(t.text, words)));
  if (assigned) names_.lose(t.text);
  lex_.skip_line();
  if (!loops) return false;
  // Its `end` is not one too many.
  skip_body();
  if (at("end")) lex_.take();
  return false;
}

bool ScheduleParser::gpus() {
  const Token t = lex_.take();
  if (gpus_given_)
    return fail(t.at, "duplicate 'gpus'", "the first is on line " + std::to_string(source_.line(gpus_at_)));
  gpus_given_ = true;
  gpus_at_ = t.at;
  const auto errors = source_.count();
  gpus_lost_ = !set(s_.gpus, number("gpus", 0, Schedule::kMostGpus));
  source_.advise(errors, "write gpus 8");
  return !gpus_lost_;
}

/// Adds a buffer or a signal, or, for gpu*, one per GPU.
template <class T>
bool ScheduleParser::declare(const Ref& r, Symbol::Kind kind, std::vector<T>& all,
                             std::vector<SourceMap::Location>& locations, const T& symbol,
                             const std::optional<Alias>& also) {
  return each_gpu(r, [&](const Ref& one) {
    const auto index = all.size();
    all.push_back(symbol);
    all.back().place = one.place;
    all.back().name = one.name;
    if (options_.map) locations.push_back(location(one.at));
    if (also) {
      aliases_.push_back(*also);
      aliases_.back().symbol = {kind == Symbol::Kind::signal, index, 0};
    }
    return declare(one, kind, index);
  });
}

bool ScheduleParser::declare(const Ref& r, Symbol::Kind kind, std::size_t index) {
  if (!room(r.at)) return false;
  if (complete_ && pass_ == Pass::both) return fail(r.at, "it is declared after it may have been used");
  auto& names = kind == Symbol::Kind::queue ? queues_ : memory_;
  const auto [there, added] = names.emplace(r.text(), Symbol{kind, index, r.at});
  if (added) return true;
  return fail(r.at, quote(r.text()) + " is already declared", "it is declared " + declared(there->second));
}

std::optional<std::uint64_t> ScheduleParser::power_of_two(std::string_view what, std::uint64_t least,
                                                          std::uint64_t most) {
  const auto at = lex_.position();
  const auto n = number(what, least, most);
  if (!n || std::has_single_bit(*n)) return n;
  return none(at, quote(what) + " must be a power of two, got " + to_string(*n));
}

/// Reads what comes after `at=`.
bool ScheduleParser::alias(Alias& a) {
  a.at = lex_.peek().at;
  if (pass_ == Pass::both) return fail(a.at, "an alias is looked up when all names are known");
  a.context = context();
  if (lex_.peek().kind == Token::word && !names_.entry(lex_.peek())) {
    a.ref = ref(false);
    if (!a.ref) return false;
    const auto p = part();
    if (!p) return false;
    if (p->to) return fail(p->at, "expected one offset, got a range");
    a.offset = p->from;
    return true;
  }
  const auto v = expression();
  if (!v) return false;
  if (*v < 0) return fail(a.at, "an address must be from 0 to 2^64 - 1, got " + to_string(*v));
  a.offset = *v;
  return true;
}

void ScheduleParser::resolve_aliases() {
  for (const auto& a : aliases_) {
    source_.set_context([&a] { return a.context; });
    resolve(a);
  }
  source_.set_context([this] { return context(); });
  for (const auto& a : aliases_)
    if (const auto wrong = wrong_alias(s_, a.symbol); !wrong.empty()) {
      fail(a.at, std::string(wrong));
      return;
    }
}

void ScheduleParser::resolve(const Alias& a) {
  auto& to = a.symbol.signal ? s_.signals[a.symbol.index].at : s_.buffers[a.symbol.index].at;
  if (!a.ref) {
    to = GpuVa{static_cast<std::uint64_t>(a.offset)};
    if (const auto name = name_of(s_, *to); !name.empty())
      fail(a.at, name + " is linked at this address", "write the name instead of the number");
    return;
  }
  const auto va = address(a.ref->text(), a.offset, a.at);
  if (!va) return;
  to = GpuVa{static_cast<std::uint64_t>(*va)};
  const auto l = find_symbol(s_, *to);
  const auto bytes = bytes_of(s_, a.symbol);
  const auto* target = symbol_of(*l);
  if (bytes > bytes_of(s_, *l) - l->offset)
    fail(a.at, size_text(bytes) + " bytes at " + name_of(s_, *to) + " end beyond " + a.ref->text(),
         a.ref->text() + " has " + size_text(bytes_of(s_, *l)) + " bytes and is declared " +
             (target ? declared(*target) : ""));
}

bool ScheduleParser::buffer() {
  lex_.take();
  const auto r = ref(true);
  if (!r) return incomplete_ = true, false;
  Schedule::Buffer b;
  std::optional<Alias> also;
  const bool ok = fields("a buffer", "bytes align at map init", "bytes", [&](const Token& t) -> std::optional<bool> {
    const Token first = lex_.peek();
    if (t.is_word("bytes")) return set(b.bytes, number("bytes", 1, kLinkStride));
    if (t.is_word("align")) return set(b.alignment, power_of_two("align", 1, std::uint64_t{1} << 30));
    if (t.is_word("at")) return alias(also.emplace());
    if (t.is_word("map")) {
      do {
        if (!b.map.empty()) lex_.take();
        const auto p = place(nullptr);
        if (!p) return false;
        if (std::find(b.map.begin(), b.map.end(), *p) != b.map.end())
          return fail(first.at, to_string(*p) + " appears twice in 'map'");
        b.map.push_back(*p);
      } while (lex_.peek().is(","));
      return true;
    }
    if (t.is_word("init")) {
      lex_.take();
      if (first.text == "random") b.init = Init::random;
      else if (first.text == "zero") b.init = Init::zero;
      else if (first.text != "poison")
        return fail(first.at, quote(first) + " is not a value of 'init'", "write random, zero or poison");
      return true;
    }
    return {};
  });
  // A declaration with an error still declares its name, with a large size, so that its uses are not errors too.
  if (!ok) {
    b.bytes = kLinkStride;
    also.reset();
  }
  return declare(*r, Symbol::Kind::buffer, s_.buffers, map_.buffers, b, also) && ok;
}

bool ScheduleParser::signal() {
  lex_.take();
  const auto r = ref(true);
  if (!r) return incomplete_ = true, false;
  Schedule::Signal g;
  std::optional<Alias> also;
  Number value = 0;
  std::size_t value_at = 0;
  const bool ok = fields("a signal", "value bits at", "value",
                         [&](const Token& t) -> std::optional<bool> {
                           const Token first = lex_.peek();
                           if (t.is_word("value")) {
                             value_at = first.at;
                             const auto v = expression();
                             value = v.value_or(0);
                             return v.has_value();
                           }
                           if (t.is_word("bits")) {
                             const auto n = expression();
                             if (!n) return false;
                             if (*n != 32 && *n != 64)
                               return fail(first.at, "'bits' must be 32 or 64, got " + to_string(*n));
                             g.bits = *n == 32 ? 32 : 64;
                             return true;
                           }
                           if (t.is_word("at")) return alias(also.emplace());
                           return {};
                         }) &&
                  set(g.value, word_bits(value_at, value, g.bits));
  return declare(*r, Symbol::Kind::signal, s_.signals, map_.signals, g, also) && ok;
}

bool ScheduleParser::queue() {
  const Token begin = lex_.take();
  if (pass_ == Pass::define) {
    // After an error, the first pass may have left a loop early.
    if (next_queue_ == s_.queues.size()) return skip_inner(begin), false;
    return packets(begin);
  }
  Schedule::Queue q;
  const auto r = ref(false);
  bool ok = r.has_value();
  if (ok && r->place.is_host())
    ok = fail(r->at, "a queue belongs to a GPU, got " + quote(r->text()), "write gpu0." + r->name);
  constexpr auto kQueueFields = "peer, from, network or engine, ring, doorbell";
  bool engine = false, peer = false;
  if (ok)
    ok = fields("a queue", kQueueFields, "", [&](const Token& t) -> std::optional<bool> {
      if (t.is_word("peer")) return peer = (q.peer = place(nullptr)).has_value();
      if (t.is_word("from")) {
        const auto at = lex_.peek().at;
        const auto from = place(nullptr);
        if (!from) return false;
        if (!from->is_host())
          return fail(at, "'from' is for the host: one engine serves both directions of a link between GPUs",
                      "write peer=" + to_string(*from));
        q.peer = from;
        return q.from_host = true;
      }
      if (t.is_word("network")) {
        const auto n = number("network", 0, 1);
        q.network = n == 1u;
        return n.has_value();
      }
      if (t.text == "doorbell") {
        const auto word = lex_.take();
        if (word.kind != Token::word || word.text != "each")
          return fail(word.at, "'doorbell' cannot be " + quote(word), "write doorbell=each, or omit it");
        return q.doorbell_each = true;
      }
      if (t.is_word("engine")) {
        const auto n = number("engine", -1, 63);
        engine = n && *n <= 63;
        if (engine) q.engine = static_cast<std::uint32_t>(*n);
        return n.has_value();
      }
      if (t.is_word("ring")) {
        const auto at = lex_.position();
        if (const auto n = expression(); n && *n == 0) return true;
        lex_.go(at);
        return set(q.ring_bytes, power_of_two("ring", kMinRing, kMaxRing));
      }
      return {};
    });
  if (ok && peer && q.from_host)
    ok = fail(lex_.behind(), "a queue has a peer or reads from the host, not both",
              "from=host uses the engine that reads from the host; peer=host the one that writes to it");
  if (ok && q.network && (!peer || engine || q.peer->is_host() || q.peer == r->place))
    ok = fail(lex_.behind(), "the network leads to another GPU, and no engine executes the queue",
              "write peer=gpu8 network=1: the bytes go to memory of its node");
  if (ok && !q.peer && !engine)
    ok = fail(lex_.behind(), "a queue needs 'peer=' or 'engine='",
              "peer=gpu1 uses the engine that the node recommends for that link; engine=0 uses engine 0");
  if (ok && engine && q.from_host)
    ok = fail(lex_.behind(), "a queue reads from the host or has an engine, not both",
              "from=host uses the engine that the node recommends for that; engine=0 uses engine 0");
  if (engine) q.peer.reset();
  if (r) {
    q.place = r->place;
    q.name = r->name;
    s_.queues.push_back(std::move(q));
    ok = declare(*r, Symbol::Kind::queue, s_.queues.size() - 1) && ok;
  } else {
    s_.queues.emplace_back();  // bodies are counted
    incomplete_ = true;
  }
  if (pass_ == Pass::both && ok) return packets(begin);
  skip_inner(begin);
  return ok;
}

/// The body of the next queue.
bool ScheduleParser::packets(const Token& begin) {
  lex_.skip_line();
  queue_ = &s_.queues[next_queue_++];
  if (options_.map) map_.packets.resize(next_queue_);
  body(begin);
  check_boundaries(begin);
  queue_ = nullptr;
  return !broken_;
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
  if (!lex_.peek().is("==")) return expected("'=='", "write expect gpu1.out == old gpu0.in");
  lex_.take();
  const auto from = range(left, *left_part);
  const bool old = at("old");
  if (old) lex_.take();
  const Token t = lex_.peek();
  if (at("sum")) {
    auto parts = from ? sum(from->bytes) : std::nullopt;
    if (parts) s_.expectations.push_back({.left = *from, .old = old, .sum = *std::move(parts)});
    return parts.has_value();
  }
  if (old || (t.kind == Token::word && !names_.entry(t))) {
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
    return fail(left.at, "a number is compared with a signal, but " + quote(left.text()) + " names bytes of a buffer",
                "compare with other bytes: == old gpu0.in");
  const auto v = word_value(from->va, Varies::never);
  if (!v) return false;
  s_.expectations.push_back({.kind = Schedule::Expectation::Kind::value,
                             .left = *from,
                             .value = static_cast<std::uint64_t>(v->plus.constant)});
  return true;
}

bool ScheduleParser::add_expectation(const Schedule::Range& left, const Schedule::Range& right, bool old,
                                     std::size_t at) {
  const bool vague = left.bytes == kLinkStride || right.bytes == kLinkStride;
  if (left.bytes != right.bytes && !vague)
    return fail(at, size_text(left.bytes) + " bytes are compared with " + size_text(right.bytes),
                "write the same length on both sides: [0..+4K]");
  s_.expectations.push_back({.left = left, .right = right, .old = old});
  return true;
}

}}}  // namespace sdma::v0_3::detail
