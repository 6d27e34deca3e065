// SPDX-License-Identifier: MIT
#include "plain.hpp"

#include "line.hpp"
#include "log_forms.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::string_view kLittleMark = "\xff\xfe", kBigMark = "\xfe\xff";

constexpr std::string_view kQuotedPrintable = "quoted-printable";

std::string from_utf16(std::string_view bytes, bool big) {
  std::string out;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto high = static_cast<unsigned char>(bytes[big ? i : i + 1]);
    const auto low = static_cast<unsigned char>(bytes[big ? i + 1 : i]);
    if (i == 0 && high == 0xfe && low == 0xff) continue;
    out += high == 0 && low == 0xa0 ? ' ' : high == 0 && low < 0x80 ? static_cast<char>(low) : '?';
  }
  return out;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  if (text.find(what) == text.npos) return;
  std::string out;
  for (std::size_t at = 0;;) {
    const auto found = text.find(what, at);
    out.append(text, at, found - at);
    if (found == text.npos) break;
    out += by;
    at = found + what.size();
  }
  text = std::move(out);
}

/// A quotation, a table, code in a line: what Markdown and mail put around a line. `begin`, `end`: of the line.
void unmark(std::string& text, std::size_t begin, std::size_t end) {
  // What a container's runtime puts before each line.
  LogRecord record;
  const auto whole = std::string_view(text).substr(begin, end - begin);
  take_stream(whole, record);
  const auto prefix = record.part.data() ? whole.size() - record.part.size() : 0;
  std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(begin), prefix, ' ');
  auto first = begin;
  while (first < end && (text[first] == ' ' || text[first] == '\t' || text[first] == '>')) {
    if (text[first] == '>') text[first] = ' ';
    ++first;
  }
  const auto line = trimmed(std::string_view(text).substr(begin, end - begin));
  const bool table = line.size() > 2 && line.front() == '|' && line.back() == '|';
  const bool quoted = line.find("\"0x") != line.npos || line.find("'0x") != line.npos;
  for (auto i = begin; i < end; ++i) {
    const char c = text[i];
    if ((table && c == '|') || (quoted && (c == '"' || c == '\''))) text[i] = ' ';
    const bool edge = i == first || i + 1 == end;
    if (c == '`' && edge && text.compare(i, 3, "```") != 0) text[i] = ' ';
  }
}

/// 00007ff8`a1b20000 in WinDbg's output.
void join_halves(std::string& text) {
  constexpr std::size_t kHalf = 8;
  const auto run = [&](std::size_t at, int step) {
    std::size_t n = 0;
    while (n <= kHalf && at < text.size() && is_hex(text[at])) ++n, at += static_cast<std::size_t>(step);
    return n;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '`' || i == 0 || run(i - 1, -1) != kHalf || run(i + 1, 1) != kHalf) out += text[i];
  text = std::move(out);
}

/// gdb prints equal elements of an array once.
void expand_repeats(std::string& text) {
  constexpr std::string_view kBegin = " <repeats ", kEnd = " times>";
  constexpr std::size_t kMost = std::size_t{1} << 24;
  std::size_t left = kMost;
  std::string out;
  for (std::size_t at = 0;;) {
    const auto found = text.find(kBegin, at);
    out.append(text, at, found - at);
    if (found == text.npos) break;
    at = found + kBegin.size();
    const auto digits = std::min(text.find_first_not_of("0123456789", at), text.size()) - at;
    std::uint64_t times = 0;
    const auto word = out.find_last_of(" ,{\t\n") + 1;
    const std::string value = out.substr(word);
    const bool known = digits > 0 && digits < 10 && text.compare(at + digits, kEnd.size(), kEnd) == 0 &&
                       number_in(std::string_view(text).substr(at, digits), 10, times) && !value.empty();
    if (!known || times > left) {
      out += kBegin;
      continue;
    }
    left -= static_cast<std::size_t>(times);
    for (std::uint64_t i = 1; i < times; ++i) out.append(", ").append(value);
    at += digits + kEnd.size();
  }
  text = std::move(out);
}

