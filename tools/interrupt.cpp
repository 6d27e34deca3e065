// SPDX-License-Identifier: MIT
#include "interrupt.hpp"

#include "json/exit.hpp"
#include "output.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace sdma::tool {
namespace {

// The handler runs in the thread that changes these, so a plain store of a pointer is enough.
const std::string* volatile current_line = nullptr;
volatile std::sig_atomic_t unbroken = 0;
bool json_answer = false;
pthread_t first_thread{};

std::string message(const std::string& what) {
  return line_of({.severity = Severity::note, .where = "sdma", .message = what});
}

void write_now(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

[[noreturn]] void end_now() {
  if (json_answer) write_now(STDOUT_FILENO, "{\"complete\":false}\n");
  if (const auto* line = current_line) write_now(STDERR_FILENO, *line);
  ::_exit(kInterrupted);
}

void on_interrupt(int number) {
  // What is being done belongs to one thread.
  if (pthread_equal(pthread_self(), first_thread) == 0) {
    ::pthread_kill(first_thread, number);
    return;
  }
  if (interrupted != 0) ::_exit(kInterrupted);
  interrupted = number;
  if (unbroken == 0) end_now();
}

}  // namespace

void end_at_interrupt(bool json) {
  static const std::string nothing = message("interrupted before an answer");
  current_line = &nothing;
  json_answer = json;
  first_thread = pthread_self();
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

Doing::Doing(const std::string& what) : outer_(current_line) { now(what); }
Doing::~Doing() { current_line = outer_; }
void Doing::now(const std::string& what) { say(what_ = what); }
void Doing::show_now(const std::string& text) {
  say(what_ + ": " + text);
  line_.show_now(text);
}
void Doing::say(const std::string& what) {
  auto& next = lines_[1 - which_];
  next = message("interrupted while " + what);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_line = &next;
  which_ = 1 - which_;
}

Unbroken::Unbroken() noexcept {
  unbroken = unbroken + 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
Unbroken::~Unbroken() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  unbroken = unbroken - 1;
  if (unbroken > 0) return;
  struct sigaction now {};
  if (interrupted != 0 && ::sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == on_interrupt) end_now();
}

void answered() noexcept { std::signal(SIGINT, SIG_IGN); }

int stopped(const std::string& how_far) {
  report({.severity = Severity::note, .where = "sdma", .message = "interrupted: " + how_far});
  return kInterrupted;
}

}  // namespace sdma::tool
