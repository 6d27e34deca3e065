// SPDX-License-Identifier: MIT
#include "stream.hpp"

#include "failures.hpp"
#include "settings.hpp"
#include "waits.hpp"

#include <csignal>
#include <thread>
#include <utility>

namespace stand_in {

Stream::Stream(Context& c, unsigned number)
    : context(c), connection(c.connection(number)), order(settings().seed, c.device(), number) {}

Status Connection::enqueue(const std::shared_ptr<Stream>& s, Action action, bool waits, bool blocks) {
  if (const auto code = take_later_failure()) action = [code](Stream&) { return code; };
  std::unique_lock lock(mutex_);
  if (auto* const c = s->capturing.get()) {
    if (blocks) c->invalid = true;
    if (c->invalid) return blocks ? kCaptureUnsupported : kCaptureInvalidated;
    c->actions.push_back(std::move(action));
    c->waits = c->waits || waits;
    return kSuccess;
  }
  changed_.wait(lock, [&] { return s->unfinished < kRoom || context_.status() != kSuccess; });
  if (const auto code = context_.status()) return code;
  if (!running_) {
    // Signals are the program's affair, so the program's threads take them.
    sigset_t all{}, before{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    running_ = true;
  }
  if (waits) Waits::get().enqueued();
  commands_.push_back({.stream = s, .action = std::move(action), .waits = waits});
  ++s->unfinished;
  const auto number = ++enqueued_;
  changed_.notify_all();
  if (!blocks) return kSuccess;
  changed_.wait(lock, [&] { return finished_ >= number; });
  return context_.status();
}

bool Connection::idle(const Stream& s) const {
  const std::lock_guard lock(mutex_);
  return s.unfinished == 0;
}
bool Connection::captures(const Stream& s) const {
  const std::lock_guard lock(mutex_);
  return s.capturing != nullptr;
}
Status Connection::begin_capture(Stream& s) {
  const std::lock_guard lock(mutex_);
  if (s.capturing) return kInvalidValue;
  s.capturing = std::make_shared<Captured>();
  return kSuccess;
}
Status Connection::end_capture(Stream& s, std::shared_ptr<const Captured>* out) {
  const std::lock_guard lock(mutex_);
  if (!s.capturing) return kNotCapturing;
  const auto captured = std::exchange(s.capturing, nullptr);
  if (captured->invalid) return kCaptureInvalidated;
  *out = captured;
  return kSuccess;
}
std::uint64_t Connection::enqueued() const {
  const std::lock_guard lock(mutex_);
  return enqueued_;
}
std::uint64_t Connection::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

void Connection::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Connection::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !commands_.empty() || context_.status() == kContextDestroyed; });
    if (commands_.empty()) break;
    auto command = std::move(commands_.front());
    commands_.pop_front();
    lock.unlock();
    // A dead context executes nothing more.
    if (context_.status() == kSuccess) command.stream->order.pause_before_command();
    if (context_.status() == kSuccess)
      if (const auto code = command.action(*command.stream)) context_.kill(code);
    command.action = nullptr;
    if (command.waits) Waits::get().finished();
    lock.lock();
    ++finished_;
    --command.stream->unfinished;
    changed_.notify_all();
  }
  running_ = false;
}

}  // namespace stand_in
