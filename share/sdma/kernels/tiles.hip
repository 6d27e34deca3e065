// SPDX-License-Identifier: MIT
// The kernels of kernel_puts, for clang without a toolkit: HIP for an AMD GPU, CUDA for an NVIDIA GPU.
//
//   clang++ -x hip --offload-arch=gfx942 --offload-device-only -nogpulib -nogpuinc -std=c++20 -O2 -I include -c tiles.hip
//   clang++ -x cuda --cuda-gpu-arch=sm_90 --cuda-feature=+ptx80 --cuda-device-only -nocudainc -nocudalib -std=c++20 -O2 -I include -S tiles.hip
//
// A block is one wave, but for store_tiles.
#include "tiles.hpp"

#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#endif

#ifdef __NVPTX__
#define BLOCK() static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCKS() static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_nctaid_x())
#define THREAD() static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_tid_x())
#define THREADS() static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_ntid_x())
#define MEET() __syncthreads()
#else
#define BLOCK() __builtin_amdgcn_workgroup_id_x()
#define BLOCKS() (__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x())
#define THREAD() __builtin_amdgcn_workitem_id_x()
#define THREADS() __builtin_amdgcn_workgroup_size_x()
#define MEET() (__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup"), __builtin_amdgcn_s_barrier())
#endif

// Without a toolkit's headers, a kernel has no placement new.
__device__ void* operator new(std::size_t, void* at) noexcept { return at; }
__device__ void operator delete(void*, void*) noexcept {}

using Ring = sdma::Ring<sdma::Producers::many>;

/// Makes the ring's state in the GPU's memory, where its atomics are atomic, and the words of store_tiles.
extern "C" __global__ void make_ring(Ring* at, sdma::RingMemory memory, std::uint32_t* arrived, std::uint32_t blocks) {
  if (sdma::Wave::lane() != 0) return;
  new (static_cast<void*>(at)) Ring(memory);
  for (std::uint32_t i = 0; i < blocks; ++i) arrived[i] = 0;
}

extern "C" __global__ void put_all_tiles(Ring* ring, example::Tiles tiles) {
  sdma::Wave wave;
  sdma::Puts puts{*ring};
  example::put_tiles(puts, wave, tiles, BLOCK());
}

/// Work in registers alone, for what runs beside.
extern "C" __global__ void compute(float* out, std::uint32_t loops) {
  auto v = static_cast<float>(THREAD());
  for (std::uint32_t i = 0; i < loops; ++i) v = v * 0.999f + 1.0f;
  if (v < 0) *out = v;
}

/// The same movement by the kernel's own stores: all threads copy; block 0 waits for the others, sets the flag, and lets
/// them go on. `arrived`: a word for each block.
extern "C" __global__ void store_tiles(example::Tiles tiles, std::uint64_t words, std::uint32_t* arrived) {
  using sdma::atomic_ref;
  struct alignas(16) Four {
    std::uint32_t word[4];
  };
  const auto* const from = reinterpret_cast<const Four*>(tiles.from);
  auto* const to = reinterpret_cast<Four*>(tiles.to);
  const auto step = std::uint64_t{BLOCKS()} * THREADS();
  for (std::uint32_t round = 1; round <= tiles.rounds; ++round) {
    for (std::uint64_t i = std::uint64_t{BLOCK()} * THREADS() + THREAD(); i < words / 4; i += step) to[i] = from[i];
    sdma::order::Native::before_leader();
    MEET();
    const auto reached = [&](std::uint32_t& word) {
      auto loads = tiles.loads;
      while (loads != 0 && atomic_ref<std::uint32_t>(word).load(std::memory_order_acquire) < round) --loads;
      if (loads == 0) atomic_ref<std::uint32_t>(*tiles.failed).store(1, std::memory_order_relaxed);
    };
    if (BLOCK() == 0) {
      if (THREAD() != 0 && THREAD() < BLOCKS()) reached(arrived[THREAD()]);
      MEET();
      if (THREAD() == 0) {
        atomic_ref<std::uint64_t>(*tiles.words).store(round, std::memory_order_release);
        atomic_ref<std::uint32_t>(arrived[0]).store(round, std::memory_order_release);
      }
    } else if (THREAD() == 0) {
      atomic_ref<std::uint32_t>(arrived[BLOCK()]).store(round, std::memory_order_release);
      reached(arrived[0]);
    }
    MEET();
  }
}
