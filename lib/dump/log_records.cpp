// SPDX-License-Identifier: MIT
#include "log_records.hpp"

#include "../core/json.hpp"
#include "../core/words.hpp"
#include "messages.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <list>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

static_assert(std::endian::native == std::endian::little, "journald's lengths are copied as they are");

/// How deep JSON may be written inside strings of JSON.
constexpr int kDeepestRecord = 3;
/// Fields of text before this one are of logs alone.
constexpr std::size_t kOfLogsAlone = 4;

/// A text with the fields of its record: one record a line, each with what its own prefixes say.
std::size_t give(std::string_view text, const LogRecord& of, const TakeRecord& take, int depth);

/// Puts the records together while the parts of a value come in.
class RecordVisitor final : public JsonVisitor {
 public:
  RecordVisitor(const TakeRecord& take, int depth) : take_(take), depth_(depth) {}

  void open(bool object) override {
    open_.emplace_back();
    open_.back().object = object;
  }
  void key(std::string_view k) override { open_.back().key = k; }
  void value(std::string_view v, bool number) override {
    if (open_.empty()) return;
    auto& f = open_.back();
    if (f.object && f.key == "key" && use_of_field(v).what == LogField::host) f.name = v;
    if (f.object && f.key == "stringValue" && open_.size() > 1 && !open_[open_.size() - 2].name.empty()) {
      auto& pair = open_[open_.size() - 2];
      pair.kept.emplace_back(v);
      return take_field(use_of_field(pair.name), pair.kept.back(), pair.record);
    }
    if (!f.object) {
      const auto n = number ? whole_number<unsigned>(v) : std::nullopt;
      f.bytes += static_cast<char>(n.value_or(0));
      f.only_bytes = f.only_bytes && n && *n < 256;
      f.items.emplace_back(v);
      return;
    }
    const auto use = use_of_member(f);
    if (use.what == LogField::none || (use.what == LogField::host && number)) return;
    if (use.what == LogField::text) return number ? void() : text(f, v, use.rank);
    f.kept.emplace_back(v);
    take_field(use, f.kept.back(), f.record);
  }
  void close(bool object) override {
    auto f = std::move(open_.back());
    open_.pop_back();
    if (object) {
      const bool inside = !open_.empty() && open_.back().object;
      take_host_around(f.record);
      // The machine of a record inside another object may come after it: {"jsonPayload": {..}, "resource": {..}}.
      auto* const waits = inside && f.record.host.empty() ? &open_.back().inner : nullptr;
      if (waits) waits->splice(waits->end(), f.inner);
      else give_inner(f);
      if (waits && !f.text.empty()) return void(waits->push_back(std::move(f)));
      record(f);
      if (!f.name.empty() && !f.record.host.empty()) return name_outer(f);
      if (!f.text.empty() || open_.empty() || !open_.back().object || f.record.host.empty()) return;
      // {"kubernetes": {"host": "node7"}, "log": ...}
      auto& outer = open_.back();
      outer.kept.emplace_back(f.record.host);
      return take_field({LogField::host, f.record.host_rank}, outer.kept.back(), outer.record);
    }
    auto* const around = open_.empty() || !open_.back().object ? nullptr : &open_.back();
    const auto use = around ? use_of_field(around->key) : LogFieldUse{};
    if (use.what == LogField::text && f.only_bytes && !f.items.empty()) return text(*around, f.bytes, use.rank);
    if (f.items.size() == 1 && use.what != LogField::none) {  // a list of one, as Elastic writes it
      open_.back().only_bytes = false;
      return value(f.items[0], false);
    }
    const bool timed = f.items.size() >= 2 && f.items[0].size() >= 13 &&
                       f.items[0].find_first_not_of("0123456789") == std::string::npos;
    LogRecord r;
    r.form = "JSON";
    if (timed) {
      take_field({.what = LogField::date}, f.items[0], r);
      r.evident = true;
      take_host_around(r);
      count_ += give(f.items[1], r, take_, depth_);
      return;
    }
    take_host_around(r);
    if (r.host.empty() && around && names_list(around->key)) r.host = around->key, r.host_is_mark = true;
    std::size_t given = 0;
    for (const auto& line : f.items)
      if (line.find(' ') != std::string::npos) given += give(line, r, take_, depth_);
    count_ += given;
    if (given > 0 && around) around->lines = true;
  }
  /// What has come of the values that are still open.
  void cut() {
    for (; !open_.empty(); open_.pop_back()) {
      if (!open_.back().object) continue;
      give_inner(open_.back());
      record(open_.back());
    }
  }
  std::size_t count() const noexcept { return count_; }

