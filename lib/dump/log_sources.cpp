// SPDX-License-Identifier: MIT
#include "log_sources.hpp"

#include "../core/words.hpp"
#include "line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// A time that is earlier by more seconds than this is of another start. A log of several programs is not quite in
/// order; that of the kernel is.
constexpr double kLaterStart = 10, kLaterStartOfKernel = 1;
/// After so many times that differ from the one before, the direction of a log is certain.
constexpr std::size_t kCertain = 1024;

/// "-- Boot 7e3d0c9a1f5b4c2d8e6f0a1b2c3d4e5f --": the id.
std::string_view boot_in(std::string_view line) noexcept {
  constexpr std::string_view kBoot = "-- Boot ", kEnd = " --";
  constexpr std::size_t kDigits = 32;
  if (!line.starts_with(kBoot) || !line.ends_with(kEnd) || line.size() != kBoot.size() + kDigits + kEnd.size())
    return {};
  const auto id = line.substr(kBoot.size(), kDigits);
  return std::all_of(id.begin(), id.end(), [](char c) { return is_hex(c); }) ? id : std::string_view{};
}

/// "==> /tmp/node7.log <==" of tail, "node7 | CHANGED | rc=0 >>" of ansible: the name.
std::string_view section_in(std::string_view line) noexcept {
  constexpr std::string_view kOpen = "==> ", kClose = " <==", kAnsible = " | ", kAnswer = " >>";
  if (line.starts_with(kOpen) && line.ends_with(kClose) && line.size() > kOpen.size() + kClose.size())
    return line.substr(kOpen.size(), line.size() - kOpen.size() - kClose.size());
  if (!line.ends_with(kAnswer)) return {};
  const auto bar = line.find(kAnsible);
  if (bar != line.npos && line.find("| rc=", bar) != line.npos && line.substr(0, bar).find(' ') == line.npos)
    return line.substr(0, bar);
  return {};
}

/// "node7:" of salt, or "node7: |" of YAML, above lines that are indented.
std::string_view section_above(std::string_view line, std::string_view next) noexcept {
  if (!next.starts_with("  ") || (next.find('[') == next.npos && next.find("amdgpu") == next.npos)) return {};
  const auto name = line.substr(0, line.find(':'));
  return line.size() - name.size() <= 3 && name.find_first_of(" \t[]()") == name.npos ? name : std::string_view{};
}

/// "[root@node7 ~]# dmesg", "user@node7:~$ sudo journalctl -k"
bool is_command(std::string_view line) noexcept {
  const auto command = std::min(line.find("dmesg"), line.find("journalctl"));
  if (command == line.npos) return false;
  const auto before = trimmed(line.substr(0, command), " \t");
  const auto prompt = before.find_last_of("#$>");
  return prompt != before.npos && before.find(": ") == before.npos &&
         (prompt + 1 == before.size() || trimmed(before.substr(prompt + 1)) == "sudo");
}
std::string_view host_of_prompt(std::string_view line) noexcept {
  const auto at = line.find('@');
  if (at == line.npos) return {};
  const auto rest = line.substr(at + 1);
  return rest.substr(0, rest.find_first_of(" :]#$>"));
}

/// "----------------" of dshbak and clush
bool is_rule(std::string_view line) noexcept {
  constexpr std::size_t kLeast = 8;
  return line.size() >= kLeast && line.find_first_not_of('-') == line.npos;
}

}  // namespace

