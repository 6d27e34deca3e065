// SPDX-License-Identifier: MIT
#include "program.hpp"

#include "verb.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t running = 0, looks = 0;
void pass_on(int signal) {
  if (running != 0) ::kill(static_cast<pid_t>(running), signal);
}
void look_now(int) { looks = 1; }

void handle(int signal, void (*handler)(int)) {
  struct sigaction a {};
  a.sa_handler = handler;
  ::sigaction(signal, &a, nullptr);
}

}  // namespace

fs::path library_beside_program(const std::string& name, const std::string& folder) {
  std::error_code e;
  const auto here = fs::read_symlink("/proc/self/exe", e).parent_path();
  for (const auto& path :
       {here / ".." / folder / name, here / ".." / SDMA_LIBDIR / "sdma" / name, here / "../lib/sdma" / name})
    if (fs::exists(path, e)) return fs::canonical(path, e);
  return {};
}

static fs::path search(const std::string& name) {
  std::error_code e;
  if (name.find('/') != name.npos) return fs::exists(name, e) ? fs::path(name) : fs::path();
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const auto candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate, e)) return candidate;
  }
  return {};
}

fs::path find_program(const std::string& name) {
  auto found = search(name);
  if (found.empty()) complain("there is no program '" + name + "'");
  return found;
}

int execute(const fs::path& program, const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return complain("cannot run '" + program.string() + "': " + std::strerror(errno)), kInput;
}

int run_program(const fs::path& program, const std::vector<std::string>& words, int& status, const Watch& watch) {
  constexpr std::array kPassed{SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
  sigset_t all{}, before{};
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  const auto parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return complain(std::string("cannot start a process: ") + std::strerror(errno)), kInput;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kInput);
    if (watch.look) handle(SIGQUIT, SIG_IGN);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(execute(program, words));
  }
  running = child;
  for (const int s : kPassed) handle(s, pass_on);
  handle(SIGINT, SIG_IGN);
  handle(SIGQUIT, watch.look ? look_now : SIG_IGN);
  const auto interval = std::chrono::duration_cast<std::chrono::nanoseconds>(watch.interval);
  const timespec pause{.tv_sec = interval.count() / 1'000'000'000, .tv_nsec = interval.count() % 1'000'000'000};
  if (watch.look) handle(SIGCHLD, [](int) {});  // ends the pause
  sigset_t waiting = before;
  for (const int s : {SIGCHLD, SIGQUIT}) ::sigdelset(&waiting, s);
  if (!watch.look) ::sigprocmask(SIG_SETMASK, &before, nullptr);
  for (;;) {
    const auto ended = ::waitpid(child, &status, watch.look ? WNOHANG : 0);
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    if (!watch.look) continue;
    // Signals arrive only here, so none is missed.
    (void)::pselect(0, nullptr, nullptr, nullptr, &pause, &waiting);
    const bool asked = looks != 0;
    looks = 0;
    watch.look(child, asked);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  running = 0;
  return kOk;
}

int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  // The program has already left a core dump.
  ::prctl(PR_SET_DUMPABLE, 0);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(WTERMSIG(status), &standard, nullptr);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace sdma::tool
