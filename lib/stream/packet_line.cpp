#include "packet_line.hpp"

#include "print.hpp"
#include "sdma/core/nearest.hpp"

#include <algorithm>
#include <charconv>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

constexpr auto kByName = [] {
  std::array<std::uint8_t, kPackets.size()> order{};
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
  std::sort(order.begin(), order.end(), [](auto a, auto b) { return kPackets[a].name < kPackets[b].name; });
  return order;
}();

const FieldInfo* find_field(const PacketInfo& info, std::string_view name) noexcept {
  for (const auto& f : info.fields)
    if (f.name == name) return &f;
  return nullptr;
}
std::uint32_t bit(const PacketInfo& info, const FieldInfo& f) noexcept { return 1u << (&f - info.fields.data()); }

std::string names_of_fields(const PacketInfo& info, bool required_only) {
  std::string s;
  for (const auto& f : info.fields)
    if (!required_only || !f.optional) s.append(s.empty() ? "" : " ").append(f.name);
  if (skips(info) && !required_only) s.append(" ").append(kSkipped);
  return s;
}
std::string tick(std::string_view s) { return "'" + std::string(s) + "'"; }

std::string plain(Number v) {
  char buffer[kNumber];
  if (v < 0) return to_string(v);
  return {buffer, put_bytes(buffer, static_cast<std::uint64_t>(v))};
}

/// Says what owns this bit of a packet: a field, or the pattern.
std::string owner(const PacketInfo& info, std::size_t dword, unsigned b) {
  for (const auto& f : info.fields) {
    const auto first = f.dword * 32u + f.lo, last = f.dword * 32u + f.hi, at = static_cast<unsigned>(dword) * 32 + b;
    if (first <= at && at <= last) return "it belongs to " + tick(f.name);
  }
  return "it identifies the packet as " + std::string(info.name);
}

}  // namespace

const PacketInfo* find_packet(std::string_view name) noexcept {
  const auto at =
      std::lower_bound(kByName.begin(), kByName.end(), name, [](auto i, auto n) { return kPackets[i].name < n; });
  return at != kByName.end() && kPackets[*at].name == name ? &kPackets[*at] : nullptr;
}

bool PacketLines::fail(std::size_t at, std::string message, std::string hint) {
  source_.error(at, std::move(message), std::move(hint));
  return false;
}

bool PacketLines::parse(Lexer& lex, std::string_view expected, std::vector<std::uint32_t>& out, std::size_t room) {
  const Token begin = lex.take();
  if (begin.is(".") && lex.peek().glued && lex.peek().text == "dword") {
    lex.take();
    return dwords(lex, out, room);
  }
  const auto name = begin.kind == Token::word ? expand(begin, names_, source_) : std::string(begin.text);
  if (!name) {
    lex.skip_line();
    return false;
  }
  const auto* info = find_packet(*name);
  if (info && !info->recognised_only) return packet(lex, *info, out, room);

  lex.skip_line();
  if (info)
    return fail(begin.at, "the fields of " + std::string(info->name) + " are not known",
                "write its dwords: .dword 0x...");
  Nearest nearest{*name};
  for (const auto& p : kPackets)
    if (!p.recognised_only) nearest.offer(p.name);
  nearest.offer(".dword");
  const auto shown = begin.kind == Token::word ? tick(*name) : quote(begin);
  return fail(begin.at, "expected " + std::string(expected) + ", got " + shown,
              nearest.best().empty() ? "" : "did you mean " + tick(nearest.best()) + "?");
}

bool PacketLines::dwords(Lexer& lex, std::vector<std::uint32_t>& out, std::size_t room) {
  const auto begin = out.size(), errors = source_.count();
  Line line;
  while (lex.peek().kind != Token::line && lex.peek().kind != Token::end) {
    const Token t = lex.peek();
    if (t.kind == Token::word && t.text == "times") {
      lex.take();
      if (!times(lex, t, line)) resynchronise(lex);
      continue;
    }
    const auto v = parse_primary(lex, names_, source_);
    if (!v) break;
    if (*v < 0 || *v > 0xffffffff) fail(t.at, "a dword must be from 0 to 0xffffffff, got " + to_string(*v));
    else if (out.size() - begin < room) out.push_back(static_cast<std::uint32_t>(*v));
    else too_many(t.at, room);
  }
  lex.skip_line();
  const auto n = out.size() - begin;
  if (errors == source_.count() && n == 0) fail(lex.behind(), "expected a dword");
  if (errors == source_.count() && n * (line.times - 1) > room - n) too_many(lex.behind(), room);
  if (errors != source_.count()) {
    out.resize(begin);
    return false;
  }
  out.reserve(begin + n * line.times);
  for (std::size_t i = n; i < n * line.times; ++i) out.push_back(out[begin + i - n]);
  return true;
}

