// SPDX-License-Identifier: MIT
#pragma once
// The members of a Bound. Internal: bind.cpp creates them, bound.cpp uses them.
#include "link.hpp"
#include "sdma/schedule/bind.hpp"
#include "team.hpp"

#include <map>
#include <mutex>
#include <optional>

namespace sdma { inline namespace v0_3 {

struct Bound::Impl {
  /// The location of a buffer or a signal.
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
  NameTable names;
  std::vector<Signal> waits;               // for sync/wait.hpp, one per signal
  std::map<std::size_t, Signal> words_at;  // of several ranks: the signals in `memory`, by index
  std::optional<detail::Team> team;        // if there are several ranks
  // If there are several nodes. Destroyed before the memory, which its thread uses.
  std::unique_ptr<detail::NetworkThread> network;
  // One per queue, null for those of other ranks. Destroyed before the memory that their packets refer to.
  std::vector<std::unique_ptr<Program>> programs;

  bool has(const SymbolOffset& l) const noexcept { return !team || team->has(l); }
  Home& home(const SymbolOffset& l) noexcept { return l.signal ? signals[l.index] : buffers[l.index]; }
};

}}  // namespace sdma::v0_3
