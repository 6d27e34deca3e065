// SPDX-License-Identifier: MIT
#pragma once
// Primary contexts: one per device while it is retained, and which of them is current in a thread.
//
// The first command that fails kills its context: status() stays that code. The last release destroys the context, and
// with it what its streams have not finished; the next retain makes a new one. A destroyed context is never freed,
// because its threads and the program may still hold it. Any thread may use it.
#include "abi.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace stand_in {

class Connection;
struct Stream;

class Context {
 public:
  explicit Context(int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int device() const noexcept { return device_; }
  Status status() const noexcept { return status_.load(std::memory_order_acquire); }
  /// The first code wins, but a destroyed context stays destroyed.
  void kill(Status);

  std::shared_ptr<Stream> make_stream();
  Connection& connection(unsigned stream_number) { return *connections_[stream_number % connections_.size()]; }
  const std::vector<std::unique_ptr<Connection>>& connections() const noexcept { return connections_; }

 private:
  int device_;
  std::atomic<Status> status_ = kSuccess;
  std::atomic<unsigned> next_stream_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
};

/// cuInit: reads the number of connections.
void set_connections(unsigned);

Status retain_context(Context** out, int device);
Status release_context(int device);
/// The context with this address if it was ever made, or null.
Context* known_context(const void*);
/// The present context of the device, or null.
Context* context_of(int device);
/// Until no stream of any device waits, and all that was enqueued before the call is finished.
void wait_for_all();

/// Of the calling thread.
Status push_context(Context*);
Status pop_context(Context** out);
/// kInvalidContext without one; what killed it if it is dead.
Status current_context(Context** out);

}  // namespace stand_in
