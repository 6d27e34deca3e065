// SPDX-License-Identifier: MIT
#include "log.hpp"

#include "../core/plural.hpp"
#include "line.hpp"
#include "log_lines.hpp"
#include "log_records.hpp"
#include "log_rest.hpp"
#include "log_starts.hpp"
#include "plain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// How many lines mail makes of one.
constexpr std::size_t kMostWrapped = 4;
constexpr std::size_t kMailWidth = 100;
/// A terminal's width.
constexpr std::size_t kNarrow = 40, kWide = 400;
constexpr std::size_t kLongWord = 12;

/// A row that is not the end of a line that was cut: with an offset, or with two whole dwords.
bool is_sure_row(std::string_view line) {
  if (!is_dump_row(line)) return false;
  const auto l = parse_line(line);
  return l.marked() > 0 ||
         std::count_if(l.cells.begin(), l.cells.end(), [](const DumpCell& c) { return c.digits >= 8; }) > 1;
}

}  // namespace

class LogReader::Impl {
 public:
  void add(std::string_view bytes) { read(decoder_.add(bytes), false); }

  std::vector<LogLine> so_far(std::vector<LogSource>& sources) {
    flush();
    return in_order(&sources);
  }
  std::size_t kept() const noexcept { return decoder_.waiting() + waits_.size() + rest_.size(); }

  Log finish() {
    read(decoder_.finish(), true);
    flush();
    log_.lines = in_order(&log_.sources);
    log_.is_log = is_certain() || perhaps_ * 2 > n_;
    log_.has_dump = !log_.is_log || rest_.has_dump(log_.records);
    log_.rest = log_.is_log ? rest_.take(log_.records) : rest_.whole();
    return std::move(log_);
  }

 private:
  /// A record that may go on in the next line.
  struct Open {
    LogRecord record{};
    std::string joined{};   ///< its text, if it went on
    std::size_t width = 0;  ///< of its last line
    std::size_t lines = 0;  ///< 0: there is none
    LineKind kind{};
    std::string_view text() const noexcept { return lines > 1 ? std::string_view(joined) : record.text; }
    void append(std::string_view more) {
      if (lines == 1) joined = record.text;
      joined += more;
      ++lines;
    }
  };
  /// What begins at at_: it was read; it is something else; or the rest of it has not come.
  enum class Step : std::uint8_t { read, other, wait };

  bool is_certain() const noexcept { return evident_ + said_ > 0; }

  /// Reads whole lines. What has to wait for more is read again when as much has come.
  void read(std::string lines, bool last) {
    if (waits_.empty()) waits_ = std::move(lines);
    else waits_ += lines;
    if (waits_.size() < enough_ && !last) return;
    parts_.push_back(std::exchange(waits_, {}));
    text_ = parts_.back();
    at_ = 0;
    last_ = last;
    json_left_ += text_.size() * 4;
    measure();
    rest_.look(text_);
    while (at_ < text_.size()) {
      auto step = json();
      if (step == Step::read) continue;
      const auto l = text_.substr(at_, text_.find('\n', at_) - at_);
      if (step == Step::other) step = journal(l);
      if (step == Step::wait) break;
      if (step == Step::other) line(l);
    }
    waits_ = text_.substr(at_);
    enough_ = waits_.size() * 2;
    // The record that may go on refers to its part.
    const std::size_t kept = open_.lines == 0 ? 0 : open_in_ == parts_.back().data() ? 1 : parts_.size();
    while (parts_.size() > kept) parts_.pop_front();
    if (is_certain()) rest_.leave_out();
  }

  /// How wide the lines are, and whether a terminal has cut them.
  void measure() {
    const auto width = [](std::string_view line) { return line.size() - line.ends_with('\r'); };
    each_line(text_, 1, [&](std::string_view line, std::size_t) {
      const auto n = width(line);
      if (n > width_) width_ = n, as_wide_ = nearly_ = 0;
      as_wide_ += n == width_;
      return true;
    });
    cut_ = width_ >= kNarrow && width_ <= kWide && as_wide_ > 1;
    if (!cut_) return;
    // A terminal cuts at the width; mail before the word that goes beyond it.
    each_line(text_, 1, [&](std::string_view line, std::size_t) {
      nearly_ += width(line) < width_ && width(line) + kLongWord > width_;
      return true;
    });
    cut_ = as_wide_ > nearly_;
  }

