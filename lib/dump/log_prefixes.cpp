// SPDX-License-Identifier: MIT
// What precedes a message in a line of a log: time, host, priority, and the fields of containers and collectors.
#include "log_forms.hpp"

#include "../core/words.hpp"
#include "log_times.hpp"

#include <algorithm>
#include <cctype>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// What stands in brackets before a message.
bool in_brackets(LogCursor& c, LogRecord& r) noexcept {
  constexpr std::size_t kMost = 60;
  const auto close = c.rest().substr(0, kMost).find(']');
  if (!c.rest().starts_with('[') || close == c.rest().npos) return false;
  const auto inside = trimmed(c.rest().substr(1, close - 1));
  const auto done = [&] {
    if (r.when.empty()) r.when = inside;
    c.take(c.rest().substr(0, close + 1));
    return true;
  };
  // dmesg, and dmesg -d: "812.400126 <    0.000003>"
  const auto angle = inside.find('<');
  if (const auto s = seconds_in(inside.substr(0, angle))) {
    if (!r.seconds) r.seconds = s;
    return done();
  }
  if (inside.starts_with('<') && inside.ends_with('>') && seconds_in(trimmed(inside, " <>"))) return done();
  if (inside.starts_with('+') && seconds_in(inside.substr(1))) return done();  // dmesg -e
  LogCursor t{inside};
  LogRecord date;
  if ((iso_date(t, date) || syslog_date(t, date)) && t.at_end()) {  // dmesg -T
    r.date = date.date;
    return done();
  }
  LogCursor e{inside};  // dmesg -e: "Nov22 10:00"
  if (e.month() && e.digits(1, 2) && e.blanks() && e.clock() && e.at_end()) return done();
  // The caller: "T1234" or "C12"
  if (r.seconds && inside.size() > 1 && (inside[0] == 'T' || inside[0] == 'C') &&
      inside.find_first_not_of("0123456789", 1) == inside.npos)
    return done();
  return false;
}

/// "<3>", or "<3>1 " of RFC 5424
bool log_level(LogCursor& c, LogRecord& r) noexcept {
  LogCursor t = c;
  if (!t.take("<")) return false;
  const auto n = t.digits(1, 3);
  if (!n || *n > 191 || !t.take(">")) return false;
  r.priority = static_cast<unsigned>(*n % 8);
  LogCursor version = t;
  LogRecord date;
  if (version.take("1 ") && iso_date(version, date)) t.take("1 ");
  c = t;
  return true;
}

/// "kern  :err   : " of dmesg -x
bool named_level(LogCursor& c, LogRecord& r) noexcept {
  constexpr std::string_view kFacilities[] = {"kern", "user", "mail", "daemon", "auth", "syslog"};
  constexpr std::string_view kLevels[] = {"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"};
  for (const auto f : kFacilities) {
    LogCursor t = c;
    if (!t.take(f)) continue;
    t.blanks();
    if (!t.take(":")) return false;
    for (unsigned i = 0; i < std::size(kLevels); ++i) {
      if (!t.take(kLevels[i])) continue;
      t.blanks();
      if (!t.take(":")) return false;
      r.priority = i;
      c = t;
      return true;
    }
  }
  return false;
}

/// "3,1234,812400126,-;" of /dev/kmsg; netconsole may put the kernel's release before it, and "ncfrag=0/33" at its end.
bool kmsg_record(LogCursor& c, LogRecord& r) noexcept {
  constexpr std::size_t kMost = 160;
  const auto end = c.rest().substr(0, kMost).find(';');
  if (end == c.rest().npos || !is_decimal(c.rest()[0])) return false;
  auto fields = between_commas(c.rest().substr(0, end));
  if (fields.size() > 4 && !whole_number<unsigned>(fields[0])) fields.erase(fields.begin());
  if (fields.size() < 4) return false;
  const auto level = whole_number<unsigned>(fields[0]);
  const auto sequence = whole_number<std::uint64_t>(fields[1]), us = whole_number<std::uint64_t>(fields[2]);
  if (!level || !sequence || !us || fields[3].empty() || is_decimal(fields[3][0])) return false;
  r.priority = *level % 8;
  r.sequence = sequence;
  r.seconds = static_cast<double>(*us) / 1e6;
  r.when = fields[2];
  for (const auto f : fields)
    if (constexpr std::string_view kPart = "ncfrag="; f.starts_with(kPart))
      r.fragment = whole_number<std::uint64_t>(f.substr(kPart.size(), f.find('/') - kPart.size()));
  c.take(c.rest().substr(0, end + 1));
  r.part = c.rest();
  return true;
}

