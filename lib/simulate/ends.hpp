// SPDX-License-Identifier: MIT
#pragma once
// When flows end: each flow has one end, which moves as its rate changes. Internal.
//
//   Ends ends;
//   ends.set({.t = 120.5, .number = 7, .flow = 3});     // again for the same flow: its end moves
//   if (!ends.empty() && ends.next().t <= t) ended(ends.take());
//
// A heap with the place of each flow in it. The earliest end comes first; of equal ones, that with the lowest number.
// `set` and `take` take logarithmic time. Thread-safety: none. No errors.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class Ends {
 public:
  struct End {
    double t{};
    std::uint64_t number{};
    std::uint32_t flow{};
    bool before(const End& o) const noexcept { return t != o.t ? t < o.t : number < o.number; }
  };

  bool empty() const noexcept { return heap_.empty(); }
  /// The first end. Requires that there is one.
  const End& next() const noexcept { return heap_.front(); }
  void set(const End& e) {
    if (places_.size() <= e.flow) places_.resize(e.flow + std::size_t{1}, kNone);
    auto at = std::size_t{places_[e.flow]};
    if (at == kNone) at = heap_.size(), heap_.push_back(e);
    heap_[at] = e;
    settle(at);
  }
  /// Removes the first end, and returns its flow.
  std::uint32_t take() {
    const auto flow = heap_.front().flow;
    places_[flow] = kNone;
    const auto last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) heap_.front() = last, settle(0);
    return flow;
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  /// Moves the end at this place to where it belongs.
  void settle(std::size_t at) {
    const auto e = heap_[at];
    const auto put = [&](std::size_t place, const End& what) {
      heap_[place] = what;
      places_[what.flow] = static_cast<std::uint32_t>(place);
    };
    while (at > 0 && e.before(heap_[(at - 1) / 2])) put(at, heap_[(at - 1) / 2]), at = (at - 1) / 2;
    for (;;) {
      auto child = 2 * at + 1;
      if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
      if (child >= heap_.size() || !heap_[child].before(e)) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, e);
  }

  std::vector<End> heap_;
  std::vector<std::uint32_t> places_;  ///< of each flow
};

}}}  // namespace sdma::v0_3::detail
