#pragma once
// Parses one packet line into dwords: `copy_linear bytes=4K src=0x1000 dst=gpu1.buf[64K] dw2|=0x400000 times=2`.
// Streams and schedules share this. Internal.
//
//   PacketLines lines{source, names};               // a stream: no symbols
//   lines.parse(lex, "a packet or 'end'", out, room);
//
// All packets and fields come from the registry; this code does not name any. All errors of a line are reported to the
// Source, and a line with errors appends nothing. A schedule passes Symbols, which turns gpu1.buf into an address and
// receives the values that depend on `epoch`; their bits in the dwords are zero.
#include "expression.hpp"
#include "sdma/packets/registry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

/// Resolves names that may be written in place of an address.
class Symbols {
 public:
  virtual ~Symbols() = default;
  /// The address of `ref` ("gpu1.buf") plus `offset`. Reports to the Source, at `at`, if there is none.
  virtual std::optional<std::uint64_t> address(std::string_view ref, Number offset, std::size_t at, Source&) = 0;
  /// Reports that this field of the line's packet is factor * epoch + constant, with factor != 0.
  virtual void epoch(const FieldInfo&, Linear) = 0;
};

/// The packet of this name, by binary search; null if there is none.
const PacketInfo* find_packet(std::string_view name) noexcept;

class PacketLines {
 public:
  PacketLines(Source& source, const Names& names, Symbols* symbols = nullptr) noexcept
      : source_(source), names_(names), symbols_(symbols) {}

  /// Parses a line up to its end, without taking the newline, and appends its dwords, at most `room`. `expected`: what
  /// an error message names if the line does not begin with a packet. Returns false if there was an error.
  bool parse(Lexer&, std::string_view expected, std::vector<std::uint32_t>& out, std::size_t room);

 private:
  struct Line {
    const PacketInfo* info{};
    std::array<std::uint32_t, PacketInfo::kMaxHead> head{};
    std::uint32_t given{};  // one bit per field
    bool payload_given{};
    std::vector<std::uint32_t> payload;
    std::uint64_t times = 1;
    bool times_given{};
  };

  bool dwords(Lexer&, std::vector<std::uint32_t>& out, std::size_t room);
  bool packet(Lexer&, const PacketInfo&, std::vector<std::uint32_t>& out, std::size_t room);
  bool item(Lexer&, Line&, std::size_t room);
  bool flag(const Token&, std::string_view name, Line&);
  bool field(Lexer&, const Token&, std::string_view name, Line&, std::size_t room);
  bool reserved(Lexer&, const Token&, std::string_view name, Line&);
  bool times(Lexer&, const Token&, Line&);
  bool list(Lexer&, std::string_view name, std::size_t most, Line&);
  bool payload_counts(const Token&, const FieldInfo&, Line&);
  bool complete(Lexer&, Line&);
  bool append(Lexer&, const Line&, std::vector<std::uint32_t>& out, std::size_t room);
  std::optional<Linear> value(Lexer&, const FieldInfo&);
  std::optional<Number> address(Lexer&);
  bool in_range(const Token&, const FieldInfo&, Number);
  void resynchronise(Lexer&);
  bool too_many(std::size_t at, std::size_t room);
  bool fail(std::size_t at, std::string message, std::string hint = "");

  Source& source_;
  const Names& names_;
  Symbols* symbols_;
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
