// SPDX-License-Identifier: MIT
// What lib/device/cuda/cuda_driver.hpp says of the driver's ABI, against <cuda.h>,
// where that is installed. Nothing runs: it compiles, or it does not.
#include "../../lib/device/cuda/cuda_driver.hpp"

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <type_traits>

namespace c = sdma::detail::cuda;

static_assert(CUDA_SUCCESS == c::kSuccess && CUDA_ERROR_INVALID_VALUE == c::kInvalidValue &&
              CUDA_ERROR_OUT_OF_MEMORY == c::kOutOfMemory && CUDA_ERROR_STUB_LIBRARY == c::kStubLibrary &&
              CUDA_ERROR_NO_DEVICE == c::kNoDevice && CUDA_ERROR_NOT_READY == c::kNotReady &&
              CUDA_ERROR_ILLEGAL_ADDRESS == c::kIllegalAddress && CUDA_ERROR_NOT_SUPPORTED == c::kNotSupported);
static_assert(std::is_same_v<CUdeviceptr, c::Pointer> && std::is_same_v<CUmemGenericAllocationHandle, c::Handle> &&
              std::is_same_v<CUdevice, c::DeviceOrdinal>);
static_assert(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == c::kMultiprocessors &&
              CU_DEVICE_ATTRIBUTE_PCI_BUS_ID == c::kPciBus && CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID == c::kPciDevice &&
              CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING == c::kUnifiedAddressing &&
              CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID == c::kPciDomain &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == c::kComputeMajor &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == c::kComputeMinor &&
              CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED == c::kHostAtomics &&
              CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED == c::kVirtualMemory &&
              CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM == c::kHostPointers &&
              CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED == c::kFileHandles &&
              CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID == c::kHostNuma);
static_assert(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED == c::kPeerAccess &&
              CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED == c::kPeerAtomics);
static_assert(CU_STREAM_NON_BLOCKING == c::kNonBlocking && CU_STREAM_WAIT_VALUE_GEQ == c::kWaitGreaterOrEqual &&
              CU_STREAM_WAIT_VALUE_EQ == c::kWaitEqual && CU_MEMHOSTALLOC_PORTABLE == c::kPortable &&
              CU_MEMHOSTALLOC_DEVICEMAP == c::kDeviceMapped && CU_MEMHOSTREGISTER_PORTABLE == c::kPortable &&
              CU_MEMHOSTREGISTER_DEVICEMAP == c::kDeviceMapped &&
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR == c::kFileDescriptor);

static_assert(CU_MEM_LOCATION_TYPE_DEVICE == c::Location{}.type && sizeof(CUmemLocation) == sizeof(c::Location));
static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == c::MemoryProperties{}.type);
static_assert(sizeof(CUmemAllocationProp) == sizeof(c::MemoryProperties) &&
              offsetof(CUmemAllocationProp, location) == offsetof(c::MemoryProperties, location) &&
              offsetof(CUmemAllocationProp, requestedHandleTypes) == offsetof(c::MemoryProperties, handle_types) &&
              offsetof(CUmemAllocationProp, allocFlags) == offsetof(c::MemoryProperties, flags));
static_assert(CU_MEM_ACCESS_FLAGS_PROT_READWRITE == c::MemoryAccess{}.flags &&
              sizeof(CUmemAccessDesc) == sizeof(c::MemoryAccess) &&
              offsetof(CUmemAccessDesc, flags) == offsetof(c::MemoryAccess, flags));

static_assert(CU_MEMORYTYPE_UNIFIED == c::Copy2D::kUnified && sizeof(CUDA_MEMCPY2D) == sizeof(c::Copy2D));
static_assert(offsetof(CUDA_MEMCPY2D, srcMemoryType) == offsetof(c::Copy2D, src_type) &&
              offsetof(CUDA_MEMCPY2D, srcDevice) == offsetof(c::Copy2D, src) &&
              offsetof(CUDA_MEMCPY2D, srcPitch) == offsetof(c::Copy2D, src_pitch) &&
              offsetof(CUDA_MEMCPY2D, dstMemoryType) == offsetof(c::Copy2D, dst_type) &&
              offsetof(CUDA_MEMCPY2D, dstDevice) == offsetof(c::Copy2D, dst) &&
              offsetof(CUDA_MEMCPY2D, dstPitch) == offsetof(c::Copy2D, dst_pitch) &&
              offsetof(CUDA_MEMCPY2D, WidthInBytes) == offsetof(c::Copy2D, width) &&
              offsetof(CUDA_MEMCPY2D, Height) == offsetof(c::Copy2D, height));

#if CUDA_VERSION >= 12080
static_assert(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM == c::BatchAttributes{}.src_access_order &&
              CU_MEM_LOCATION_TYPE_INVALID == c::BatchAttributes{}.src_hint.type);
static_assert(sizeof(CUmemcpyAttributes) == sizeof(c::BatchAttributes) &&
              offsetof(CUmemcpyAttributes, dstLocHint) == offsetof(c::BatchAttributes, dst_hint) &&
              offsetof(CUmemcpyAttributes, flags) == offsetof(c::BatchAttributes, flags));
#endif
#endif
