// SPDX-License-Identifier: MIT
#pragma once
// A thread of the explorer: a stack of its own, and one switch in either direction. Abandoned where it stands by
// `start`, so nothing on its stack may own anything.
#include <cstddef>
#include <memory>

namespace model {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From now on `run(argument)` is what resume() continues.
  void start(void (*run)(void*), void* argument);
  /// Runs the fiber until it yields or returns.
  void resume();
  /// From within: back to who resumed.
  void yield();
  bool done() const { return done_; }

 private:
  static constexpr std::size_t kStack = 64 * 1024;
  struct Machine;
  void enter();
  std::unique_ptr<std::byte[]> stack_;
  std::unique_ptr<Machine> machine_;
  void (*run_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool done_ = true;
};

}  // namespace model
