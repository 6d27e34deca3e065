// SPDX-License-Identifier: MIT
#pragma once
// A process to be debugged: it obeys a socket, in the test "(process) is debugged" of debugger.cpp.
//
//   Debuggee t;                              // with one queue
//   t.tell(Order::queue, 2 * engine + gpu);  // one more; t.state says where it is
#include "child.hpp"
#include "sdma/core/deadline.hpp"

#include <chrono>
#include <cstdint>
#include <thread>

struct Order {
  enum What : std::uint32_t {
    queue,          ///< a queue on engine `number`
    destroy,        ///< the queue that was created last
    store_wptr,     ///< a fence is published, and the doorbell is not rung
    landed,         ///< whether that fence has landed, after `number` ms at most
    set_runtime,    ///< RUNTIME_ENABLE with mode `number`; answers after the call has returned
    begin_runtime,  ///< the same in another thread; answers at once
    runtime_ended,  ///< what became of begin_runtime: -1 if it blocks still
    interrupt,      ///< a signal for that thread
    poll,           ///< the last queue polls the process's word for `number`
    release,        ///< a fence of `number` to the word is published in the last queue, and the doorbell is rung
    post,           ///< the host stores `number` to the word
    alarms,         ///< signals for the leader, until the next order; answers how many arrived, or -1 if one was lost
    churn,          ///< queues are created and destroyed until the next order
    end,
  } what{};
  std::uint32_t number{};
};
struct State {
  std::uint64_t ring{}, rptr{}, wptr{}, word{}, doorbell{};
  std::uint32_t id{}, queues{};
  std::int32_t result{}, pid{};
};

/// A process, and its first queue.
struct Debuggee {
  Child process{"(process) is debugged"};
  State state{};
  bool over = false;  ///< it has been told to end
  Debuggee() { tell(Order::queue); }
  ~Debuggee() {
    if (!over) tell(Order::end);
  }
  int tell(Order::What what, std::uint32_t number = 0) {
    begin(what, number);
    return end();
  }
  void begin(Order::What what, std::uint32_t number = 0) { send(process.link(), Order{what, number}); }
  int end() { return (state = receive<State>(process.link())).result; }
  /// The same without an assertion, for a thread beside the test's own. False if the process has gone.
  bool try_begin(Order::What what, std::uint32_t number = 0) { return try_send(process.link(), Order{what, number}); }
  bool try_end() { return try_receive(process.link(), state); }
  std::uint32_t pid() const { return static_cast<std::uint32_t>(state.pid); }
};

/// False if it does not hold within 10 s.
template <class Condition> bool soon(Condition holds) {
  const auto until = sdma::Deadline::in(std::chrono::seconds(10));
  while (!until.passed()) {
    if (holds()) return true;
    std::this_thread::yield();
  }
  return false;
}
