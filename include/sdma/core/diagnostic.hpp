// SPDX-License-Identifier: MIT
#pragma once
// What is wrong, where, and what to do about it. The same form serves a packet, a stream, a schedule, and a device that
// cannot be opened.
//
//   Diagnostic d{.rule = "alignment",
//                .where = "ring.bin:0x0040",
//                .message = "fence addr 0x1002 is not a multiple of 4",
//                .hint = "a fence stores a dword: align its address to 4 bytes"};
//   to_string(d) == "ring.bin:0x0040: error[alignment]: fence addr 0x1002 is not a multiple of 4\n  hint: a fence ..."
//
// A Diagnostic holds strings, so it allocates and is never used on a hot path. Hot paths return an Errc or a
// StallReport, which hold only numbers. It is a plain value without shared state. Only the allocator may throw.
#include "sdma/core/standard.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// `note`: information; `warning`: probably a mistake; `error`: certainly one, or a failure. The severity of a rule is
/// its class: a finding that is an error refutes what is checked, a warning leaves it unproved, and a note is advice.
enum class Severity : std::uint8_t { note, warning, error };

constexpr std::string_view name(Severity s) noexcept {
  return s == Severity::error ? "error" : s == Severity::warning ? "warning" : "note";
}
/// A severity as `strict` takes it: advice is an error then.
constexpr Severity taken(Severity s, bool strict) noexcept {
  return strict && s == Severity::note ? Severity::error : s;
}
/// What a finding of a rule does to the verdict: "refutes", "leaves unproved" or "advice".
constexpr std::string_view rule_class(Severity s) noexcept {
  return s == Severity::error ? "refutes" : s == Severity::warning ? "leaves unproved" : "advice";
}

/// A place in a file, as numbers.
struct FilePosition {
  static constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};  ///< `offset`, where lines count
  std::string file{};                                            ///< "": not a place in a file
  std::uint64_t line = 0, column = 0;                            ///< from 1; 0: not known
  std::uint64_t offset = kNoOffset;                              ///< in bytes, of a file without lines

  explicit operator bool() const noexcept { return !file.empty(); }
};
/// "file:line:column", "file:line", "file:0x0040" or "file".
std::string to_string(const FilePosition&);

/// What a program can do about a failure, where the message is for people. `other` says nothing: conclude nothing.
enum class Cause : std::uint8_t {
  other,         ///< none of the following, or not known
  bad_argument,  ///< the call cannot succeed as it was made
  no_memory,     ///< there is no memory left: free some, and try again
  no_device,     ///< the device, its driver or its library is not there
  queue_lost,    ///< a queue has stopped, and what it was executing cannot be trusted
};

struct Diagnostic {
  std::string rule{};                   ///< id of the rule, or "": each id has a section in docs/rules.md
  Severity severity = Severity::error;  ///< how serious it is
  std::string where{};                  ///< "file:line:column", "file:0xOFFSET", or what was opened
  FilePosition at{};                    ///< the same as numbers, if it is a place in a file
  std::string message{};                ///< one sentence, no full stop
  std::string hint{};                   ///< what to do, or ""
  std::string excerpt{};                ///< the source line, and a caret under the place; "" if the input is not text
  Cause cause = Cause::other;           ///< of a call that failed, if it is known
};

/// "where: severity[rule]: message", then the excerpt and a line "  hint: ...", if there are any, without a newline at
/// the end.
std::string to_string(const Diagnostic&);
/// An error at a place in a file.
Diagnostic error_at(FilePosition, std::string message, std::string hint = {});

}}  // namespace sdma::v0_3
