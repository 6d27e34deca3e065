// SPDX-License-Identifier: MIT
#pragma once
// When buffers exist and who may reach them, as the actions of host threads say. Internal.
//
//   alloc gpu0.b      gpu0.b exists from here on        free gpu0.b         it no longer exists
//   map host.b gpu1   gpu1 may access it                unmap host.b gpu1   it may no longer
//   export gpu0.b     GPUs other than gpu0 may          close gpu0.b        they may no longer
//
// What no action begins has begun before anything runs: a buffer that no thread allocates exists, a GPU for which no
// thread maps it has what map= says, and a buffer that no thread exports needs no handle. A free also takes what a map
// has given. An alias lives no longer than the bytes that it names, and may have a shorter life of its own, as a block
// of a pool has: it can be allocated and freed, but has no mapping and no handle of its own.
//
// Pure functions without errors; they allocate.
#include "gpu_set.hpp"
#include "symbols.hpp"

#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The keyword of such an action; "" for any other.
std::string_view lifetime_word(Schedule::Action::Kind) noexcept;
inline bool is_lifetime(const Schedule::Action& a) noexcept { return !lifetime_word(a.kind).empty(); }

/// Why this action cannot be about this buffer: a message and a hint.
std::optional<Diagnostic> wrong_lifetime(const Schedule&, Schedule::Action::Kind, std::size_t buffer);

/// What threads do with a buffer, at any time.
struct Lifetime {
  bool allocated = false, freed = false, exported = false;
  GpuSet mapped{}, unmapped{};  ///< by `map gpuG`, by `unmap gpuG`

  bool any() const noexcept { return allocated || freed || exported || mapped.any() || unmapped.any(); }
};
/// By the number of the buffer.
std::vector<Lifetime> lifetimes(const Schedule&);
/// Which GPUs may access it before anything runs, if it exists then.
GpuSet mapped_at_first(const Schedule::Buffer&, const Lifetime&) noexcept;

/// The buffers whose lives an access through this name needs: its own, and those whose bytes it is an alias of. The
/// last one has the bytes.
std::vector<std::size_t> buffers_of(const Schedule&, GpuVa);

}}}  // namespace sdma::v0_3::detail
