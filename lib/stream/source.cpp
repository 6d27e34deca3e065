#include "source.hpp"

#include <algorithm>

namespace sdma {
inline namespace v0 {
namespace detail {
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

std::size_t Source::line(std::size_t at) const noexcept {
  const auto before = text_.substr(0, at);
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

void Source::error(std::size_t at, std::string message, std::string hint) {
  if (++count_ > kMost) return;
  at = std::min(at, text_.size());
  const auto newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const auto begin = newline == std::string_view::npos ? 0 : newline + 1;
  const auto number = line(at);
  errors_.push_back({.where = std::string(file_) + ':' + std::to_string(number) + ':' + std::to_string(at - begin + 1),
                     .message = shown(std::move(message)) + context_,
                     .hint = shown(std::move(hint)),
                     .excerpt = excerpt(begin, at, number)});
}

std::string Source::excerpt(std::size_t begin, std::size_t at, std::size_t number) const {
  // The line of a big WRITE is megabytes long: show only the part around the place.
  constexpr std::size_t kBefore = 72, kAfter = 40;
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

}  // namespace detail
}  // namespace v0
}  // namespace sdma
