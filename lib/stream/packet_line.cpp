// SPDX-License-Identifier: MIT
#include "packet_line.hpp"

#include "../core/nearest.hpp"
#include "../core/words.hpp"
#include "print.hpp"
#include "written_elsewhere.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

struct Named {
  std::uint64_t key{};
  std::uint8_t index{};
};
constexpr auto kByName = [] {
  std::array<Named, kPackets.size()> order{};
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = {key_of(kPackets[i].name), static_cast<std::uint8_t>(i)};
  // If two packets have one name, the described one comes first in kPackets.
  std::sort(order.begin(), order.end(),
            [](auto a, auto b) { return std::pair(a.key, a.index) < std::pair(b.key, b.index); });
  return order;
}();

std::uint64_t bit(const PacketInfo& info, const FieldInfo& f) noexcept {
  return std::uint64_t{1} << (&f - info.fields.data());
}

std::string names_of_fields(const PacketInfo& info, bool required_only) {
  std::string s;
  for (const auto& f : info.fields)
    if (!required_only || !f.optional) s.append(s.empty() ? "" : " ").append(f.name);
  if (skips(info) && !required_only) s.append(" ").append(kSkipped);
  return s;
}

/// The flags that say which optional parts are there.
std::string flags_of(const grammar::Length& l) {
  std::string s;
  for (const auto& p : l.parts)
    if (p.dwords != 0) s.append(s.empty() ? "" : " ").append(p.flag);
  return s;
}

/// Says what owns this bit of a packet: a field, or the pattern.
std::string owner(const PacketInfo& info, std::size_t dword, unsigned b) {
  for (const auto& f : info.fields) {
    const auto first = f.dword * 32u + f.lo, last = f.dword * 32u + f.hi, at = static_cast<unsigned>(dword) * 32 + b;
    if (first <= at && at <= last) return "it belongs to " + quote(f.name);
  }
  return "it identifies the packet as " + std::string(info.name);
}

}  // namespace

const PacketInfo* find_packet(std::string_view name) noexcept {
  const auto key = key_of(name);
  auto at = std::lower_bound(kByName.begin(), kByName.end(), key, [](auto n, auto k) { return n.key < k; });
  for (; at != kByName.end() && at->key == key; ++at)
    if (kPackets[at->index].name == name) return &kPackets[at->index];
  return nullptr;
}

bool PacketLines::parse(std::string_view expected, std::vector<std::uint32_t>& out, std::size_t room) {
  const Token begin = lex_.take();
  if (begin.is(".") && lex_.peek().glued && lex_.peek().text == "dword") {
    lex_.take();
    return dwords(out, room);
  }
  const auto name = begin.kind == Token::word ? expand(begin) : begin.text;
  if (!name) return lex_.skip_line(), false;
  const auto* info = packets_->generation() == kDefaultGeneration ? find_packet(*name) : packets_->find(*name);
  if (info && !info->fields_unknown) return packet(*info, out, room);

  const bool assigned = begin.kind == Token::word && lex_.peek().is("=");
  lex_.skip_line();
  if (info && info->foreign)
    return fail(begin.at, "this is " + label(*info), "choose the generation, or write its dwords: .dword 0x...");
  if (info)
    return fail(
        begin.at,
        "the fields of " + std::string(info->name) + " are not described for " + std::string(name_of(info->generation)),
        "write its dwords: .dword 0x...");
  Nearest close{*name};
  for (const auto& p : packets_->packets())
    if (!p.fields_unknown) close.offer(p.name);
  close.offer(".dword");
  const auto shown = begin.kind == Token::word ? quote(*name) : quote(begin);
  const auto action = meant_by(*name, kActionsInQueue);
  const bool acts = symbols_ && !action.empty();
  return fail(begin.at, "expected " + std::string(expected) + ", got " + shown,
              assigned       ? "a name needs let: let " + std::string(*name) + " = ..."
              : *name == "}" ? "a block ends with a line 'end'"
              : *name == "/" ? std::string(kCommentForm)
              : acts         ? "a queue has only packets: " + std::string(action)
                             : suggestion(close));
}

