// SPDX-License-Identifier: MIT
// What perf/hip_streams.hpp says of HIP's ABI, against <hip/hip_runtime_api.h>,
// where that is installed. Nothing runs: it compiles, or it does not.
#include "perf/hip_streams.hpp"

#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include <type_traits>

namespace {

using C = collectives::perf::HipCalls;

static_assert(hipSuccess == C::kSuccess && hipErrorNotReady == C::kNotReady);
static_assert(hipStreamNonBlocking == C::kNonBlocking && hipStreamWaitValueGte == C::kAtLeast);
static_assert(hipMallocSignalMemory == C::kSignalMemory && hipMemcpyDefault == C::kByAddresses);
static_assert(hipHostMallocPortable == C::kPortable && hipHostMallocCoherent == C::kCoherent);
static_assert(sizeof(hipStream_t) == sizeof(C::Stream) && sizeof(hipError_t) == sizeof(C::Status));
static_assert(std::is_same_v<decltype(&hipStreamWaitValue32),
                             hipError_t (*)(hipStream_t, void*, std::uint32_t, unsigned, std::uint32_t)>);
static_assert(
    std::is_same_v<decltype(&hipStreamWriteValue32), hipError_t (*)(hipStream_t, void*, std::uint32_t, unsigned)>);
static_assert(std::is_same_v<decltype(&hipDeviceGetByPCIBusId), hipError_t (*)(int*, const char*)>);
static_assert(std::is_same_v<decltype(&hipDeviceCanAccessPeer), hipError_t (*)(int*, int, int)>);
static_assert(std::is_same_v<decltype(&hipDeviceEnablePeerAccess), hipError_t (*)(int, unsigned)>);
static_assert(std::is_same_v<decltype(&hipExtMallocWithFlags), hipError_t (*)(void**, std::size_t, unsigned)>);

}  // namespace
#endif
