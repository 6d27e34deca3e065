// SPDX-License-Identifier: MIT
#include "sdma/engine/chooser.hpp"

namespace sdma::inline v0 {

Chooser::~Chooser() = default;
Seeded::~Seeded() = default;

std::uint32_t Enumerator::choose(Choice, std::uint32_t n) noexcept {
  if (n == 1) return 0;  // no alternative to try later
  if (at_ == path_.size()) path_.push_back({0, n});
  return path_[at_++].taken;
}

bool Enumerator::next() noexcept {
  ++runs_;
  path_.resize(at_);
  at_ = 0;
  while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().taken;
  return true;
}

}  // namespace sdma::inline v0