 private:
  struct JsonFrame {
    bool object = false, lines = false, only_bytes = true;
    std::string key{}, text{}, bytes{};
    std::string name{};            ///< of {"key": "host.name", "value": ..}, as OpenTelemetry writes a pair
    std::list<JsonFrame> inner{};  ///< records that wait for the name of their machine
    std::size_t rank = ~std::size_t{};
    LogRecord record{};
    std::deque<std::string> kept{};  ///< what the record's views refer to
    std::vector<std::string> items{};
  };
  void give_inner(JsonFrame& f) {
    for (auto& in : f.inner) {
      if (in.record.host.empty()) in.record.host = f.record.host;
      record(in);
    }
    f.inner.clear();
  }
  /// A pair of a list names the machine of the object that has the list, and of the one around it.
  void name_outer(const JsonFrame& pair) {
    int objects = 0;
    for (auto f = open_.rbegin(); f != open_.rend() && objects < 2; ++f) {
      if (!f->object) {
        if (objects > 0) return;
        continue;
      }
      ++objects;
      f->kept.emplace_back(pair.record.host);
      take_field({LogField::host, pair.record.host_rank}, f->kept.back(), f->record);
    }
  }
  /// What a member is for: "name" is that of a machine in {"host": {"name": "node7"}}.
  LogFieldUse use_of_member(const JsonFrame& f) const {
    const auto* const outer = open_.size() > 1 ? &open_[open_.size() - 2] : nullptr;
    if (f.key == "name" && outer && outer->object)
      if (const auto use = use_of_field(outer->key); use.what == LogField::host) return use;
    return use_of_field(f.key);
  }
  /// A record that does not name its machine is of the one that the objects around it name; so is the key of an object
  /// in {"hosts": {"node7": {...}}}.
  void take_host_around(LogRecord& r) const {
    if (!r.host.empty()) return;
    for (auto f = open_.rbegin(); f != open_.rend(); ++f) {
      if (!f->object) continue;
      if (!f->record.host.empty()) return void(r.host = f->record.host);
      const auto outer = std::next(f);
      if (outer != open_.rend() && outer->object && outer->key == "hosts") return void(r.host = f->key);
    }
  }
  /// {"node7": ["line", ..], "node8": [..]}: may the key of a list of lines be the name of a machine?
  static bool names_list(std::string_view key) noexcept {
    constexpr std::string_view kOthers[] = {"lines",   "stdout_lines", "stderr_lines", "logs",  "messages", "entries",
                                            "records", "data",         "values",       "dmesg", "results",  "items"};
    return use_of_field(key).what == LogField::none && key.find(' ') == key.npos &&
           std::find(std::begin(kOthers), std::end(kOthers), key) == std::end(kOthers);
  }
  static void text(JsonFrame& f, std::string_view v, std::size_t rank) {
    if (rank >= f.rank) return;
    f.text = v;
    f.rank = rank;
  }
  void record(JsonFrame& f) {
    if (f.text.empty() || (f.lines && f.rank >= kOfLogsAlone)) return;  // its lines came one by one
    f.record.evident = f.rank < kOfLogsAlone;
    f.record.form = "JSON";
    take_host_around(f.record);
    count_ += give(f.text, f.record, take_, depth_);
  }

  const TakeRecord& take_;
  int depth_;
  std::deque<JsonFrame> open_;  // the views of a frame's record stay where they are
  std::size_t count_ = 0;
};

RecordsRead read_json(std::string_view text, const TakeRecord& take, int depth) {
  RecordVisitor visitor{take, depth};
  const auto walk = walk_json(text, visitor);
  if (!walk.whole) visitor.cut();
  return {std::min(walk.end, text.size()), visitor.count(), walk.whole};
}

