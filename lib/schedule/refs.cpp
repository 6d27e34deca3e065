// SPDX-License-Identifier: MIT
// Parses names with their places, and the offsets after them.
#include "../core/words.hpp"
#include "parser.hpp"
#include "sdma/core/number.hpp"
#include "symbols.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// The number of "gpu12".
std::optional<std::uint32_t> gpu_of(std::string_view s) noexcept {
  if (!s.starts_with("gpu")) return {};
  s.remove_prefix(3);
  const auto n = whole_number<std::uint32_t>(s);
  return n && *n < Place::kHost && (s.size() == 1 || s[0] != '0') ? n : std::nullopt;
}

}  // namespace

bool ScheduleParser::in_schedule(Place p, std::size_t at) {
  if (p.is_host() || p.index < s_.gpus) return true;
  if (gpus_lost_ || (!gpus_given_ && incomplete_)) return source_.follows(), false;
  const auto name = to_string(p);
  if (!gpus_given_)
    return fail(at, name + " is not in this schedule, which has no GPUs yet", "declare them first: gpus 2");
  return fail(at, name + " is not in this schedule: gpus " + std::to_string(s_.gpus),
              s_.gpus == 0   ? "there are no GPUs"
              : s_.gpus == 1 ? "gpu0 is the only one"
                             : "use gpu0 to gpu" + std::to_string(s_.gpus - 1));
}

/// "host", "gpu3"; with `all`, also "gpu*", which sets it.
std::optional<Place> ScheduleParser::place(bool* all) {
  const Token t = lex_.take();
  const auto word = t.kind == Token::word ? expand(t) : t.text;
  if (!word) return {};
  if (t.kind == Token::word && *word == "host") return Place::host();
  if (t.kind == Token::word && *word == "gpu" && lex_.peek().is("*") && lex_.peek().glued) {
    lex_.take();
    if (all) return *all = true, Place::gpu(0);
    return none(t.at, "'gpu*' is allowed only in buffer, signal and expect", "use a loop: for i in 0..N ... gpu{i}");
  }
  const auto n = t.kind == Token::word ? gpu_of(*word) : std::nullopt;
  if (!n)
    return none(t.at, "expected a place, got " + (t.kind == Token::word ? quote(*word) : quote(t)),
                "write host, gpu0, gpu1, ...");
  if (!in_schedule(Place::gpu(*n), t.at)) return {};
  return Place::gpu(*n);
}

std::optional<ScheduleParser::Ref> ScheduleParser::ref(bool all_allowed) {
  const Token t = lex_.peek();
  Ref r{.at = t.at};
  // A word without a place is the most common mistake, so it has its own message.
  if (t.kind == Token::word) {
    const auto behind = lex_.position();
    lex_.take();
    const bool place_follows = lex_.peek().is(".") || lex_.peek().is("*");
    const auto word = place_follows ? "" : expand(t);
    lex_.go(behind);
    if (!word) return {};
    if (!place_follows)
      return none(t.at, "expected a name with its place, got " + quote(*word),
                  fmt::format("a name includes its place: gpu0.{0} or host.{0}", *word));
  }
  const auto p = place(all_allowed ? &r.all_gpus : nullptr);
  if (!p) return {};
  r.place = *p;
  if (!lex_.peek().is(".") || !lex_.peek().glued) return expected("'.' and a name"), std::nullopt;
  lex_.take();
  const Token name = lex_.peek();
  if (name.kind != Token::word || !name.glued)
    return expected("a name after " + quote(to_string(*p) + ".")), std::nullopt;
  lex_.take();
  const auto full = expand(name);
  if (!full) return {};
  r.name = *full;
  return r;
}

std::string ScheduleParser::declared(const Symbol& s) const { return "on line " + std::to_string(source_.line(s.at)); }

const ScheduleParser::Symbol* ScheduleParser::symbol_of(const SymbolOffset& l) const {
  const auto found = memory_.find(name_of(s_, SymbolOffset{l.signal, l.index, 0}));
  return found == memory_.end() ? nullptr : &found->second;
}

/// Reports a name that is not declared, unless the first pass may have missed it. Returns null.
const ScheduleParser::Symbol* ScheduleParser::unknown(std::string_view ref, std::size_t at, const SymbolTable& names) {
  if (incomplete_) return nullptr;
  std::set<std::string_view> all;
  for (const auto& s : names) all.insert(s.first);
  fail(at, quote(ref) + " is not declared", suggestion(nearest(ref, all)));
  return nullptr;
}

const ScheduleParser::Symbol* ScheduleParser::find_queue(const Ref& r) {
  const auto name = r.text();
  if (const auto found = queues_.find(name); found != queues_.end()) return &found->second;
  const auto memory = memory_.find(name);
  if (memory == memory_.end()) return unknown(name, r.at, queues_);
  fail(r.at, quote(name) + " is not a queue", "it is declared " + declared(memory->second));
  return nullptr;
}