  /// Passes lines, of which this is the kind.
  void go_on(std::size_t bytes, LineKind kind) {
    const auto passed = text_.substr(at_, bytes);
    each_line(passed, n_, [&](std::string_view line, std::size_t n) { return rest_.add(n, kind, line), true; });
    n_ += static_cast<std::size_t>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
  }

  Step json() {
    std::size_t skip = 0;
    const auto rest = text_.substr(at_);
    if (constexpr std::string_view kEvent = "data:"; rest.starts_with(kEvent)) skip = kEvent.size();
    skip = std::min(rest.find_first_not_of(" \t,\x1e", skip), rest.size());
    const auto value = rest.substr(skip);
    if (value.empty() || (value[0] != '{' && value[0] != '[') || json_left_ == 0) return Step::other;
    const bool alone = trimmed(value.substr(1), " \t\r\n").empty();
    if (!last_ && (alone || (begins_json(value) && !ends_json(value)))) return Step::wait;
    if (!begins_json(value)) return Step::other;
    const auto first = n_;
    const auto used = read_json_records(value, [&](LogRecord& r) {
      if (open_.lines != 0) flush();
      r.first = r.last = first;
      record(r, r.text);
    });
    if (!used.whole) json_left_ -= std::min(json_left_, used.end);
    if (!used.whole && used.records == 0) return Step::other;
    flush();
    const auto kind = used.records > 0 ? LineKind::log : LineKind::other;
    // What follows in the same line may be the next value.
    auto end = at_ + skip + used.end;
    if (text_[end - 1] != '\n' && !begins_json(trimmed(text_.substr(end, 64), " \t,")))
      end = std::min(text_.find('\n', end), text_.size() - 1) + 1;
    go_on(end - at_, kind);
    return Step::read;
  }
  Step journal(std::string_view line) {
    const auto rest = text_.substr(at_);
    const bool exported = begins_export(line);
    if (!exported && !begins_verbose(line)) return Step::other;
    flush();
    const auto first = n_;
    const auto take = [&](LogRecord& r) {
      r.first = r.last = first;
      record(r, r.text);
    };
    const auto used = exported ? read_export(rest, !last_, take) : read_verbose(rest, !last_, take);
    if (used.end == 0) return Step::wait;
    ++evident_;
    go_on(used.end, LineKind::log);
    return Step::read;
  }

  void line(std::string_view whole) {
    auto l = whole;
    if (l.ends_with('\r')) l.remove_suffix(1);
    if (LogSources::may_be_heading(l)) flush();  // the record before it is of the source before it
    const auto behind = std::min(at_ + whole.size() + 1, text_.size());
    if (sources_.heading(l, text_.substr(behind, text_.find('\n', behind) - behind))) {
      rest_.add(n_, LineKind::other, whole);
      return next_line(whole);
    }
    if (json_behind_words(l)) {
      rest_.add(n_, LineKind::log, whole);
      return next_line(whole);
    }
    LogRecord r;
    take_prefixes(l, r);
    r.first = r.last = n_;
    const auto joined = continues(l, r);
    rest_.add(n_, joined ? *joined : begin(l, r), whole);
    next_line(whole);
  }
  /// Records of JSON to the end of the line, behind a time, a tag or the name of a container: fluentd's files, kubectl.
  bool json_behind_words(std::string_view l) {
    constexpr std::size_t kMostWords = 200;
    const auto at = l.find("{\"");
    if (at == l.npos || at > kMostWords || !l.ends_with('}')) return false;
    LogRecord before;
    take_prefixes(l.substr(0, at), before);
    const auto used = read_json_records(l.substr(at), [&](LogRecord& r) {
      flush();
      r.first = r.last = n_;
      if (!r.date && !r.seconds) r.date = before.date, r.seconds = before.seconds, r.when = before.when;
      if (r.host.empty()) r.host = before.host, r.host_is_mark = before.host_is_mark;
      record(r, r.text);
    });
    return used.records > 0;
  }
  void next_line(std::string_view line) {
    at_ += line.size();
    if (at_ < text_.size()) ++at_, ++n_;
  }

