// SPDX-License-Identifier: MIT
#pragma once
// Finds what a KFD device needs, and what of that is missing. Keeps nothing open.
//
//   Probe p = probe(options);      // p.missing: in the order in which a user would fix it
//
// Any thread may call these functions. Internal to the library.
#include "../sysfs.hpp"
#include "sdma/device/kfd.hpp"
#include "thunk.hpp"

#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The first version of the driver's interface that supports gfx942.
inline constexpr std::uint32_t kKfdMajor = 1, kKfdMinor = 13;

struct Probe {
  std::vector<Diagnostic> missing{};
  SysfsNode node{};                          ///< with GPUs of gfx94x only
  std::vector<std::uint32_t> thunk_nodes{};  ///< for each GPU, its node number in libhsakmt
  std::uint32_t thunk_cpu{};                 ///< the number of a host node in libhsakmt
  const thunk::Thunk* thunk{};
};
Probe probe(const KfdOptions&);

/// Why this version of the interface cannot be used; empty if it can.
std::vector<Diagnostic> refuse_version(std::uint32_t major, std::uint32_t minor);

/// What an errno from opening a device file means, and what to do.
Diagnostic cannot_open(const std::string& path, int error);

}}}  // namespace sdma::v0_3::detail
