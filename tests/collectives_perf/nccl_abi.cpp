// SPDX-License-Identifier: MIT
// What perf/nccl_calls.hpp says of NCCL's ABI, against <nccl.h>,
// where that is installed. Nothing runs: it compiles, or it does not.
#include "perf/nccl_calls.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>

#include <type_traits>

namespace {

using C = collectives::perf::NcclCalls;

static_assert(ncclSuccess == C::kSuccess && ncclUint8 == C::kBytes && NCCL_CONFIG_UNDEF_INT == C::kUndefined);
static_assert(sizeof(ncclUniqueId) == sizeof(C::Id) && alignof(ncclUniqueId) == alignof(C::Id));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(NCCL_WIN_COLL_SYMMETRIC == C::kSymmetric && NCCL_CTA_POLICY_ZERO == C::kNoKernels);
static_assert(NCCL_VERSION(2, 28, 0) == C::kCopyEngines);
static_assert(offsetof(ncclConfig_t, magic) == offsetof(C::Config, magic) &&
              offsetof(ncclConfig_t, version) == offsetof(C::Config, version) &&
              offsetof(ncclConfig_t, blocking) == offsetof(C::Config, blocking) &&
              offsetof(ncclConfig_t, netName) == offsetof(C::Config, net_name) &&
              offsetof(ncclConfig_t, commName) == offsetof(C::Config, comm_name) &&
              offsetof(ncclConfig_t, CTAPolicy) == offsetof(C::Config, cta_policy) &&
              offsetof(ncclConfig_t, nvlinkCentricSched) == offsetof(C::Config, nvlink_centric));
static_assert(std::is_same_v<decltype(&ncclAlltoAll), ncclResult_t (*)(const void*, void*, std::size_t, ncclDataType_t,
                                                                       ncclComm_t, cudaStream_t)>);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0) && NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(sizeof(ncclConfig_t) == sizeof(C::Config));
#endif

}  // namespace
#endif
