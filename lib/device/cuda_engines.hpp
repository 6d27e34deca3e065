// SPDX-License-Identifier: MIT
#pragma once
// The engines that a CudaDevice presents on each GPU: its own division of the 30 streams that may wait. Internal.
#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

inline constexpr std::uint32_t kHostEngines = 2, kPeerEngines = 4;
inline constexpr std::uint32_t kQueues = 5;  ///< of an engine

}}}  // namespace sdma::v0_3::detail::cuda
