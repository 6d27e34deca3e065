// SPDX-License-Identifier: MIT
#include "sdma/stream/text.hpp"

#include "../packets/unambiguous.hpp"
#include "print.hpp"
#include "sdma/packets/later.hpp"
#include "sdma/packets/scoped_forms.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

static_assert(unambiguous(kPackets), "two packets claim the same dwords");

// The size of the array for the fixed part of a line: names are short, and a packet has few fields.
constexpr std::size_t kFixedPart = [] {
  std::size_t longest = 0;
  const auto fits = [&](std::string_view name, std::span<const FieldInfo> fields) {
    std::size_t n = name.size() + PacketInfo::kMaxDescribed * 20;
    for (const auto& f : fields) {
      std::size_t value = kNumber;
      for (const auto& e : f.enumerants) value = std::max(value, e.text.size());
      n += f.name.size() + value + 2;
    }
    longest = std::max(longest, n);
  };
  for (const auto& p : kPackets) fits(p.name, {p.fields.data(), p.all_fields});
  for (const auto& p : kLaterPackets) fits(p.name, p.fields);
  for (const auto& p : scoped::kForms) fits(p.name, p.fields);
  return longest;
}();

char* put_field_value(char* p, const FieldInfo& f, std::uint64_t v) noexcept {
  if (const auto name = name_of(f.enumerants, v); !name.empty()) return put(p, name);
  switch (f.kind) {
    case Kind::bytes: return put_bytes(p, v);
    case Kind::address:
    case Kind::hex: return put_hex(p, v);
    case Kind::value: return put_value(p, v, f.width());
    default: return put_decimal(p, v);
  }
}

void append_list(std::string& out, std::span<const std::uint32_t> d) {
  char buffer[64];
  out += '[';
  for (std::size_t i = 0; i < d.size();) {
    std::size_t n = 1;
    while (i + n < d.size() && d[i + n] == d[i]) ++n;
    char* p = buffer;
    if (i > 0) *p++ = ' ';
    p = put_hex(p, d[i]);
    if (n >= 4) {
      *p++ = '*';
      p = put_decimal(p, n);
      i += n;
    } else {
      ++i;
    }
    out.append(buffer, p);
  }
  out += ']';
}

void append_dword_line(std::string& out, std::uint32_t dword) {
  char line[32];
  out.append(line, put_dword(put(line, ".dword 0x"), dword));
}

constexpr std::string_view kUnsettled = ", whose length no source settles";

void append_truncated_line(std::string& out, const PacketView& v) {
  append_dword_line(out, v.dwords.front());
  out.append(v.info->doubt ? "  # " : "  # truncated ").append(label(*v.info));
  if (v.info->doubt) out += kUnsettled;
}

void append_raw_packet(std::string& out, const PacketView& v) {
  char word[16];
  out += ".dword";
  for (const auto d : v.dwords) out.append(word, put_dword(put(word, " 0x"), d));
  out.append("  # ").append(label(*v.info));
  if (v.info->doubt) out += kUnsettled;
}

char* put_reserved(char* p, const PacketInfo& info, const Unfolded& whole) noexcept {
  for (std::size_t i = 0; i < info.described(); ++i) {
    const auto bits = whole.data()[i] & info.reserved(i);
    if (bits == 0) continue;
    p = put_decimal(put(p, " dw"), i);
    p = put_hex(put(p, "|="), bits);
  }
  return p;
}

/// Is the packet its fields, so that they make the same dwords again?
bool has_fields(const PacketView& v) noexcept { return !v.info->fields_unknown && v.info->is_own_length(v.dwords); }

/// `names`: null if addresses are written as numbers.
void append_packet(std::string& out, const PacketView& v, const AddressName* names = nullptr) {
  const PacketInfo& info = *v.info;
  const Unfolded whole{info, v.dwords};
  const std::uint32_t* d = whole.data();
  // The dwords that a NOP skips are printed as a list, and the length of the list implies the count.
  const auto skipped = skips(info) ? v.dwords.subspan(info.head) : std::span<const std::uint32_t>{};
  const bool has_payload = std::any_of(skipped.begin(), skipped.end(), [](auto w) { return w != 0; });

  char line[kFixedPart];
  char* p = put(line, info.name);
  const auto spill = [&] {
    out.append(line, p);
    p = line;
  };
  for (const auto& f : info.fields) {
    if (!whole.has(f)) continue;
    const auto value = value_of(f, d);
    if (f.kind == Kind::payload) {
      const auto data = whole.payload();
      if (f.optional && data.empty()) continue;
      *p++ = ' ';
      p = put(p, f.name);
      *p++ = '=';
      spill();
      append_list(out, data);
      continue;
    }
    if (f.optional && value == f.default_value) continue;
    if (has_payload && &f == info.counted) continue;
    *p++ = ' ';
    p = put(p, f.name);
    if (f.kind == Kind::flag) continue;
    *p++ = '=';
    if (names && f.kind == Kind::address)
      if (const auto name = (*names)(GpuVa{value}); !name.empty()) {
        spill();
        out += name;
        continue;
      }
    p = put_field_value(p, f, value);
  }
  if (has_payload) {
    *p++ = ' ';
    p = put(p, kSkipped);
    *p++ = '=';
    spill();
    append_list(out, skipped);
  }
  p = put_reserved(p, info, whole);
  spill();
}

}  // namespace

