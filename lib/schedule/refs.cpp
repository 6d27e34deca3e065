// Parses names with their places, and the offsets after them.
#include "extent.hpp"
#include "parser.hpp"
#include "sdma/core/nearest.hpp"

#include <charconv>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

std::string tick(std::string_view s) { return "'" + std::string(s) + "'"; }

/// The number of "gpu12".
std::optional<std::uint32_t> gpu_of(std::string_view s) noexcept {
  if (!s.starts_with("gpu")) return {};
  s.remove_prefix(3);
  std::uint32_t n = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  const bool plain = error == std::errc{} && end == s.data() + s.size() && (s.size() == 1 || s[0] != '0');
  return plain && n < Place::kHost ? std::optional(n) : std::nullopt;
}

}  // namespace

bool ScheduleParser::in_schedule(Place p, std::size_t at) {
  if (p.is_host() || p.index < s_.gpus) return true;
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
  const auto word = t.kind == Token::word ? expand(t, names_, source_) : std::optional<std::string>(t.text);
  if (!word) return {};
  if (t.kind == Token::word && *word == "host") return Place::host();
  if (t.kind == Token::word && *word == "gpu" && lex_.peek().is("*") && lex_.peek().glued) {
    lex_.take();
    if (all) return *all = true, Place::gpu(0);
    fail(t.at, "'gpu*' is allowed only in buffer, signal and expect", "use a loop: for i in 0..N ... gpu{i}");
    return {};
  }
  const auto n = t.kind == Token::word ? gpu_of(*word) : std::nullopt;
  if (!n) {
    fail(t.at, "expected a place, got " + (t.kind == Token::word ? tick(*word) : quote(t)),
         "write host, gpu0, gpu1, ...");
    return {};
  }
  if (!in_schedule(Place::gpu(*n), t.at)) return {};
  return Place::gpu(*n);
}

std::optional<ScheduleParser::Ref> ScheduleParser::ref(bool all_allowed) {
  const auto at = lex_.peek().at;
  Ref r{.at = at};
  const Token t = lex_.peek();
  // A word without a place is the most common mistake, so it has its own message.
  if (t.kind == Token::word) {
    const auto behind = lex_.position();
    lex_.take();
    const bool place_follows = lex_.peek().is(".") || lex_.peek().is("*");
    const auto word = place_follows ? std::string() : expand(t, names_, source_);
    lex_.go(behind);
    if (!place_follows) {
      if (word)
        fail(at, "expected a name with its place, got " + tick(*word),
             "a name includes its place: gpu0." + *word + " or host." + *word);
      return {};
    }
  }
  const auto p = place(all_allowed ? &r.all_gpus : nullptr);
  if (!p) return {};
  r.place = *p;
  if (!lex_.peek().is(".") || !lex_.peek().glued)
    return fail(lex_.peek().at, "expected '.' and a name, got " + quote(lex_.peek())), std::nullopt;
  lex_.take();
  const Token name = lex_.peek();
  if (name.kind != Token::word || !name.glued)
    return fail(name.at, "expected a name after '" + to_string(*p) + ".', got " + quote(name)), std::nullopt;
  lex_.take();
  const auto full = expand(name, names_, source_);
  if (!full) return {};
  r.name = *full;
  return r;
}

std::string ScheduleParser::declared(const Symbol& s) const { return "on line " + std::to_string(source_.line(s.at)); }

const ScheduleParser::Symbol* ScheduleParser::symbol_of(const SymbolOffset& l) const {
  const auto found = symbols_.find(name_of(s_, SymbolOffset{l.signal, l.index, 0}));
  return found == symbols_.end() ? nullptr : &found->second;
}

/// Reports a name that is not declared, unless the first pass may have missed it.
const ScheduleParser::Symbol* ScheduleParser::find(std::string_view ref, std::size_t at) {
  const auto found = symbols_.find(ref);
  if (found != symbols_.end()) return &found->second;
  if (incomplete_) return nullptr;
  Nearest nearest{ref};
  for (const auto& [name, s] : symbols_) nearest.offer(name);
  std::string hint;
  if (!nearest.best().empty()) hint = "did you mean " + tick(nearest.best()) + "?";
  fail(at, tick(ref) + " is not declared", std::move(hint));
  return nullptr;
}

std::optional<std::uint64_t> ScheduleParser::address(std::string_view ref, Number offset, std::size_t at, Source&) {
  const auto dot = ref.find('.');
  const auto where = ref.substr(0, dot);
  const auto gpu = gpu_of(where);
  if (where != "host" && !gpu) {
    fail(at, "expected a place, got " + tick(where), "write host, gpu0, gpu1, ...");
    return {};
  }
  if (gpu && !in_schedule(Place::gpu(*gpu), at)) return {};
  const auto* symbol = find(ref, at);
  if (!symbol) return {};
  if (symbol->kind == Symbol::Kind::queue) {
    fail(at, tick(ref) + " is a queue, which has no address", "it is declared " + declared(*symbol));
    return {};
  }
  const SymbolOffset l{symbol->kind == Symbol::Kind::signal, symbol->index, 0};
  const auto bytes = bytes_of(s_, l);
  if (offset < 0 || offset > bytes) {
    const auto shown = offset < 0 ? to_string(offset) : plain_bytes(static_cast<std::uint64_t>(offset));
    fail(at, std::string(ref) + "[" + shown + "] is out of bounds: " + std::string(ref) + " has " + plain_bytes(bytes),
         std::string(ref) + " is declared " + declared(*symbol));
    return {};
  }
  line_addresses_.push_back({l, at});
  const auto base = l.signal ? link_signal(l.index) : link_buffer(l.index);
  return (base + static_cast<std::uint64_t>(offset)).value;
}