bool PacketLines::packet(Lexer& lex, const PacketInfo& info, std::vector<std::uint32_t>& out, std::size_t room) {
  Line line;
  line.info = &info;
  for (std::size_t i = 0; i < Pattern::kDwords && i < info.head; ++i) line.head[i] = info.pattern.value[i];
  for (const auto& f : info.fields)
    if (f.kind != Kind::payload && f.optional) store(f, (f.fallback - f.bias) & f.mask(), line.head.data());

  const auto errors = source_.count();
  while (lex.peek().kind != Token::line && lex.peek().kind != Token::end)
    if (!item(lex, line, room)) resynchronise(lex);
  if (errors != source_.count()) return false;
  return complete(lex, line) && append(lex, line, out, room);
}

/// After an error, skips to the next `name=` or `name|=` of the line.
void PacketLines::resynchronise(Lexer& lex) {
  while (lex.peek().kind != Token::line && lex.peek().kind != Token::end) {
    const bool word = lex.peek().kind == Token::word;
    const auto at = lex.position();
    lex.take();
    if (word && (lex.peek().is("=") || lex.peek().is("|="))) return lex.go(at);
  }
}

bool PacketLines::item(Lexer& lex, Line& line, std::size_t room) {
  const Token t = lex.take();
  if (t.kind != Token::word) return fail(t.at, "expected a field or the end of the line, got " + quote(t));
  const auto name = expand(t, names_, source_);
  if (!name) return false;
  if (lex.peek().is("|=")) return reserved(lex, t, *name, line);
  if (!lex.peek().is("=")) return flag(t, *name, line);
  if (*name == "times") return times(lex, t, line);
  lex.take();
  return field(lex, t, *name, line, room);
}

bool PacketLines::flag(const Token& t, std::string_view name, Line& line) {
  const auto* f = find_field(*line.info, name);
  if (!f) {
    Nearest nearest{name};
    for (const auto& g : line.info->fields) nearest.offer(g.name);
    const auto best = nearest.best();
    auto hint = names_of_fields(*line.info, false);
    hint = hint.empty() ? "it has none" : "its fields: " + hint;
    return fail(t.at, std::string(line.info->name) + " has no field " + tick(name),
                best.empty() ? hint : "did you mean " + tick(best) + "? " + hint);
  }
  if (f->kind != Kind::flag)
    return fail(t.at, tick(name) + " needs a value", "write " + std::string(name) + "=...: " + std::string(f->doc));
  if (line.given & bit(*line.info, *f)) return fail(t.at, "duplicate field " + tick(name));
  line.given |= bit(*line.info, *f);
  store(*f, 1, line.head.data());
  return true;
}

bool PacketLines::field(Lexer& lex, const Token& t, std::string_view name, Line& line, std::size_t room) {
  const auto& info = *line.info;
  if (skips(info) && name == kSkipped) {
    if (line.payload_given) return fail(t.at, "duplicate field " + tick(name));
    const auto most = info.counted->mask() + info.counted->bias - info.head;
    return list(lex, name, std::min<std::size_t>(most, room), line);
  }
  const auto* f = find_field(info, name);
  if (!f) return flag(t, name, line);
  if (f->kind == Kind::flag)
    return fail(t.at, tick(name) + " is a flag", "write " + tick(name) + " alone: present is 1, absent is 0");
  if (line.given & bit(info, *f)) return fail(t.at, "duplicate field " + tick(name));
  line.given |= bit(info, *f);

  const Token first = lex.peek();
  if (f->kind == Kind::payload) {
    const auto most = (f->mask() + f->bias) * info.stride;
    return list(lex, name, std::min<std::size_t>(most, room), line) && payload_counts(first, *f, line);
  }
  if (f->kind == Kind::address) {
    const auto a = address(lex);
    if (!a || !in_range(first, *f, *a)) return false;
    store(*f, (static_cast<std::uint64_t>(*a) - f->bias) & f->mask(), line.head.data());
    return true;
  }
  const auto v = value(lex, *f);
  if (!v) return false;
  if (v->factor != 0) {
    constexpr auto kWidest = Number{1} << 62;
    for (const auto part : {v->constant, v->factor})
      if (part < -kWidest || part > kWidest)
        return fail(first.at,
                    "the constant and the factor of a value that depends on the epoch must fit in 62 bits, got " +
                        to_string(part));
    if (!in_range(first, *f, v->constant + v->factor)) return false;
    store(*f, 0, line.head.data());
    symbols_->epoch(*f, *v);
    return true;
  }
  if (!in_range(first, *f, v->constant)) return false;
  store(*f, (static_cast<std::uint64_t>(v->constant) - f->bias) & f->mask(), line.head.data());
  return true;
}

