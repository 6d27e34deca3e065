// SPDX-License-Identifier: MIT
#include "log.hpp"

#include "../core/plural.hpp"
#include "coredump.hpp"
#include "line.hpp"
#include "log_lines.hpp"
#include "log_records.hpp"
#include "plain.hpp"
#include "sdma/dump/descriptors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0 { namespace detail {
namespace {

/// A time that is earlier by more seconds than this is one of another start of the machine.
constexpr double kLaterStart = 10;
/// How many lines mail makes of one.
constexpr std::size_t kMostWrapped = 4;
constexpr std::size_t kMailWidth = 100;
/// A terminal's width.
constexpr std::size_t kNarrow = 40, kWide = 400;
constexpr std::size_t kLongWord = 12;

/// What a line of the text is.
enum class LineKind : std::uint8_t {
  other,
  log,      ///< of a log, by its form
  said,     ///< of a log, because of what it says, or perhaps: it has a date
  row,      ///< of a dump that the driver printed into the log
  bare_row  ///< the same without a word about what it shows
};

class LogReader {
 public:
  explicit LogReader(std::string_view text) : text_(text), json_left_(text.size() * 4 + 4096) {
    each_line(text, 1, [&](std::string_view line, std::size_t) {
      const auto n = line.size() - line.ends_with('\r');
      if (n > width_) width_ = n, as_wide_ = 0;
      as_wide_ += n == width_;
      return true;
    });
    // A terminal cuts at the width; mail before the word that goes beyond it.
    std::size_t nearly = 0;
    each_line(text, 1, [&](std::string_view line, std::size_t) {
      const auto n = line.size() - line.ends_with('\r');
      nearly += n < width_ && n + kLongWord > width_;
      return true;
    });
    cut_ = width_ >= kNarrow && width_ <= kWide && as_wide_ > 1 && as_wide_ > nearly;
  }

  Log take() {
    while (at_ < text_.size())
      if (!json() && !journal()) line();
    flush();
    decide();
    order();
    return std::move(log_);
  }

 private:
  /// A record that may go on in the next line.
  struct Open {
    LogRecord record{};
    std::string joined{};   ///< its text, if it went on
    std::size_t width = 0;  ///< of its last line
    std::size_t lines = 0;  ///< 0: there is none
    std::string_view text() const noexcept { return lines > 1 ? std::string_view(joined) : record.text; }
    void append(std::string_view more) {
      if (lines == 1) joined = record.text;
      joined += more;
      ++lines;
    }
  };

  void mark(std::size_t n, LineKind k) {
    if (kinds_.size() < n) kinds_.resize(n);
    kinds_[n - 1] = k;
  }
  void go_on(std::size_t bytes) {
    const auto passed = text_.substr(at_, bytes);
    n_ += static_cast<std::size_t>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
  }
  void next_line() { go_on(std::min(text_.find('\n', at_), text_.size()) + 1 - at_); }

  bool json() {
    std::size_t skip = 0;
    const auto rest = text_.substr(at_);
    if (constexpr std::string_view kEvent = "data:"; rest.starts_with(kEvent)) skip = kEvent.size();
    skip = std::min(rest.find_first_not_of(" \t,\x1e", skip), rest.size());
    if (!begins_json(rest.substr(skip)) || json_left_ == 0) return false;
    const auto first = n_;
    const auto used = read_json_records(rest.substr(skip), [&](LogRecord& r) {
      if (open_.lines != 0) flush();
      r.first = r.last = first;
      record(r, r.text);
    });
    if (!used.whole) json_left_ -= std::min(json_left_, used.end);
    if (!used.whole && used.records == 0) return false;
    flush();
    go_on(skip + used.end);
    for (auto n = first; used.records > 0 && n <= n_; ++n) mark(n, LineKind::log);
    // What follows in the same line may be the next value.
    if (text_[at_ - 1] != '\n' && !begins_json(trimmed(text_.substr(at_, 64), " \t,"))) next_line();
    return true;
  }
  bool journal() {
    const auto rest = text_.substr(at_);
    const auto line = rest.substr(0, rest.find('\n'));
    const bool exported = begins_export(line);
    if (!exported && !begins_verbose(line)) return false;
    flush();
    const auto first = n_;
    const auto take = [&](LogRecord& r) {
      r.first = r.last = first;
      record(r, r.text);
    };
    const auto used = exported ? read_export(rest, take) : read_verbose(rest, take);
    ++evident_;
    go_on(used.end);
    for (auto n = first; n < n_; ++n) mark(n, LineKind::log);
    return true;
  }