  /// Its kind, if this line is by its form a part of the record before it.
  std::optional<LineKind> continues(std::string_view l, const LogRecord& r) {
    if (open_.lines == 0) return {};
    auto& of = open_.record;
    const auto more = [&](std::string_view text) {
      open_.append(text);
      open_.width = l.size();
      of.last = n_;
      return open_.kind;
    };
    if (std::exchange(of.goes_on, false) && r.part.data()) {
      of.goes_on = r.goes_on;
      return more(r.part);
    }
    if (r.fragment && *r.fragment > 0 && r.sequence == of.sequence) return more(r.part);
    if (of.sequence && l.starts_with(' '))
      if (const auto key = journal_key(trimmed(l))) {
        take_field(use_of_field(trimmed(l).substr(0, key)), trimmed(l).substr(key + 1), of);
        of.last = n_;
        return LineKind::log;
      }
    if (r.evident || r.date || r.priority || trimmed(l).empty()) return {};
    if (names_kernel(r.text)) return {};
    // A terminal has cut the line before at its width.
    if (cut_ && open_.width == width_ && !is_sure_row(r.text)) return more(l);
    if (r.text.starts_with('(') && r.text.ends_with(')') && find_message(open_.text())) {
      const auto kind = more(" ");
      flush();
      return kind;
    }
    if (open_.lines >= kMostWrapped || is_dump_row(r.text)) return {};
    // Mail has wrapped it: the next word did not fit, or the words do not make a message yet.
    const auto word = r.text.substr(0, r.text.find(' '));
    const bool full = width_ <= kMailWidth && open_.width + 1 + word.size() > width_;
    if (find_message(r.text) ? !full || !trimmed(open_.text()).ends_with(':')
                             : !full && (!names_kernel(open_.text()) || find_message(open_.text())))
      return {};
    const auto kind = more(" ");
    open_.joined += r.text;
    return kind;
  }

  /// Begins a record with this line, if it may be one. The line's kind.
  LineKind begin(std::string_view l, const LogRecord& r) {
    flush();
    const bool says = r.evident || names_kernel(r.text) || find_message(r.text).has_value();
    if (!says && !r.date && !r.priority) return LineKind::other;
    const auto said = behind_driver(r.text);
    const bool ring = names_ring(r.text);
    if (may_be_dump_row(said) && (ring || begins_with_number(said)) && is_dump_row(said) && !find_message(said)) {
      ++log_.records;
      sources_.add(r, r.text);
      return ring ? LineKind::row : LineKind::bare_row;
    }
    evident_ += r.evident;
    said_ += says;
    perhaps_ += !says;
    const auto kind = r.evident ? LineKind::log : LineKind::said;
    open_ = {.record = r, .joined = {}, .width = l.size(), .lines = 1, .kind = kind};
    open_in_ = text_.data();
    return kind;
  }

  void flush() {
    if (open_.lines == 0) return;
    record(open_.record, open_.text());
    open_.lines = 0;
  }

  /// A whole record, of whatever form.
  void record(const LogRecord& r, std::string_view text) {
    std::string plain;
    if (text.find('[') != text.npos)
      for (const std::string_view escape : {"\033[", "33[", "1b["})
        if (text.find(escape) != text.npos) text = plain = without_colours(text);
    if (!r.form.empty() && log_.form.empty()) log_.form = r.form;
    evident_ += r.evident && r.form == "JSON";
    const auto number = log_.records++;
    const auto place = sources_.add(r, text);
    const auto found = find_message(text);
    const bool runtime = r.form == "the log of the HIP runtime" || (found && found->message->versions == "ROCr");
    log_.of_runtime = log_.of_runtime || runtime;
    log_.of_kernel = log_.of_kernel || (!runtime && (r.evident || found || names_kernel(text)));
    if (!found) return;
    ++said_;
    log_.texts.emplace_back(text);
    const std::string_view kept = log_.texts.back();
    LogLine line{.first = r.first, .last = r.last, .record = number, .seconds = r.seconds, .date = r.date};
    line.text = kept;
    line.message = found->message;
    line.match = found->match.in_copy(text, kept);
    line.device = device_in(kept, static_cast<std::size_t>(line.match.said.data() - kept.data()));
    if (line.device.empty()) line.device = r.device;
    log_.lines.push_back(std::move(line));
    places_.push_back(place);
  }

