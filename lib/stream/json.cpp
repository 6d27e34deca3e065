// SPDX-License-Identifier: MIT
#include "sdma/stream/json.hpp"

#include "../core/json.hpp"
#include "print.hpp"
#include "source.hpp"

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

void append_number(std::string& out, std::uint64_t v) {
  char buffer[kNumber];
  out.append(buffer, put_decimal(buffer, v));
}
void append_hex(std::string& out, std::uint64_t v) {
  char buffer[kNumber + 2] = "\"";
  char* p = put_hex(buffer + 1, v);
  *p++ = '"';
  out.append(buffer, p);
}
void append_dwords(std::string& out, std::span<const std::uint32_t> d) {
  out += '[';
  for (std::size_t i = 0; i < d.size(); ++i) {
    char buffer[16] = ",\"0x";
    char* p = put_dword(buffer + 4, d[i]);
    *p++ = '"';
    out.append(i == 0 ? buffer + 1 : buffer, p);
  }
  out += ']';
}

void append_value(std::string& out, const FieldInfo& f, const Unfolded& whole) {
  if (f.kind == Kind::payload) return append_dwords(out, whole.payload());
  const auto value = value_of(f, whole.data());
  if (const auto name = name_of(f.enumerants, value); !name.empty()) {
    out.append("\"").append(name).append("\"");
    return;
  }
  switch (f.kind) {
    case Kind::flag: out += value ? "true" : "false"; return;
    case Kind::address:
    case Kind::value:
    case Kind::hex: return append_hex(out, value);
    default: return append_number(out, value);
  }
}

void append_reserved(std::string& out, const PacketInfo& info, const Unfolded& whole) {
  bool first = true;
  for (std::size_t i = 0; i < info.described(); ++i) {
    const auto bits = whole.data()[i] & info.reserved(i);
    if (bits == 0) continue;
    out += first ? ",\"reserved\":{\"" : ",\"";
    append_number(out, i);
    out += "\":";
    append_hex(out, bits);
    first = false;
  }
  if (!first) out += '}';
}

/// Appends the dwords of a line to `out`. Returns what is wrong with the line, and where; no message if nothing is.
JsonError read_line(std::string_view line, std::vector<std::uint32_t>& out) {
  const auto parsed = parse_json(line);
  if (!parsed) return parsed.error();
  const auto& object = *parsed;
  const auto dwords = object.is_object() ? object.find("dwords") : object.end();
  if (!object.is_object() || dwords == object.end() || !dwords->is_array())
    return {0, "this line has no list 'dwords'"};
  for (const auto& d : *dwords) {
    const auto* s = d.get_ptr<const std::string*>();
    if (!s || s->size() < 3 || !s->starts_with("0x")) return {0, "a dword is a string \"0x...\""};
    const auto value = parse_count(*s);
    if (!value || *value > ~std::uint32_t{}) return {0, "'" + *s + "' is not a dword"};
    out.push_back(static_cast<std::uint32_t>(*value));
  }
  return {};
}

}  // namespace

void append_json(std::string& out, const PacketView& v, std::uint64_t offset, std::string_view members) {
  out += "{\"offset\":";
  append_number(out, offset);
  if (v.whole() && !v.info->foreign) {
    out.append(",\"packet\":\"").append(v.info->name).append("\",\"fields\":{");
    bool first = true;
    const Unfolded whole{*v.info, v.dwords};
    for (const auto& f : v.info->fields) {
      if (!whole.has(f)) continue;
      out.append(first ? "\"" : ",\"").append(f.name).append("\":");
      append_value(out, f, whole);
      first = false;
    }
    out += '}';
    // If a packet is only recognised, its reserved bits are not known.
    if (v.info->fields_unknown) out.append(",\"undescribed\":\"").append(label(*v.info)).append("\"");
    else append_reserved(out, *v.info, whole);
  } else {
    out += ",\"packet\":null";
    if (v.info) out.append(v.cut_off ? ",\"truncated\":\"" : ",\"foreign\":\"").append(label(*v.info)).append("\"");
  }
  out += ",\"dwords\":";
  append_dwords(out, v.dwords);
  out.append(members).append("}");
}

std::size_t JsonLines::append(std::string& out, std::span<const std::uint32_t> in, bool last) {
  for (Reader r{in, *packets_}; r;) {
    const auto begin = r.position_dwords();
    const auto v = r.next();
    if (v.cut_off && !last) return begin;
    append_json(out, v, at_);
    out += '\n';
    at_ += 4 * v.dwords.size();
  }
  return in.size();
}

std::string to_json_lines(std::span<const std::uint32_t> dwords, std::uint64_t base, Generation g) {
  std::string out;
  JsonLines{base, g}.append(out, dwords, true);
  return out;
}

Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> from_json_lines(std::string_view text,
                                                                            std::string_view file) {
  Source source{text, file};
  std::vector<std::uint32_t> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      if (auto wrong = read_line(line, out); !wrong.message.empty())
        source.error(begin + wrong.at, std::move(wrong.message),
                     "write one object per line, as `sdma dis --format=json` writes it");
    begin = end + 1;
  }
  if (source.count() > 0) return source.take_errors();
  return out;
}

}}  // namespace sdma::v0_3
