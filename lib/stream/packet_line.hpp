// SPDX-License-Identifier: MIT
#pragma once
// Parses one packet line into dwords. Streams and schedules share this. Internal.
//
//   copy_linear bytes=4K src=0x1000 dst=gpu1.buf[64K] dw2|=0x400000 times=2
//
//   PacketLines lines{lex, names, source};           // a stream: no symbols
//   lines.parse("a packet or 'end'", out, room);
//
// All packets and fields come from the registry; this code does not name any. All errors of a line are reported to the
// Source, and a line with errors appends nothing. A schedule passes Symbols, which turns gpu1.buf into an address and
// receives the values that depend on `epoch`; their bits in the dwords are zero.
#include "expression.hpp"
#include "sdma/packets/catalogue.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Resolves names that may be written in place of an address.
class Symbols {
 public:
  virtual ~Symbols() = default;
  /// The address of `ref` ("gpu1.buf") plus `offset`. Reports an error at `at` if there is none.
  virtual std::optional<Number> address(std::string_view ref, Number offset, std::size_t at) = 0;
  /// Reports that this field of the line's packet is factor * epoch + constant, with factor != 0.
  virtual void epoch(const FieldInfo&, Linear) = 0;
};

/// The packet of 4.4.2 of this name, by binary search; null if there is none.
const PacketInfo* find_packet(std::string_view name) noexcept;
/// The field of this name; null if there is none.
constexpr const FieldInfo* find_field(const PacketInfo& info, std::string_view name) noexcept {
  for (const auto& f : info.fields)
    if (f.name.size() == name.size() && f.name.back() == name.back() && f.name == name) return &f;
  return nullptr;
}

class PacketLines : private Parser {
 public:
  PacketLines(Lexer& lex, Names& names, Source& source, Symbols* symbols = nullptr,
              Generation g = kDefaultGeneration) noexcept
      : Parser(lex, names, source), symbols_(symbols), packets_(&catalogue(g)) {}

  /// Parses a line up to its end, without taking the newline, and appends its dwords, at most `room`. `expected`: what
  /// an error message names if the line does not begin with a packet. Returns false if there was an error.
  bool parse(std::string_view expected, std::vector<std::uint32_t>& out, std::size_t room);

 private:
  struct Line {
    const PacketInfo* info{};
    std::array<std::uint32_t, PacketInfo::kMaxDescribed> head{};  // where the description numbers them
    std::uint64_t given{};                                        // one bit per field
    bool payload_given{};
    std::vector<std::uint32_t> payload;
    std::uint64_t times = 1;
    bool times_given{};
  };

  bool dwords(std::vector<std::uint32_t>& out, std::size_t room);
  bool packet(const PacketInfo&, std::vector<std::uint32_t>& out, std::size_t room);
  bool item(Line&, std::size_t room);
  bool flag(const Token&, std::string_view name, Line&, bool valued);
  bool field(const Token&, std::string_view name, Line&, std::size_t room);
  bool reserved(const Token&, std::string_view name, Line&);
  bool times(const Token&, Line&);
  bool list(std::string_view name, std::size_t most, Line&);
  bool payload_counts(const Token&, const FieldInfo&, Line&);
  bool complete(Line&);
  bool append(const Line&, std::vector<std::uint32_t>& out, std::size_t room);
  std::optional<Linear> value(const FieldInfo&);
  std::optional<Number> address();
  bool is_dword(const Token&, Number);
  bool in_range(const Token&, const FieldInfo&, Number);
  void resynchronise();
  bool too_many(std::size_t at, std::size_t room);

  Symbols* symbols_;
  const Catalogue* packets_;
};

}}}  // namespace sdma::v0_3::detail
