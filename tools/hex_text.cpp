#include "hex_text.hpp"

#include "input.hpp"

#include "sdma/core/number.hpp"
#include "sdma/packets/registry.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

namespace sdma::tool {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::string_view kSeparators = " \t,;{}[]()";

bool is_hex(std::string_view s) noexcept {
  return !s.empty() && s.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}
std::uint64_t hex(std::string_view s) noexcept {
  std::uint64_t v{};
  std::from_chars(s.data(), s.data() + s.size(), v, 16);
  return v;
}
bool has_prefix(std::string_view s) noexcept { return s.starts_with("0x") || s.starts_with("0X"); }
std::string_view digits(std::string_view s) noexcept { return has_prefix(s) ? s.substr(2) : s; }
std::string_view trim(std::string_view s) noexcept {
  const auto first = s.find_first_not_of(kBlank);
  return first == std::string_view::npos ? s.substr(0, 0) : s.substr(first, s.find_last_not_of(kBlank) - first + 1);
}
std::string_view without_end(std::string_view s) noexcept { return s.substr(0, s.find_last_not_of(kBlank) + 1); }
std::string in_quotes(std::string_view s) { return "'" + std::string(s.substr(0, 40)) + "'"; }

bool is_packet(std::string_view word) noexcept {
  return std::any_of(std::begin(kPackets), std::end(kPackets), [&](const auto& p) { return p.name == word; });
}

/// Two digits after 0x, as `xxd -i` writes bytes.
bool is_prefixed_pair(std::string_view s) noexcept { return has_prefix(s) && s.size() == 4 && is_hex(s.substr(2)); }

/// A number alone in brackets, `[0004]`: the index of the dword after it.
bool is_index(std::string_view line, std::string_view word) noexcept {
  const auto begin = static_cast<std::size_t>(word.data() - line.data());
  const auto open = begin == 0 ? std::string_view::npos : line.find_last_not_of(kBlank, begin - 1);
  const auto close = line.find_first_not_of(kBlank, begin + word.size());
  return open != std::string_view::npos && close != std::string_view::npos && line[open] == '[' && line[close] == ']';
}

constexpr std::string_view kOtherForms = "dump dwords or bytes: xxd -e, xxd -g1, hexdump -C, od -A n -v -t x4";

/// The length of a timestamp of the kernel's log, "[  12.345678] ".
std::size_t timestamp(std::string_view line) noexcept {
  const auto open = line.find_first_not_of(kBlank);
  if (open == std::string_view::npos || line[open] != '[') return 0;
  const auto close = line.find(']', open);
  if (close == std::string_view::npos) return 0;
  const auto inside = trim(line.substr(open + 1, close - open - 1));
  const auto dot = inside.find('.');
  const bool time = dot != std::string_view::npos && inside.find_first_not_of("0123456789.") == std::string_view::npos;
  return time ? close + 1 : 0;
}

/// The position after the last colon before a blank or the end; 0 if there is none.
std::size_t label_end(std::string_view line) noexcept {
  for (auto i = line.size(); i-- > 0;)
    if (line[i] == ':' && (i + 1 == line.size() || kBlank.find(line[i + 1]) != std::string_view::npos)) return i + 1;
  return 0;
}

void push(std::vector<std::uint8_t>& bytes, std::uint32_t dword) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(dword >> shift));
}

}  // namespace

Diagnostic HexText::error(std::size_t column, std::string message, std::string hint) const {
  return {.where = file_ + ":" + std::to_string(line_) + ":" + std::to_string(column + 1),
          .message = std::move(message),
          .hint = std::move(hint)};
}

