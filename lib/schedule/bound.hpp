#pragma once
// What a Bound consists of. Internal: bind.cpp makes it, bound.cpp works with it.
#include "link.hpp"
#include "sdma/schedule/bind.hpp"

#include <mutex>
#include <optional>

namespace sdma {
inline namespace v0 {

struct Bound::Impl {
  /// Where a buffer or a signal lies.
  struct Home {
    GpuVa va{};
    std::byte* host{};
  };
  struct Program {
    Queue queue;
    std::optional<Ring<Producers::many>> ring;
    detail::Linked linked{};
    std::mutex mutex{};
    std::uint64_t epoch = 0;
  };

  Impl(const Schedule& s, Device& d) : schedule(s), device(d) {}

  Schedule schedule;
  Device& device;
  std::vector<Memory> memory;
  std::vector<SignalMemory> words;
  std::vector<Home> buffers, signals;
  std::vector<Signal> waits;                       // of signals, for sync/wait.hpp
  std::vector<std::unique_ptr<Program>> programs;  // behind what their packets name

  Home home(const Located& l) const noexcept { return l.signal ? signals[l.index] : buffers[l.index]; }
};

}  // namespace v0
}  // namespace sdma