void LogSpan::add(const LogRecord& r) {
  const bool s = r.seconds.has_value();
  if ((!s && seconds_) || (!s && !r.date)) return;
  if (s && !seconds_) first_ = last_ = {};
  seconds_ = s;
  const auto moment = s ? *r.seconds : *r.date;
  const auto when = s ? std::string_view{} : trimmed(r.when);
  keep(first_, moment, when, moment < first_.moment.value_or(0));
  keep(last_, moment, when, moment > last_.moment.value_or(0));
}
void LogSpan::add(const LogSpan& o) {
  if (!o.first_.moment || (seconds_ && !o.seconds_)) return;
  if (o.seconds_ && !seconds_) first_ = last_ = {};
  seconds_ = o.seconds_;
  keep(first_, *o.first_.moment, o.first_.when, *o.first_.moment < first_.moment.value_or(0));
  keep(last_, *o.last_.moment, o.last_.when, *o.last_.moment > last_.moment.value_or(0));
}
void LogSpan::keep(End& end, double moment, std::string_view when, bool better) {
  if (end.moment && !better) return;
  end.moment = moment;
  end.when = when;
}
std::string LogSpan::text(const End& end) {
  return !end.moment ? std::string{} : end.when.empty() ? fmt::format("{:.3f}", *end.moment) : end.when;
}

bool LogSources::may_be_heading(std::string_view line) noexcept {
  constexpr std::size_t kLongest = 200;
  if (line.empty() || line.size() > kLongest) return false;
  return line[0] == '-' || line[0] == '#' || line.starts_with("==>") || line.ends_with(">>") || line.ends_with(':') ||
         line.ends_with(": |") || line.find("dmesg") != line.npos || line.find("journalctl") != line.npos;
}

bool LogSources::begin(std::string_view section, std::string_view boot, Follows what) {
  section_ = section;
  boot_ = boot;
  for (auto& d : directions_)
    for (auto& at : d.at) {
      at.ended = at.ended || what == Follows::start;
      at.cut = at.cut || what == Follows::part;
    }
  return true;
}

bool LogSources::heading(std::string_view line, std::string_view next) {
  if (is_rule(trimmed(line))) {
    if (rule_ && !in_rules_.empty()) begin(std::exchange(in_rules_, {}), {}, Follows::section);
    return rule_ = true;
  }
  const bool behind_rule = std::exchange(rule_, false) && in_rules_.empty();
  if (behind_rule && !trimmed(line).empty() && trimmed(line).find(' ') == line.npos) {
    in_rules_ = trimmed(line);
    return rule_ = true;
  }
  in_rules_.clear();
  if (!may_be_heading(line)) return false;
  line = trimmed(line);
  if (const auto boot = boot_in(line); !boot.empty()) return begin(std::string(section_), boot, Follows::start);
  if (line == "-- Reboot --") return begin(std::string(section_), {}, Follows::start);
  if (line.starts_with("-- Journal begins at ") || line.starts_with("-- Logs begin at "))
    return begin({}, {}, Follows::start);
  if (const auto section = section_in(line); !section.empty()) return begin(section, {}, Follows::section);
  if (const auto section = section_above(line, next); !section.empty()) return begin(section, {}, Follows::section);
  if (is_command(line)) return begin(host_of_prompt(line), {}, Follows::part);
  const auto title = line.find_first_not_of('#');
  if (title != 0 && title != line.npos && line[title] == ' ') return begin({}, {}, Follows::part);
  return false;
}

std::uint32_t LogSources::host_of(const LogRecord& r) {
  const std::string_view name = r.host.empty() ? std::string_view(section_) : r.host;
  if (last_host_ < hosts_.size() && hosts_[last_host_].name == name) return last_host_;
  auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    found = by_name_.emplace(name, static_cast<std::uint32_t>(hosts_.size())).first;
    hosts_.push_back({.name = std::string(name), .marked = r.host_is_mark});
    marked_names_ += r.host_is_mark;
    for (auto& d : directions_) d.at.emplace_back();
  }
  return last_host_ = found->second;
}

LogPlace LogSources::add(const LogRecord& r, std::string_view text) {
  const auto host = host_of(r);
  auto& before = hosts_[host];
  marked_ += before.marked;
  const auto& now = r.seconds ? r.seconds : r.date;
  const auto& last = r.seconds ? before.seconds : before.date;
  if (now && last && *now != *last) ++(*now > *last ? later_ : earlier_);
  const bool begins = text.starts_with("Linux version ");
  const bool certain = later_ + earlier_ > kCertain;
  LogPlace p;
  for (const bool back : {false, true}) {
    auto& d = directions_[back ? 1 : 0];
    // In the other direction, each pause of a log would be a start.
    if (!certain || back == *reversed()) p.source[back ? 1 : 0] = place(d, back, r, host, begins);
    else if (!d.all.empty()) d = {.at = std::vector<Direction::At>(hosts_.size())};
  }
  if (r.seconds) before.seconds = r.seconds;
  else if (r.date) before.date = r.date;
  return p;
}

