// SPDX-License-Identifier: MIT
#pragma once
// What the copies of a schedule have in common, found from its packets. Internal.
//
//   PatternOf of;
//   for each packet: of.packet(p, gpu, [&](GpuVa va) { return memory.home(va); });      // addresses are resolved
//   of.pattern()
#include "../schedule/symbols.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/simulate/machine.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

class PatternOf {
 public:
  void network() noexcept { holds(CopyPattern::network); }

  template <class Packet, class Home> void packet(const Packet& p, Place gpu, Home&& home) {
    if (const auto w = word(p); w.bytes != 0) {
      if (role(p) == Role::acquire) polled_.insert({w.va.value, gpu.index});
      else if (role(p) == Role::release) written_.insert({w.va.value, gpu.index});
    }
    if constexpr (Divisible<Packet>) {
      if (std::is_same_v<Packet, CopySwap>) holds(CopyPattern::swaps);
      GpuVa from{};
      bool reads = false;
      std::set<Place, Less> others;
      footprint(p, [&](const Region& r) {
        if (allows(r.access, Access::read)) from = r.va, reads = true;
        if (const auto at = home(r.va); at != gpu) others.insert(at);
      });
      for (const auto at : others) {
        if (at.is_host()) holds(CopyPattern::host);
        peers_[gpu.index].insert(at);
        if (reads) sent_[from.value].insert(at);
      }
    }
  }

  CopyPattern pattern() {
    const auto several = [](const auto& all) {
      return std::any_of(all.begin(), all.end(), [](const auto& one) { return one.second.size() > 1; });
    };
    if (several(peers_)) holds(CopyPattern::own_sources);
    if (several(sent_)) holds(CopyPattern::one_source);
    for (const auto& [word, reader] : polled_)
      for (auto w = written_.lower_bound({word, 0}); w != written_.end() && w->first == word; ++w)
        if (w->second != reader) holds(CopyPattern::relay);
    return pattern_;
  }

 private:
  struct Less {
    bool operator()(Place a, Place b) const noexcept { return number(a) < number(b); }
    static std::uint64_t number(Place p) noexcept { return p.is_host() ? ~std::uint64_t{} : p.index; }
  };
  using Words = std::set<std::pair<std::uint64_t, std::uint32_t>>;  ///< a word, and the GPU whose engine uses it
  void holds(CopyPattern p) noexcept { pattern_ = std::max(pattern_, p); }

  CopyPattern pattern_{};
  Words polled_{}, written_{};
  std::map<std::uint32_t, std::set<Place, Less>> peers_{};  ///< by GPU
  std::map<std::uint64_t, std::set<Place, Less>> sent_{};   ///< by source
};

}}}  // namespace sdma::v0_3::detail
