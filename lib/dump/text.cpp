// SPDX-License-Identifier: MIT
#include "sdma/dump/text.hpp"

#include "coredump.hpp"
#include "engine_generation.hpp"
#include "layout.hpp"
#include "log.hpp"
#include "plain.hpp"
#include "rows.hpp"
#include "sdma/dump/descriptors.hpp"
#include "sdma/packets/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::each_line;
using detail::trimmed;

/// A part of the text that holds one dump.
struct DumpPart {
  std::string_view text;
  std::size_t line = 1;  ///< number of its first line
  std::string ring{};
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< in bytes
  std::optional<detail::DumpLayout> layout{};   ///< if the form has only one
};

std::optional<std::uint64_t> dwords_as_bytes(std::string_view s) noexcept {
  const auto n = detail::number_of(s);
  return n ? std::optional(*n * 4) : std::nullopt;
}

/// The kernel prints an offset in bytes and a dword a line, both without leading zeros.
detail::DumpLayout coredump_layout() {
  detail::DumpLayout l;
  l.positions = l.per_line = 1;
  l.position[0] = {.bytes = 1};
  l.prefixed = l.any = true;
  return l;
}

/// The rings of umr's print, each with the lines that have its positions. Nothing if the text has at most one.
std::vector<DumpPart> umr_rings(std::string_view text) {
  constexpr std::string_view kRow = "ring[";
  std::vector<DumpPart> parts;
  std::string_view name;
  std::uint64_t next = 0;    // index of the row that would go on with the last ring
  auto heading = text.npos;  // where the lines with the next ring's positions begin
  std::size_t heading_line = 0;
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    const auto begin = static_cast<std::size_t>(line.data() - text.data());
    if (line.find(".rptr ==") != line.npos && heading == text.npos) heading = begin, heading_line = n;
    const auto at = line.find(kRow);
    if (at == line.npos) return true;
    const auto this_name = trimmed(line.substr(0, at));
    const auto index = trimmed(line.substr(at + kRow.size(), line.find(']', at) - at - kRow.size()));
    std::uint64_t i = 0;
    if (!detail::number_in(index, 10, i)) return true;
    if (parts.empty() || this_name != name || i < next) {
      const auto from = std::min(heading, begin);
      if (!parts.empty())
        parts.back().text =
            text.substr(0, from).substr(static_cast<std::size_t>(parts.back().text.data() - text.data()));
      parts.push_back({.text = text.substr(parts.empty() ? 0 : from),
                       .line = parts.empty()          ? 1
                               : heading != text.npos ? heading_line
                                                      : n});
      name = this_name;
    }
    heading = text.npos;
    next = i + 1;
    return true;
  });
  if (parts.size() < 2) parts.clear();
  return parts;
}

/// The ring's name and positions in the lines that umr prints before the dwords: "sdma0.sdma0.rptr == 64".
void find_positions(DumpPart& part) {
  each_line(part.text, part.line, [&](std::string_view line, std::size_t n) {
    for (const std::string_view key : {".rptr ==", ".wptr =="}) {
      const auto value = dwords_as_bytes(detail::value_after(line, key));
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

/// What to do with a text that lists copies; "" for another one.
std::string instead_of_copies(std::string_view text) {
  for (const std::string_view copies : {"HSA Copy copy_engine=", "MEMORY_COPY"})
    if (text.find(copies) != text.npos)
      return "it lists copies that were made, and not what a queue holds: sdma trace --schedule FILE writes them as a "
             "schedule";
  return {};
}

/// What to do with a text that has packets or copies, and no dwords.
std::string instead_of_dwords(std::string_view text, std::string_view first_word) {
  const auto is_packet = [&](const auto& p) { return p.name == first_word; };
  if (std::any_of(std::begin(kPackets), std::end(kPackets), is_packet))
    return "sdma as turns packet lines into dwords: sdma as FILE | sdma check";
  auto copies = instead_of_copies(text);
  return copies.empty() ? "this text has no dwords: a dump writes them in hexadecimal, with 8 digits or after 0x"
                        : copies;
}

/// A text with words and without dwords is not a dump.
std::optional<Diagnostic> not_a_dump(const DumpPart& part, std::string_view name) {
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
    wrong = at(name, n, static_cast<std::size_t>(word.data() - line.data()),
               "'" + std::string(word.substr(0, 40)) + "' is not a dword", instead_of_dwords(part.text, word));
    return false;
  });
  return wrong;
}

Result<TextDump, Diagnostic> read_part(const DumpPart& part, std::string_view name, std::vector<Diagnostic>& notes) {
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

/// umr's decoded stream has names and values of fields, and not all bits of all dwords.
std::optional<Diagnostic> umr_stream(std::string_view text, std::string_view name) {
  std::optional<Diagnostic> refused;
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    const auto opcode = line.find("Opcode 0x");
    if (line.find("Decoding IB at 0x") == line.npos &&
        (opcode == line.npos || line.find("hdr: 0x", opcode) == line.npos))
      return true;
    refused =
        at(name, n, 0, "this is a stream that umr has decoded: it has the fields of packets, and not all of their bits",
           "print the ring itself: umr -R RING, with a dword a line");
    return false;
  });
  return refused;
}

Diagnostic only_a_log(std::string_view name, const detail::Log& log, std::string_view text) {
  auto copies = instead_of_copies(text);
  return {.rule = std::string(kLogWithoutDump),
          .where = std::string(name),
          .message = "this is " + detail::describe(log) + ", and no dump of a ring",
          .hint = copies.empty() ? "sdma doctor RING LOG uses it" : std::move(copies)};
}

}  // namespace