std::size_t give(std::string_view text, const LogRecord& of, const TakeRecord& take, int depth) {
  std::size_t n = 0;
  const TakeRecord of_same_machine = [&](LogRecord& r) {
    if (r.host.empty()) r.host = of.host;
    take(r);
  };
  for (auto rest = text; !rest.empty();) {
    const auto line = trimmed(take_line(rest), "\r");
    if (line.empty()) continue;
    if (depth < kDeepestRecord && begins_json(line))
      if (const auto inner = read_json(line, of_same_machine, depth + 1); inner.records > 0) {
        n += inner.records;
        continue;
      }
    auto r = of;
    LogRecord own;
    take_prefixes(line, own);
    // `dmesg -F FILE --json` repeats the lines behind a record in its text; they have stamps, and records of their own.
    if (n > 0 && of.seconds && own.evident) break;
    if (own.seconds) r.seconds = own.seconds, r.when = own.when;
    if (own.date && !r.date) r.date = own.date;
    if (r.host.empty()) r.host = own.host, r.host_is_mark = own.host_is_mark;
    r.text = own.text;
    r.evident = of.evident || own.evident;
    if (!r.evident && !find_message(r.text)) continue;
    take(r);
    ++n;
  }
  return n;
}

/// An entry's fields, of which one is the text.
struct JournalEntry {
  LogRecord record{};
  std::string_view text{};
  void take(std::string_view key, std::string_view value) {
    const auto use = use_of_field(key);
    if (key == "MESSAGE") text = value;
    else if (use.what != LogField::text && use.what != LogField::none) take_field(use, value, record);
  }
  RecordsRead give_to(const TakeRecord& to, std::size_t end, std::string_view form) {
    record.evident = true;
    record.form = form;
    return {end, give(text, record, to, 0), true};
  }
};

}  // namespace

bool begins_json(std::string_view text) noexcept {
  constexpr std::string_view kJsonBlank = " \t\r\n";
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return false;
  const auto next = text.find_first_not_of(kJsonBlank, 1);
  if (next == text.npos) return false;
  if (text[next] == '"') return true;
  if (text[0] != '[') return false;
  // "[1790000000.5, {..." of fluent-bit, and not "[  812.400126] ..."
  constexpr std::size_t kTime = 48;
  const auto head = text.substr(0, kTime);
  return text[next] == '{' || text[next] == '[' || head.find(", {") != head.npos || head.find(",{") != head.npos;
}

RecordsRead read_json_records(std::string_view text, const TakeRecord& take) { return read_json(text, take, 0); }

bool ends_json(std::string_view text) noexcept {
  constexpr std::string_view kUnquoted = " \t\r\n:,+-.0123456789eEtrufalsn";
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\n') return true;  // no string of JSON has one
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth-- <= 1) return true;
    } else if (kUnquoted.find(c) == kUnquoted.npos) {
      return true;
    }
  }
  return false;
}

RecordsRead read_export(std::string_view text, bool goes_on, const TakeRecord& take) {
  JournalEntry e;
  auto rest = text;
  bool ended = false;
  while (!rest.empty()) {
    const auto line = take_line(rest);
    if (ended = trimmed(line).empty(); ended) break;
    if (const auto key = journal_key(line)) {
      e.take(line.substr(0, key), line.substr(key + 1));
      continue;
    }
    // A field with other bytes than text: its name, 8 bytes of length, the bytes, and the end of a line.
    constexpr std::size_t kLength = 8;
    if (ended = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != line.npos; ended) break;
    if (rest.size() < kLength) break;
    std::uint64_t size = 0;
    std::memcpy(&size, rest.data(), kLength);
    const auto value = rest.substr(kLength, static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size())));
    e.take(line, value);
    rest.remove_prefix(std::min(kLength + value.size() + 1, rest.size()));
  }
  if (goes_on && !ended) return {};
  return e.give_to(take, text.size() - rest.size(), "journalctl -o export");
}

RecordsRead read_verbose(std::string_view text, bool goes_on, const TakeRecord& take) {
  constexpr std::string_view kIndent = "    ";
  JournalEntry e;
  auto rest = text;
  take_prefixes(take_line(rest), e.record);
  while (rest.starts_with(kIndent)) {
    const auto line = trimmed(take_line(rest));
    if (const auto key = journal_key(line)) e.take(line.substr(0, key), line.substr(key + 1));
  }
  if (goes_on && rest.size() < kIndent.size()) return {};
  return e.give_to(take, text.size() - rest.size(), "journalctl -o verbose");
}

}}}  // namespace sdma::v0_3::detail
