// SPDX-License-Identifier: MIT
#pragma once
// Streams, and the connections that execute them.
//
//   stream 0 --+
//              +-> connection 0: commands in the order in which they were enqueued --> its thread
//   stream 8 --+
//   stream 1 ----> connection 1 ...
//
// Stream number i of a context uses connection i mod CUDA_DEVICE_MAX_CONNECTIONS. A connection executes the commands of
// its streams in the order in which they were enqueued, so a stream that waits holds up the others. Numbers are not
// used again. A stream holds 1,020 unfinished commands: enqueue() blocks until there is room.
//
// Ordering: what the caller of enqueue() did before is visible to the command; what a command did is visible to whoever
// learns from idle(), or by a word that it wrote, that it is finished. Any thread may use it.
#include "context.hpp"
#include "order.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace stand_in {

/// Fails with what kills the context.
using Action = std::function<Status(Stream&)>;

/// Commands that were captured, for graphs.
struct Captured {
  std::vector<Action> actions{};
  bool waits = false;    ///< one of them waits for a word
  bool invalid = false;  ///< a call that cannot be captured was made
};

struct Stream {
  Stream(Context& c, unsigned number);

  Context& context;
  Connection& connection;
  std::size_t unfinished{};               ///< guarded by the connection
  std::shared_ptr<Captured> capturing{};  ///< guarded by the connection; null: commands are enqueued
  Order order;                            ///< for the connection's thread
};

class Connection {
 public:
  static constexpr std::size_t kRoom = 1020;  ///< of a stream

  explicit Connection(Context& c) : context_(c) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// `waits`: the action waits for a word. With `blocks`, returns when the command is finished. A stream that is
  /// captured keeps the command instead; one that would block invalidates the capture.
  Status enqueue(const std::shared_ptr<Stream>&, Action, bool waits = false, bool blocks = false);
  Status begin_capture(Stream&);
  Status end_capture(Stream&, std::shared_ptr<const Captured>* out);

  bool idle(const Stream&) const;
  bool captures(const Stream&) const;
  /// The number of the last command, and how many are finished.
  std::uint64_t enqueued() const;
  std::uint64_t finished() const;

  /// The context is dead: whoever waits here goes on.
  void wake();

 private:
  struct Command {
    std::shared_ptr<Stream> stream;
    Action action;
    bool waits;
  };

  void run();

  Context& context_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> commands_;
  std::uint64_t enqueued_{}, finished_{};
  bool running_ = false;
};

}  // namespace stand_in
