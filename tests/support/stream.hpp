// SPDX-License-Identifier: MIT
#pragma once
// A stream of the host: a thread that does what it is given, in order. It can be captured and replayed, as a graph.
//
//   test::Stream s;                          s.knows(*word);              // the words that it may write and wait for
//   s.kernel([] { ... });                    order.enqueue(s.calls(), ...);
//   s.begin_capture(); ... auto g = s.end_capture();   s.launch(g); s.launch(g);
//   CHECK(s.finish());                       // false: a hold did not end, which ends the stream
//
// A command keeps the values that it was given: a replay repeats them. One thread gives commands.
#include "sdma/sync/stream_order.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace test {

class Stream {
 public:
  using Command = std::function<bool()>;
  using Graph = std::vector<Command>;

  Stream() : thread_([this] { run(); }) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  /// What the stream answers to a word that it does not know.
  static constexpr int kNoSuchWord = 1;
  void knows(const sdma::Signal& s) { words_.emplace(s.va.value, s); }
  /// Later calls that write or hold return it.
  void refuse(int write, int hold) noexcept { refusal_ = {write, hold}; }

  sdma::StreamCalls calls() {
    return {
        .stream = this,
        .write = [](void* s, sdma::GpuVa w, std::uint32_t v) noexcept { return static_cast<Stream*>(s)->write(w, v); },
        .hold = [](void* s, sdma::GpuVa w, std::uint32_t v) noexcept { return static_cast<Stream*>(s)->hold(w, v); }};
  }
  void kernel(std::function<void()> f) {
    add([f = std::move(f)] { return f(), true; });
  }

  void begin_capture() { capturing_ = true; }
  Graph end_capture() {
    capturing_ = false;
    return std::exchange(captured_, {});
  }
  void launch(const Graph& g) {
    for (const auto& c : g) add(c);
  }

  /// Everything so far has been done. False: not within a minute.
  bool finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return commands_.empty() && !busy_; });
    return !stuck_;
  }

 private:
  int write(sdma::GpuVa w, std::uint32_t v) {
    if (refusal_.first != 0) return refusal_.first;
    const auto s = words_.find(w.value);
    if (s == words_.end()) return kNoSuchWord;
    add([word = s->second, v] { return word.set(v), true; });
    return 0;
  }
  int hold(sdma::GpuVa w, std::uint32_t v) {
    if (refusal_.second != 0) return refusal_.second;
    const auto s = words_.find(w.value);
    if (s == words_.end()) return kNoSuchWord;
    add([word = s->second, v] {
      return bool{sdma::wait(word, sdma::Compare::eq, v, sdma::Deadline::in(std::chrono::minutes(1)))};
    });
    return 0;
  }

  void add(Command c) {
    if (capturing_) return captured_.push_back(std::move(c));
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(c));
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !commands_.empty() || end_; });
      if (commands_.empty()) return;
      const auto command = std::move(commands_.front());
      commands_.pop_front();
      busy_ = true;
      lock.unlock();
      const bool good = stuck_ || command();
      lock.lock();
      busy_ = false;
      stuck_ = stuck_ || !good;
      changed_.notify_all();
    }
  }

  std::map<std::uint64_t, sdma::Signal> words_{};
  std::pair<int, int> refusal_{};
  Graph captured_{};
  bool capturing_ = false;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<Command> commands_{};
  bool busy_ = false, stuck_ = false, end_ = false;
  std::thread thread_;
};

}  // namespace test
