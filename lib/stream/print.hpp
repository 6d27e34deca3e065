// SPDX-License-Identifier: MIT
#pragma once
// Formats numbers, fast enough for the disassembler. Internal.
//
//   char buffer[kNumber]; char* end = put_hex(buffer, 0x7f00);        "0x7f00"
//
// Each put function writes at most kNumber characters at `p` and returns a pointer past the last. No allocation, no
// error. Where speed does not matter, hex_text and value_text return a string.
#include "sdma/core/number.hpp"
#include "sdma/packets/info.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::size_t kDecimalDigits = 20;           ///< at most, of 64 bits in decimal
inline constexpr std::size_t kNumber = kDecimalDigits + 1;  ///< and a sign or a unit

inline char* put(char* p, std::string_view s) noexcept {
  std::memcpy(p, s.data(), s.size());
  return p + s.size();
}

inline char* put_decimal(char* p, std::uint64_t v) noexcept { return std::to_chars(p, p + kDecimalDigits, v).ptr; }

inline constexpr auto kTwoHex = [] {
  std::array<char, 512> t{};
  for (std::size_t i = 0; i < 256; ++i) {
    t[2 * i] = "0123456789abcdef"[i / 16];
    t[2 * i + 1] = "0123456789abcdef"[i % 16];
  }
  return t;
}();

/// Exactly eight digits.
inline char* put_dword(char* p, std::uint32_t v) noexcept {
  for (int shift = 24; shift >= 0; shift -= 8, p += 2) std::memcpy(p, &kTwoHex[(v >> shift & 0xff) * 2], 2);
  return p;
}
/// "0x" and as many digits as the value needs.
inline char* put_hex(char* p, std::uint64_t v) noexcept {
  char digits[16];
  put_dword(put_dword(digits, static_cast<std::uint32_t>(v >> 32)), static_cast<std::uint32_t>(v));
  const auto n = static_cast<std::size_t>((std::bit_width(v | 1) + 3) / 4);
  return put(put(p, "0x"), {digits + 16 - n, n});
}

/// With the largest of K, M, G that divides it.
inline char* put_bytes(char* p, std::uint64_t v) noexcept {
  const auto s = scaled(v);
  p = put_decimal(p, s.count);
  if (s.unit != 0) *p++ = s.unit;
  return p;
}
/// Decimal if the value, read as a signed number of `width` bits, is within 4095 of zero; otherwise hexadecimal.
inline char* put_value(char* p, std::uint64_t v, unsigned width) noexcept {
  if (v <= 4095) return put_decimal(p, v);
  const auto negated = (~v + 1) & (width >= 64 ? ~std::uint64_t{} : (std::uint64_t{1} << width) - 1);
  if (negated > 4095) return put_hex(p, v);
  *p++ = '-';
  return put_decimal(p, negated);
}

inline std::string hex_text(std::uint64_t v) {
  char text[kNumber];
  return {text, put_hex(text, v)};
}
inline std::string value_text(std::uint64_t v, unsigned width = 64) {
  char text[kNumber];
  return {text, put_value(text, v, width)};
}

/// The name of a code, "" if it has none. Names are sorted by code.
inline std::string_view name_of(std::span<const Name> names, std::uint64_t code) noexcept {
  const auto at = std::lower_bound(names.begin(), names.end(), code, [](const Name& n, auto c) { return n.value < c; });
  return at != names.end() && at->value == code ? at->text : std::string_view{};
}

/// Does this packet skip dwords that no field holds, as a NOP does? Text calls them `payload`.
constexpr bool skips(const PacketInfo& p) noexcept {
  return p.counted && p.counted->kind != Kind::payload && !p.fields_unknown;
}
inline constexpr std::string_view kSkipped = "payload";

}}}  // namespace sdma::v0_3::detail