/// "1795860923.402117" of journalctl -o short-unix
bool unix_time(LogCursor& c, LogRecord& r) noexcept {
  LogCursor t = c;
  const auto s = t.digits(10, 10);
  if (!s || !t.rest().starts_with('.')) return false;
  r.date = static_cast<double>(*s) + t.fraction();
  if (!t.rest().starts_with(' ')) return false;
  c = t;
  return true;
}

/// "stdout F " of a container's runtime; P: the next line has the rest of the text.
bool log_stream(LogCursor& c, LogRecord& r) noexcept {
  LogCursor t = c;
  if (!r.date || !(t.take("stdout ") || t.take("stderr "))) return false;
  if (t.take("P")) r.goes_on = true;
  else if (!t.take("F")) return false;
  if (!t.at_end() && !t.take(" ")) return false;
  c = t;
  r.part = c.rest();
  return true;
}

std::string_view behind_word(LogCursor c) noexcept {
  c.word();
  c.blanks();
  return c.rest();
}
std::string_view first_word(const LogCursor& c) noexcept { return c.rest().substr(0, c.rest().find_first_of(" \t")); }

/// What a container's program printed: "kernel: 6.12" has no host and no time of its own.
bool printed(const LogCursor& c, const LogRecord& r) noexcept {
  return r.part.data() && r.part.data() == c.rest().data();
}

