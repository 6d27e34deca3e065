// SPDX-License-Identifier: MIT
#include "layout.hpp"

#include "../core/plural.hpp"
#include "plausible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::size_t kSurveyed = 4096;

struct Row {
  std::size_t number;
  CutLine cut;
  bool after_star;  ///< a `*` before it stands for lines that are left out
  const std::vector<DumpCell>& cells() const noexcept { return cut.line.cells; }
  std::size_t marked() const noexcept { return cut.line.marked(); }
};
using Rows = std::vector<Row>;

Rows rows_of(std::string_view text) {
  Rows rows;
  bool star = false;
  each_line(text, 1, [&](std::string_view whole, std::size_t number) {
    const auto line = without_stamp(whole);
    auto cut = cut_characters(line);
    if (trimmed(line) == "*") star = true;
    else if (!cut.line.cells.empty()) rows.push_back({number, std::move(cut), std::exchange(star, false)});
    return rows.size() < kSurveyed;
  });
  return rows;
}

bool is_sentence(const Row& r) noexcept { return r.cut.line.is_sentence(); }

/// How the column `c` of these rows grows, if the numbers after `lead` columns have `size` bytes each.
struct Growth {
  std::size_t steps = 0, matches = 0;
  bool from_zero = false;
};
Growth growth(const Rows& rows, std::size_t c, std::size_t lead, std::uint32_t size, DumpPosition p) {
  Growth g;
  std::optional<std::uint64_t> before;
  std::uint64_t bytes = 0;
  for (const auto& r : rows) {
    if (r.cells().size() <= c) continue;
    const auto& cell = r.cells()[c];
    std::uint64_t now;
    if (!cell.in_radix(p.radix, now)) return {};
    if (before && now > *before && !r.after_star) {
      ++g.steps;
      g.matches += p.bytes == 0 ? now - *before == 1 : (now - *before) * p.bytes == bytes;
    }
    if (!before) g.from_zero = now == 0;
    before = now;
    bytes = r.cells().size() > lead ? (r.cells().size() - lead) * std::uint64_t{size} : 0;
  }
  return g;
}

/// The position that column `c` is, according to how its numbers grow; none if they do not grow so.
std::optional<DumpPosition> position_of(const Rows& rows, std::size_t c, std::size_t lead, std::uint32_t size,
                                        bool looks_different) {
  std::optional<DumpPosition> best;
  std::size_t most = 0;
  for (const unsigned radix : {16u, 8u, 10u})
    for (const std::uint32_t bytes : {1u, 4u, size, 8u, 0u}) {
      const DumpPosition p{.bytes = bytes, .radix = radix};
      const auto g = growth(rows, c, lead, size, p);
      if (g.matches <= most || g.matches * 4 < g.steps * 3) continue;
      // od writes octal and decimal offsets, with 7 digits or more and without a colon.
      const auto& first = rows.front().cells();
      if (radix != 16 && g.matches < 2 && (c >= first.size() || first[c].marked || first[c].digits != 7)) continue;
      // Two lines may agree by chance, unless the column looks different or its numbers differ by whole lines of bytes.
      const bool certain = g.matches >= 2 || looks_different || (bytes == 1 && g.from_zero);
      if (!certain || (bytes == 0 && !looks_different)) continue;
      best = p;
      most = g.matches;
    }
  return best;
}

/// Most lines' number of cells after the positions.
std::size_t usual_count(const Rows& rows, std::size_t lead) {
  std::map<std::size_t, std::size_t> counts;
  for (const auto& r : rows)
    if (r.cells().size() > lead) ++counts[r.cells().size() - lead];
  std::size_t best = 0, most = 0;
  for (const auto& [n, times] : counts)
    if (times >= most) best = n, most = times;
  return best;
}

class Survey {
 public:
  explicit Survey(Rows rows) : rows_(std::move(rows)) {}

  DumpLayout make() {
    if (rows_.empty()) return l_;
    l_.any = true;
    leave_out_sentences();
    style();
    if (l_.sentences && l_.digits != 8) l_.any = false;
    if (!l_.any) return l_;
    positions();
    order();
    radix();
    l_.per_line = usual_count(rows_, l_.positions);
    return l_;
  }

