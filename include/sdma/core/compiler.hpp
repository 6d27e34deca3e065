// SPDX-License-Identifier: MIT
#pragma once
// One macro for each attribute, builtin and instruction that the C++ standard lacks. To port sdma to another compiler,
// add a branch here; nothing else has to change.
//
//   template <class P> SDMA_ALWAYS_INLINE constexpr void f(P) {}                // after `template <>`, before `static`
//
//   [&]() SDMA_ALWAYS_INLINE_LAMBDA { ... };                                    // before the body
//   struct Holder { SDMA_NO_UNIQUE_ADDRESS Empty member; };
//   SDMA_STORE_FENCE();                                                         // expressions of type void
//
// A program may define SDMA_STANDARD_ONLY before it includes any header of sdma. Then each macro has its standard
// equivalent or is empty, as for a compiler that is not known here: the results are the same, the code is slower, and
// ThreadSanitizer reports the reads that StallReport makes on purpose.
//
// Macros are tested with GCC and clang. The branch for MSVC is not tested. No state, no errors.
#include "sdma/core/standard.hpp"

#if !defined(SDMA_STANDARD_ONLY) && (defined(__GNUC__) || defined(__clang__))

/// Inlines a function at every call: packets are encoded with the stores that you would write by hand.
#define SDMA_ALWAYS_INLINE [[gnu::always_inline]]
/// The same for a lambda, where GCC 12 takes a standard attribute for one of the type.
#define SDMA_ALWAYS_INLINE_LAMBDA __attribute__((always_inline))
#if defined(__AMDGCN__) || defined(__NVPTX__)
// A call costs a kernel a stack, and the registers of both functions.
#define SDMA_NOINLINE
#define SDMA_COLD
#else
#define SDMA_NOINLINE [[gnu::noinline]]
/// For what rarely runs: it stays out of its callers, and is compiled for size.
#define SDMA_COLD [[gnu::cold, gnu::noinline]]
#endif
/// For a function that reads what other threads may be writing, and checks afterwards whether they did.
#define SDMA_NO_THREAD_SANITIZER __attribute__((no_sanitize("thread")))
#define SDMA_NO_UNIQUE_ADDRESS [[no_unique_address]]
/// Copies a constant number of bytes, for a store of several dwords at once.
#define SDMA_COPY_BYTES(to, from, bytes) __builtin_memcpy(to, from, bytes)

#elif !defined(SDMA_STANDARD_ONLY) && defined(_MSC_VER)

#include <cstring>
#define SDMA_ALWAYS_INLINE [[msvc::forceinline]]
#define SDMA_ALWAYS_INLINE_LAMBDA [[msvc::forceinline]]
#define SDMA_NOINLINE [[msvc::noinline]]
#define SDMA_COLD [[msvc::noinline]]
#define SDMA_NO_THREAD_SANITIZER
#define SDMA_NO_UNIQUE_ADDRESS [[msvc::no_unique_address]]
#define SDMA_COPY_BYTES(to, from, bytes) static_cast<void>(std::memcpy(to, from, bytes))

#else

#include <cstring>
#define SDMA_ALWAYS_INLINE
#define SDMA_ALWAYS_INLINE_LAMBDA
/// Keeps a function out of its callers; empty in this branch.
#define SDMA_NOINLINE
/// Keeps rare code out of its callers; empty in this branch.
#define SDMA_COLD
/// Keeps ThreadSanitizer from instrumenting a function; empty in this branch.
#define SDMA_NO_THREAD_SANITIZER
#define SDMA_NO_UNIQUE_ADDRESS [[no_unique_address]]
/// Copies a constant number of bytes; in this branch, with std::memcpy.
#define SDMA_COPY_BYTES(to, from, bytes) static_cast<void>(std::memcpy(to, from, bytes))

#endif

/// Device code. Where clang compiles HIP or CUDA, functions between SDMA_DEVICE_BEGIN and SDMA_DEVICE_END are compiled
/// for the GPU as well as for the host, as constexpr functions are without a mark. Elsewhere, the two are empty.
#if defined(__clang__) && (defined(__HIP__) || defined(__CUDA__))
#define SDMA_DEVICE_BEGIN _Pragma("clang force_cuda_host_device begin")
#define SDMA_DEVICE_END _Pragma("clang force_cuda_host_device end")
#else
/// Device code begins; empty in this branch.
#define SDMA_DEVICE_BEGIN
/// Device code ends; empty in this branch.
#define SDMA_DEVICE_END
#endif
#if defined(__AMDGCN__) || defined(__NVPTX__)
#define SDMA_DEVICE_PASS 1
#define SDMA_ASSERT(condition) static_cast<void>(0)
#else
#include <cassert>
/// 1 while the compiler compiles for the GPU, whose stores have no write-combining buffers.
#define SDMA_DEVICE_PASS 0
/// Ends the program if the condition is false, unless NDEBUG is defined; nothing in a kernel.
#define SDMA_ASSERT(condition) assert(condition)
#endif

/// Hides from the compiler how a lane's number came about, so that it keeps the number alone.
#ifdef __AMDGCN__
#define SDMA_OPAQUE(v) asm("" : "+v"(v))
#else
/// Hides nothing in this branch.
#define SDMA_OPAQUE(v) static_cast<void>(v)
#endif
/// Before a loop: the compiler leaves it as short as it is.
#if SDMA_DEVICE_PASS
#define SDMA_SHORT_LOOP _Pragma("clang loop unroll(disable) vectorize(disable) interleave(disable)")
#else
#define SDMA_SHORT_LOOP
#endif

