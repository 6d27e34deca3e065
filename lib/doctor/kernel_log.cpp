// SPDX-License-Identifier: MIT
#include "kernel_log.hpp"
#include "sdma/doctor/read.hpp"

#include "../core/plural.hpp"
#include "../core/words.hpp"
#include "../dump/driver_log.hpp"
#include "../dump/plain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace sdma { inline namespace v0 { namespace doctor {
namespace {

using detail::LogLine;
using detail::LogWord;
using detail::whole_number;

constexpr std::string_view kPid = " pid ", kDumpedPid = " PID: ";

std::string_view first_word(std::string_view text) noexcept { return text.substr(0, text.find_first_of(" \t,.);\"")); }

/// "NAME pid 4711 thread ...": names may have spaces.
void read_process(std::string_view text, LoggedFault& f) {
  const auto key = text.find(kDumpedPid) != text.npos ? kDumpedPid : kPid;
  const auto pid = text.find(key);
  if (pid == text.npos) return;
  const auto n = whole_number<std::uint32_t>(first_word(text.substr(pid + key.size())));
  if (!n) return;
  f.process = *n;
  f.program = text.substr(std::min(text.find_first_not_of(' '), pid), pid);
  f.program.resize(std::min(f.program.find(key), f.program.size()));
  f.program.resize(f.program.find_last_not_of(' ') + 1);
}

void read_address(std::string_view text, LoggedFault& f) {
  if (const auto va = whole_number<std::uint64_t>(first_word(text).substr(text.starts_with("0x") ? 2 : 0), 16))
    f.page = GpuVa{*va};
}

/// What follows `key` in a line; "" if the key is not in it.
std::string_view after(std::string_view line, std::string_view key) noexcept {
  const auto at = line.find(key);
  return at == line.npos ? std::string_view{} : line.substr(at + key.size());
}

/// Puts the lines of faults together.
class FaultReader {
 public:
  void take(const LogLine& l) {
    if (l.wording->what == LogWord::fault) {
      all_.push_back({.seconds = l.seconds, .device = l.device});
      read_process(after(l.text, "for process "), all_.back());
      return;
    }
    if (l.wording->what == LogWord::dumped_process) return read_process(l.after_key(), dumped_);
    if (l.wording->what == LogWord::dumped_fault) {
      all_.push_back({.process = dumped_.process, .program = dumped_.program});
      read_address(l.after_key(), all_.back());
      if (all_.back().page == GpuVa{}) all_.pop_back();  // none since the driver was loaded
      return;
    }
    if (l.wording->what == LogWord::whole_fault) {
      all_.push_back({.seconds = l.seconds, .device = fmt::format("node-{}", first_word(l.after_key()))});
      read_address(after(l.text, l.wording->also), all_.back());
      return;
    }
    // The lines of two GPUs may be mixed.
    const auto last = std::find_if(all_.rbegin(), all_.rend(), [&](auto& f) { return f.device == l.device; });
    if (last == all_.rend()) return;
    auto& f = *last;
    switch (l.wording->what) {
      case LogWord::process:
        if (f.process == 0) read_process(l.after_key(), f);
        break;
      case LogWord::page:
        if (!f.page) read_address(l.after_key(), f);
        break;
      case LogWord::client:
        if (f.client.empty()) f.client = first_word(l.after_key());
        break;
      case LogWord::access:
        if (!f.write) f.write = first_word(l.after_key()) == "1";
        break;
      default: break;
    }
  }

  /// Each fault once.
  std::vector<LoggedFault> finish() {
    std::vector<LoggedFault> out;
    for (auto& f : all_) {
      const auto same = std::find_if(out.begin(), out.end(), [&](const LoggedFault& o) {
        return f.page && o.page == f.page && o.device == f.device && o.process == f.process;
      });
      if (same != out.end()) ++same->reports;
      else out.push_back(std::move(f));
    }
    return out;
  }

