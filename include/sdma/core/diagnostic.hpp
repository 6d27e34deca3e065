#pragma once
// What is wrong, where, and what to do about it: one form for a packet, a stream, a schedule, and a device that cannot open.
//
//   Diagnostic d{.rule = "alignment", .where = "ring.bin:0x0040", .message = "fence addr 0x1002 is no multiple of 4",
//                .hint = "a fence stores a dword: align its address to 4 bytes"};
//   to_string(d)   ==   "ring.bin:0x0040: error[alignment]: fence addr 0x1002 is no multiple of 4\n  hint: a fence ..."
//
// Allocates (strings), so never on a hot path: there an Errc or a StallReport says it in numbers. Plain values, no shared
// state; making one throws nothing but what the allocator throws.
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {

enum class Severity : std::uint8_t { note, warning, error };

constexpr std::string_view name(Severity s) noexcept {
  return s == Severity::error ? "error" : s == Severity::warning ? "warning" : "note";
}

struct Diagnostic {
  std::string rule{};  ///< id of the rule, "" where none applies: each id has a page in docs/rules.md
  Severity severity = Severity::error;
  std::string where{};    ///< "file:line:column", "file:0xOFFSET", or what was opened
  std::string message{};  ///< one sentence, no full stop
  std::string hint{};     ///< what to do, "" where nobody knows
  std::string excerpt{};  ///< the source line and a line with a caret below the place, "" where there is no text
};

/// "where: severity[rule]: message", then the excerpt and a line "  hint: ..." where there are any. No newline at the end.
std::string to_string(const Diagnostic&);

}  // namespace v0
}  // namespace sdma
