// SPDX-License-Identifier: MIT
#pragma once
// What a host thread or a kernel has sampled, by name. Internal: runs and simulations share it.
//
//   Samples seen;
//   seen.set("n", 3);
//   seen.at(sampled("n") + 4, round)   ==   7
//
// Threads: one. Allocates for the first sample of each name only.
// Errors: none. A name that was never sampled counts as 0; `problems` reports it.
#include "sdma/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class Samples {
 public:
  /// `name` must outlive this.
  void set(std::string_view name, std::uint64_t seen) {
    if (auto* at = find(name)) *at = seen;
    else all_.emplace_back(name, seen);
  }
  std::uint64_t at(const ActionValue& v, std::uint64_t epoch) noexcept {
    const auto* seen = v.sample.empty() ? nullptr : find(v.sample);
    return v.at(epoch, seen ? *seen : 0);
  }

 private:
  std::uint64_t* find(std::string_view name) noexcept {
    const auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& sample) { return sample.first == name; });
    return at == all_.end() ? nullptr : &at->second;
  }

  std::vector<std::pair<std::string_view, std::uint64_t>> all_;
};

/// Why a word of 32 bits does not hold a value of this round, which is 0 outside of repeats.
inline std::string too_wide(std::uint64_t value, std::uint64_t round) {
  return fmt::format("the value{} does not fit in 32 bits: {}", round == 0 ? "" : fmt::format(" of round {}", round),
                     value);
}

}}}  // namespace sdma::v0_3::detail
