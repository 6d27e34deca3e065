// SPDX-License-Identifier: MIT
// Threads that do not run: why one cannot, and what else may still store to the memory of their process.
#include "../core/plural.hpp"
#include "../core/words.hpp"
#include "process.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using detail::whole_number;

std::string text_of(const std::string& path) {
  auto text = read_file(path);
  return text ? std::move(*text) : std::string();
}

/// Calls `fn(path)` for each entry of a folder of /proc.
template <class Fn> void each_entry(const std::string& folder, Fn fn) {
  std::error_code e;
  for (std::filesystem::directory_iterator at(folder, e), end; !e && at != end; at.increment(e)) fn(at->path());
}

/// The state in /proc/PID/task/TID/stat: a name in parentheses, then a letter.
char state_in(std::string_view stat) {
  const auto name = stat.rfind(')');
  return name == stat.npos || name + 2 >= stat.size() ? ' ' : stat[name + 2];
}

/// Does only an instruction of the thread itself raise it, or libc?
bool is_internal(int signal) noexcept {
  constexpr int kOfLibc[] = {32, 33};  // of pthread_cancel and setuid, which another thread of the process calls
  constexpr int kOfInstructions[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGABRT};
  const auto has = [&](const auto& all) { return std::find(std::begin(all), std::end(all), signal) != std::end(all); };
  return has(kOfLibc) || has(kOfInstructions);
}

}  // namespace

std::size_t count_threads(int pid) {
  std::size_t n = 0;
  each_entry(fmt::format("/proc/{}/task", pid), [&](const auto&) { ++n; });
  return n;
}

std::vector<HeldThread> held_threads(int pid) {
  constexpr std::string_view kHeld = "TtZD";
  std::vector<HeldThread> all;
  each_entry(fmt::format("/proc/{}/task", pid), [&](const std::filesystem::path& task) {
    const auto thread = whole_number<int>(task.filename().string());
    const auto state = state_in(text_of((task / "stat").string()));
    if (!thread || kHeld.find(state) == kHeld.npos) return;
    const auto name = text_of((task / "comm").string());
    all.push_back({*thread, name.substr(0, name.find('\n')), state});
    const auto in = state == 'D' ? text_of((task / "wchan").string()) : std::string();
    if (in.size() > 1) all.back().in = in;  // "0": it may not be read
  });
  return all;
}

std::vector<std::string> sentences_of(const std::vector<HeldThread>& all, int pid, std::size_t threads) {
  std::map<char, std::vector<std::string>> by_state;
  for (const auto& t : all)
    by_state[t.state].push_back(fmt::format("{} ({}){}", t.thread, t.name, t.in.empty() ? "" : " in " + t.in));
  std::vector<std::string> out;
  for (const auto& [state, who] : by_state) {
    const bool all_of_it = who.size() == threads, one = all_of_it || who.size() == 1;
    const auto subject = all_of_it ? fmt::format("Process {} is", pid)
                                   : fmt::format("Thread{} {} of process {} {}", one ? "" : "s", fmt::join(who, ", "),
                                                 pid, one ? "is" : "are");
    const auto* const idle = one ? "it stores no value and rings no doorbell meanwhile"
                                 : "they store no value and ring no doorbell meanwhile";
    switch (state) {
      case 'T': out.push_back(fmt::format("{} stopped (state T): {}, until kill -CONT {}.", subject, idle, pid)); break;
      case 't':
        out.push_back(
            fmt::format("{} stopped by a debugger (state t), process {}: {}.", subject, tracer_of(pid), idle));
        break;
      case 'Z': out.push_back(fmt::format("{} a zombie (state Z): it has ended, and others run on.", subject)); break;
      default:
        out.push_back(fmt::format(
            "{} in the kernel (state D), where no signal ends it: {}. Look for \"blocked for more than\" in the kernel's "
            "log, and at /proc/{}/task/*/stack.",
            subject, idle, pid));
    }
  }
  return out;
}

std::vector<std::string> sleepless_parts(int pid) {
  std::vector<std::string> out;
  if (!text_of(fmt::format("/proc/{}/timers", pid)).empty()) out.emplace_back("a timer");
  std::vector<int> handled;
  const auto caught = whole_number<std::uint64_t>(status_of(pid, "SigCgt"), 16);
  for (int signal = 1; signal <= 64; ++signal)
    if (caught.value_or(0) >> (signal - 1) & 1 && !is_internal(signal)) handled.push_back(signal);
  if (!handled.empty())
    out.push_back(
        fmt::format("a handler of the signal{} {}", handled.size() == 1 ? "" : "s", fmt::join(handled, ", ")));
  std::map<std::string, std::size_t> files;
  each_entry(fmt::format("/proc/{}/fd", pid), [&](const std::filesystem::path& fd) {
    std::error_code e;
    const auto file = std::filesystem::read_symlink(fd, e).string();
    for (const auto& [begin, what] : {std::pair("socket:", "socket"), std::pair("anon_inode:[io_uring]", "io_uring"),
                                      std::pair("/dev/infiniband/", "device of RDMA")})
      if (file.starts_with(begin)) ++files[what];
  });
  for (const auto& [what, n] : files) out.push_back(plural(n, what));
  return out;
}

}}}  // namespace sdma::v0_3::doctor