  /// The lines in the order of time, source by source.
  std::vector<LogLine> in_order(std::vector<LogSource>* sources) const {
    auto all = log_.lines;
    const auto decided = sources_.reversed();
    const bool reversed = decided ? *decided : faults_end_first();
    auto found = sources_.found(reversed);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].source = found.index(places_[i]);
      if (reversed) all[i].record = log_.records - 1 - all[i].record;
    }
    if (reversed) std::reverse(all.begin(), all.end());
    unite_starts(all, found.all);
    leave_strangers(all, found.all);
    // Sources come in the order of the log, and those of the newest line first the other way round.
    const auto rank = [&](std::size_t source) { return reversed ? found.all.size() - source : source; };
    const bool seconds = std::any_of(all.begin(), all.end(), [](const LogLine& l) { return l.seconds.has_value(); });
    std::map<std::size_t, double> last;  // of each source; a line without a time stays behind the one before
    std::vector<std::tuple<std::size_t, double, std::size_t>> keys;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& before = last.emplace(all[i].source, -1).first->second;
      before = (seconds ? all[i].seconds : all[i].date).value_or(before);
      keys.emplace_back(rank(all[i].source), before, i);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<LogLine> sorted;
    for (const auto& [source, time, i] : keys) sorted.push_back(std::move(all[i]));
    *sources = std::move(found.all);
    return sorted;
  }
  /// Lines of no machine that say nothing are no part of a log whose other lines have machines.
  static void leave_strangers(const std::vector<LogLine>& lines, std::vector<LogSource>& sources) {
    if (std::all_of(sources.begin(), sources.end(), [](const LogSource& s) { return s.host.empty(); })) return;
    std::vector<bool> says(sources.size());
    for (const auto& l : lines) says[l.source] = true;
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i].host.empty() && !says[i]) sources[i].records = 0;
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

  TextDecoder decoder_;
  std::string waits_{};              // lines that are not read yet
  std::size_t enough_ = 0;           // how much has to come before they are
  std::deque<std::string> parts_{};  // what open_ refers to; the last is text_
  std::string_view text_{};
  bool last_ = false;                     // nothing comes after text_
  std::size_t at_ = 0, n_ = 1;            // where the reader is, and the number of that line
  bool cut_ = false;                      // a terminal has cut lines at width_
  std::size_t width_ = 0;                 // of the longest line
  std::size_t as_wide_ = 0, nearly_ = 0;  // how many are as long, or shorter by less than a long word
  std::size_t json_left_ = 4096;          // how much may be read as JSON in vain
  RestOfLog rest_{};
  Open open_{};
  const char* open_in_ = nullptr;  // the part with its first line
  std::size_t evident_ = 0, said_ = 0, perhaps_ = 0;
  LogSources sources_{};
  std::vector<LogPlace> places_{};  // of each line with a message
  Log log_{};
};

LogReader::LogReader() : impl_(std::make_unique<Impl>()) {}
LogReader::~LogReader() = default;
void LogReader::add(std::string_view bytes) { impl_->add(bytes); }
std::vector<LogLine> LogReader::so_far(std::vector<LogSource>& sources) { return impl_->so_far(sources); }
std::size_t LogReader::kept() const noexcept { return impl_->kept(); }
Log LogReader::finish() { return impl_->finish(); }

std::string_view LogLine::said() const noexcept {
  auto from = text.substr(static_cast<std::size_t>(match.said.data() - text.data()));
  while (!from.empty() && std::string_view("\" ,\t").find(from.back()) != from.npos) from.remove_suffix(1);
  return from;
}

Log read_log(std::string_view bytes) {
  LogReader reader;
  reader.add(bytes);
  return reader.finish();
}

std::string describe(const Log& log) {
  const auto whose = log.of_kernel ? "kernel's " : log.of_runtime ? "runtime's " : "";
  std::set<std::string_view> hosts;
  std::size_t of = 0;
  for (const auto& s : log.sources)
    if (s.records > 0) ++of, hosts.insert(s.host);
  auto out = fmt::format("a {}log of {}", whose, plural(log.records, "line"));
  if (of > 1)
    return out + (hosts.size() > 1 ? fmt::format(" of {} machines", hosts.size()) : fmt::format(" in {} parts", of));
  for (const auto& s : log.sources)
    if (!s.span.first().empty()) return out + fmt::format(", from {} to {}", s.span.first(), s.span.last());
  return out;
}

}}}  // namespace sdma::v0_3::detail
