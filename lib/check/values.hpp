// SPDX-License-Identifier: MIT
#pragma once
// What words hold while an execution is followed. Internal.
//
//   Values now{model};
//   now.met(poll)        does the word satisfy the wait?
//   now.post(step)       a fence, atomic or set lands
//
// A value that is not known satisfies no wait: that is the worst case for progress.
#include "model.hpp"

#include <vector>

namespace sdma { inline namespace v0_3 { namespace check_detail {

class Values {
 public:
  explicit Values(const Model& m) : m_(m) {
    values_.reserve(m.words.size());
    for (const auto& w : m.words) values_.push_back({w.init, w.known});
  }

  bool known(std::uint32_t word) const noexcept { return values_[word].known; }
  bool met(const Step& poll) const noexcept {
    const auto& now = values_[poll.sync->word];
    return now.known && satisfied(poll, m_.words[poll.sync->word], now.value);
  }
  /// What a sample reads; 0 if that is not known.
  std::uint64_t now(const Step& sample) const noexcept {
    const auto& now = values_[sample.sync->word];
    return now.known ? part(sample, m_.words[sample.sync->word], now.value) : 0;
  }
  /// Returns what the word holds afterwards; 0 if that is not known.
  std::uint64_t post(const Step& s) noexcept {
    const auto& w = m_.words[s.sync->word];
    auto& now = values_[s.sync->word];
    now.value = value_after(s, w, now.value);
    now.known = now.known || (s.op == Op::store && s.sync->bytes == w.bytes);
    return now.known ? now.value : 0;
  }

 private:
  struct Value {
    std::uint64_t value;
    bool known;
  };
  const Model& m_;
  std::vector<Value> values_;
};

}}}  // namespace sdma::v0_3::check_detail