bool HexText::tokens(std::string_view line, std::size_t begin, Parsed& p) const {
  struct Word {
    std::string_view text;
    std::size_t at;
  };
  std::vector<Word> words;
  for (auto at = line.find_first_not_of(kSeparators, begin); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(kSeparators, at), line.size());
    words.push_back({line.substr(at, end - at), at});
    at = line.find_first_not_of(kSeparators, end);
  }
  const auto all = [&](std::size_t from, std::size_t n) {
    return std::all_of(words.begin() + static_cast<std::ptrdiff_t>(from), words.end(),
                       [&](const Word& w) { return w.text.size() == n && is_hex(w.text); });
  };
  // hexdump -C writes no colon after its offset, and its last line is an offset alone.
  const bool bare_offset = !p.offset && p.label.empty() && !words.empty() && words[0].text.size() >= 7 &&
                           words[0].text.size() <= 16 && is_hex(words[0].text);
  if (bare_offset && ((words.size() > 1 && all(1, 2)) || (words.size() == 1 && bytes_without_colon_))) {
    p.offset = hex(words[0].text);
    words.erase(words.begin());
    p.pairs = true;
  }
  if ((words.size() > 1 || pairs_) && !words.empty() && all(0, 2)) p.pairs = true;
  const auto fail = [&](std::size_t at, std::string wrong, std::string hint) {
    p.bad = at;
    p.wrong = std::move(wrong);
    p.hint = std::move(hint);
    return false;
  };
  if (!p.pairs && words.size() == 1 && all(0, 2) && words[0].text[0] == '0')
    return fail(words[0].at, in_quotes(words[0].text) + " may be a byte or a dword",
                "write several bytes on a line, or write the dword with 0x or with 8 digits");
  if ((words.size() > 1 || pairs_) && !words.empty() &&
      std::all_of(words.begin(), words.end(), [](const Word& w) { return is_prefixed_pair(w.text); })) {
    p.pairs = pairs_ || std::any_of(words.begin(), words.end(), [](const Word& w) { return w.text[2] == '0'; });
    if (!p.pairs)
      return fail(words[0].at, "0x with two digits may be a byte or a dword",
                  "write bytes without 0x, and dwords with 8 digits");
  }
  if (words.size() > 1)
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (is_index(line, words[i].text))
        return fail(words[i].at, in_quotes(words[i].text) + " in brackets is the index of a dword, not a dword",
                    "remove it, or write it before the dword with a ':'");
  const auto quads =
      std::count_if(words.begin(), words.end(), [](const Word& w) { return is_hex(w.text) && w.text.size() == 4; });
  const auto numbers = std::count_if(words.begin(), words.end(), [](const Word& w) { return is_hex(digits(w.text)); });
  if (quads > 1 && quads == numbers)
    return fail(words[0].at, "groups of 4 digits may be in either order", std::string(kOtherForms));
  for (const auto& w : words) {
    auto number = digits(w.text);
    if (has_prefix(w.text) && (number.ends_with('u') || number.ends_with('U'))) number.remove_suffix(1);
    if (p.pairs && is_hex(number)) {
      p.bytes.push_back(static_cast<std::uint8_t>(hex(number)));
      continue;
    }
    const bool fits = has_prefix(w.text) ? number.size() <= 8 : number.size() == 8 || number.size() <= 5;
    if (is_hex(number) && fits) {
      push(p.bytes, static_cast<std::uint32_t>(hex(number)));
      continue;
    }
    const bool decimal = w.text.find_first_not_of("0123456789") == std::string_view::npos;
    return fail(w.at, in_quotes(w.text) + " is not a dword",
                is_packet(w.text) ? "sdma as turns packet lines into dwords: sdma as FILE | sdma check"
                : !is_hex(number) ? "only numbers, `label:` before them, and `# comments` are read"
                : decimal && (number.size() == 9 || number.size() == 10) ? "numbers are hexadecimal"
                : number.size() > 8 ? "write 64 bits as two dwords, the low one first"
                                    : "a dword is 8 digits, or 0x...; an offset ends with ':' (od: -A n omits it)");
  }
  return true;
}

HexText::Parsed HexText::parse(std::string_view line) const {
  Parsed p;
  auto begin = timestamp(line);
  if (const auto end = label_end(line); end > begin) {
    p.label = trim(line.substr(begin, end - begin - 1));
    begin = end;
    // A debugger shows the symbol after the address: 0x7ffff7fb1000 <ring+16>:
    const auto symbol = p.label.ends_with('>') ? p.label.find(" <") : std::string_view::npos;
    if (symbol != std::string_view::npos) p.label = trim(p.label.substr(0, symbol));
    const auto blank = p.label.find_last_of(kBlank);
    const auto last = blank == std::string_view::npos ? p.label : p.label.substr(blank + 1);
    const auto number = digits(last);
    if (is_hex(number) && number.size() <= 16 && (has_prefix(last) || number.size() >= 4)) p.offset = hex(number);
    // Other words that look like a dword were meant as one, and so were numbers with nothing but blanks between them.
    std::size_t words = p.offset ? 1 : 0, numbers = words;
    std::string_view wrong;
    bool dwords = false;
    for (auto rest = p.offset ? p.label.substr(0, p.label.size() - last.size()) : p.label; !trim(rest).empty();) {
      rest = trim(rest);
      const auto word = rest.substr(0, rest.find_first_of(kBlank));
      rest.remove_prefix(word.size());
      const auto core = word.ends_with(':') ? word.substr(0, word.size() - 1) : word;
      ++words;
      if (!is_hex(digits(core))) continue;
      ++numbers;
      const bool dword = has_prefix(core) || core.size() == 8;
      if (wrong.empty() || (dword && !dwords)) wrong = core;
      dwords = dwords || dword;
    }
    if (dwords || (!wrong.empty() && words > 1 && numbers == words)) {
      p.bad = static_cast<std::size_t>(wrong.data() - line.data());
      p.wrong = "a label cannot contain the number " + in_quotes(wrong);
      p.hint = "everything before the last ':' of a line is a label: break the line after the first dwords";
      return p;
    }
  }
  tokens(line, begin, p);
  return p;
}

