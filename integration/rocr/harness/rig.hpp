// SPDX-License-Identifier: MIT
#pragma once
// One blit object of ROCr, original or patched, with a ring in plain memory and an engine that only moves rptr.
//
//   rig::State state{...};                       // the ISA, what the link can do, and the ring
//   auto blit = rig::theirs(state);              // or rig::ours
//   blit->copy(dst, src, bytes, deps, out, gang);
//
// The two are made from amd_blit_sdma.cpp of two trees (blit.cpp). Signals are memory of the caller, so both write the
// same addresses. One thread creates; `current` is that of the calling thread.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rig {

/// The layout of ROCr's signal, and room for its time stamps.
struct alignas(64) SignalMemory {
  std::int64_t kind{};
  std::int64_t value{};
  std::uint64_t mailbox{};
  std::uint32_t event{}, reserved{};
  std::uint64_t rest[4]{};
  alignas(64) std::uint64_t stamps[8]{};
};

struct State {
  int isa[3]{9, 4, 2};
  bool atomics = true, xgmi = false, profiling = false;
  std::size_t longest_copy = 0x3fffffff;
  char* ring{};  ///< kRingBytes, page aligned
  alignas(64) std::uint64_t wptr{};
  alignas(64) std::uint64_t rptr{};
  std::uint64_t unused{};
  alignas(64) std::uint64_t doorbell{};
  SignalMemory* internals{};  ///< 2: what blocking calls wait for
  int next_internal = 0;
  SignalMemory& internal() { return internals[next_internal++ % 2]; }
};
inline constexpr std::size_t kRingBytes = 1 << 20;
inline thread_local State* current = nullptr;

struct Box {
  struct Side {
    void* base;
    std::size_t pitch, slice;
    std::uint32_t x, y, z;
  } dst, src;
  std::uint32_t x, y, z;
};

struct Copy {
  void* dst;
  const void* src;
  std::size_t size;
};

/// Each returns an hsa_status_t.
struct Blit {
  using Signals = std::vector<SignalMemory*>;
  virtual ~Blit() = default;
  virtual int copy(void* dst, const void* src, std::size_t bytes, const Signals& deps, SignalMemory& out,
                   const Signals& gang) = 0;
  virtual int copy(void* dst, const void* src, std::size_t bytes) = 0;
  virtual int box(const Box&, const Signals& deps, SignalMemory& out) = 0;
  /// Several copies that complete together; the original has no such command and sends one for each.
  virtual int batch(const Copy*, std::size_t count, const Signals& deps, SignalMemory& out) = 0;
  virtual int fill(void* dst, std::uint32_t value, std::size_t count) = 0;
  virtual std::uint64_t pending() = 0;
  virtual void leads(bool) = 0;
};
std::unique_ptr<Blit> theirs(State&);
std::unique_ptr<Blit> ours(State&);

}  // namespace rig