bool PacketLines::in_range(const Token& t, const FieldInfo& f, Number v) {
  const auto least = Number{f.bias}, most = Number{f.mask()} + f.bias;
  // A value is a bit pattern: -1 is all ones, in the width of the field.
  const bool negative = f.kind == Kind::value && v < 0 && v >= -((Number{f.mask()} + 1) / 2);
  if (negative || (v >= least && v <= std::min(most, kMost))) return true;
  const auto show = f.kind == Kind::bytes ? plain : static_cast<std::string (*)(Number)>(to_string);
  return fail(
      t.at, tick(f.name) + " must be from " + show(least) + " to " + show(std::min(most, kMost)) + ", got " + show(v));
}

std::optional<Linear> PacketLines::value(Lexer& lex, const FieldInfo& f) {
  const Token t = lex.peek();
  for (const auto& e : f.enumerants)
    if (t.kind == Token::word && t.text == e.text) return lex.take(), Linear{e.value};
  if (symbols_ && f.kind == Kind::value) return parse_linear(lex, names_, source_);
  if (f.enumerants.empty() || t.kind != Token::word || names_.find(t.text)) {
    const auto v = parse_expression(lex, names_, source_);
    return v ? std::optional<Linear>(Linear{*v}) : std::nullopt;
  }
  lex.take();
  Nearest nearest{t.text};
  for (const auto& e : f.enumerants) nearest.offer(e.text);
  std::string hint;
  for (std::size_t i = 0; i < f.enumerants.size() && i < 8; ++i) hint.append(i ? " " : "").append(f.enumerants[i].text);
  if (f.enumerants.size() > 8) hint += " ...";
  hint = f.enumerants.size() > 1 ? "use one of " + hint + ", or a number" : "use a number, or " + hint;
  if (!nearest.best().empty()) hint = "did you mean " + tick(nearest.best()) + "? " + hint;
  fail(t.at, quote(t) + " is not a value of " + tick(f.name), hint);
  return {};
}

std::optional<Number> PacketLines::address(Lexer& lex) {
  const Token t = lex.peek();
  if (t.kind != Token::word || names_.find(t.text)) return parse_expression(lex, names_, source_);
  lex.take();
  auto ref = expand(t, names_, source_);
  if (!ref) return {};
  if (lex.peek().is(".") && lex.peek().glued) {
    lex.take();
    const Token member = lex.take();
    const auto name = member.kind == Token::word && member.glued ? expand(member, names_, source_) : std::nullopt;
    if (!name) return fail(t.at, "expected a name after " + tick(*ref + "."), ""), std::nullopt;
    *ref += "." + *name;
    std::optional<Number> offset = Number{0};
    if (lex.peek().is("[")) {
      lex.take();
      offset = parse_expression(lex, names_, source_);
      if (!offset) return {};
      if (!lex.peek().is("]")) return fail(lex.peek().at, "expected ']', got " + quote(lex.peek())), std::nullopt;
      lex.take();
    }
    if (symbols_) {
      const auto at = symbols_->address(*ref, *offset, t.at, source_);
      return at ? std::optional<Number>(*at) : std::nullopt;
    }
    fail(t.at, "expected an address, got " + tick(*ref),
         "a stream has no symbols: write a number (only schedules have symbols)");
    return {};
  }
  std::string hint = "a name includes its place: gpu0.buf or host.buf";
  if (!symbols_) hint += "; in a stream, which has no symbols, write a number";
  auto message = "expected an address, got " + tick(*ref);
  fail(t.at, std::move(message), std::move(hint));
  return {};
}

bool PacketLines::reserved(Lexer& lex, const Token& t, std::string_view name, Line& line) {
  const auto& info = *line.info;
  lex.take();
  std::size_t dword = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with("dw") || name.size() < 3 || std::from_chars(name.data() + 2, end, dword).ptr != end)
    return fail(t.at, "expected dwN|=..., got " + tick(name), "'|=' sets reserved bits of a dword: dw2|=0x400000");
  const Token first = lex.peek();
  const auto v = parse_expression(lex, names_, source_);
  if (!v) return false;
  if (dword >= info.head)
    return fail(t.at, "dword " + std::to_string(dword) + " of " + std::string(info.name) + " has no reserved bits",
                "they lie in dwords 0 to " + std::to_string(info.head - 1));
  if (*v < 0 || *v > 0xffffffff) return fail(first.at, "a dword must be from 0 to 0xffffffff, got " + to_string(*v));
  const auto bits = static_cast<std::uint32_t>(*v);
  if (const auto wrong = bits & ~info.reserved(dword)) {
    const auto b = static_cast<unsigned>(std::countr_zero(wrong));
    return fail(first.at,
                "bit " + std::to_string(b) + " of dword " + std::to_string(dword) + " is not reserved in " +
                    std::string(info.name),
                owner(info, dword, b));
  }
  line.head[dword] |= bits;
  return true;
}

