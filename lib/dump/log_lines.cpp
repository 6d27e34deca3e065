// SPDX-License-Identifier: MIT
#include "log_lines.hpp"

#include "../core/words.hpp"
#include "layout.hpp"
#include "line.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// "0000:c1:00.0" at the beginning: its length, or 0.
std::size_t pci_address_at(std::string_view s) noexcept {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  if (s.size() < kForm.size()) return 0;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'x' ? !is_hex(s[i]) : s[i] != kForm[i]) return 0;
  return kForm.size();
}

}  // namespace

std::string_view device_in(std::string_view text, std::size_t end) noexcept {
  std::string_view found;
  for (std::size_t at = 0; at < end; ++at) {
    if (at > 0 && is_hex(text[at - 1])) continue;
    if (const auto n = pci_address_at(text.substr(at))) found = text.substr(at, n);
  }
  return found;
}

bool names_kernel(std::string_view text) noexcept {
  for (const std::string_view words : {"amdgpu: ", "[amdgpu]", "amdgpu 0000:"})
    if (text.find(words) != text.npos) return true;
  // "mlx5_core 0000:9d:00.0: text": a driver and its device
  const auto blank = text.find(' ');
  if (blank != text.npos && blank > 1 && blank < 24)
    if (const auto n = pci_address_at(text.substr(blank + 1)); n > 0 && text.substr(blank + 1 + n).starts_with(':'))
      return true;
  for (const std::string_view words : {"Linux version ", "audit: type=", "AMD-Vi: ", "BIOS-e820: "})
    if (text.starts_with(words)) return true;
  return false;
}

bool is_dump_row(std::string_view line) {
  const auto cut = cut_characters(line);
  const auto& l = cut.line;
  if (l.cells.empty() || (!l.tail.empty() && !l.equals)) return false;
  const auto marked = l.marked();
  if (marked > 0) return l.cells.size() > marked;
  // "DW1: 0x5", "$1 = {0x5, ..."
  const auto behind = trimmed(line.substr(static_cast<std::size_t>(l.label.data() + l.label.size() - line.data())));
  if (!l.label.empty() && !l.label.starts_with("DW") && !behind.starts_with('{') && !behind.starts_with('['))
    return false;
  // An offset may stand before the dwords, or bytes or words.
  constexpr std::size_t kBytes = 8;
  const auto sure =
      std::count_if(l.cells.begin(), l.cells.end(), [](const DumpCell& c) { return c.prefixed || c.digits >= 8; });
  return static_cast<std::size_t>(sure) * 2 >= l.cells.size() || l.cells.size() >= kBytes;
}

// Every line of a log comes here, so characters are not searched in sets.
bool may_be_dump_row(std::string_view line) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const auto is_mark = [](char c) { return c == ':' || c == ']' || c == '='; };
  const auto is_number = [&](char c) {
    return is_hex(c) || is_blank(c) || c == 'x' || c == 'X' || c == ',' || c == ':';
  };
  if (std::all_of(line.begin(), line.end(), is_number)) return true;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (!is_mark(line[at]) || !is_hex(line[at - 1])) continue;
    auto next = at;
    while (next < line.size() && (is_mark(line[next]) || is_blank(line[next]))) ++next;
    auto end = next;
    while (end < line.size() && (is_number(line[end]) || is_mark(line[end])) && !is_blank(line[end])) ++end;
    if (end > next && (end == line.size() || is_blank(line[end]))) return true;
  }
  return false;
}

bool begins_with_number(std::string_view text) noexcept {
  constexpr std::size_t kDword = 8;
  const auto word = trimmed(text).substr(0, trimmed(text).find_first_of(" :"));
  return std::any_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
         (word.size() >= kDword && std::all_of(word.begin(), word.end(), is_hex));
}

std::string_view behind_driver(std::string_view text) noexcept {
  constexpr std::string_view kDriver = "amdgpu ", kAgain = "amdgpu: ";
  if (!text.starts_with(kDriver)) return text;
  auto rest = text.substr(kDriver.size());
  const auto n = pci_address_at(rest);
  if (n == 0 || !rest.substr(n).starts_with(": ")) return text;
  rest.remove_prefix(n + 2);
  return rest.substr(rest.starts_with(kAgain) ? kAgain.size() : 0);
}

bool names_ring(std::string_view text) noexcept {
  for (const std::string_view word : {"amdgpu", "sdma", "ring", "SDMA"})
    if (text.find(word) != text.npos) return true;
  return false;
}

}}}  // namespace sdma::v0_3::detail