/// The index of a record's source, in a log that runs in one direction.
std::uint32_t LogSources::place(Direction& d, bool back, const LogRecord& r, std::uint32_t host, bool begins) {
  auto& at = d.at[host];
  const auto goes_back = [&](const std::optional<double>& now, const std::optional<double>& before, double most) {
    return now && before && (back ? *now - *before : *before - *now) > most;
  };
  const auto& before = hosts_[host];
  const bool other_start = goes_back(r.seconds, before.seconds, r.date ? kLaterStart : kLaterStartOfKernel);
  const bool cut = std::exchange(at.cut, false);
  const bool other_part = cut || (!r.seconds && goes_back(r.date, before.date, kLaterStart));
  const std::string_view boot = r.boot.empty() ? std::string_view(boot_) : r.boot;
  const bool ended = std::exchange(at.ended, false) || at.source == 0;
  const auto begin = [&](bool start) {
    if (start) ++at.starts;
    d.all.push_back({.host = host, .boot = std::string(boot), .start = at.starts});
    at.source = static_cast<std::uint32_t>(d.all.size());
  };
  if (!boot.empty()) {
    if (ended || d.all[at.source - 1].boot != boot) {
      const auto known = d.by_boot.find(std::pair(host, std::string(boot)));
      if (known != d.by_boot.end()) at.source = known->second;
      else {
        begin(true);
        d.by_boot.emplace(std::pair(host, std::string(boot)), at.source);
      }
    }
  } else if (ended || other_start || (begins && !back)) {
    begin(true);
  } else if (other_part) {
    begin(false);
  }
  if (begins && back) at.ended = true;
  auto& one = d.all[at.source - 1];
  ++one.records;
  one.span.add(r);
  return at.source - 1;
}

std::optional<bool> LogSources::reversed() const noexcept {
  return later_ + earlier_ > 0 ? std::optional(earlier_ > later_) : std::nullopt;
}

/// What stands before lines is the name of a machine only if several lines have it.
bool LogSources::is_host(const Host& h) const noexcept { return !h.marked || marked_names_ * 2 <= marked_; }

LogSourcesFound LogSources::found(bool reversed) const {
  LogSourcesFound out{.reversed = reversed};
  const auto& d = directions_[reversed ? 1 : 0];
  std::optional<std::uint32_t> unnamed;  // what is of no host that is one
  for (const auto& one : d.all) {
    const auto& host = hosts_[one.host];
    const bool known = is_host(host);
    if (!known && unnamed) {
      out.of.push_back(*unnamed);
    } else {
      out.of.push_back(static_cast<std::uint32_t>(out.all.size()));
      const auto starts = known ? std::max<std::size_t>(d.at[one.host].starts, 1) : 1;
      out.all.push_back({.host = known ? host.name : std::string{},
                         .boot = one.boot,
                         .start = !known     ? 1
                                  : reversed ? starts - one.start + 1
                                             : one.start,
                         .starts = starts});
      if (!known) unnamed = out.of.back();
    }
    auto& source = out.all[out.of.back()];
    source.records += one.records;
    source.span.add(one.span);
  }
  return out;
}

std::string in_words(const LogSource& s) {
  constexpr std::size_t kShort = 8;  // of a boot's id
  auto out = s.host.empty() ? std::string{} : "host " + s.host;
  if (s.starts < 2) return out;
  out += fmt::format("{}boot {} of {}", out.empty() ? "" : ", ", s.start, s.starts);
  return s.boot.empty() ? out : fmt::format("{} ({})", out, s.boot.substr(0, kShort));
}

}}}  // namespace sdma::v0_3::detail
