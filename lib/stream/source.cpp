// SPDX-License-Identifier: MIT
#include "source.hpp"

#include <algorithm>

namespace sdma::inline v0::detail {
namespace {

/// Makes a quote from the text safe to show: it may be of any length, and may contain control characters.
std::string shown(std::string s) {
  constexpr std::size_t kLongest = 400, kEnd = 100;
  for (auto& c : s)
    if (c < ' ' || c > '~') c = '?';
  if (s.size() > kLongest) s.replace(kLongest - kEnd, s.size() - kLongest, "..");
  return s;
}

}  // namespace

Source::Source(std::string_view text, std::string_view file) : text_(text), file_(file) {
  for (auto at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) begins_.push_back(at + 1);
}

std::size_t Source::line(std::size_t at) const noexcept {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), at) - begins_.begin());
}

std::size_t Source::column(std::size_t at) const noexcept { return at - begins_[line(at) - 1] + 1; }

void Source::error(std::size_t at, std::string message, std::string hint) {
  if (++count_ > kMost) return;
  at = std::min(at, text_.size());
  auto error = error_at({.file = std::string(file_), .line = line(at), .column = column(at)},
                        shown(std::move(message)) + (context_ ? context_() : ""), shown(std::move(hint)));
  error.excerpt = excerpt(at);
  errors_.push_back({line(at), std::move(error)});
}

bool Source::full(std::size_t at) noexcept {
  if (count_ < kMost) return false;
  if (!unread_) unread_ = at;
  return true;
}

std::vector<Diagnostic> Source::take_errors() {
  std::stable_sort(errors_.begin(), errors_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Diagnostic> out;
  for (auto& entry : errors_) {
    const auto same = [&e = entry.second](const auto& o) { return o.where == e.where && o.message == e.message; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(entry.second));
  }
  if (unread_)
    out.push_back({.where = std::string(file_),
                   .message = "after " + std::to_string(kMost) + " errors, the text from line " +
                              std::to_string(line(std::min(*unread_, text_.size()))) + " on was not read"});
  else if (count_ > kMost)
    out.push_back(
        {.where = std::string(file_), .message = std::to_string(count_ - kMost) + " more errors are not shown"});
  return out;
}

std::string Source::excerpt(std::size_t at) const {
  // The line of a big WRITE is megabytes long: show only the part around the place.
  constexpr std::size_t kBefore = 72, kAfter = 40;
  const auto number = line(at), begin = begins_[number - 1];
  const auto end = std::min(text_.find('\n', at), text_.size());
  const auto from = at - begin > kBefore ? at - kBefore : begin;
  const auto until = std::min(end, at + kAfter);
  const std::string margin = "  " + std::to_string(number) + " | ";

  std::string out = margin;
  if (from > begin) out += "..";
  for (auto c : text_.substr(from, until - from)) out += c == '\t' || (c >= ' ' && c <= '~') ? c : '?';
  if (until < end) out += "..";
  out.append("\n").append(margin.size() - 2, ' ').append("| ");
  if (from > begin) out += "  ";
  // Tabs stay tabs, so that the caret is below its character whatever their width.
  for (auto c : text_.substr(from, at - from)) out += c == '\t' ? '\t' : ' ';
  return out += '^';
}

}  // namespace sdma::inline v0::detail