void append_text(std::string& out, const PacketView& v) {
  if (v.whole()) return has_fields(v) ? append_packet(out, v) : append_raw_packet(out, v);
  if (v.info) append_truncated_line(out, v);
  else append_dword_line(out, v.dwords.front());
  for (const auto d : v.dwords.subspan(1)) append_dword_line(out += '\n', d);
}

std::string to_text(const PacketView& v) {
  std::string s;
  append_text(s, v);
  return s;
}

std::string to_text(const PacketView& v, const AddressName& names) {
  if (!v.whole() || !has_fields(v)) return to_text(v);
  std::string s;
  append_packet(s, v, &names);
  return s;
}

void Disassembler::line_end(std::string& out, std::span<const std::uint32_t> dwords) {
  constexpr std::size_t kShown = 16;
  if (options_.offsets || options_.raw) out += "  #";
  if (options_.offsets) {
    char text[2 + kNumber];
    char* p = put_hex(text, at_);
    // At least four digits, so that the offsets of a ring line up.
    out.append(" 0x").append(p - text < 6 ? static_cast<std::size_t>(6 - (p - text)) : 0, '0').append(text + 2, p);
    if (options_.raw) out += ':';
  }
  if (options_.raw) {
    char word[16];
    for (const auto d : dwords.first(dwords.size() < kShown ? dwords.size() : kShown)) {
      word[0] = ' ';
      out.append(word, put_dword(word + 1, d));
    }
    if (dwords.size() > kShown) out += " ..";
  }
  out += '\n';
}

void Disassembler::add(std::string& out, std::uint32_t dword, bool raw) {
  if (run_.count > 0 && (run_.dword != dword || run_.raw != raw)) flush(out);
  run_.dword = dword;
  run_.raw = raw;
  ++run_.count;
}

void Disassembler::flush(std::string& out) {
  const std::span<const std::uint32_t> one{&run_.dword, 1};
  const bool folded = run_.count >= 4;
  for (std::size_t lines = folded ? 1 : run_.count; lines > 0; --lines) {
    if (run_.raw) append_dword_line(out, run_.dword);
    else append_packet(out, Reader{one, *packets_}.next());
    if (folded) {
      char times[8 + kNumber];
      out.append(times, put_decimal(put(times, " times="), run_.count));
    }
    line_end(out, one);
    at_ += 4 * (folded ? run_.count : 1);
  }
  run_.count = 0;
}

void Disassembler::append(std::string& out, const PacketView& v) {
  if (v.dwords.size() == 1 && !v.cut_off && !(v.info && !has_fields(v)))
    return add(out, v.dwords[0], v.info == nullptr);
  flush(out);
  if (v.cut_off) {
    append_truncated_line(out, v);
    line_end(out, v.dwords.first(1));
    at_ += 4;
    for (const auto d : v.dwords.subspan(1)) add(out, d, true);
    return;
  }
  append_text(out, v);
  line_end(out, v.dwords);
  at_ += 4 * v.dwords.size();
}

std::size_t Disassembler::append(std::string& out, std::span<const std::uint32_t> in, bool last) {
  Reader r{in, *packets_};
  while (r) {
    const auto begin = r.position_dwords();
    const auto v = r.next();
    if (v.cut_off && !last) return begin;
    append(out, v);
  }
  if (last) flush(out);
  return in.size();
}

std::string disassemble(std::span<const std::uint32_t> dwords, const TextOptions& options) {
  std::string out;
  out.reserve(dwords.size() * 10);
  Disassembler{options}.append(out, dwords, true);
  return out;
}

}}  // namespace sdma::v0_3
