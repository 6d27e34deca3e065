// SPDX-License-Identifier: MIT
#pragma once
// A Chooser that goes through every run: do { outcome(run(all)); } while (all.next());
#include "engine/chooser.hpp"

#include <vector>

namespace sdma::test {

/// Every sequence of answers, one per run, depth first. Runs must be finite and depend only on the answers.
class Enumerator final : public Chooser {
 public:
  std::uint32_t choose(Choice, std::uint32_t n) noexcept override {
    if (n == 1) return 0;  // no alternative to try later
    if (at_ == path_.size()) path_.push_back({0, n});
    return path_[at_++].taken;
  }
  /// Ends a run. True: another run follows, with other answers.
  [[nodiscard]] bool next() noexcept {
    ++runs_;
    path_.resize(at_);
    at_ = 0;
    while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }
  /// How many runs have ended.
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  struct Step {
    std::uint32_t taken, of;
  };
  std::vector<Step> path_;
  std::size_t at_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace sdma::test