bool is_wide_text(std::string_view bytes) noexcept { return detail::is_utf16(bytes); }

Result<TextDumps, Diagnostic> read_text_dump(std::string_view bytes, std::string_view name) {
  auto log = detail::read_log(bytes);
  if (!log.has_dump) return only_a_log(name, log, bytes);
  const auto plain = detail::plain_text(std::move(log.rest));
  const std::string_view text = plain;
  if (has_descriptors(text))
    return Diagnostic{.where = std::string(name),
                      .message = "these are descriptors of queues, not packets",
                      .hint = "sdma dis shows their fields; the packets are in the memory at ring_base"};
  if (const auto stream = umr_stream(text, name)) return *stream;
  TextDumps all;
  const auto note = [&](std::string message) {
    all.notes.push_back({.severity = Severity::note, .where = std::string(name), .message = std::move(message)});
  };
  const auto generation = detail::generation_in(text);
  const auto rings = detail::coredump_rings(text);
  if (rings.empty()) {
    auto parts = umr_rings(text);
    if (parts.empty()) parts.push_back({.text = text});
    for (auto& part : parts) {
      find_positions(part);
      auto d = read_part(part, name, all.notes);
      if (!d) return std::move(d.error());
      if (!d->form.empty() && !part.ring.empty()) d->form = "umr's print of ring " + part.ring + ": " + d->form;
      d->generation = generation;
      all.dumps.push_back(std::move(*d));
    }
    return all;
  }
  std::string others;
  for (const auto& r : rings) {
    if (!r.name.starts_with("sdma")) {
      others += (others.empty() ? "" : ", ") + r.name;
      continue;
    }
    auto d = read_part(
        {.text = r.text, .line = r.line, .ring = r.name, .rptr = r.rptr, .wptr = r.wptr, .layout = coredump_layout()},
        name, all.notes);
    if (!d) return std::move(d.error());
    if (r.dwords && *r.dwords != d->dwords.size())
      return at(name, r.line, 0,
                fmt::format("ring {} has {} dwords here, and says that it has {}", r.name, d->dwords.size(), *r.dwords),
                "save the whole devcoredump: the file seems to be cut off");
    d->form = "ring " + r.name + " of the kernel's devcoredump: " + d->form;
    d->generation = generation;
    all.dumps.push_back(std::move(*d));
  }
  auto buffers = detail::coredump_buffers(text, name);
  if (!buffers) return std::move(buffers.error());
  all.buffers = std::move(*buffers);
  if (all.dumps.empty())
    return at(name, rings.front().line, 0, "this devcoredump has no SDMA ring; it has " + others, "");
  if (!others.empty()) note("left out the rings of other engines: " + others);
  note("a devcoredump holds the kernel's own rings: the packets of processes are not in it");
  return all;
}

}}  // namespace sdma::v0_3