 private:
  void leave_out_sentences() {
    const auto sentences = static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.end(), is_sentence));
    l_.sentences = sentences == rows_.size();
    if (!l_.sentences) std::erase_if(rows_, is_sentence);
    std::size_t marked = 0, labelled = 0;
    for (const auto& r : rows_) {
      marked += r.marked() > 0 && r.marked() < r.cells().size();
      labelled += !r.cut.line.label.empty();
    }
    l_.marked = marked * 2 > rows_.size();
    if (l_.marked) std::erase_if(rows_, [](const Row& r) { return r.marked() == 0 && r.cells().size() < 2; });
    l_.labelled = labelled * 2 > rows_.size();
    if (rows_.empty()) l_.any = false;
  }

  /// Digits and prefix of the last number of the lines. A line with a single number counts only if no line has more.
  void style() {
    const bool several = std::any_of(rows_.begin(), rows_.end(), [](const Row& r) { return r.cells().size() > 1; });
    std::map<std::pair<bool, std::uint32_t>, std::size_t> votes;
    std::size_t all = 0;
    for (const auto& r : rows_) {
      if (several && r.cells().size() < 2) continue;
      const auto& last = r.cells().back();
      if (last.marked) continue;
      const auto weight = r.cells().size() - std::min(r.marked(), r.cells().size() - 1);
      votes[{last.prefixed, last.digits}] += weight;
      all += weight;
    }
    for (const auto& [key, n] : votes)
      if (n * 10 >= all * 9) {
        l_.prefixed = key.first;
        l_.digits = key.second;
      }
    // Lines of one long number: the last line is shorter.
    if (l_.digits == 0)
      for (const auto& [key, n] : votes)
        if (key.second > 16 && n * 2 >= all) l_.digits = key.second;
    // Numbers without leading zeros have one width by chance.
    if (l_.digits != 0 && !has_width(l_.digits)) l_.digits = 0;
  }
  bool has_width(std::uint32_t digits) const {
    if (digits == 2 || digits == 4 || digits == 8 || digits == 16) {
      for (const auto& r : rows_)
        for (std::size_t i = std::max<std::size_t>(r.marked(), r.cells().size() > 2 ? 1 : 0); i < r.cells().size(); ++i)
          if (r.cells()[i].digits != digits && r.cells().size() > 1 && i > 1) return false;
      return true;
    }
    return digits > 8 && digits % 2 == 0;
  }

  /// The sizes that a number of this style may have, the likeliest first.
  std::vector<std::uint32_t> sizes() const {
    switch (l_.digits) {
      case 2: return l_.prefixed ? std::vector<std::uint32_t>{1, 4} : std::vector<std::uint32_t>{1};
      case 4: return l_.prefixed ? std::vector<std::uint32_t>{2, 4} : std::vector<std::uint32_t>{2};
      case 0:
      case 8: return {4};
      default: return {l_.digits / 2};
    }
  }

  void positions() {
    std::size_t lead = 0;
    if (l_.marked) {
      std::map<std::size_t, std::size_t> counts;
      for (const auto& r : rows_)
        if (r.marked() > 0) ++counts[r.marked()];
      std::size_t most = 0;
      for (const auto& [n, times] : counts)
        if (times > most) lead = n, most = times;
    }
    size_ = sizes().front();
    for (const auto size : sizes())
      if (find_positions(lead, size)) return;
    if (lines_ && lead == 0 && rows_.size() > 2) {
      l_.positions = 1;
      l_.position[0] = *lines_;
      return;
    }
    l_.positions = std::min(lead, DumpLayout::kMostPositions);
    if (l_.positions > 0) l_.position[l_.positions - 1] = assumed(l_.positions - 1);
    if (lead > DumpLayout::kMostPositions)
      doubt("more than two numbers of this line are marked as positions",
            "a line is: an index, an offset, then dwords");
    if (lead == 0) single_line();
  }
  /// A marked column that no step confirms: an index in brackets, else an offset in bytes.
  DumpPosition assumed(std::size_t c) const {
    for (const auto& r : rows_)
      if (r.cells().size() > c) return {.bytes = r.cut.line.label.empty() && r.cut.line.equals ? 4u : 1u};
    return {};
  }
  bool differs(std::size_t c) const {
    return std::all_of(rows_.begin(), rows_.end(), [&](const Row& r) {
      return r.cells().size() < 2 || c + 1 >= r.cells().size() || r.cells()[c].prefixed != r.cells().back().prefixed ||
             r.cells()[c].digits != r.cells().back().digits;
    });
  }
  bool find_positions(std::size_t marked, std::uint32_t size) {
    // More columns first: of an index and an offset, the offset alone would leave the index as a dword.
    for (std::size_t lead = DumpLayout::kMostPositions; lead >= std::max<std::size_t>(marked, 1); --lead) {
      if (usual_count(rows_, lead) == 0) continue;
      std::array<DumpPosition, DumpLayout::kMostPositions> found{};
      bool all = true, bytes = false;
      for (std::size_t c = 0; c < lead && all; ++c) {
        const auto p = position_of(rows_, c, lead, size, c < marked || differs(c));
        if (p) found[c] = *p, bytes = bytes || p->bytes != 0;
        else all = false;
      }
      if (!all) continue;
      if (!bytes) {
        // Numbers of lines, as cat -n writes them, are no position, but no dwords either.
        if (lead == 1 && marked == 0) lines_ = found[0];
        continue;
      }
      l_.positions = lead;
      l_.position = found;
      size_ = size;
      confirmed_ = true;
      return true;
    }
    return false;
  }
  /// One line has no steps. Its first number is an offset if it is written in another width, or if it is a multiple of
  /// the bytes that follow and they are as many as a line of a dump has.
  void single_line() {
    std::size_t with_data = 0;
    const Row* only = nullptr;
    for (const auto& r : rows_)
      if (r.cells().size() > 1) ++with_data, only = &r;
    if (with_data != 1 || rows_.front().cells().size() < 2) return;
    const auto& cells = only->cells();
    const auto n = cells.size() - 1;
    const auto size = sizes().front();
    const bool power = (n & (n - 1)) == 0;
    const bool wide = cells[0].digits > 5 || cells[0].prefixed;
    const bool same = !differs(0);
    const bool offset = same ? power && n >= 4 && cells[0].value % (n * size) == 0 && l_.digits != 0
                             : (l_.digits != 0 || wide) && cells[0].padded() && cells[0].value % size == 0;
    if (!offset) return;
    l_.positions = 1;
    l_.position[0] = {.bytes = 1};
  }

  /// Whether digits stand in the order of the value or of memory.
  void order() {
    std::size_t values = 0, memory = 0, both = 0;
    for (const auto& r : rows_) {
      both += r.cut.shows == CutLine::Shows::both;
      values += r.cut.shows == CutLine::Shows::values;
      memory += r.cut.shows == CutLine::Shows::memory;
    }
    switch (l_.digits) {
      case 0: l_.unit = DumpUnit::dword; return;
      case 2: return two_digits();
      case 4: return four_digits(values, memory);
      case 8:
        l_.unit = memory > values ? DumpUnit::group : DumpUnit::dword;
        if (memory == 0 && values == 0 && both > 0) eight_digits();
        return;
      case 16:
        l_.unit = memory > values ? DumpUnit::group : DumpUnit::qword;
        if (l_.positions == 0 && !l_.prefixed)
          doubt("16 digits may be one number of 64 bits or 8 bytes in order",
                "write 64 bits as two dwords, the low one first");
        return;
      default: l_.unit = DumpUnit::group; return;
    }
  }
  /// The characters fit both orders, as dots do: the order in which more dwords are packets without reserved bits.
  void eight_digits() {
    const auto packets = [&](DumpUnit unit) {
      std::vector<std::uint8_t> bytes;
      for (const auto& r : rows_)
        for (auto i = l_.positions; i < r.cells().size(); ++i) append_bytes(bytes, r.cells()[i], unit);
      std::vector<std::uint32_t> dwords(bytes.size() / 4);
      if (!dwords.empty()) std::memcpy(dwords.data(), bytes.data(), dwords.size() * 4);
      return plausibility(dwords, catalogue(kDefaultGeneration));
    };
    const auto as_values = packets(DumpUnit::dword), as_bytes = packets(DumpUnit::group);
    if (as_bytes > as_values) l_.unit = DumpUnit::group;
    else if (as_bytes == as_values)
      doubt("groups of 8 digits may be in either order",
            "dump dwords or bytes: xxd -e, xxd -g1, hexdump -C, od -A n -v -t x4");
  }
  /// Whether some number has leading zeros, which shows its width.
  bool padded() const {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& r) {
      return std::any_of(r.cells().begin() + static_cast<std::ptrdiff_t>(l_.positions), r.cells().end(),
                         [](const DumpCell& c) { return c.padded(); });
    });
  }
  void two_digits() {
    l_.unit = DumpUnit::byte;
    if (confirmed_) {
      if (size_ == 4) l_.unit = DumpUnit::dword, l_.digits = 0;
      return;
    }
    const bool alone = usual_count(rows_, l_.positions) == 1 && rows_.size() > 1;
    if (l_.prefixed && !padded())
      doubt("0x with two digits may be a byte or a dword", "write bytes without 0x, and dwords with 8 digits");
    if (!l_.prefixed && (alone || usual_count(rows_, l_.positions) == 1)) {
      const auto& c = rows_.front().cells().back();
      if (padded())
        doubt("'" + std::string(c.text) + "' may be a byte or a dword",
              "write several bytes on a line, or write the dword with 0x or with 8 digits");
      else l_.unit = DumpUnit::dword, l_.digits = 0;
    }
  }
  void four_digits(std::size_t values, std::size_t memory) {
    if (l_.prefixed) {
      const bool halves = confirmed_ ? size_ == 2 : padded();
      if (!confirmed_ && !halves && usual_count(rows_, l_.positions) > 1)
        doubt("0x with four digits may be 16 bits or a dword", "write dwords with 8 digits");
      if (halves) l_.unit = DumpUnit::half;
      else l_.unit = DumpUnit::dword, l_.digits = 0;
      return;
    }
    if (usual_count(rows_, l_.positions) == 1 && !confirmed_ && values + memory == 0) {
      l_.unit = DumpUnit::dword, l_.digits = 0;
      return;
    }
    // xxd writes a colon after the offset and groups of bytes; hexdump and od write neither colon nor groups.
    if (values != memory) l_.unit = values > memory ? DumpUnit::half : DumpUnit::group;
    else if (l_.positions > 0) l_.unit = l_.marked ? DumpUnit::group : DumpUnit::half;
    else
      doubt("groups of 4 digits may be in either order",
            "dump dwords or bytes: xxd -e, xxd -g1, hexdump -C, od -A n -v -t x4");
  }
  /// Numbers without 0x are hexadecimal, unless they look like another radix: od prints octal, debuggers decimal.
  void radix() {
    if (l_.prefixed || l_.digits != 0 || l_.unit != DumpUnit::dword) return;
    std::size_t all = 0, bytes = 0, words = 0, long_ones = 0;
    bool letters = false, padded = false, octal = true, commas = false;
    for (const auto& r : rows_)
      for (auto i = l_.positions; i < r.cells().size(); ++i, ++all) {
        const auto& c = r.cells()[i];
        const auto text = c.without_prefix();
        const bool offset = i == 0 && c.digits == 7;  // of od, which two lines do not prove
        bytes += c.digits == 3 || offset;
        words += c.digits == 6 || offset;
        long_ones += c.digits >= 4;
        letters = letters || c.prefixed || text.find_first_not_of("0123456789") != text.npos;
        padded = padded || c.padded();
        octal = octal && text.find_first_not_of("01234567") == text.npos;
        if (i > l_.positions) {
          const auto& before = r.cells()[i - 1].text;
          const std::string_view between{before.data() + before.size(),
                                         static_cast<std::size_t>(c.text.data() - before.data()) - before.size()};
          commas = commas || between.find(',') != between.npos;
        }
      }
    constexpr std::size_t kSeveral = 4;
    if (octal && padded && all >= kSeveral && (bytes == all || words == all))
      return doubt(fmt::format("numbers of {} digits may be octal, as od prints them without -t", bytes == all ? 3 : 6),
                   "dump dwords: od -A x -v -t x4");
    const bool from_od = l_.positions > 0 && l_.position[0].radix != 16;
    if (!letters && !padded && long_ones > 0 && (commas || from_od || long_ones >= kSeveral))
      doubt("these numbers may be decimal or hexadecimal", "write hexadecimal numbers with 0x or with 8 digits");
  }
  void doubt(std::string what, std::string hint) {
    l_.doubt = std::move(what);
    l_.doubt_hint = std::move(hint);
    l_.doubt_line = rows_.front().number;
    const auto& cells = rows_.front().cells();
    l_.doubt_column = cells[std::min(l_.positions, cells.size() - 1)].at;
  }

  Rows rows_;
  DumpLayout l_;
  std::uint32_t size_ = 4;
  bool confirmed_ = false;
  std::optional<DumpPosition> lines_{};  ///< the first column numbers the lines
};

}  // namespace