std::optional<GpuVa> ScheduleParser::signal_of(const Ref& r) {
  const auto* symbol = find(r.text(), r.at);
  if (!symbol) return {};
  if (symbol->kind == Symbol::Kind::signal) return link_signal(symbol->index);
  fail(r.at, tick(r.text()) + " is not a signal", "it is declared " + declared(*symbol));
  return {};
}

std::optional<ScheduleParser::Part> ScheduleParser::part() {
  Part p{.at = lex_.peek().at};
  if (!lex_.peek().is("[")) return p;
  p.given = true;
  lex_.take();
  const auto from = parse_expression(lex_, names_, source_);
  if (!from) return {};
  p.from = *from;
  if (lex_.peek().is("..")) {
    lex_.take();
    p.length = lex_.peek().is("+");
    if (p.length) lex_.take();
    p.to = parse_expression(lex_, names_, source_);
    if (!p.to) return {};
  }
  if (!lex_.peek().is("]")) return fail(lex_.peek().at, "expected ']', got " + quote(lex_.peek())), std::nullopt;
  lex_.take();
  return p;
}

std::optional<Schedule::Range> ScheduleParser::range(const Ref& r, const Part& p) {
  const auto* symbol = find(r.text(), r.at);
  if (!symbol) return {};
  if (symbol->kind == Symbol::Kind::queue) {
    fail(r.at, tick(r.text()) + " is a queue, which has no bytes", "it is declared " + declared(*symbol));
    return {};
  }
  const SymbolOffset l{symbol->kind == Symbol::Kind::signal, symbol->index, 0};
  const auto base = l.signal ? link_signal(l.index) : link_buffer(l.index);
  const auto bytes = bytes_of(s_, l);
  if (!p.given) return Schedule::Range{base, bytes};
  if (!p.to) {
    fail(p.at, "expected a range, got one offset", "write " + r.text() + "[0..+4K] or " + r.text() + "[0..4K]");
    return {};
  }
  const auto end = p.length ? p.from + *p.to : *p.to;
  if (p.from < 0 || end <= p.from || end > bytes) {
    fail(p.at,
         "[" + to_string(p.from) + ".." + to_string(end) + "] is not a range of " + r.text() + ", which has " +
             plain_bytes(bytes),
         r.text() + " is declared " + declared(*symbol));
    return {};
  }
  return Schedule::Range{base + static_cast<std::uint64_t>(p.from), static_cast<std::uint64_t>(end - p.from)};
}

std::optional<std::uint64_t> ScheduleParser::number(std::string_view what, Number least, Number most) {
  const Token t = lex_.peek();
  const auto v = parse_expression(lex_, names_, source_);
  if (!v) return {};
  if (*v >= least && *v <= most) return static_cast<std::uint64_t>(*v);
  fail(t.at, tick(what) + " must be from " + to_string(least) + " to " + to_string(most) + ", got " + to_string(*v));
  return {};
}

/// A value that a signal holds or is compared with; with `epoch`, one that may depend on it.
std::optional<EpochValue> ScheduleParser::word_value(GpuVa signal, bool epoch) {
  const Token t = lex_.peek();
  const auto constant = epoch ? std::nullopt : parse_expression(lex_, names_, source_);
  const auto v = epoch      ? parse_linear(lex_, names_, source_)
                 : constant ? std::optional<Linear>(Linear{*constant})
                            : std::nullopt;
  if (!v) return {};
  const auto bits = s_.signals[find_symbol(s_, signal)->index].bits;
  const auto most = bits == 64 ? kMost : (Number{1} << 32) - 1;
  constexpr auto kWidest = Number{1} << 62;
  const auto first = v->constant + v->factor;
  if (first > most || first < -(most / 2 + 1)) {
    fail(t.at, "this value does not fit in " + std::to_string(bits) + " bits: " + to_string(first));
    return {};
  }
  if (v->factor != 0)
    for (const auto part : {v->constant, v->factor})
      if (part < -kWidest || part > kWidest) {
        fail(t.at, "the constant and the factor of a value that depends on the epoch must fit in 62 bits, got " +
                       to_string(part));
        return {};
      }
  // A constant is stored as the bits that the word has.
  const auto kept = v->factor == 0 ? static_cast<std::uint64_t>(v->constant) & static_cast<std::uint64_t>(most)
                                   : static_cast<std::uint64_t>(v->constant);
  return EpochValue{static_cast<std::int64_t>(v->factor), static_cast<std::int64_t>(kept)};
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
