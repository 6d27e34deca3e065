// SPDX-License-Identifier: MIT
#include "context.hpp"

#include "settings.hpp"
#include "stream.hpp"
#include "waits.hpp"

#include <array>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace stand_in {
namespace {

struct Primary {
  Context* context{};
  unsigned references{};
};
struct All {
  std::mutex mutex{};
  std::array<Primary, 64> primaries{};
  std::list<Context> made{};
  unsigned connections = 8;
};
All& all() {
  static auto* const only = new All;
  return *only;
}

/// Without a destructor, because functions may be called while the process exits.
struct Stack {
  std::array<Context*, 64> contexts;
  std::size_t depth;
};
thread_local Stack stack{};

}  // namespace

Context::Context(int device) : device_(device) {
  for (unsigned i = 0; i < all().connections; ++i) connections_.push_back(std::make_unique<Connection>(*this));
}
Context::~Context() = default;

void Context::kill(Status code) {
  Status before = kSuccess;
  if (!status_.compare_exchange_strong(before, code) && code == kContextDestroyed) status_ = code;
  for (const auto& c : connections_) c->wake();
  Waits::get().nudge();
}

std::shared_ptr<Stream> Context::make_stream() { return std::make_shared<Stream>(*this, next_stream_++); }

void set_connections(unsigned n) {
  const std::lock_guard lock(all().mutex);
  all().connections = n;
}

Status retain_context(Context** out, int device) {
  const std::lock_guard lock(all().mutex);
  auto& p = all().primaries[static_cast<std::size_t>(device)];
  if (!p.context) p.context = &all().made.emplace_back(device);
  if (const auto code = p.context->status()) return code;
  ++p.references;
  *out = p.context;
  return kSuccess;
}

Status release_context(int device) {
  Context* last = nullptr;
  {
    const std::lock_guard lock(all().mutex);
    auto& p = all().primaries[static_cast<std::size_t>(device)];
    if (p.references == 0) return kInvalidContext;
    if (--p.references == 0) last = std::exchange(p.context, nullptr);
  }
  if (last) last->kill(kContextDestroyed);
  return kSuccess;
}

Context* known_context(const void* at) {
  const std::lock_guard lock(all().mutex);
  for (auto& c : all().made)
    if (&c == at) return &c;
  return nullptr;
}

Context* context_of(int device) {
  const std::lock_guard lock(all().mutex);
  return all().primaries[static_cast<std::size_t>(device)].context;
}

void wait_for_all() {
  std::vector<std::pair<Connection*, std::uint64_t>> ends;
  {
    const std::lock_guard lock(all().mutex);
    for (const auto& p : all().primaries)
      if (p.context)
        for (const auto& c : p.context->connections()) ends.emplace_back(c.get(), c->enqueued());
  }
  const auto busy = [&] {
    if (Waits::get().any()) return true;
    for (const auto& [connection, number] : ends)
      if (connection->finished() < number) return true;
    return false;
  };
  while (busy()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

Status push_context(Context* c) {
  if (!c || stack.depth == stack.contexts.size()) return kInvalidContext;
  stack.contexts[stack.depth++] = c;
  return kSuccess;
}

Status pop_context(Context** out) {
  if (stack.depth == 0) return kInvalidContext;
  *out = stack.contexts[--stack.depth];
  return kSuccess;
}

Status current_context(Context** out) {
  if (stack.depth == 0) return kInvalidContext;
  *out = stack.contexts[stack.depth - 1];
  return (*out)->status();
}

}  // namespace stand_in
