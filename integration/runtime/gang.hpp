// SPDX-License-Identifier: MIT
#pragma once
// One copy over the engines of several paths, with one completion.
//
//   CopyPath* const paths[] = {&a, &b, &c};                      // the first one leads
//   const SignalView items[] = {view(one), view(two)};           // a signal for each other path: 2, without a mailbox
//   submit({.paths = paths, .items = items}, {src, dst, bytes}, {.after = deps, .out = view(done)}, deadline);
//
//   member   its share of the bytes, then its item falls from 2 to 1
//   leader   its share; for each member: waits until the item is 1, and makes it 0; then completes `out`
//
// When `out` is complete, no engine touches the items any more. Shares are multiples of 64 bytes, except the last: a
// short copy has fewer shares than there are paths, and leaves the items of the others alone. Only the leader stores
// time stamps. Give each path an engine of its own: a pending poll of the leader may keep its engine from a member.
//
// Errors: bad_argument (no path, more than kMostPaths, items that are not one fewer), and those of CopyPath::submit. If
// a member cannot take its share, the leader makes that share too. If the leader fails, the error is returned, and the
// shares of members are copied all the same: wait until each of their paths is idle. Any thread; nothing allocates.
#include "path.hpp"

#include <span>

namespace runtime {

struct Gang {
  std::span<CopyPath* const> paths{};   ///< the first one leads
  std::span<const SignalView> items{};  ///< of each of the others
};

/// More than the engines of any GPU.
inline constexpr std::size_t kMostPaths = 64;

/// `common`: everything but the work. Returns the number of the leader's command on its path.
sdma::Result<std::uint64_t> submit(const Gang&, const LinearCopy&, const Command& common, sdma::Deadline) noexcept;

}  // namespace runtime