/// A level, or another word that stands where the name of a machine may be.
bool is_other_word(std::string_view word) noexcept {
  constexpr std::string_view kOthers[] = {"emerg", "alert",   "crit",    "critical", "err",    "error",
                                          "warn",  "warning", "notice",  "info",     "debug",  "trace",
                                          "fatal", "dmesg",   "kernel",  "kern",     "stdout", "stderr",
                                          "log",   "msg",     "message", "output",   "kmsg",   "syslog"};
  const auto same = [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); };
  return std::any_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view o) {
    return std::equal(o.begin(), o.end(), word.begin(), word.end(), same);
  });
}
bool has_letter(std::string_view word) noexcept {
  return std::any_of(word.begin(), word.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
}
/// "node7", "10.0.0.7", "pod/watch-x7k2p/dmesg"
bool is_host_name(std::string_view word) noexcept {
  constexpr std::size_t kLongest = 128;
  constexpr std::string_view kMarks = "._-/@";
  return !word.empty() && word.size() <= kLongest && !is_other_word(word) &&
         std::all_of(word.begin(), word.end(), [&](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || kMarks.find(c) != kMarks.npos;
         });
}
void take_host(std::string_view word, LogRecord& r, bool mark) noexcept {
  if (!r.host.empty() || !is_host_name(word)) return;
  r.host = word;
  r.host_is_mark = mark;
}
/// "host=node7" among the pairs of a line.
std::string_view host_of_pairs(std::string_view text) noexcept {
  for (const std::string_view key : {"host=", "hostname=", "node=", "instance=", "pod="})
    for (auto at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
      if (at > 0 && text[at - 1] != ' ' && text[at - 1] != ',' && text[at - 1] != '{') continue;
      auto value = text.substr(at + key.size());
      value = value.substr(0, value.find_first_of(" ,}"));
      return trimmed(value, "\"");
    }
  return {};
}
/// What tools put before each line of a machine: "node7: ", "watch-1  | ", "[pod/watch-x7k2p/dmesg] ", "node7.log:17:",
/// "host=node7 msg=", and the rank of srun, "3: ", or of mpirun, "[1,3]<stdout>:". Its words that are levels, or have
/// no letter, such as a time, may differ from line to line.
void take_mark(std::string_view before, LogRecord& r) noexcept {
  constexpr std::string_view kEnds = " \t|:>-[]\"'";
  if (const auto host = host_of_pairs(before); !host.empty()) return take_host(host, r, true);
  for (const std::string_view stream : {"<stdout>:", "<stderr>:"})
    if (trimmed(before).ends_with(stream)) before = before.substr(0, before.rfind('<'));
  const auto rank = trimmed(before, kEnds);
  if (!rank.empty() && rank.find_first_not_of("0123456789,") == rank.npos) {
    if (r.host.empty()) r.host = rank, r.host_is_mark = true;
    return;
  }
  for (auto rest = before; !rest.empty();) {
    auto word = trimmed(take_word(rest), kEnds);
    if (const auto number = word.rfind(':');
        number != word.npos && whole_number<std::uint64_t>(word.substr(number + 1)))
      word = word.substr(0, number);
    if (has_letter(word) && is_host_name(word)) return take_host(word, r, true);
  }
}

/// "node7 kernel: ", "node7 kernel[0]: ", "node7 kernel - - - ", "kernel: "
bool log_host(LogCursor& c, LogRecord& r) noexcept {
  if ((!r.date && !r.seconds && !r.priority) || printed(c, r)) return false;
  LogCursor t = c;
  for (int words = 0; words < 3; ++words) {
    if (words == 2 && !first_word(LogCursor{behind_word(c)}).starts_with("kern.")) return false;
    if (t.rest().starts_with('k'))
      for (const std::string_view name : {"kernel: ", "kernel:", "kernel[0]: ", "kernel - - - ", "kernel - - "})
        if (t.take(name)) {
          if (words > 0) take_host(first_word(c), r, false);
          return c = t, true;
        }
    t.word();
    if (!t.blanks()) return false;
  }
  return false;
}

/// "node7 sh[4711]: ": another program's
bool log_program(LogCursor& c, LogRecord& r) noexcept {
  if (!r.date || printed(c, r)) return false;
  LogCursor t = c;
  t.word();
  if (!t.blanks()) return false;
  const auto name = t.rest().substr(0, t.rest().find_first_of(" \t"));
  if (name.size() < 3 || !name.ends_with(':') || std::isalpha(static_cast<unsigned char>(name[0])) == 0) return false;
  // "nvme nvme0: text" of dmesg -T names a driver and its device.
  if (name.ends_with("]:")) take_host(first_word(c), r, false);
  t.word();
  c = t;
  return true;
}

/// A line of AMD_LOG_LEVEL: ":4:rocblit.cpp  :556 : 106 us: [pid:4711 tid: 0x7a33] "
bool hip_log(LogCursor& c, LogRecord&) noexcept {
  LogCursor t = c;
  if (!t.take(":") || !t.digits(1, 1) || !t.take(":")) return false;
  const auto head = t.rest().substr(0, t.rest().find("us:"));
  if (head.size() == t.rest().size() || head.find(".cpp") == head.npos) return false;
  t.take(head), t.take("us:");
  c = t;
  return true;
}

/// What mail, grep, kubectl and other tools put before a line.
bool log_quote(LogCursor& c, LogRecord&) noexcept { return c.take(">") || c.take("| "); }

/// The same before a line that has no time since the start: a date follows, a priority or the driver's name.
bool log_mark(LogCursor& c, LogRecord& r) noexcept {
  constexpr std::size_t kFar = 100;
  if (r.seconds || r.date || r.priority || r.part.data() || c.at_end()) return false;
  const auto rest = c.rest().substr(0, kFar);
  std::size_t end = 0;
  if (constexpr std::string_view kPod = "[pod/"; rest.starts_with(kPod)) end = rest.find("] ");
  else if (std::isalnum(static_cast<unsigned char>(rest[0])) != 0) end = std::min(rest.find(": "), rest.find(" | "));
  else return false;
  if (end == rest.npos || end == 0 || trimmed(rest.substr(0, end)).find(' ') != rest.npos) return false;
  LogCursor behind{c.rest().substr(rest[end] == ' ' ? end + 2 : end + 1)};
  behind.blanks();
  LogCursor t = behind;
  LogRecord date;
  const bool says = t.take("[") ? (t.blanks(), iso_date(t, date) || syslog_date(t, date))
                                : iso_date(t, date) || syslog_date(t, date) || log_level(t, date);
  constexpr std::string_view kDevice = "amdgpu 0000:";
  if (!says && !behind.rest().starts_with(kDevice)) return false;
  take_mark(rest.substr(0, end + 1), r);
  c = behind;
  return true;
}

/// A row of a table of events: "2026-11-22T10:00:01.000+0000",node7,"text"
bool csv_event(LogCursor& c, LogRecord& r) noexcept {
  LogCursor t = c;
  LogRecord date;
  if (r.date || r.seconds || !t.take("\"") || !iso_date(t, date) || !t.take("\",")) return false;
  const auto comma = t.rest().find(',');
  if (comma == t.rest().npos) return false;
  const auto host = trimmed(t.rest().substr(0, comma), "\"");
  if (!is_host_name(host)) return false;
  t.take(t.rest().substr(0, comma + 1));
  t.take("\"");
  r.date = date.date;
  take_host(host, r, false);
  c = t;
  return true;
}

struct LogPrefix {
  std::string_view name;  ///< where it is from
  bool (*take)(LogCursor&, LogRecord&) noexcept;
  bool evident;  ///< nothing but a log has it
};
constexpr LogPrefix kLogPrefixes[] = {
    {"a quotation", log_quote, false},
    {"/dev/kmsg or netconsole", kmsg_record, true},
    {"a priority", log_level, false},
    {"dmesg", in_brackets, true},
    {"dmesg -x", named_level, true},
    {"dates", iso_date, false},
    {"dates of syslog", syslog_date, false},
    {"journalctl -o short-unix", unix_time, false},
    {"a container", log_stream, false},
    {"journalctl or syslog", log_host, true},
    {"syslog", log_program, true},
    {"the log of the HIP runtime", hip_log, true},
    {"a mark of its machine", log_mark, false},
    {"a table of events", csv_event, false},
};

/// "[  812.400126]" anywhere: tools put what they like before it. Where it begins, or npos.
std::size_t find_seconds(std::string_view line) noexcept {
  for (auto open = line.find('['); open != line.npos; open = line.find('[', open + 1)) {
    const auto close = line.substr(open, 24).find(']');
    if (close != line.npos && seconds_in(line.substr(open + 1, close - 1))) return open;
  }
  return line.npos;
}

}  // namespace

