// SPDX-License-Identifier: MIT
#include "doctor_live.hpp"

#include "preload.hpp"
#include "program.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/doctor/attach.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <thread>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The texts that end with a zero byte each, as in /proc/PID/environ and cmdline.
std::vector<std::string> zero_ended(const std::string& path) {
  std::vector<std::string> all;
  const auto text = read_file(path);
  for (std::string_view rest = text ? std::string_view(*text) : ""; !rest.empty();) {
    const auto one = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    all.emplace_back(one);
  }
  return all;
}

/// Starts this program again on a software node like that of the process. Returns only if that fails.
void join_node(int pid) {
  const auto library = emulator_library();
  if (library.empty()) return;
  const auto name = preload_name(library);
  if (!name) return report(name.error());
  const char* loaded = std::getenv("LD_PRELOAD");
  if (loaded && std::string_view(loaded).find(*name) != std::string_view::npos) return;  // in vain
  // What the process's node looks like. The rest of its settings, such as a trace, are its own.
  for (const auto& setting : zero_ended(fmt::format("/proc/{}/environ", pid)))
    for (const std::string_view shape : {"SDMA_EMULATE_GPUS=", "SDMA_EMULATE_GPU="})
      if (setting.starts_with(shape))
        ::setenv(std::string(shape.substr(0, shape.size() - 1)).c_str(), setting.c_str() + shape.size(), 1);
  preload(*name);
  std::error_code e;
  (void)execute(fs::read_symlink("/proc/self/exe", e), zero_ended("/proc/self/cmdline"));
}

/// Whether a program's words are those of `sdma emulate`.
bool is_emulate(const fs::path& program, const std::vector<std::string>& words) {
  std::error_code e;
  return words.size() > 1 && words[1] == "emulate" && fs::equivalent(program, "/proc/self/exe", e);
}

/// The GPU processes of a program: how long each has stood still, and whether that was examined.
class Stalls {
 public:
  Stalls(const LiveOptions& o, const std::function<void(const doctor::Snapshot&, const doctor::Diagnosis&)>& show)
      : o_(o), show_(show) {}

  /// `now`: examine every process, even if it has not stalled.
  void look(int program, bool now) {
    const auto pids = doctor::gpu_processes_below(program);
    if (now && pids.empty()) complain("the program does not use a GPU yet");
    std::erase_if(seen_, [&](const auto& s) { return std::find(pids.begin(), pids.end(), s.first) == pids.end(); });
    for (const int pid : pids) {
      auto& s = seen_.try_emplace(pid).first->second;
      const auto activity = doctor::sdma_activity(pid);
      if (!activity && !std::exchange(warned_, true))
        complain("this driver does not count the activity of sDMA engines, so a stall is not noticed",
                 fmt::format("to examine them, press Ctrl-\\, or: kill -QUIT {}", ::getpid()));
      if (s.ending) {
        constexpr auto kPatience = std::chrono::seconds(5);  // after it was asked to end
        if (Clock::now() - *s.ending > kPatience) ::kill(pid, SIGKILL);
        continue;
      }
      if (s.activity != activity) s = {.activity = activity};
      const auto stood = activity ? Clock::now() - s.since : Clock::duration{};
      const bool still = activity && !s.reported && stood >= o_.after * s.patience;
      if (!still && !now) continue;
      const auto verdict = examine(pid, now, stood);
      // An engine may wait at its very first packet, which counts as no
      // activity: so a process without work is examined again, ever more rarely.
      s.reported = verdict != doctor::Verdict::healthy;
      s.patience = std::min(s.patience * 2, 1 << 20);
      if (verdict != doctor::Verdict::hung || !o_.end) continue;
      s.ending = Clock::now();
      ended_ = true;
      ::kill(pid, SIGTERM);
    }
  }
  /// Something has hung, and was ended.
  bool ended() const noexcept { return ended_; }

 private:
  struct Seen {
    std::optional<std::uint64_t> activity{};
    Clock::time_point since = Clock::now();
    bool reported = false;
    int patience = 1;  ///< the next examination is after this many times --after
    std::optional<Clock::time_point> ending{};
  };

  /// A process without work is not reported unless the user has asked.
  /// `stood`: for how long no engine of the process has made progress.
  std::optional<doctor::Verdict> examine(int pid, bool asked, std::chrono::nanoseconds stood) {
    auto o = o_;
    o.attach = true;
    auto s = examine_process(pid, o);
    if (!s) return report(s.error()), std::nullopt;
    s->watched_ns = std::max(s->watched_ns, static_cast<std::uint64_t>(stood.count()));
    keep_what_is_read(*s);
    const auto d = diagnose(*s);
    if (asked || d.verdict() != doctor::Verdict::healthy) show_(*s, d);
    return d.verdict();
  }

