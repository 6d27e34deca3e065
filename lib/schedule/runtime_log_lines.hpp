// SPDX-License-Identifier: MIT
#pragma once
// What a line of the HIP runtime's log says (AMD_LOG_LEVEL=4, ROCm 5 to 7): its values, its process and thread, and
// when it was written. Internal.
//
//   using Line = RuntimeLogLine;
//   Line::is_copy_line(line)     "HSA Copy copy_engine=0x1, dst=0x7f10, src=0x50, size=64, .."
//   Line::number(line, "size=")  64; nothing if the line has no such value
//   Line::process_of(line)       "77"
//   Line::nanoseconds(line)      of the clock of the file
//
// Pure functions; some allocate. No errors: what a line lacks is "" or nothing.
#include "../core/words.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

struct RuntimeLogLine {
  /// What follows `name` in a line: "0x1" of "copy_engine=0x1, dst=..".
  static std::string_view value(std::string_view line, std::string_view name) {
    const auto at = line.find(name);
    if (at == line.npos) return {};
    line.remove_prefix(at + name.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line.substr(0, line.find_first_of(", :;]\r"));
  }
  static std::optional<std::uint64_t> number(std::string_view line, std::string_view name) {
    const auto v = value(line, name);
    return v.empty() ? std::nullopt : parse_count(std::string(v));
  }
  /// Until ROCm 6.0 the engine is hexadecimal without a mark.
  static std::optional<std::uint64_t> mask_of(std::string_view line) {
    auto v = value(line, "copy_engine=");
    if (v.starts_with("0x")) v.remove_prefix(2);
    return whole_number<std::uint64_t>(v, 16);
  }
  static bool has(std::string_view line, std::string_view words) { return line.find(words) != line.npos; }
  /// Lines that the runtime of early ROCm 5 misspells lack the size: "size=" is the low half of the signal that the
  /// copy waits for, and "wait_event=" is the signal that it completes.
  static bool lacks_size(std::string_view line) { return has(line, "HSA Asycn Copy "); }
  /// The thread of a line; its number may be padded with blanks: "[pid:7 tid: 0x 3564]".
  static std::string thread_of(std::string_view line) {
    const auto at = line.find("tid:");
    if (at == line.npos) return {};
    line = line.substr(at + 4);
    std::string out(line.substr(0, line.find(']')));
    out.erase(std::remove(out.begin(), out.end(), ' '), out.end());
    return out;
  }

  /// A line about a copy: "HSA Copy copy_engine=..", "HSA Async Copy on copy_engine=..", "HSA Async Blit Copy dst=..".
  static bool is_copy_line(std::string_view line) {
    if (has(line, "copy_engine=")) return true;
    if (!has(line, "HSA ") || !has(line, "ompletion_signal=")) return false;
    return has(line, "Copy dst=") || has(line, "Copy Rect dst=") || has(line, "Copy wait_event=") ||
           has(line, "HSA BatchCopy ") || (has(line, "Copy staged ") && has(line, "dst="));
  }

  /// "[pid:77 tid: 0x7f]" and, of ROCm 5, "77: [tid:0x7f]".
  static std::string process_of(std::string_view l) {
    if (has(l, "pid:")) return std::string(value(l, "pid:"));
    const auto at = l.find(": [tid:");
    if (at == l.npos) return {};
    const auto before = l.substr(0, at);
    const auto begin = before.find_last_not_of("0123456789");
    return std::string(before.substr(begin == before.npos ? 0 : begin + 1));
  }
  /// "100200302 us, " of a line that begins so. In autumn 2024, some builds wrote "100200302ud us".
  static std::string time_text(std::string_view line) {
    const auto end = line.find(" us:");
    if (end == line.npos) return {};
    auto before = line.substr(0, end);
    if (before.ends_with("ud")) before.remove_suffix(2);
    const auto begin = before.find_last_not_of("0123456789");
    return std::string(before.substr(begin == before.npos ? 0 : begin + 1)) + " us, ";
  }
  static std::optional<std::uint64_t> nanoseconds(std::string_view l) {
    const auto us = whole_number<std::uint64_t>(value(time_text(l), ""));
    return us && *us < ~std::uint64_t{0} / 1000 ? std::optional(*us * 1000) : std::nullopt;
  }
};

}}}  // namespace sdma::v0_3::detail
