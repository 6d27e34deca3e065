// SPDX-License-Identifier: MIT
#pragma once
// Identifies the GPU of a render node: through libdrm_amdgpu if that is installed, otherwise with ioctls that make the
// same queries.
//
//   KfdGpu who;
//   const int error = identify(render, "libdrm_amdgpu.so.1", who);    // 0, or the errno of the first query that failed
//   who.source                                                        // "libdrm_amdgpu.so.1", or "ioctl"
//
// The library is loaded, not linked, for the reasons in thunk.hpp; a test compares the part of its ABI that is stated
// here with its headers. The library is optional: both ways give the same result. Any thread may call these functions.
// Internal to the library.
#include "sdma/device/kfd.hpp"

#include <cstdint>
#include <string>

namespace sdma { inline namespace v0_3 { namespace detail::drm {

/// Sets all but `kernel`. A firmware version that is not reported stays
/// 0. `library`: a name for the loader, or a path; "" for the ioctls.
int identify(int render, const std::string& library, KfdGpu&);

/// The beginning of struct amdgpu_gpu_info, up to the last member used here; libraries write more.
struct GpuInfo {
  std::uint32_t asic{}, chip_rev{}, external_rev{}, family{};
  std::uint64_t ids{}, engine_khz{}, memory_khz{};
  std::uint32_t shader_engines{}, arrays{}, quad_pipes[3]{}, gfx_contexts{}, rb_pipes{}, rb_mask{};
  std::uint32_t counter_khz{};
};

}}}  // namespace sdma::v0_3::detail::drm