 private:
  std::vector<LoggedFault> all_;
  LoggedFault dumped_;  // whose devcoredump it is
};

std::vector<LoggedFault> faults_of(const std::vector<LogLine>& lines) {
  FaultReader reader;
  for (const auto& l : lines) reader.take(l);
  return reader.finish();
}

std::vector<LoggedEvent> events_of(const std::vector<LogLine>& lines) {
  std::vector<LoggedEvent> all;
  for (const auto& l : lines) {
    if (l.wording->what != LogWord::event) continue;
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const LoggedEvent& e) { return e.said == l.said() && e.device == l.device; });
    if (same != all.end()) ++same->reports;
    else
      all.push_back({.seconds = l.seconds,
                     .device = l.device,
                     .said = std::string(l.said()),
                     .means = std::string(l.wording->means)});
  }
  return all;
}

/// What is not in the members of a PageFault.
std::string rest_of(const LoggedFault& f) {
  std::vector<std::string> parts;
  if (!f.client.empty()) parts.push_back("unit " + f.client);
  if (f.write) parts.emplace_back(*f.write ? "a write" : "a read");
  if (f.process != 0) parts.push_back(fmt::format("process {} ({})", f.process, f.program));
  else parts.emplace_back("a process that the log does not name");
  if (f.seconds) parts.push_back(fmt::format("{:.3f} s after the start of the machine", *f.seconds));
  if (f.reports > 1) parts.push_back(fmt::format("reported {} times", f.reports));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string note_of(const LoggedEvent& e, std::string_view name) {
  return fmt::format("{}: \"{}\"{}{}: {}", name, e.said, e.device.empty() ? "" : " of GPU " + e.device,
                     e.reports > 1 ? fmt::format(", {} times", e.reports) : "", e.means);
}

}  // namespace

std::vector<LoggedFault> page_faults(std::string_view text) {
  return faults_of(detail::log_lines(detail::plain_text(text)));
}
std::vector<LoggedEvent> logged_events(std::string_view text) {
  return events_of(detail::log_lines(detail::plain_text(text)));
}
bool is_kernel_log(std::string_view text) { return !detail::log_lines(detail::plain_text(text)).empty(); }

PageFault to_page_fault(const LoggedFault& f, std::string_view from) {
  return {.page = f.page.value_or(GpuVa{}),
          .gpu = {},
          .device = f.device,
          .process = f.process,
          .by = rest_of(f),
          .from = std::string(from)};
}

std::string in_words(const PageFault& p) {
  return fmt::format("{:#x}{}{}{}{}", p.page.value, p.device.empty() ? "" : ", GPU ", p.device,
                     p.by.empty() ? "" : ", ", p.by);
}

void add_kernel_log(Snapshot& s, std::string_view text, std::string_view name, std::optional<std::uint32_t> process) {
  const auto lines = detail::log_lines(detail::plain_text(text));
  const auto all = faults_of(lines);
  std::set<std::uint32_t> processes, others;
  std::size_t without_page = 0;
  for (const auto& f : all) {
    if (process && f.process != 0 && f.process != *process) {
      others.insert(f.process);
      continue;
    }
    without_page += !f.page;
    if (!f.page) continue;
    if (f.process != 0) processes.insert(f.process);
    s.page_faults.push_back(to_page_fault(f, name));
  }
  const auto note = [&](std::string what) { s.notes.push_back(fmt::format("{}: {}", name, what)); };
  const bool dump = std::any_of(lines.begin(), lines.end(),
                                [](const LogLine& l) { return l.wording->what == LogWord::dumped_process; });
  if (all.empty() && !dump) note("this log has no page fault; the log is a ring, so one may have been there");
  if (without_page > 0) note(fmt::format("left out {} without an address", plural(without_page, "page fault")));
  if (!others.empty()) note(fmt::format("left out the page faults of the processes {}", fmt::join(others, ", ")));
  if (processes.size() > 1)
    note(fmt::format("this log has page faults of the processes {}: --pid=N keeps those of one",
                     fmt::join(processes, ", ")));
  for (const auto& e : events_of(lines)) s.notes.push_back(note_of(e, name));
}

}}}  // namespace sdma::v0::doctor
