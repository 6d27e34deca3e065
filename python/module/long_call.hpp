// SPDX-License-Identifier: MIT
#pragma once
// Calculations that take long, without the interpreter's lock, and ended by Ctrl-C.
//
//   auto report = long_call([s = box.snapshot()](const Stop&) { return check(*s); });
//   auto found = long_call([=](const Stop& stop) {
//     return search(text, ..., {.proceed = [&](auto&) { return !stop; }});
//   });
//
// `work` runs in a thread of its own, while the caller waits for it and lets Python handle signals. If a handler
// raises an exception, as that of Ctrl-C does, `stop` becomes true and the call raises the exception. A calculation
// that never reads `stop` continues, and its result is dropped. Therefore `work` holds all that it uses by value, and
// uses nothing of Python.
//
// With Ends::first, the call returns only after the work has ended: for work that uses a device, and reads `stop`.
//
// Any thread of Python may call it; only its main thread handles signals. Errors: what `work` throws is thrown here.
#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace sdma::python {

/// The calculations that have not ended, also those whose callers have. At the end of the process they are given a few
/// seconds: they use constants of the library, which are destroyed then.
class Running {
 public:
  /// Never destroyed, because a thread may end after everything else.
  static Running& all() {
    static auto& one = *new Running;
    return one;
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_all();
  }
  void wait_for_all(std::chrono::seconds most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_{};
  std::condition_variable changed_{};
  int count_ = 0;
};

using Stop = std::atomic<bool>;
enum class Ends : bool { later, first };

template <class Work> auto long_call(Work work, Ends ends = Ends::later) {
  using Answer = std::invoke_result_t<Work&, const Stop&>;
  struct Shared {
    explicit Shared(Work w) : work(std::move(w)) {}
    Work work;
    Stop stop = false;
    std::promise<Answer> promise{};
  };
  const auto shared = std::make_shared<Shared>(std::move(work));
  auto answer = shared->promise.get_future();
  Running::all().begin();
  std::thread([shared] {
    try {
      shared->promise.set_value(shared->work(shared->stop));
    } catch (...) {
      shared->promise.set_exception(std::current_exception());
    }
    Running::all().end();
  }).detach();
  constexpr auto kSlice = std::chrono::milliseconds(50);
  const auto ended = [&](auto wait) {
    const pybind11::gil_scoped_release unlocked;
    return wait();
  };
  while (ended([&] { return answer.wait_for(kSlice); }) != std::future_status::ready) {
    if (PyErr_CheckSignals() == 0) continue;
    shared->stop = true;
    if (ends == Ends::first) {
      // The exception is set while this waits; it is kept aside, because nothing may run in Python meanwhile.
      const pybind11::error_already_set kept;
      ended([&] { return answer.wait(); });
      throw kept;
    }
    throw pybind11::error_already_set();
  }
  return answer.get();
}

}  // namespace sdma::python