void append_bytes(std::vector<std::uint8_t>& out, const DumpCell& cell, DumpUnit unit) {
  const auto little = [&](std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(cell.value >> (8 * i)));
  };
  switch (unit) {
    case DumpUnit::dword: return little(4);
    case DumpUnit::byte: return little(1);
    case DumpUnit::half: return little(2);
    case DumpUnit::qword: return little(8);
    case DumpUnit::group: {
      const auto digits = cell.without_prefix();
      for (std::size_t i = 0; i + 2 <= digits.size(); i += 2) {
        std::uint64_t b;
        number_in(digits.substr(i, 2), 16, b);
        out.push_back(static_cast<std::uint8_t>(b));
      }
    }
  }
}

CutLine cut_characters(std::string_view line) {
  constexpr std::size_t kLongest = 1024;
  constexpr int kMostGaps = 64;
  CutLine whole{parse_line(line)};
  if (line.size() > kLongest) return whole;
  // Each run of blanks may be where the column begins, and each is a new attempt to read what is before it.
  auto gap = line.find("  ");
  for (int n = 0; n < kMostGaps && gap != std::string_view::npos;
       ++n, gap = line.find("  ", line.find_first_not_of(' ', gap))) {
    auto head = parse_line(line.substr(0, gap));
    const auto tail = trimmed(line.substr(gap));
    if (head.cells.empty() || !head.tail.empty() || tail.empty()) continue;
    for (const auto skip : {head.marked(), std::size_t{1}}) {
      if (skip >= head.cells.size()) continue;
      const auto digits = head.cells[skip].digits;
      if (digits % 2 != 0 || !std::all_of(head.cells.begin() + static_cast<std::ptrdiff_t>(skip), head.cells.end(),
                                          [&](const DumpCell& c) { return c.digits == digits && !c.prefixed; }))
        continue;
      std::vector<std::uint8_t> bytes;
      for (auto i = skip; i < head.cells.size(); ++i) append_bytes(bytes, head.cells[i], DumpUnit::group);
      const auto shows = [&] {
        std::string shown;
        for (const auto b : bytes) shown += b >= ' ' && b <= '~' ? static_cast<char>(b) : '.';
        if (tail == "|" + shown + "|" || tail == ">" + shown + "<") return true;
        // Blanks at both ends of the column are lost in `tail`; the column begins where the line's last characters do.
        const auto raw = line.substr(gap);
        const auto end = shown.find_last_not_of(' ') + 1;
        if (skip == 0 && end != shown.size() && !raw.ends_with(shown)) return false;
        auto visible = std::string_view(shown).substr(0, skip == 0 ? shown.size() : end);
        auto right = raw.substr(0, raw.find_last_not_of(' ') + 1);
        if (skip == 0) right = raw;
        return right.size() >= visible.size() + 2 && right.ends_with(visible) &&
               is_blank(right.substr(0, right.size() - visible.size()));
      };
      const bool memory = shows();
      const auto group = digits / 2;
      for (std::size_t i = 0; i + group <= bytes.size(); i += group)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                     bytes.begin() + static_cast<std::ptrdiff_t>(i + group));
      const bool values = shows();
      if (memory || values)
        return {std::move(head), memory && values ? CutLine::Shows::both
                                 : memory         ? CutLine::Shows::memory
                                                  : CutLine::Shows::values};
    }
  }
  return whole;
}