/// A buffer or a signal; `what`: what a queue of that name does not have.
const ScheduleParser::Symbol* ScheduleParser::find_memory(std::string_view ref, std::size_t at, std::string_view what) {
  if (const auto found = memory_.find(ref); found != memory_.end()) return &found->second;
  const auto queue = queues_.find(ref);
  if (queue == queues_.end()) return unknown(ref, at, memory_);
  fail(at, quote(ref) + " is a queue, which has no " + std::string(what), "it is declared " + declared(queue->second));
  return nullptr;
}

std::optional<Number> ScheduleParser::address(std::string_view ref, Number offset, std::size_t at) {
  const auto dot = ref.find('.');
  const auto where = ref.substr(0, dot);
  const auto gpu = gpu_of(where);
  if (where != "host" && !gpu) return none(at, "expected a place, got " + quote(where), "write host, gpu0, gpu1, ...");
  if (gpu && !in_schedule(Place::gpu(*gpu), at)) return {};
  const auto* symbol = find_memory(ref, at, "address");
  if (!symbol) return {};
  const auto l = symbol->offset();
  const auto bytes = bytes_of(s_, l);
  if (offset < 0 || offset > bytes) {
    const auto shown = offset < 0 ? to_string(offset) : size_text(static_cast<std::uint64_t>(offset));
    return none(at,
                std::string(ref) + "[" + shown + "] is out of bounds: " + std::string(ref) + " has " + size_text(bytes),
                std::string(ref) + " is declared " + declared(*symbol));
  }
  line_addresses_.push_back({l, at});
  return Number{link_address(l).value} + offset;
}

std::optional<GpuVa> ScheduleParser::signal_of(const Ref& r) {
  const auto* symbol = find_memory(r.text(), r.at, "value");
  if (!symbol) return {};
  if (symbol->kind == Symbol::Kind::signal) return link_signal(symbol->index);
  return none(r.at, quote(r.text()) + " is not a signal", "it is declared " + declared(*symbol));
}

std::optional<ScheduleParser::Part> ScheduleParser::part() {
  Part p{.at = lex_.peek().at};
  if (!lex_.peek().is("[")) return p;
  p.given = true;
  lex_.take();
  const auto from = expression();
  if (!from) return {};
  p.from = *from;
  if (lex_.peek().is("..")) {
    lex_.take();
    p.length = lex_.peek().is("+");
    if (p.length) lex_.take();
    p.to = expression();
    if (!p.to) return {};
  }
  return take("]") ? std::optional(p) : std::nullopt;
}

std::optional<Schedule::Range> ScheduleParser::range(const Ref& r, const Part& p) {
  const auto* symbol = find_memory(r.text(), r.at, "bytes");
  if (!symbol) return {};
  const auto l = symbol->offset();
  const auto base = link_address(l);
  const auto bytes = bytes_of(s_, l);
  if (!p.given) return Schedule::Range{base, bytes};
  if (!p.to)
    return none(p.at, "expected a range, got one offset", "write " + r.text() + "[0..+4K] or " + r.text() + "[0..4K]");
  const auto end = p.length ? p.from + *p.to : *p.to;
  if (p.from < 0 || end <= p.from || end > bytes)
    return none(p.at,
                "[" + to_string(p.from) + ".." + to_string(end) + "] is not a range of " + r.text() + ", which has " +
                    size_text(bytes),
                r.text() + " is declared " + declared(*symbol));
  return Schedule::Range{base + static_cast<std::uint64_t>(p.from), static_cast<std::uint64_t>(end - p.from)};
}

/// A value that a signal holds or is compared with. In a thread,
/// it may depend on a sample; in its repeats, on the epoch, too.
std::optional<ActionValue> ScheduleParser::word_value(GpuVa signal, Varies how) {
  const Token t = lex_.peek();
  const auto v =
      how == Varies::never ? constant(expression()) : linear(how == Varies::by_round ? Allow::both : Allow::sample);
  if (!v) return {};
  const auto bits = s_.signals[find_symbol(s_, signal)->index].bits;
  const auto first = word_bits(t.at, v->constant + v->factor, bits);
  if (!first) return {};
  // A constant is stored as the bits that the word has.
  const auto kept = v->factor == 0 ? *first : static_cast<std::uint64_t>(v->constant);
  ActionValue out{EpochValue{static_cast<std::int64_t>(v->factor), static_cast<std::int64_t>(kept)}};
  if (v->sample) {
    // What is added is signed, whatever the word's size: `n - 1` is not n + 0xffffffff.
    if (v->factor == 0) out.plus.constant = static_cast<std::int64_t>(v->constant);
    out.sample = v->sample->name;
  }
  return out;
}

/// The bits of a value, signed or unsigned, in a signal.
std::optional<std::uint64_t> ScheduleParser::word_bits(std::size_t at, Number v, std::uint32_t bits) {
  const auto most = (Number{1} << bits) - 1;
  if (v <= most && v >= -(most / 2 + 1)) return static_cast<std::uint64_t>(v) & static_cast<std::uint64_t>(most);
  return none(at, "this value does not fit in " + std::to_string(bits) + " bits: " + to_string(v));
}

}}}  // namespace sdma::v0_3::detail