  const LiveOptions& o_;
  const std::function<void(const doctor::Snapshot&, const doctor::Diagnosis&)>& show_;
  std::map<int, Seen> seen_{};
  bool warned_ = false, ended_ = false;
};

std::optional<std::chrono::nanoseconds> some_time(const std::string& text) {
  const auto t = parse_time(text);
  return t && *t <= std::chrono::hours(24) ? t : std::nullopt;
}

}  // namespace

void add_live(VerbOptions& verb, LiveOptions& o) {
  verb.flag("--attach", o.attach,
            "with a process: begin a debug session with the driver, because only the driver knows the queues. If the "
            "process has enabled a runtime, the driver unmaps all its queues and maps them again. The engines then "
            "read wptr, so a lost doorbell no longer shows. An engine that does not answer may be reset");
  verb.flag("--processes", o.processes, "examine all processes that use a GPU, as one snapshot");
  add_parsed(verb, "--watch", o.watch, some_time, "a time of at most 24 h, such as 1s or 500ms",
             "with a process: how long its queues are watched (default: 1s)")
      .type("TIME");
  add_parsed(verb, "--after", o.after, some_time, "a time of at most 24 h, such as 5s or 500ms",
             "with a program: examine it when its queues have not moved for this long (default: 5s)")
      .type("TIME");
  verb.flag("--end", o.end, "with a program: end each process that hangs, and return 1 (default: it continues)");
  o.program = verb.after_dashes();
}

std::vector<int> pids_of(const std::vector<std::string>& inputs, const LiveOptions& o) {
  std::vector<int> all;
  if (o.processes) {
    all = doctor::gpu_processes_below(0);
    std::erase(all, ::getpid());
    return all;
  }
  for (const auto& in : inputs) {
    std::error_code e;
    const bool digits = !in.empty() && in.find_first_not_of("0123456789") == std::string::npos;
    const auto pid = digits && !fs::exists(in, e) ? parse_count(in) : std::nullopt;
    if (!pid || *pid > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return {};
    all.push_back(static_cast<int>(*pid));
  }
  return all;
}

Result<doctor::Snapshot, Diagnostic> examine_process(int pid, const LiveOptions& o) {
  const auto kind = doctor::kind_of_process(pid);
  if (kind.readable && kind.emulated && !kind.this_emulated) join_node(pid);
  return doctor::examine(pid, {.attach = o.attach, .watch = std::chrono::duration_cast<milliseconds>(o.watch)});
}

Result<doctor::Snapshot, Diagnostic> examine_processes(const std::vector<int>& pids, const LiveOptions& o) {
  if (pids.size() == 1) return examine_process(pids.front(), o);
  std::vector<std::optional<Result<doctor::Snapshot, Diagnostic>>> found(pids.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < pids.size(); ++i)
      threads.emplace_back([&, i] { found[i].emplace(examine_process(pids[i], o)); });
  }
  std::vector<doctor::Snapshot> all;
  std::vector<std::string> missing;
  for (auto& f : found) {
    if (*f) all.push_back(std::move(**f));
    else if (!o.processes) return std::move(f->error());
    else missing.push_back("Not examined: " + to_string(f->error()));
  }
  if (all.empty())
    return Diagnostic{.where = "the processes", .message = "none of them can be examined", .hint = missing.front()};
  auto s = doctor::merged(std::move(all));
  if (!missing.empty()) s.all_queues = false;
  s.notes.insert(s.notes.end(), missing.begin(), missing.end());
  return s;
}

int examine_program(const LiveOptions& o,
                    const std::function<void(const doctor::Snapshot&, const doctor::Diagnosis&)>& show) {
  const auto program = find_program(o.program[0]);
  if (program.empty()) return kInput;
  if (is_emulate(program, o.program))
    return complain("the doctor has to run on the same node as the program",
                    "write it the other way round: sdma emulate -- sdma doctor -- PROGRAM");
  Stalls stalls(o, show);
  const auto look = [&](pid_t pid, bool asked) { stalls.look(pid, asked); };
  const auto interval =
      std::clamp(std::chrono::duration_cast<milliseconds>(o.after) / 8, milliseconds(20), milliseconds(500));
  int status = 0;
  if (const int code = run_program(program, o.program, status, {.look = look, .interval = interval})) return code;
  return stalls.ended() ? static_cast<int>(kRefuted) : end_as(status);
}

}  // namespace sdma::tool
