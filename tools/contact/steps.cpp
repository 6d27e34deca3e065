// SPDX-License-Identifier: MIT
#include "contact/steps.hpp"

#include "build_info.hpp"
#include "core/descriptor.hpp"
#include "core/write_all.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

namespace sdma::tool::contact {
namespace {

using namespace std::chrono_literals;

/// After so many hangs, the rest of a group is left out.
constexpr int kHangs = 2;
/// For a process to start and to open its device.
constexpr std::chrono::seconds kOpening{60};

bool stopped(const Settings& s) { return s.stop && *s.stop != 0; }

std::string seconds(std::chrono::nanoseconds t) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(t).count());
}

/// In the child: the items from `first` on, one line each, until one hangs or may have left an engine that does not
/// work.
[[noreturn]] void work(const Settings& s, std::span<const Item> items, std::size_t first, Deadline end,
                       const std::map<std::string, int>& hangs, int out) {
  std::unique_ptr<Device> device;
  std::optional<Diagnostic> closed;
  for (std::size_t i = first; i < items.size(); ++i) {
    const auto& item = items[i];
    const auto hung = hangs.find(item.group);
    Json result;
    if (end.passed()) {
      result = with_state("not tried", "the time was over");
    } else if (hung != hangs.end() && hung->second >= kHangs) {
      result = with_state("left out", fmt::format("{} items of {} hung before", hung->second, item.group));
    } else {
      if (!item.bare && !device && !closed) {
        auto opened = s.open();
        if (opened) device = std::move(*opened);
        else closed = opened.error();
      }
      result = closed && !item.bare ? with_state("left out", to_string(*closed)) : item.work(device.get());
    }
    const bool hangs_now = result["state"] == "hung";
    if (sdma::detail::write_all(out, json::line(result)) != 0) ::_exit(1);
    if (hangs_now || item.any) break;
  }
  ::_exit(0);  // without destructors, which would wait for engines that hang; the kernel frees what they had
}

/// A child, and the lines that it has written.
class Process {
 public:
  Process(const Settings& s, std::span<const Item> items, std::size_t first, Deadline end,
          const std::map<std::string, int>& hangs) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::bad_alloc();
    in_ = sdma::detail::Descriptor(ends[0]);
    const sdma::detail::Descriptor out(ends[1]);
    const auto parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::bad_alloc();
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    std::signal(SIGINT, SIG_IGN);  // the parent ends it
    work(s, items, first, end, hangs, out.get());
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { (void)finish(); }

  /// The next line; nothing if the process has ended, at the deadline, or if Ctrl-C has been pressed.
  std::optional<std::string> line(const Settings& s, Deadline until) {
    for (;;) {
      if (const auto n = pending_.find('\n'); n != pending_.npos) {
        auto one = pending_.substr(0, n);
        pending_.erase(0, n + 1);
        return one;
      }
      if (stopped(s) || until.passed()) return {};
      pollfd p{.fd = in_.get(), .events = POLLIN, .revents = 0};
      // In slices: the signal of Ctrl-C may come between the test and the call.
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until.left()).count();
      if (::poll(&p, 1, static_cast<int>(std::min<long>(left + 1, 200))) <= 0) continue;
      char some[65536];
      const auto n = ::read(in_.get(), some, sizeof some);
      if (n == 0) return ended_ = true, std::nullopt;
      if (n > 0) pending_.append(some, static_cast<std::size_t>(n));
    }
  }
  /// Why there was no line.
  std::string finish() {
    if (pid_ <= 0) return {};
    if (!ended_) ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
    if (!ended_) return "its process did not answer, and was killed";
    if (WIFSIGNALED(status)) return fmt::format("its process ended by signal {}", WTERMSIG(status));
    return fmt::format("its process ended with code {}", WEXITSTATUS(status));
  }

 private:
  sdma::detail::Descriptor in_{};
  pid_t pid_ = -1;
  std::string pending_{};
  bool ended_ = false;
};

}  // namespace

Json with_state(std::string_view state, const std::string& why) {
  Json j{{"state", state}};
  if (!why.empty()) j["why"] = why;
  return j;
}

Json perform(const Settings& s, const std::string& step, std::span<const Item> items, Deadline end,
             const std::function<void(const Json&)>& learn) {
  Json all = Json::array();
  std::map<std::string, int> hangs;
  const auto add = [&](const Item& item, const Json& result) {
    Json j{{"id", item.id}};
    j.update(result);
    if (item.any && j["state"] == "hung") j["state"] = "seen";
    hangs[item.group] += j["state"] == "hung";
    if (learn) learn(j);
    all.push_back(std::move(j));
  };
  while (all.size() < items.size()) {
    if (stopped(s)) {
      add(items[all.size()], with_state("not tried", "interrupted"));
      continue;
    }
    Process process(s, items, all.size(), end, hangs);
    for (auto limit = items[all.size()].limit + kOpening; all.size() < items.size();) {
      const auto& item = items[all.size()];
      if (s.progress) s.progress(step, item.id);
      const auto line = process.line(s, Deadline::in(limit));
      if (!line && stopped(s)) break;
      auto result = line ? Json::parse(*line) : with_state("hung", process.finish());
      if (!line) result["doctor"] = fmt::format("nothing is known: no answer within {}", seconds(limit));
      add(item, result);
      if (!line || result["state"] == "hung" || item.any) break;
      if (all.size() < items.size()) limit = items[all.size()].limit + kOpening;
    }
  }
  return all;
}

Json meet(const Settings& s) {
  const auto begin = Deadline::Clock::now();
  // What is left of the time is shared as 1 : 6 : 8 : 10, so that a short step leaves its rest to the later ones.
  const auto until = [&](int part) { return Deadline{begin + s.time * part / 25}; };
  const auto wanted = [&](const char* step) { return s.only.empty() || s.only.contains(step); };
  Json answer{{"form", "sdma contact 1"},
              {"tool", version_json()},
              {"device", name(s.device)},
              {"settings",
               {{"minutes", std::chrono::duration<double, std::ratio<60>>(s.time).count()},
                {"gentle", s.gentle},
                {"risky", s.risky}}}};
  answer["there"] = what_is_there(s, until(1));
  const auto& found = answer["there"].back();
  std::optional<Topology> node;
  if (found.contains("topology"))
    if (auto t = topology_from_json(found["topology"].dump())) node = std::move(*t);
  if (node) {
    if (wanted("works")) answer["works"] = what_works(s, *node, until(7));
    if (wanted("order")) answer["order"] = what_order(s, *node, until(15));
    if (wanted("speed")) answer["speed"] = how_fast(s, *node, until(25));
  }
  answer["ended"] = stopped(s) ? "interrupted" : !node ? "no device" : "complete";
  return answer;
}

}  // namespace sdma::tool::contact
