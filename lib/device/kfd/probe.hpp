#pragma once
// What is there and what is missing before a device can be opened. Asks, and keeps nothing open.
//
//   Probe p = probe(options);      // p.missing: in the order in which one would mend it
//
// Any thread; internal to the library.
#include "sdma/device/kfd.hpp"
#include "thunk.hpp"

#include <string>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

/// The first interface whose driver knows a gfx942.
inline constexpr std::uint32_t kKfdMajor = 1, kKfdMinor = 13;

struct Probe {
  std::vector<Diagnostic> missing{};
  SysfsNode node{};                          ///< gfx94x alone
  std::vector<std::uint32_t> thunk_nodes{};  ///< of each GPU: what libhsakmt calls it
  std::uint32_t thunk_cpu{};                 ///< a node of the host
  const thunk::Thunk* thunk{};
};
Probe probe(const KfdOptions&);

/// Why this interface is too old; none: it is not.
std::vector<Diagnostic> refuse_version(std::uint32_t major, std::uint32_t minor);

/// What an errno of opening a device file means, and what to do.
Diagnostic cannot_open(const std::string& path, int error);

}  // namespace detail
}  // namespace v0
}  // namespace sdma
