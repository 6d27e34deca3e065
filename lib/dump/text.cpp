// SPDX-License-Identifier: MIT
#include "sdma/dump/text.hpp"

#include "engines.hpp"
#include "layout.hpp"
#include "plain.hpp"
#include "rows.hpp"
#include "sdma/dump/descriptors.hpp"
#include "sdma/packets/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma::inline v0 {
namespace {

using detail::each_line;
using detail::trimmed;

/// A part of the text that holds one dump.
struct Part {
  std::string_view text;
  std::size_t line = 1;  ///< number of its first line
  std::string ring{};
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< in bytes
  std::optional<detail::DumpLayout> layout{};   ///< if the form has only one
};

/// What follows `key` in this line, up to a blank: "0x1c0" in "Rptr: 0x1c0 Wptr: 0x1c8".
std::string_view value_after(std::string_view line, std::string_view key) noexcept {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return {};
  const auto rest = trimmed(line.substr(at + key.size()));
  return rest.substr(0, rest.find_first_of(" \t\r,"));
}
std::optional<std::uint64_t> number(std::string_view s) noexcept {
  const bool hex = s.starts_with("0x");
  if (hex) s.remove_prefix(2);
  std::uint64_t v;
  if (s.empty() || s.size() > 16 || s.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos ||
      !detail::number_in(s, hex ? 16 : 10, v))
    return {};
  return v;
}
std::optional<std::uint64_t> dwords_as_bytes(std::string_view s) noexcept {
  const auto n = number(s);
  return n ? std::optional(*n * 4) : std::nullopt;
}

constexpr std::string_view kRingName = "ring name:";

/// The kernel prints an offset in bytes and a dword a line, both without leading zeros.
detail::DumpLayout coredump_layout() {
  detail::DumpLayout l;
  l.positions = l.per_line = 1;
  l.position[0] = {.bytes = 1};
  l.prefixed = l.any = true;
  return l;
}

/// The rings of the kernel's devcoredump, each from the line that names it to the next one.
std::vector<Part> coredump_rings(std::string_view text) {
  std::vector<Part> parts;
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    const auto begin = static_cast<std::size_t>(line.data() - text.data());
    if (const auto name = value_after(line, kRingName); !name.empty()) {
      if (!parts.empty())
        parts.back().text =
            parts.back().text.substr(0, begin - static_cast<std::size_t>(parts.back().text.data() - text.data()));
      parts.push_back({.text = text.substr(begin + line.size()),
                       .line = n,
                       .ring = std::string(name),
                       .layout = coredump_layout()});
    } else if (!parts.empty() && !parts.back().rptr && line.find("Rptr:") != std::string_view::npos) {
      parts.back().rptr = dwords_as_bytes(value_after(line, "Rptr:"));
      parts.back().wptr = dwords_as_bytes(value_after(line, "Wptr:"));
      // The dwords begin after this line.
      parts.back().text = text.substr(begin + line.size());
      parts.back().line = n;
    }
    return true;
  });
  return parts;
}

/// The ring's name and positions in the lines that umr prints before the dwords: "sdma0.sdma0.rptr == 64".
void find_positions(Part& part) {
  each_line(part.text, part.line, [&](std::string_view line, std::size_t n) {
    for (const std::string_view key : {".rptr ==", ".wptr =="}) {
      const auto value = dwords_as_bytes(value_after(line, key));
      if (!value) continue;
      (key[1] == 'r' ? part.rptr : part.wptr) = value;
      const auto name = trimmed(line.substr(0, line.find(key)));
      part.ring = name.substr(name.find_last_of(" .") + 1);
    }
    // They come first, and the dwords begin here.
    if (line.find("ring[") == std::string_view::npos) return true;
    if (part.ring.empty()) return false;
    part.text.remove_prefix(static_cast<std::size_t>(line.data() - part.text.data()));
    part.line = n;
    return false;
  });
}

Diagnostic at(std::string_view name, std::size_t line, std::size_t column, std::string message, std::string hint) {
  return error_at({.file = std::string(name), .line = line, .column = column + 1}, std::move(message), std::move(hint));
}