/// Returns the line without a column that shows its bytes as characters, if it has one. `swapped`: according to the column,
/// the digits of each dword are in byte order.
std::string_view HexText::without_characters(std::string_view line, bool& swapped) const {
  constexpr std::size_t kLongest = 1024;
  constexpr int kMostGaps = 64;
  if (line.size() > kLongest) return line;
  // Each run of blanks may be where the column begins, and each is a new attempt to read what is before it.
  auto gap = line.find("  ");
  for (int n = 0; n < kMostGaps && gap != std::string_view::npos;
       ++n, gap = line.find("  ", line.find_first_not_of(' ', gap))) {
    const auto head = line.substr(0, gap);
    const auto p = parse(head);
    if (!p.wrong.empty() || p.bytes.empty()) continue;
    std::string shown;
    for (const auto b : p.bytes) shown += b >= ' ' && b <= '~' ? static_cast<char>(b) : '.';
    auto tail = line.substr(gap);
    if (tail.ends_with('|') && trim(tail) == "|" + shown + "|") return head;
    // Blanks at the end of a line are often lost.
    if (p.offset) shown = without_end(shown);
    tail = p.offset ? without_end(tail) : tail;
    const auto shows = [&] {
      return tail.size() >= shown.size() + 2 && tail.ends_with(shown) &&
             trim(tail.substr(0, tail.size() - shown.size())).empty();
    };
    if (shows()) return head;
    if (p.pairs || shown.size() % 4 != 0) continue;
    for (auto at = shown.begin(); at != shown.end(); at += 4) std::reverse(at, at + 4);
    if ((swapped = shows())) return line;
  }
  return line;
}

/// True if the offset of this line shows that no bytes are missing before it. Repeats the bytes of a `*`.
bool HexText::follow_offset(Parsed& p) {
  if (!p.offset) return true;
  const auto now = *p.offset;
  const bool star = std::exchange(star_, false);
  if (star && offset_ && now <= *offset_) {
    p.wrong = "this offset does not say how often the preceding '*' repeats";
    p.hint = "it must be greater than the offset before the '*'";
    return false;
  }
  if (offset_ && now < *offset_) ++restarts_;
  if (offset_ && now == *offset_ && since_ > 0) {  // a repeated number is a name, not an offset
    p.offset.reset();
    return true;
  }
  if (offset_ && now > *offset_) {
    auto delta = now - *offset_;
    if (unit_ == 0 && since_ > 0 && !star) unit_ = delta == since_ ? 1 : delta * 4 == since_ ? 4 : 0;
    delta *= unit_ ? unit_ : 1;
    if (star && delta > since_ && !last_.empty() && (delta - since_) % last_.size() == 0) {
      if (!repeated_.take(delta - since_)) {
        p.wrong = "the '*' before this offset repeats " + size_text(delta - since_) +
                  " bytes, but all '*' of a text can repeat only " + size_text(repeated_.limit());
        p.hint = "give only the part of the dump that has packets";
        return false;
      }
      repeat_ = delta - since_;
      since_ = delta;
    }
    if (delta != since_) {
      p.wrong = "this offset is " + std::to_string(delta) + " more than the previous one, but " +
                std::to_string(since_) + " bytes lie between them";
      p.hint = "lines are missing; if it is not an offset, write it without the ':' or after a #";
      return false;
    }
  }
  offset_ = now;
  since_ = 0;
  return true;
}

/// True if the first dword of this line seems to be an offset, compared with the previous line.
bool HexText::offset_without_colon(const Parsed& p) {
  const auto before = std::exchange(first_, std::nullopt);
  const auto dwords_before = std::exchange(dwords_, p.bytes.size() / 4);
  if (p.offset || p.pairs || p.bytes.size() < 4) return false;
  std::uint32_t first;
  std::memcpy(&first, p.bytes.data(), sizeof first);
  first_ = first;
  if (!before || dwords_before < 3) return false;
  const auto step = std::uint64_t{first} - *before, data = std::uint64_t{dwords_before - 1};
  indices_ = step == data ? indices_ + 1 : 0;
  // Offsets in dwords are small numbers, and a line may begin with such a number by chance.
  return step == 4 * data || indices_ == 2;
}