  void line() {
    const auto rest = text_.substr(at_);
    auto l = rest.substr(0, rest.find('\n'));
    if (l.ends_with('\r')) l.remove_suffix(1);
    LogRecord r;
    take_prefixes(l, r);
    r.first = r.last = n_;
    if (!continues(l, r)) begin(l, r);
    next_line();
  }

  /// Is this line, by its form, a part of the record before it?
  bool continues(std::string_view l, const LogRecord& r) {
    if (open_.lines == 0) return false;
    auto& of = open_.record;
    const auto more = [&](std::string_view text) {
      open_.append(text);
      open_.width = l.size();
      of.last = n_;
      mark(n_, kinds_[of.first - 1]);
      return true;
    };
    if (std::exchange(of.goes_on, false) && r.part.data()) return of.goes_on = r.goes_on, more(r.part);
    if (r.fragment && *r.fragment > 0 && r.sequence == of.sequence) return more(r.part);
    if (of.sequence && l.starts_with(' '))
      if (const auto key = journal_key(trimmed(l))) {
        take_field(use_of_field(trimmed(l).substr(0, key)).what, trimmed(l).substr(key + 1), of);
        of.last = n_;
        return mark(n_, LineKind::log), true;
      }
    if (r.evident || r.date || r.priority || trimmed(l).empty()) return false;
    if (names_kernel(r.text)) return false;
    // A terminal has cut the line before at its width.
    if (cut_ && open_.width == width_) return more(l);
    if (r.text.starts_with('(') && r.text.ends_with(')') && find_message(open_.text())) return more(" "), flush(), true;
    if (open_.lines >= kMostWrapped || is_dump_row(r.text)) return false;
    // Mail has wrapped it: the next word did not fit, or the words do not make a message yet.
    const auto word = r.text.substr(0, r.text.find(' '));
    const bool full = width_ <= kMailWidth && open_.width + 1 + word.size() > width_;
    if (find_message(r.text) ? !full || !trimmed(open_.text()).ends_with(':')
                             : !full && (!names_kernel(open_.text()) || find_message(open_.text())))
      return false;
    return more(" "), open_.joined += r.text, true;
  }

  void begin(std::string_view l, const LogRecord& r) {
    flush();
    const bool says = r.evident || names_kernel(r.text) || find_message(r.text).has_value();
    if (!says && !r.date && !r.priority) return;
    if (const auto said = behind_driver(r.text); may_be_dump_row(said) && is_dump_row(said) && !find_message(said)) {
      const bool ours = names_ring(r.text);
      ++(ours ? rows_ : bare_rows_);
      return mark(n_, ours ? LineKind::row : LineKind::bare_row);
    }
    evident_ += r.evident;
    said_ += says;
    perhaps_ += !says;
    mark(n_, r.evident ? LineKind::log : LineKind::said);
    open_ = {.record = r, .joined = {}, .width = l.size(), .lines = 1};
  }

  void flush() {
    if (open_.lines == 0) return;
    record(open_.record, open_.text());
    open_.lines = 0;
  }

  /// A whole record, of whatever form.
  void record(const LogRecord& r, std::string_view text) {
    std::string plain;
    for (const std::string_view escape : {"\033[", "33[", "1b["})
      if (text.find(escape) != text.npos) text = plain = without_colours(text);
    if (!r.form.empty() && log_.form.empty()) log_.form = r.form;
    evident_ += r.evident && r.form == "JSON";
    const auto number = log_.records++;
    const auto moment = r.seconds ? r.seconds : r.date;
    if (moment) {
      if (before_ && *moment != *before_) ++(*moment > *before_ ? later_ : earlier_);
      if (before_ && *moment < *before_ - kLaterStart) ++starts_;
      if (before_ && *moment > *before_ + kLaterStart) ++jumps_;
      before_ = moment;
      const auto when = [&] { return r.seconds ? fmt::format("{:.3f}", *r.seconds) : std::string(trimmed(r.when)); };
      if (log_.from.empty() || *moment < least_) least_ = *moment, log_.from = when();
      if (log_.to.empty() || *moment > most_) most_ = *moment, log_.to = when();
    }
    const auto found = find_message(text);
    const bool runtime = r.form == "the log of the HIP runtime" || (found && found->message->versions == "ROCr");
    log_.of_runtime = log_.of_runtime || runtime;
    log_.of_kernel = log_.of_kernel || (!runtime && (r.evident || found || names_kernel(text)));
    if (!found) return;
    ++said_;
    log_.texts.emplace_back(text);
    const std::string_view kept = log_.texts.back();
    LogLine line{.first = r.first, .last = r.last, .record = number, .seconds = r.seconds, .moment = moment};
    const auto again = find_message(kept);
    line.text = kept;
    line.message = again->message;
    line.match = again->match;
    line.device = device_in(kept, static_cast<std::size_t>(line.match.said.data() - kept.data()));
    if (line.device.empty()) line.device = r.device;
    log_.lines.push_back(std::move(line));
    order_.emplace_back(starts_, jumps_);
  }