/// A text with words and without dwords is not a dump.
std::optional<Diagnostic> not_a_dump(const Part& part, std::string_view name) {
  std::optional<Diagnostic> wrong;
  each_line(part.text, part.line, [&](std::string_view line, std::size_t n) {
    const auto stripped = detail::without_stamp(line);
    const auto l = detail::parse_line(stripped);
    if (l.label.empty() && l.cells.empty() && l.tail.empty() &&
        detail::is_blank(stripped.substr(0, stripped.find('#'))))
      return true;
    for (const char c : stripped)
      if (static_cast<unsigned char>(c) < ' ' && c != '\t') {
        wrong = at(name, n, static_cast<std::size_t>(line.find(c)), "this is not text",
                   "--input=binary reads it as the ring's bytes");
        return false;
      }
    const auto word = trimmed(stripped).substr(0, trimmed(stripped).find_first_of(" \t"));
    const bool packet =
        std::any_of(std::begin(kPackets), std::end(kPackets), [&](const auto& p) { return p.name == word; });
    wrong = at(name, n, static_cast<std::size_t>(word.data() - line.data()),
               "'" + std::string(word.substr(0, 40)) + "' is not a dword",
               packet ? "sdma as turns packet lines into dwords: sdma as FILE | sdma check"
                      : "no line of this text has dwords as a dump has them: hexadecimal, of 8 digits or after 0x");
    return false;
  });
  return wrong;
}

Result<TextDump, Diagnostic> read_part(const Part& part, std::string_view name, std::vector<Diagnostic>& notes) {
  TextDump out{.ring = part.ring, .rptr = part.rptr, .wptr = part.wptr};
  const auto layout = part.layout ? *part.layout : detail::survey(part.text);
  if (!layout.any) {
    if (auto wrong = not_a_dump(part, name)) return std::move(*wrong);
    return out;
  }
  if (!layout.doubt.empty())
    return at(name, part.line + layout.doubt_line - 1, layout.doubt_column, layout.doubt, layout.doubt_hint);
  out.form = layout.describe();
  detail::DumpRows rows{layout, name, out};
  std::optional<Diagnostic> wrong;
  each_line(part.text, part.line, [&](std::string_view line, std::size_t n) {
    auto r = rows.add(line, n);
    if (!r) wrong = std::move(r.error());
    return !wrong;
  });
  if (wrong) return std::move(*wrong);
  if (auto r = rows.finish(notes); !r) return std::move(r.error());
  return out;
}

}  // namespace

bool is_wide_text(std::string_view bytes) noexcept { return detail::is_utf16(bytes); }

Result<TextDumps, Diagnostic> read_text_dump(std::string_view bytes, std::string_view name) {
  const auto plain = detail::plain_text(bytes);
  const std::string_view text = plain;
  if (has_descriptors(text))
    return Diagnostic{.where = std::string(name),
                      .message = "these are descriptors of queues, not packets",
                      .hint = "sdma dis shows their fields; the packets are in the memory at ring_base"};
  TextDumps all;
  const auto note = [&](std::string message) {
    all.notes.push_back({.severity = Severity::note, .where = std::string(name), .message = std::move(message)});
  };
  const auto generation = detail::generation_in(text);
  auto parts = coredump_rings(text);
  if (parts.empty()) {
    Part whole{.text = text};
    find_positions(whole);
    auto d = read_part(whole, name, all.notes);
    if (!d) return std::move(d.error());
    if (!d->form.empty() && !whole.ring.empty()) d->form = "umr's print of ring " + whole.ring + ": " + d->form;
    d->generation = generation;
    all.dumps.push_back(std::move(*d));
    return all;
  }
  std::string others;
  for (const auto& p : parts) {
    if (!p.ring.starts_with("sdma")) {
      others += (others.empty() ? "" : ", ") + p.ring;
      continue;
    }
    // Words between the dwords of two rings are the next ring's heading.
    std::vector<Diagnostic> ignored;
    auto d = read_part(p, name, ignored);
    if (!d) return std::move(d.error());
    d->form = "ring " + p.ring + " of the kernel's devcoredump: " + d->form;
    d->generation = generation;
    all.dumps.push_back(std::move(*d));
  }
  if (all.dumps.empty())
    return at(name, parts.front().line, 0, "this devcoredump has no SDMA ring; it has " + others, "");
  if (!others.empty()) note("left out the rings of other engines: " + others);
  note("a devcoredump holds the kernel's own rings: the queues of processes are not in it");
  return all;
}

}  // namespace sdma::inline v0