Result<void, Diagnostic> HexText::line(std::string_view line, std::vector<std::uint32_t>& out) {
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line_ == 1) line = without_mark(line);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') return error(i, "this text has colours", "print it without colours: dmesg --color=never");
    if (static_cast<unsigned char>(line[i]) < ' ' && line[i] != '\t')
      return error(i, "this is not text", "--input=binary reads it as the ring's bytes");
  }
  bool swapped = false;
  const auto shorter = without_characters(line, swapped);
  if (swapped)
    return error(0, "the characters at the end of the line show the bytes of each dword in the other order",
                 std::string(kOtherForms));
  if (shorter.size() == line.size())
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] == '#' && (i == 0 || kBlank.find(line[i - 1]) != std::string_view::npos)) {
        line = line.substr(0, i);
        break;
      }
  if (shorter.size() < line.size()) line = shorter;
  if (trim(line).empty()) return {};
  if (trim(line) == "*") {
    if (last_.empty() || !offset_) return error(0, "'*' repeats the previous line, which has no offset", "");
    star_ = true;
    return {};
  }

  auto p = parse(line);
  if (!p.wrong.empty()) return error(p.bad, p.wrong, p.hint);
  if (!follow_offset(p)) return error(0, p.wrong, p.hint);
  if (star_) return error(0, "'*' on the previous line needs an offset here, which says how often it repeats", "");
  if (repeats()) return waiting_ = std::move(p), Result<void, Diagnostic>();
  return take(std::move(p), out);
}

Result<void, Diagnostic> HexText::repeat(std::vector<std::uint32_t>& out) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (std::size_t n = 0; n < kPiece && repeats(); n += last_.size(), repeat_ -= last_.size())
    rest_.insert(rest_.end(), last_.begin(), last_.end());
  move_dwords(out);
  return repeats() ? Result<void, Diagnostic>() : take(std::move(waiting_), out);
}

/// Takes the bytes of a line whose offset is right.
Result<void, Diagnostic> HexText::take(Parsed p, std::vector<std::uint32_t>& out) {
  if (offset_without_colon(p))
    return error(0, "the first number of each line grows like an offset, but no ':' follows it",
                 "write the ':'; if it is data, put an offset and ':' before each line");
  if (!p.label.empty() && !p.offset && labels_++ == 0) {
    first_label_ = p.label;
    first_label_line_ = line_;
  }
  if (!p.pairs && rest_.size() % 4 != 0)
    return error(
        0,
        "dwords follow a group of bytes that is not a whole dword: " + std::to_string(rest_.size() % 4) + " left over",
        "write bytes in groups of four");
  bytes_without_colon_ = p.pairs && p.label.empty() && p.offset;
  pairs_ = p.pairs;
  rest_.insert(rest_.end(), p.bytes.begin(), p.bytes.end());
  since_ += p.bytes.size();
  last_ = std::move(p.bytes);
  move_dwords(out);
  return {};
}

void HexText::move_dwords(std::vector<std::uint32_t>& out) {
  const auto whole = rest_.size() / 4, before = out.size();
  out.resize(before + whole);
  if (whole > 0) std::memcpy(out.data() + before, rest_.data(), whole * 4);
  rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(whole * 4));
}

Result<void, Diagnostic> HexText::finish(std::vector<Diagnostic>& notes) const {
  if (star_) return error(0, "'*' at the end needs an offset after it, which says how often it repeats", "");
  if (!rest_.empty())
    return error(0, "the size is not a multiple of 4 bytes: " + std::to_string(rest_.size()) + " left over at the end",
                 "a ring consists of whole dwords: check that no byte is missing");
  if (labels_ > 0)
    notes.push_back({.severity = Severity::note,
                     .where = file_,
                     .message = "text before a ':' was treated as a label on " + std::to_string(labels_) + " line" +
                                (labels_ > 1 ? "s" : "") + ", first on line " + std::to_string(first_label_line_) +
                                ": " + in_quotes(first_label_)});
  if (restarts_ > 0)
    notes.push_back({.severity = Severity::note,
                     .where = file_,
                     .message = "offsets restart " + std::to_string(restarts_) + " time" + (restarts_ > 1 ? "s" : "") +
                                ": the dumps are read one after another"});
  return {};
}

}  // namespace sdma::tool