bool PacketLines::dwords(std::vector<std::uint32_t>& out, std::size_t room) {
  const auto begin = out.size(), errors = source_.count();
  Line line;
  while (!at_line_end()) {
    const Token t = lex_.peek();
    if (at("times")) {
      lex_.take();
      if (!times(t, line)) resynchronise();
      continue;
    }
    const auto v = primary();
    if (!v) break;
    if (!is_dword(t, *v)) continue;
    if (out.size() - begin < room) out.push_back(static_cast<std::uint32_t>(*v));
    else too_many(t.at, room);
  }
  lex_.skip_line();
  const auto n = out.size() - begin;
  if (errors == source_.count() && n == 0) fail(lex_.behind(), "expected a dword");
  if (errors == source_.count() && n * (line.times - 1) > room - n) too_many(lex_.behind(), room);
  if (errors != source_.count()) {
    out.resize(begin);
    return false;
  }
  const auto all = n * static_cast<std::size_t>(line.times);  // at most `room`
  out.reserve(begin + all);
  for (std::size_t i = n; i < all; ++i) out.push_back(out[begin + i - n]);
  return true;
}

bool PacketLines::is_dword(const Token& t, Number v) {
  return (v >= 0 && v <= 0xffffffff) || fail(t.at, "a dword must be from 0 to 0xffffffff, got " + to_string(v));
}

bool PacketLines::packet(const PacketInfo& info, std::vector<std::uint32_t>& out, std::size_t room) {
  Line line;
  line.info = &info;
  for (std::size_t i = 0; i < Pattern::kDwords && i < info.described(); ++i) line.head[i] = info.pattern.value[i];
  for (const auto& f : info.fields)
    if (f.kind != Kind::payload && f.optional) store(f, (f.default_value - f.bias) & f.mask(), line.head.data());

  const auto errors = source_.count();
  while (!at_line_end())
    if (!item(line, room)) resynchronise();
  if (errors != source_.count()) return false;
  return complete(line) && append(line, out, room);
}

/// After an error, skips to the next `name=` or `name|=` of the line.
void PacketLines::resynchronise() {
  while (!at_line_end()) {
    const bool word = lex_.peek().kind == Token::word;
    const auto at = lex_.position();
    lex_.take();
    if (word && (lex_.peek().is("=") || lex_.peek().is("|="))) return lex_.go(at);
  }
}

bool PacketLines::item(Line& line, std::size_t room) {
  const Token t = lex_.take();
  if (t.kind != Token::word)
    return fail(t.at, "expected a field or the end of the line, got " + quote(t),
                t.is("+") || t.is("-") ? "write an offset in brackets: src=gpu0.a[64K]" : "");
  const auto expanded = expand(t);
  if (!expanded) return false;
  const std::string spliced(t.spliced ? *expanded : "");  // its value may expand another word
  const auto name = t.spliced ? std::string_view(spliced) : *expanded;
  if (lex_.peek().is("|=")) return reserved(t, name, line);
  if (!lex_.peek().is("=")) return flag(t, name, line, false);
  if (name == "times") return times(t, line);
  lex_.take();
  return field(t, name, line, room);
}

/// A field without a value; `valued`: one that has a value, and is none of the packet's.
bool PacketLines::flag(const Token& t, std::string_view name, Line& line, bool valued) {
  const auto* f = find_field(*line.info, name);
  if (!f) {
    const auto meant = field_meant(name, [&](std::string_view known) { return find_field(*line.info, known); });
    const auto close = nearest(meant.empty() ? name : meant, line.info->fields, &FieldInfo::name);
    const auto all = names_of_fields(*line.info, false);
    const auto form = valued ? "its fields: " : "a field is written NAME=VALUE: ";
    return fail(t.at, std::string(line.info->name) + " has no field " + quote(name),
                suggestion(close, all.empty() ? "it has none" : form + all));
  }
  if (f->kind != Kind::flag)
    return fail(t.at, quote(name) + " needs a value", "write " + std::string(name) + "=...: " + std::string(f->doc));
  if (line.given & bit(*line.info, *f)) return fail(t.at, "duplicate field " + quote(name));
  line.given |= bit(*line.info, *f);
  store(*f, 1, line.head.data());
  return true;
}

bool PacketLines::field(const Token& t, std::string_view name, Line& line, std::size_t room) {
  const auto& info = *line.info;
  if (skips(info) && name == kSkipped) {
    if (line.payload_given) return fail(t.at, "duplicate field " + quote(name));
    const auto most = info.counted->mask() + info.counted->bias - info.head;
    return list(name, static_cast<std::size_t>(std::min<std::uint64_t>(most, room)), line);
  }
  const auto* f = find_field(info, name);
  if (!f) return flag(t, name, line, true);
  if (f->kind == Kind::flag)
    return fail(t.at, quote(name) + " is a flag", "write " + quote(name) + " alone: present is 1, absent is 0");
  if (line.given & bit(info, *f)) return fail(t.at, "duplicate field " + quote(name));
  line.given |= bit(info, *f);

  const Token first = lex_.peek();
  if (f->kind == Kind::payload) {
    const auto most = (f->mask() + f->bias) * info.stride;
    return list(name, static_cast<std::size_t>(std::min<std::uint64_t>(most, room)), line) &&
           payload_counts(first, *f, line);
  }
  const auto v = value(*f);
  if (!v) return false;
  // The value of the first epoch.
  if (!in_range(first, *f, v->constant + v->factor)) return false;
  if (v->factor != 0) symbols_->epoch(*f, *v);
  const auto stored = v->factor != 0 ? 0 : static_cast<std::uint64_t>(v->constant) - f->bias;
  store(*f, stored & f->mask(), line.head.data());
  return true;
}

