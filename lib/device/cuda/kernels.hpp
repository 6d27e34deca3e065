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

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

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

inline constexpr const char* kPtxHeader = ".version 7.0\n.target sm_70\n.address_size 64\n";
/// A kernel whose threads do the same for each %i below the parameter `count`, in strides of the grid. `body` has the
/// parameters as 64-bit registers of their names, %a to compute with, and what it declares itself.
inline std::string grid_kernel(std::string_view name, std::initializer_list<std::string_view> parameters,
                               std::string_view count, std::string_view body) {
  std::string list, loads;
  for (const auto p : parameters) {
    list += fmt::format("{}.param .u64 {}", list.empty() ? "" : ", ", p);
    loads += fmt::format("  .reg .b64 %{0};\n  ld.param.u64 %{0}, [{0}];\n", p);
  }
  return fmt::format(R"(.visible .entry {}({})
{{
{}  .reg .b64 %i, %step, %a;
  .reg .b32 %block, %thread, %size, %grid;
  .reg .pred %done;
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %grid, %nctaid.x;
  mul.wide.u32 %i, %block, %size;
  cvt.u64.u32 %a, %thread;
  add.u64 %i, %i, %a;
  mul.wide.u32 %step, %size, %grid;
NEXT:
  setp.ge.u64 %done, %i, %{};
  @%done bra END;
{}  add.u64 %i, %i, %step;
  bra NEXT;
END:
  ret;
}}
)",
                     name, list, loads, count, body);
}

}}}  // namespace sdma::v0_3::detail::cuda