void take_stream(std::string_view line, LogRecord& r) noexcept {
  LogCursor c{line};
  if (iso_date(c, r) && c.blanks()) log_stream(c, r);
}

void take_prefixes(std::string_view line, LogRecord& r) noexcept {
  LogCursor c{line};
  for (bool any = true; any;) {
    any = false;
    c.blanks();
    for (const auto& p : kLogPrefixes) {
      const auto before = c.rest();
      if (!p.take(c, r)) continue;
      if (r.when.empty() && (r.date || r.seconds)) r.when = before.substr(0, before.size() - c.rest().size());
      if (p.evident && !r.evident) r.evident = true, r.form = p.name;
      any = true;
      break;
    }
  }
  r.text = c.rest();
  if (r.seconds) return;
  constexpr std::size_t kFar = 200;
  if (const auto at = find_seconds(r.text.substr(0, kFar)); at != r.text.npos) {
    take_mark(r.text.substr(0, at), r);
    LogCursor behind{r.text.substr(at)};
    in_brackets(behind, r);
    r.evident = true;
    if (r.form.empty()) r.form = "dmesg";
    r.text = behind.rest();
    r.text.remove_prefix(std::min(r.text.find_first_not_of(" \t"), r.text.size()));
  }
}

}}}  // namespace sdma::v0_3::detail