bool PacketLines::in_range(const Token& t, const FieldInfo& f, Number v) {
  const auto least = Number{f.bias}, most = Number{f.mask()} + f.bias;
  // A value is a bit pattern: -1 is all ones, in the width of the field.
  const bool negative = f.kind == Kind::value && v < 0 && v >= -((Number{f.mask()} + 1) / 2);
  if (negative || (v >= least && v <= std::min(most, kMost))) return true;
  const auto show = [&](Number n) {
    return f.kind == Kind::bytes && n >= 0 ? size_text(static_cast<std::uint64_t>(n)) : to_string(n);
  };
  return fail(
      t.at, quote(f.name) + " must be from " + show(least) + " to " + show(std::min(most, kMost)) + ", got " + show(v));
}

std::optional<Linear> PacketLines::value(const FieldInfo& f) {
  const Token t = lex_.peek();
  for (const auto& e : f.enumerants)
    if (t.kind == Token::word && t.text.front() == e.text.front() && t.text == e.text)
      return lex_.take(), Linear{e.value};
  if (symbols_ && f.kind == Kind::value) return linear();
  const bool name = t.kind == Token::word && !names_.entry(t);
  if (!name || (f.enumerants.empty() && f.kind != Kind::address)) return constant(expression());
  if (f.kind == Kind::address) return constant(address());
  lex_.take();
  std::string hint;
  for (std::size_t i = 0; i < f.enumerants.size() && i < 8; ++i) hint.append(i ? " " : "").append(f.enumerants[i].text);
  if (f.enumerants.size() > 8) hint += " ...";
  hint = f.enumerants.size() > 1 ? "use one of " + hint + ", or a number" : "use a number, or " + hint;
  // If several values are as close, the default is meant: op=add is add_rtn_64.
  Nearest close{t.text};
  for (const bool usual : {true, false})
    for (const auto& e : f.enumerants)
      if ((e.value == f.default_value) == usual) close.offer(e.text);
  return none(t.at, quote(t) + " is not a value of " + quote(f.name), suggestion(close, hint));
}

/// A name in place of an address: gpu1.buf[64K].
std::optional<Number> PacketLines::address() {
  const Token t = lex_.take();
  const auto place = expand(t);
  if (!place) return {};
  std::string ref(*place);
  if (!lex_.peek().is(".") || !lex_.peek().glued)
    return none(t.at, "expected an address, got " + quote(ref),
                std::string("a name includes its place: gpu0.buf or host.buf") +
                    (symbols_ ? "" : "; in a stream, which has no symbols, write a number"));
  lex_.take();
  const Token member = lex_.take();
  const auto name = member.kind == Token::word && member.glued ? expand(member) : std::nullopt;
  if (!name) return none(t.at, "expected a name after " + quote(ref + "."));
  ref += '.';
  ref += *name;
  std::optional<Number> offset = Number{0};
  if (lex_.peek().is("[")) {
    lex_.take();
    offset = expression();
    if (!offset || !take("]")) return {};
  }
  if (symbols_) return symbols_->address(ref, *offset, t.at);
  return none(t.at, "expected an address, got " + quote(ref),
              "a stream has no symbols: write a number (only schedules have symbols)");
}