  /// What the text is, and which of its lines are a dump's.
  void decide() {
    log_.is_log = evident_ + said_ > 0 || perhaps_ * 2 > n_;
    const bool headings = text_.find("ring name:") != text_.npos || has_descriptors(text_) ||
                          text_.find("Decoding IB at 0x") != text_.npos;
    if (!log_.is_log) {
      log_.has_dump = true;  // or nothing: its reader decides
      return;
    }
    const bool own = rows_ > 1, bare = bare_rows_ > 1 && bare_rows_ > log_.records;
    kinds_.resize(n_ + 1);
    // Two rows between lines of the log, or beside them, show a dump; then nothing that may be one is left out.
    std::size_t rows = 0;
    bool beside = headings;
    each_line(text_, 1, [&](std::string_view line, std::size_t n) {
      if (kinds_[n - 1] != LineKind::other) rows = 0;
      else rows += is_dump_row(without_stamp(line));
      beside = beside || rows > 1;
      return !beside;
    });
    log_.has_dump = beside || own || bare;
    each_line(text_, 1, [&](std::string_view line, std::size_t n) {
      const auto kind = kinds_[n - 1];
      const bool kept = kind == LineKind::other      ? beside
                        : kind == LineKind::row      ? own || headings
                        : kind == LineKind::bare_row ? bare || headings
                                                     : kind == LineKind::said && headings;
      if (kept) log_.rest += line;
      log_.rest += '\n';
      return true;
    });
  }

  void order() {
    auto& all = log_.lines;
    bool reversed = earlier_ > later_;
    if (earlier_ == 0 && later_ == 0) reversed = faults_end_first();
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].start = reversed ? jumps_ - order_[i].second : order_[i].first;
      if (reversed) all[i].record = log_.records - 1 - all[i].record;
    }
    if (reversed) std::reverse(all.begin(), all.end());
    double last = -1;  // before all times
    std::vector<std::pair<double, std::size_t>> keys;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0 && all[i].start != all[i - 1].start) last = -1;
      last = all[i].moment.value_or(last);
      keys.emplace_back(last, i);
    }
    std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
      return std::pair(all[a.second].start, a.first) < std::pair(all[b.second].start, b.first);
    });
    std::vector<LogLine> sorted;
    for (const auto& [key, i] : keys) sorted.push_back(std::move(all[i]));
    all = std::move(sorted);
  }
  /// Without times: the lines of a fault have an order of their own.
  bool faults_end_first() const {
    std::size_t forward = 0, backward = 0;
    for (std::size_t i = 1; i < log_.lines.size(); ++i) {
      const auto &a = log_.lines[i - 1], &b = log_.lines[i];
      if (a.message->what > LogWord::access || b.message->what > LogWord::access || a.device != b.device) continue;
      forward += a.message->what < b.message->what;
      backward += a.message->what > b.message->what;
    }
    return backward > forward;
  }

  std::string_view text_;
  std::size_t at_ = 0, n_ = 1;           // where the reader is, and the number of that line
  bool cut_ = false;                     // a terminal has cut lines at width_
  std::size_t width_ = 0, as_wide_ = 0;  // of the longest line; how many are as long
  std::size_t json_left_;                // how much may be read as JSON in vain
  std::vector<LineKind> kinds_;          // of each line
  Open open_;
  std::size_t evident_ = 0, said_ = 0, perhaps_ = 0, rows_ = 0, bare_rows_ = 0;
  std::optional<double> before_;
  double least_ = 0, most_ = 0;
  std::size_t later_ = 0, earlier_ = 0, starts_ = 0, jumps_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> order_;  // of each line with a message: starts_, jumps_
  Log log_;
};

}  // namespace

std::string_view LogLine::said() const noexcept {
  auto from = text.substr(static_cast<std::size_t>(match.said.data() - text.data()));
  while (!from.empty() && std::string_view("\" ,\t").find(from.back()) != from.npos) from.remove_suffix(1);
  return from;
}

Log read_log(std::string_view text) { return LogReader{text}.take(); }

std::string describe(const Log& log) {
  const auto times = log.from.empty() ? "" : fmt::format(", from {} to {}", log.from, log.to);
  const auto whose = log.of_kernel ? "kernel's " : log.of_runtime ? "runtime's " : "";
  return fmt::format("a {}log of {}{}", whose, plural(log.records, "line"), times);
}

}}}  // namespace sdma::v0::detail