bool PacketLines::times(Lexer& lex, const Token& t, Line& line) {
  if (!lex.peek().is("=")) return fail(t.at, "'times' needs a value", "write times=4 to repeat the packet four times");
  lex.take();
  if (line.times_given) return fail(t.at, "duplicate field 'times'");
  line.times_given = true;
  const Token first = lex.peek();
  const auto v = parse_expression(lex, names_, source_);
  if (!v) return false;
  if (*v < 1 || *v > 0xffffffff) return fail(first.at, "'times' must be from 1 to 4294967295, got " + to_string(*v));
  line.times = static_cast<std::uint64_t>(*v);
  return true;
}

bool PacketLines::list(Lexer& lex, std::string_view name, std::size_t most, Line& line) {
  if (!lex.peek().is("["))
    return fail(lex.peek().at, "expected '[', got " + quote(lex.peek()),
                "write a list: " + std::string(name) + "=[0x1*20 0x2]");
  const Token open = lex.take();
  line.payload_given = true;
  for (;;) {
    while (lex.peek().kind == Token::line) lex.take();
    const Token t = lex.peek();
    if (t.is("]")) return lex.take(), true;
    if (t.kind == Token::end) return fail(open.at, "this list has no ']'");
    const auto v = parse_primary(lex, names_, source_);
    if (!v) return false;
    if (*v < -(Number{1} << 31) || *v > 0xffffffff)
      return fail(t.at, "a dword must be from -2147483648 to 0xffffffff, got " + to_string(*v));
    std::optional<Number> n = Number{1};
    if (lex.peek().is("*")) {
      lex.take();
      n = parse_primary(lex, names_, source_);
      if (!n) return false;
    }
    if (*n < 0 || *n > Number{most} - Number{line.payload.size()})
      return fail(t.at, tick(name) + " can hold at most " + std::to_string(most) + " dwords");
    line.payload.insert(line.payload.end(), static_cast<std::size_t>(*n), static_cast<std::uint32_t>(*v));
  }
}

/// Stores the length of a payload in the field that counts it.
bool PacketLines::payload_counts(const Token& t, const FieldInfo& f, Line& line) {
  const auto stride = line.info->stride;
  const auto n = line.payload.size();
  if (n % stride != 0)
    return fail(
        t.at, tick(f.name) + " must be a multiple of " + std::to_string(stride) + " dwords, got " + std::to_string(n));
  if (n / stride < f.bias) return fail(t.at, tick(f.name) + " needs at least 1 dword");
  store(f, n / stride - f.bias, line.head.data());
  return true;
}

bool PacketLines::complete(Lexer& lex, Line& line) {
  const auto& info = *line.info;
  for (const auto& f : info.fields)
    if (!f.optional && f.kind != Kind::flag && !(line.given & bit(info, f)))
      return fail(lex.behind(), std::string(info.name) + " needs " + tick(std::string(f.name) + "="),
                  "required: " + names_of_fields(info, true));
  if (!skips(info) || !line.payload_given) return true;
  const auto& counted = *info.counted;
  const auto n = line.payload.size() + info.head;
  if ((line.given & bit(info, counted)) && value_of(counted, line.head.data()) != n)
    return fail(lex.behind(),
                tick(kSkipped) + " gives " + std::to_string(n) + " dwords, but " + tick(counted.name) + " is " +
                    std::to_string(value_of(counted, line.head.data())),
                "omit " + tick(counted.name));
  store(counted, n - counted.bias, line.head.data());
  return true;
}

bool PacketLines::too_many(std::size_t at, std::size_t room) {
  return fail(at, "the text produces more dwords than allowed",
              "only " + std::to_string(room) + " more are allowed here");
}

bool PacketLines::append(Lexer& lex, const Line& line, std::vector<std::uint32_t>& out, std::size_t room) {
  const auto n = line.info->length(line.head.data());
  if (line.times > room / n) return too_many(lex.behind(), room);
  const auto begin = out.size();
  // resize keeps growth geometric; reserve would reallocate for every line.
  out.resize(begin + n * line.times);
  for (auto at = begin; at < out.size(); at += n) {
    std::copy_n(line.head.begin(), line.info->head, out.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy(line.payload.begin(), line.payload.end(),
              out.begin() + static_cast<std::ptrdiff_t>(at + line.info->head));
  }
  return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