DumpLayout survey(std::string_view text) { return Survey{rows_of(text)}.make(); }

std::size_t DumpLayout::offset_column() const noexcept {
  // An offset in bytes before an index, whichever stands first.
  for (std::size_t c = 0; c < positions; ++c)
    if (position[c].bytes == 1) return c;
  for (std::size_t c = 0; c < positions; ++c)
    if (position[c].bytes != 0) return c;
  return positions;
}

std::string DumpLayout::describe() const {
  std::string text;
  for (std::size_t c = 0; c < positions; ++c) {
    const auto& p = position[c];
    const auto radix = p.radix == 8 ? ", octal" : p.radix == 10 ? ", decimal" : "";
    text += p.bytes == 1   ? fmt::format("an offset in bytes{}, ", radix)
            : p.bytes == 0 ? std::string("a line number, ")
                           : fmt::format("an offset in units of {} bytes{}, ", p.bytes, radix);
  }
  if (!text.empty()) text += "then ";
  switch (unit) {
    case DumpUnit::dword: text += plural(per_line, "dword"); break;
    case DumpUnit::byte: text += plural(per_line, "byte"); break;
    case DumpUnit::half: text += plural(per_line, "word") + " of 16 bits, the lower half of a dword first,"; break;
    case DumpUnit::qword: text += plural(per_line, "word") + " of 64 bits, the lower dword first,"; break;
    case DumpUnit::group:
      text += fmt::format("{} of {} bytes in memory order", plural(per_line, "group"), digits / 2);
      break;
  }
  text += " a line";
  return labelled ? "a label, " + text : text;
}

}}}  // namespace sdma::v0_3::detail