/// The lanes of a wave, all of which must be active. On the host, a wave is one lane.
#if defined(__AMDGCN__)
#define SDMA_LANE() __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u))
#if __has_builtin(__builtin_amdgcn_wavefrontsize)
#define SDMA_LANES() __builtin_amdgcn_wavefrontsize()
#else
#define SDMA_LANES() \
  unsigned { __AMDGCN_WAVEFRONT_SIZE }
#endif
#define SDMA_FIRST_LANE(v) static_cast<std::uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(v)))
#define SDMA_WAVE_BARRIER() (__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront"), __builtin_amdgcn_wave_barrier())
#elif defined(__NVPTX__)
#define SDMA_LANE() static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_laneid())
#define SDMA_LANES() 32u
#define SDMA_FIRST_LANE(v) static_cast<std::uint32_t>(__nvvm_shfl_sync_idx_i32(~0u, static_cast<int>(v), 0, 31))
#define SDMA_WAVE_BARRIER() __nvvm_bar_warp_sync(~0u)
#else
/// Which lane of the wave runs.
#define SDMA_LANE() 0u
/// How many lanes the wave has.
#define SDMA_LANES() 1u
/// The 32-bit value of lane 0.
#define SDMA_FIRST_LANE(v) (v)
/// What the lanes have done before is done for the others afterwards.
#define SDMA_WAVE_BARRIER() static_cast<void>(0)
#endif

/// 1 if stores to cacheable memory become visible in program order, and if
/// loads do too, so that only stores that bypass the caches need a fence.
#if !SDMA_DEVICE_PASS && (defined(__x86_64__) || (defined(_M_X64) && !defined(_M_ARM64EC)))
#define SDMA_KEEPS_ORDER 1
#else
#define SDMA_KEEPS_ORDER 0
#endif

/// SDMA_WAIT_FOR_STORES, in code for an AMD GPU: this lane's stores are complete before later ones begin, and so is a
/// write-back of L2. The compiler does not always know that a write-back is under way: clang 22 leaves out the wait
/// between `buffer_wbl2` and the store of a release if it believes that no store is pending. So this is the instruction
/// itself, and not a fence.
#if defined(__AMDGCN__)
// Clang before 16 names the GPU, and not its family.
#if defined(__gfx900__) || defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__)
#define SDMA_GFX9 1
#elif defined(__gfx1010__) || defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__)
#define SDMA_GFX10 1
#endif
#if defined(__GFX12__)
#define SDMA_WAIT_FOR_STORES() []() SDMA_ALWAYS_INLINE_LAMBDA { asm volatile("s_wait_storecnt 0x0" ::: "memory"); }()
#elif defined(__GFX10__) || defined(__GFX11__) || defined(SDMA_GFX10)
#define SDMA_WAIT_FOR_STORES() \
  []() SDMA_ALWAYS_INLINE_LAMBDA { asm volatile("s_waitcnt_vscnt null, 0x0" ::: "memory"); }()
#elif defined(__GFX9__) || defined(__GFX8__) || defined(__GFX7__) || defined(SDMA_GFX9)
#define SDMA_WAIT_FOR_STORES() []() SDMA_ALWAYS_INLINE_LAMBDA { asm volatile("s_waitcnt vmcnt(0)" ::: "memory"); }()
#else
#error "sdma does not know how this GPU waits for its stores: add its instruction to sdma/core/compiler.hpp"
#endif
#else
/// Waits for this lane's stores; in this branch, does nothing.
#define SDMA_WAIT_FOR_STORES() static_cast<void>(0)
#endif

/// SDMA_STORE_FENCE: all earlier stores leave this core, those to write-combining memory too, before later ones. In
/// device code, they are written back to where the whole system sees them.
/// SDMA_PAUSE: for a loop that spins. It is not a yield of the thread, which costs milliseconds on a busy machine.
#if !defined(SDMA_STANDARD_ONLY) && defined(__GNUC__) && defined(__x86_64__) && !SDMA_DEVICE_PASS
#define SDMA_STORE_FENCE() __builtin_ia32_sfence()
#define SDMA_PAUSE() __builtin_ia32_pause()
#elif !defined(SDMA_STANDARD_ONLY) && defined(__GNUC__) && defined(__aarch64__)
#define SDMA_STORE_FENCE() [] { asm volatile("dmb oshst" ::: "memory"); }()
#define SDMA_PAUSE() [] { asm volatile("yield"); }()
#elif SDMA_DEVICE_PASS
#define SDMA_STORE_FENCE() (__atomic_thread_fence(__ATOMIC_RELEASE), SDMA_WAIT_FOR_STORES())
#ifdef __AMDGCN__
#define SDMA_PAUSE() __builtin_amdgcn_s_sleep(1)
#else
#define SDMA_PAUSE() static_cast<void>(0)
#endif
#elif !defined(SDMA_STANDARD_ONLY) && defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#define SDMA_STORE_FENCE() _mm_sfence()
#define SDMA_PAUSE() _mm_pause()
#else
#include <atomic>
#define SDMA_STORE_FENCE() std::atomic_thread_fence(std::memory_order_seq_cst)
/// Tells the processor that a loop spins; in this branch, does nothing.
#define SDMA_PAUSE() static_cast<void>(0)
#endif
