// SPDX-License-Identifier: MIT
#pragma once
// What examples/streams/cuda.hpp needs of CUDA's driver interface: streams.cpp finds the functions in libcuda at run
// time.
using CUstream = struct StreamTag*;
using CUdeviceptr = unsigned long long;
using CUresult = int;
inline constexpr unsigned CU_STREAM_WRITE_VALUE_DEFAULT = 0, CU_STREAM_WAIT_VALUE_EQ = 1;
CUresult cuStreamWriteValue32(CUstream, CUdeviceptr, unsigned value, unsigned flags);
CUresult cuStreamWaitValue32(CUstream, CUdeviceptr, unsigned value, unsigned flags);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, decltype(sizeof 0) bytes, CUstream);
