// SPDX-License-Identifier: MIT
#pragma once
// Two accesses that may happen in either order, as races.cpp finds them and race_text.cpp reports them. Internal.
#include "reporter.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {

/// An access.
struct Ref {
  std::uint32_t agent = kNone, position = 0;
  Mode mode{};
  const Step* post = nullptr;  ///< of Mode::store and Mode::modify
};
struct Race {
  std::string_view rule;
  Ref a, b;
  std::uint64_t begin, end;
  bool reads_written;  ///< `a` reads bytes that have been written
  /// `b` reads, and is ordered after an earlier write of these bytes by the agent of `a`: a message is lost.
  bool seen_earlier;
  std::size_t more = 0;
};

inline bool writes(Mode m) noexcept { return m == Mode::write || m == Mode::store || m == Mode::modify; }

void describe(const Model&, Reporter&, const Race&);

}}}  // namespace sdma::v0_3::check_detail