/// A list of decimals becomes hexadecimal, if it cannot be hexadecimal already: a number is negative or has more than 8
/// digits, or the list says dtype=int32. Line ends stay.
void from_decimals(std::string& text) {
  constexpr std::string_view kOther = "0123456789-, \t\r\n[]";
  std::size_t done = 0;  // the end of the last list
  for (auto begin = text.find('['); begin != text.npos; begin = text.find('[', begin)) {
    const auto end = std::min(text.find_first_not_of(kOther, begin), text.size());
    const auto list = std::string_view(text).substr(begin, end - begin);
    const auto after = std::string_view(text).substr(end, text.find('\n', end) - end);
    const auto dtype = after.find("dtype=");
    const auto named = dtype == after.npos ? std::string_view{} : after.substr(dtype);
    const bool dwords = named.starts_with("dtype=uint32") || named.starts_with("dtype=int32") ||
                        named.starts_with("dtype=torch.int32") || named.starts_with("dtype=torch.uint32");
    std::string out;
    std::size_t numbers = 0;
    bool certain = dwords, fits = named.empty() || dwords;
    for (std::size_t i = 0; i < list.size() && fits;) {
      const auto next = std::min(list.find_first_not_of("0123456789-", i), list.size());
      if (next == i) {
        out += list[i] == '\n' ? '\n' : ' ';
        ++i;
        continue;
      }
      const bool negative = list[i] == '-';
      std::uint64_t v = 0;
      const auto digits = list.substr(i + negative, next - i - negative);
      fits = !digits.empty() && digits.size() <= 10 && number_in(digits, 10, v) && v <= (negative ? 0x80000000u : ~0u);
      certain = certain || negative || digits.size() > 8;
      constexpr std::string_view kDigits = "0123456789abcdef";
      out += "0x";
      for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[((negative ? 0 - v : v) >> shift) & 15];
      ++numbers;
      i = next;
    }
    if (!fits || !certain || numbers < 2 || list.find(',') == list.npos || list.find(']') == list.npos) {
      begin = end;
      continue;
    }
    // "tensor(" before the list and ", dtype=torch.int32)" after it.
    const auto line = std::max(text.rfind('\n', begin) + 1, done);
    const auto tail = dtype == after.npos ? (after.starts_with(')') ? 1 : 0) : after.size();
    text.replace(line, end + tail - line, out);
    begin = done = line + out.size();
  }
}

/// Mail in quoted-printable: "=3D" is '=', and a line that ends with '=' goes on in the next one. Lines that are joined
/// leave empty ones behind them, so that numbers of lines hold.
void from_quoted_printable(std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  std::size_t joined = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto high = i + 2 < text.size() ? kDigits.find(text[i + 1]) : kDigits.npos;
    const auto low = high != kDigits.npos ? kDigits.find(text[i + 2]) : kDigits.npos;
    if (text[i] == '=' && low != kDigits.npos) out += static_cast<char>(high * 16 + low), i += 2;
    else if (text.compare(i, 2, "=\n") == 0) ++joined, ++i;
    else if (text.compare(i, 3, "=\r\n") == 0) ++joined, i += 2;
    else out += text[i];
    if (text[i] == '\n' && out.ends_with('\n')) out.append(std::exchange(joined, 0), '\n');
  }
  text = std::move(out);
  replace_all(text, kQuotedPrintable, "8bit");  // as it is from now on
}

/// A page: without its tags, of which some end a line, and with the characters that it names.
void from_html(std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto name = i + 1 + (text.compare(i, 2, "</") == 0);
    const auto close = text[i] == '<' && name < text.size() && std::isalpha(static_cast<unsigned char>(text[name])) != 0
                           ? text.find_first_of("<>\n", i + 1)
                           : text.npos;
    if (close == text.npos || text[close] != '>') {
      out += text[i];
      continue;
    }
    for (const std::string_view end : {"br", "div", "p>", "li", "tr"})
      if (std::string_view(text).substr(name).starts_with(end) && text[name - 1] == '<' && close + 1 < text.size() &&
          text[close + 1] != '\n' && !out.empty() && out.back() != '\n') {
        out += '\n';
        break;
      }
    i = close;
  }
  struct Entity {
    std::string_view name, character;
  };
  for (const auto& [name, character] :
       {Entity{"&lt;", "<"}, Entity{"&gt;", ">"}, Entity{"&quot;", "\""}, Entity{"&#39;", "'"}, Entity{"&#x27;", "'"},
        Entity{"&nbsp;", " "}, Entity{"&amp;", "&"}})
    replace_all(out, name, character);
  text = std::move(out);
}

}  // namespace

