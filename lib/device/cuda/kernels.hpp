// SPDX-License-Identifier: MIT
#pragma once
// The kernels of the CUDA device, as PTX text that the driver compiles: what copy engines cannot do.
//
//   entry                          does
//   add_32 ... cmpswap_64          one atomic read-modify-write: (address, value, compare)
//   timestamp                      stores the GPU's clock in ticks of 10 ns: (address)
//   merge                          for each byte i with now[i] != before[i]: to[i] = now[i]: (to, now, before, bytes)
//
// All but `merge` are started with one thread. Constants; any thread. No errors.
#include "sdma/packets/sync.hpp"

#include <string>
#include <vector>

namespace sdma { inline namespace v0 { namespace detail::cuda {

/// The entry for an operation, e.g. "add_64", and the operand
/// that it takes for `value`: a subtraction adds its negative.
struct AtomicKernel {
  const char* name{};  ///< null: no kernel does it
  std::uint64_t operand{};
};
AtomicKernel kernel_of(AtomicOp, std::uint64_t value) noexcept;
/// Every name that kernel_of gives.
std::vector<const char*> atomic_kernels();
/// The text of all kernels.
std::string kernel_text();

}}}  // namespace sdma::v0::detail::cuda
