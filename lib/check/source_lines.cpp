// SPDX-License-Identifier: MIT
#include "source_lines.hpp"

#include "../core/words.hpp"
#include "../schedule/parser.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

std::string_view code_of(std::string_view s) noexcept { return detail::trimmed(s.substr(0, s.find('#'))); }
std::string_view indentation(std::string_view s) noexcept { return s.substr(0, s.find_first_not_of(" \t")); }
bool is_agent(std::string_view keyword) noexcept {
  return keyword == "queue" || keyword == "host" || keyword == "kernel";
}

/// Where the value of a field begins; npos if the line does not have it.
std::size_t value_at(std::string_view line, std::string_view name) noexcept {
  const auto wanted = " " + std::string(name) + "=";
  const auto at = line.find(wanted);
  return at == line.npos ? at : at + wanted.size();
}

}  // namespace

SourceLines::SourceLines(std::string_view source) {
  while (!source.empty()) lines_.push_back({++last_, ++numbers_, std::string(detail::take_line(source))});
}

std::size_t SourceLines::find(LineId id) const noexcept {
  const auto at = std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.id == id; });
  return static_cast<std::size_t>(at - lines_.begin());
}
LineId SourceLines::id(std::size_t number) const noexcept {
  return number == 0 || number > lines_.size() ? 0 : lines_[number - 1].id;
}
std::string SourceLines::text(LineId id) const {
  const auto at = find(id);
  return at == lines_.size() ? std::string() : std::string(code_of(lines_[at].text));
}
std::string SourceLines::keyword(LineId id) const {
  auto line = text(id);
  if (line.starts_with("when "))
    if (const auto colon = line.find(": "); colon != line.npos) line = line.substr(colon + 2);
  return line.substr(0, line.find(' '));
}
std::vector<LineId> SourceLines::all() const {
  std::vector<LineId> out;
  for (const auto& l : lines_) out.push_back(l.id);
  return out;
}
LineId SourceLines::next(LineId id) const {
  const auto at = find(id) + 1;
  return at < lines_.size() ? lines_[at].id : 0;
}

SourceLines::Block SourceLines::block(LineId id) const {
  std::vector<LineId> open;
  Block found{};
  std::size_t depth = 0;
  for (const auto& l : lines_) {
    const auto word = keyword(l.id);
    if (l.id == id) {
      if (open.empty()) return {};
      found.begin = open.back();
      depth = open.size();
      if (word == "end") return {found.begin, id};
    }
    if (detail::opens_block(word)) open.push_back(l.id);
    if (word == "end" && !open.empty()) {
      if (found.begin != 0 && open.size() == depth) return {found.begin, l.id};
      open.pop_back();
    }
  }
  return {};
}
SourceLines::Block SourceLines::agent(LineId id) const {
  for (auto b = block(id); b.begin != 0; b = block(b.begin))
    if (is_agent(keyword(b.begin))) return b;
  return {};
}
std::vector<LineId> SourceLines::inside(Block b) const {
  std::vector<LineId> out;
  for (auto l = next(b.begin); b.begin != 0 && l != 0 && l != b.end; l = next(l)) out.push_back(l);
  return out;
}

void SourceLines::insert(LineId before, std::string text) {
  const auto at = find(before);
  if (at == lines_.size()) return;
  auto indent = std::string(indentation(lines_[at].text));
  if (keyword(before) == "end") indent += "  ";
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at), Line{++last_, 0, indent + text});
}
void SourceLines::replace(LineId id, std::string text) {
  const auto at = find(id);
  if (at == lines_.size()) return;
  auto& l = lines_[at];
  l.text = std::string(indentation(l.text)) + text;
  l.changed = true;
}
void SourceLines::remove(LineId id) {
  if (const auto at = find(id); at != lines_.size()) lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::string SourceLines::source() const {
  std::string out;
  for (const auto& l : lines_) out += l.text + "\n";
  return out;
}

std::vector<CheckEdit> SourceLines::edits() const {
  std::vector<CheckEdit> out;
  std::uint32_t next = 1;
  std::vector<const Line*> inserted;
  const auto removed = [&](std::uint32_t until) {
    for (; next < until; ++next) out.push_back({.line = next, .kind = CheckEdit::Kind::remove});
  };
  for (const auto& l : lines_) {
    if (l.number == 0) {
      inserted.push_back(&l);
      continue;
    }
    removed(l.number);
    for (const auto* i : inserted)
      out.push_back({.line = l.number, .kind = CheckEdit::Kind::insert, .text = std::string(code_of(i->text))});
    inserted.clear();
    if (l.changed)
      out.push_back({.line = l.number, .kind = CheckEdit::Kind::replace, .text = std::string(code_of(l.text))});
    next = l.number + 1;
  }
  removed(numbers_ + 1);
  return out;
}

std::string field_of(std::string_view line, std::string_view name) {
  const auto at = value_at(line, name);
  if (at == line.npos) return {};
  int depth = 0;
  auto end = at;
  for (; end < line.size() && (depth > 0 || line[end] != ' '); ++end)
    depth += line[end] == '(' || line[end] == '[' ? 1 : line[end] == ')' || line[end] == ']' ? -1 : 0;
  return std::string(line.substr(at, end - at));
}
std::string with_field(std::string_view line, std::string_view name, std::string_view value) {
  const auto at = value_at(line, name);
  if (at == line.npos) return std::string(line) + " " + std::string(name) + "=" + std::string(value);
  return std::string(line.substr(0, at)) + std::string(value) +
         std::string(line.substr(at + field_of(line, name).size()));
}

}}}  // namespace sdma::v0_3::check_detail