std::string without_colours(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto end = text.npos;
    for (const std::string_view escape : {"\033[", "#033[", "\\x1b[", "\\033["})
      if (text.substr(i).starts_with(escape)) end = text.find_first_not_of("0123456789;", i + escape.size());
    if (end == text.npos) out += text[i];
    else i = end;
  }
  return out;
}

bool is_utf16(std::string_view bytes) noexcept {
  if (bytes.starts_with(kLittleMark) || bytes.starts_with(kBigMark)) return true;
  constexpr std::size_t kEnough = 16;
  if (bytes.size() < kEnough) return false;
  for (const std::size_t zero : {1u, 0u}) {
    bool all = true;
    for (std::size_t i = 0; i + 1 < bytes.size() && all; i += 2) {
      const char c = bytes[i + 1 - zero];
      all = bytes[i + zero] == 0 && ((c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n');
    }
    if (all) return true;
  }
  return false;
}

std::string TextDecoder::add(std::string_view bytes) {
  constexpr std::string_view kUtf8 = "\xef\xbb\xbf";
  if (bytes.empty()) return {};
  if (letters_ == Letters::unknown) {
    const bool big = bytes.starts_with(kBigMark) || (!bytes.starts_with(kLittleMark) && bytes.front() == 0);
    letters_ = !is_utf16(bytes) ? Letters::bytes : big ? Letters::big : Letters::little;
    if (bytes.starts_with(kUtf8)) bytes.remove_prefix(kUtf8.size());
  }
  const auto before = tail_.size();
  if (letters_ == Letters::bytes) {
    tail_ += bytes;
  } else {
    half_ += bytes;
    tail_ += from_utf16(half_, letters_ == Letters::big);
    half_ = half_.size() % 2 != 0 ? std::string(1, half_.back()) : std::string();
  }
  // Of mail, a line that ends with '=' goes on in the next one.
  auto end = std::string_view(tail_).substr(before).rfind('\n');
  if (end != tail_.npos) end += before;
  const auto goes_on = [&] {
    const auto line = std::string_view(tail_).substr(0, end);
    return line.ends_with('=') || line.ends_with("=\r");
  };
  if (end != tail_.npos && (mail_ || tail_.find(kQuotedPrintable) != tail_.npos))
    while (end != tail_.npos && goes_on()) end = end == 0 ? tail_.npos : tail_.rfind('\n', end - 1);
  if (end == tail_.npos) return {};
  auto lines = tail_.substr(end + 1);
  tail_.swap(lines);
  lines.resize(end + 1);
  return decoded(std::move(lines));
}

std::string TextDecoder::finish() { return decoded(std::exchange(tail_, {})); }

std::string TextDecoder::decoded(std::string text) {
  if (text.empty()) return text;
  if (text.find('\033') != text.npos) text = without_colours(text);
  // No-break blanks, then blanks without width.
  for (const std::string_view blank :
       {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x87", "\xe2\x80\x8b", "\xe2\x80\x8e", "\xe2\x81\xa0", "\xef\xbb\xbf"})
    replace_all(text, blank, " ");
  for (auto i = text.find('\r'); i < text.size() - 1; i = text.find('\r', i + 1))
    if (text[i + 1] != '\n' && text[i + 1] != '\r' && text[i + 1] != '\0') text[i] = '\n';
  mail_ = mail_ || text.find(kQuotedPrintable) != text.npos;
  page_ = page_ || text.find("<br") != text.npos || text.find("</pre>") != text.npos;
  if (mail_) from_quoted_printable(text);
  if (page_) from_html(text);
  return text;
}

std::string plain_text(std::string text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    unmark(text, begin, end > begin && text[end - 1] == '\r' ? end - 1 : end);
    begin = end + 1;
  }
  from_decimals(text);
  if (text.find('`') != text.npos) join_halves(text);
  if (text.find("<repeats") != text.npos) expand_repeats(text);
  return text;
}

}}}  // namespace sdma::v0_3::detail
