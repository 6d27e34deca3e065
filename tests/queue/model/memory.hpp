// SPDX-License-Identifier: MIT
#pragma once
// Memory as C++ promises it, no stronger: per location an order of its stores (modification order), per thread what it
// knows of each. A load returns any store that is not older than what its thread knows; an acquire of a release brings
// the knowledge of the one who stored; a store takes any place behind what its thread knows, except between an RMW and
// the store that it read; an RMW carries on the release of what it read. No fences, no seq_cst; a load never sees a
// store that its own thread makes later (so cycles of "out of thin air" do not occur, and neither does load buffering).
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace model {

inline constexpr int kThreads = 7;  ///< the one that sets up, and those that run
inline constexpr int kLocations = 20;
inline constexpr int kStores = 60;

[[noreturn]] inline void limit(const char* what) {
  std::fprintf(stderr, "the model is too small: %s\n", what);
  std::abort();
}

constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

/// What a thread knows, and what a release passes on.
struct View {
  std::array<std::uint8_t, kLocations> store{};  ///< the newest store that it knows of each location
  std::uint64_t written{};                       ///< blocks of plain writes: a bit each
  std::uint64_t read{};                          ///< the engine's plain reads, up to this position of the ring
  void join(const View& o) {
    for (std::size_t i = 0; i < kLocations; ++i) store[i] = std::max(store[i], o.store[i]);
    written |= o.written;
    read = std::max(read, o.read);
  }
};

struct Store {
  std::uint64_t value{};
  View view{};
  bool rmw{};
  std::uint32_t born{};  ///< stores to this location that were made before it
};
struct Location {
  int stores = 1;
  std::array<Store, kStores> at{};
};

enum class Kind : std::uint8_t { load, store, exchange, compare_exchange, await };

/// What a thread is about to do to a location.
struct Op {
  Kind kind{};
  int location{};
  std::memory_order order{}, failure{};
  std::uint64_t value{}, expected{};  ///< await: blocks until there is a value above `expected`
  std::uint64_t result{};
  bool success{};
};

constexpr bool acquires(std::memory_order o) {
  return o == std::memory_order_acquire || o == std::memory_order_acq_rel;
}
constexpr bool releases(std::memory_order o) {
  return o == std::memory_order_release || o == std::memory_order_acq_rel;
}

struct Memory {
  std::array<Location, kLocations> locations{};
  std::array<View, kThreads> views{};

  void reset() {
    for (auto& l : locations) {
      l.stores = 1;
      l.at[0] = {};
    }
    views = {};
  }

  /// May `op` of `thread` read store `r` (a store: take the place behind it)?
  bool allows(int thread, const Op& op, int r) const {
    const auto& l = locations[static_cast<std::size_t>(op.location)];
    const auto known = views[static_cast<std::size_t>(thread)].store[static_cast<std::size_t>(op.location)];
    if (r < known || r >= l.stores) return false;
    const auto& s = l.at[static_cast<std::size_t>(r)];
    const bool room = r + 1 == l.stores || !l.at[static_cast<std::size_t>(r) + 1].rmw;
    switch (op.kind) {
      case Kind::load: return true;
      case Kind::await: return s.value > op.expected;
      case Kind::compare_exchange: return s.value != op.expected || room;
      default: return room;
    }
  }

  void apply(int thread, Op& op, int r) {
    const auto at = static_cast<std::size_t>(op.location);
    auto& l = locations[at];
    auto& view = views[static_cast<std::size_t>(thread)];
    const Store seen = l.at[static_cast<std::size_t>(r)];
    op.result = seen.value;
    op.success = op.kind != Kind::compare_exchange || seen.value == op.expected;
    const auto order = op.success ? op.order : op.failure;
    if (op.kind != Kind::store) {
      view.store[at] = static_cast<std::uint8_t>(r);
      if (acquires(order)) view.join(seen.view);
    }
    if (op.kind == Kind::load || op.kind == Kind::await || !op.success) return;
    insert(op.location, r + 1);
    auto& s = l.at[static_cast<std::size_t>(r) + 1];
    view.store[at] = static_cast<std::uint8_t>(r + 1);
    s = {op.value, {}, op.kind != Kind::store, static_cast<std::uint32_t>(l.stores - 1)};
    if (s.rmw) s.view = seen.view;
    if (releases(order)) s.view.join(view);
    s.view.store[at] = static_cast<std::uint8_t>(r + 1);
  }

  const Store& last(int location) const {
    const auto& l = locations[static_cast<std::size_t>(location)];
    return l.at[static_cast<std::size_t>(l.stores) - 1];
  }

  /// Of what can still matter to the `live` threads.
  std::uint64_t hash(std::uint32_t live) const {
    std::array<std::uint8_t, kLocations> base;
    base.fill(255);
    std::uint64_t h = 0, common = ~std::uint64_t{};
    for (std::size_t t = 0; t < kThreads; ++t) {
      if (!(live >> t & 1)) continue;
      common &= views[t].written;
      for (std::size_t i = 0; i < kLocations; ++i) base[i] = std::min(base[i], views[t].store[i]);
    }
    const auto add = [&](const View& v) {
      std::array<std::uint64_t, (kLocations + 7) / 8> packed{};
      for (std::size_t i = 0; i < kLocations; ++i)
        packed[i / 8] |= std::uint64_t{static_cast<std::uint8_t>(std::max(v.store[i], base[i]) - base[i])} << i % 8 * 8;
      for (auto p : packed) h = mix(h, p);
      h = mix(mix(h, v.written | common), v.read);
    };
    for (std::size_t t = 0; t < kThreads; ++t)
      if (live >> t & 1) add(views[t]);
    for (std::size_t i = 0; i < kLocations; ++i) {
      const auto& l = locations[i];
      h = mix(h, i);
      // The last store is kept for what is checked at the end.
      for (auto s = std::min<std::size_t>(base[i], static_cast<std::size_t>(l.stores) - 1);
           s < static_cast<std::size_t>(l.stores); ++s) {
        h = mix(h, l.at[s].value * 2 + l.at[s].rmw);
        add(l.at[s].view);
      }
    }
    return h;
  }

 private:
  void insert(int location, int place) {
    auto& l = locations[static_cast<std::size_t>(location)];
    if (l.stores == kStores) limit("stores of a location");
    const auto at = static_cast<std::size_t>(location);
    const auto p = static_cast<std::size_t>(place);
    for (auto i = static_cast<std::size_t>(l.stores); i > p; --i) l.at[i] = l.at[i - 1];
    if (place != l.stores++) {
      for (auto& v : views) v.store[at] = static_cast<std::uint8_t>(v.store[at] + (v.store[at] >= place));
      for (auto& other : locations)
        for (std::size_t i = 0; i < static_cast<std::size_t>(other.stores); ++i) {
          auto& known = other.at[i].view.store[at];
          known = static_cast<std::uint8_t>(known + (known >= place));
        }
    }
  }
};

}  // namespace model