bool PacketLines::reserved(const Token& t, std::string_view name, Line& line) {
  const auto& info = *line.info;
  lex_.take();
  const auto n = name.starts_with("dw") ? whole_number<std::size_t>(name.substr(2)) : std::nullopt;
  if (!n)
    return fail(t.at, "expected dwN|=..., got " + quote(name), "'|=' sets reserved bits of a dword: dw2|=0x400000");
  const auto dword = *n;
  const Token first = lex_.peek();
  const auto v = expression();
  if (!v) return false;
  if (dword >= info.described())
    return fail(t.at, "dword " + std::to_string(dword) + " of " + std::string(info.name) + " has no reserved bits",
                "they lie in dwords 0 to " + std::to_string(info.described() - 1));
  if (!is_dword(first, *v)) return false;
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

bool PacketLines::times(const Token& t, Line& line) {
  if (!lex_.peek().is("=")) return fail(t.at, "'times' needs a value", "write times=4 to repeat the packet four times");
  lex_.take();
  if (line.times_given) return fail(t.at, "duplicate field 'times'");
  line.times_given = true;
  const auto n = number("times", 1, 0xffffffff);
  line.times = n.value_or(1);
  return n.has_value();
}

bool PacketLines::list(std::string_view name, std::size_t most, Line& line) {
  if (!lex_.peek().is("[")) return expected("'['", "write a list: " + std::string(name) + "=[0x1*20 0x2]");
  const Token open = lex_.take();
  line.payload_given = true;
  for (;;) {
    lex_.skip_lines();
    const Token t = lex_.peek();
    if (t.is("]")) return lex_.take(), true;
    if (t.kind == Token::end) return fail(open.at, "this list has no ']'");
    const auto v = primary();
    if (!v) return false;
    if (*v < -(Number{1} << 31) || *v > 0xffffffff)
      return fail(t.at, "a dword must be from -2147483648 to 0xffffffff, got " + to_string(*v));
    std::optional<Number> n = Number{1};
    if (lex_.peek().is("*")) {
      lex_.take();
      n = primary();
      if (!n) return false;
    }
    if (*n < 0 || *n > Number{most} - Number{line.payload.size()})
      return fail(t.at, quote(name) + " can hold at most " + std::to_string(most) + " dwords");
    line.payload.insert(line.payload.end(), static_cast<std::size_t>(*n), static_cast<std::uint32_t>(*v));
  }
}

/// Stores the length of a payload in the field that counts it.
bool PacketLines::payload_counts(const Token& t, const FieldInfo& f, Line& line) {
  const auto stride = line.info->stride;
  const auto n = line.payload.size();
  if (n % stride != 0)
    return fail(
        t.at, quote(f.name) + " must be a multiple of " + std::to_string(stride) + " dwords, got " + std::to_string(n));
  if (n / stride < f.bias) return fail(t.at, quote(f.name) + " needs at least 1 dword");
  store(f, n / stride - f.bias, line.head.data());
  return true;
}

bool PacketLines::complete(Line& line) {
  const auto& info = *line.info;
  for (const auto& f : info.fields)
    if (!f.optional && f.kind != Kind::flag && !(line.given & bit(info, f)))
      return fail(lex_.behind(), std::string(info.name) + " needs " + quote(std::string(f.name) + "="),
                  "required: " + names_of_fields(info, true));
  if (info.parts) {
    const auto there = parts_of(*info.parts, info.fields, line.head.data());
    for (const auto& f : info.fields)
      if ((line.given & bit(info, f)) && missing(*info.parts, there, f.dword))
        return fail(lex_.behind(), quote(f.name) + " is in a part of " + std::string(info.name) + " that is not there",
                    "a flag of the packet says that it is there: " + flags_of(*info.parts));
  }
  if (!skips(info) || !line.payload_given) return true;
  const auto& counted = *info.counted;
  const auto n = line.payload.size() + info.head;
  if ((line.given & bit(info, counted)) && value_of(counted, line.head.data()) != n)
    return fail(lex_.behind(),
                quote(kSkipped) + " gives " + std::to_string(n) + " dwords, but " + quote(counted.name) + " is " +
                    std::to_string(value_of(counted, line.head.data())),
                "omit " + quote(counted.name));
  store(counted, n - counted.bias, line.head.data());
  return true;
}

bool PacketLines::too_many(std::size_t at, std::size_t room) {
  return fail(at, "the text produces more dwords than allowed",
              "only " + std::to_string(room) + " more are allowed here");
}

bool PacketLines::append(const Line& line, std::vector<std::uint32_t>& out, std::size_t room) {
  const auto n = line.info->length(line.head.data());
  if (line.times > room / n) return too_many(lex_.behind(), room);
  const auto begin = out.size();
  // resize keeps growth geometric; reserve would reallocate for every line.
  if (begin == 0) out.reserve(64);
  out.resize(begin + n * static_cast<std::size_t>(line.times));
  for (auto at = begin; at < out.size(); at += n) {
    if (const auto* parts = line.info->parts) {
      fold(*parts, parts_of(*parts, line.info->fields, line.head.data()),
           std::span(line.head).first(line.info->described()), line.payload, out.data() + at);
      continue;
    }
    std::copy_n(line.head.begin(), line.info->head, out.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy(line.payload.begin(), line.payload.end(),
              out.begin() + static_cast<std::ptrdiff_t>(at + line.info->head));
  }
  return true;
}

}}}  // namespace sdma::v0_3::detail
